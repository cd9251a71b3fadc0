"""Likelihoods of logarithms of sums over rows: linear in f, less w log(c + sum_i A_i exp f_i).

Such are a conditional logit (each stratum has one sum), the ranking of Plackett and Luce (one sum
of those left for each place) and the partial likelihood of Cox (one of those at risk for each
event). They are read from the Ops between f and the likelihood, by an allow-list; anything else is
`NotRecognisedError`, never a guess. An expression is one of

- `Linear`: linear in f and in the logarithms of sums found so far. If ``is_row``, an entry is f of
  one row plus something that does not depend on f, or does not depend on f at all;
- `Summed`: c + sum_i A_i exp f_i, with c and A not negative;
- `Ratio`: the exponential of a `Linear`, such as a softmax.

The logarithm of a sum becomes a new variable, so that afterwards the likelihood is linear in f and
in these: coefficients are derivatives, whatever the graph between them looks like.
"""

from dataclasses import dataclass, replace
from functools import singledispatchmethod

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalars
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.random.basic import CategoricalRV, MultinomialRV
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.special import LogAddExp, LogSoftmax, LogSumExp, Softmax
from pytensor.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
)

from pymc_trees.targets.data_signs import data_of, is_data, is_positive
from pymc_trees.targets.graph import (
    ForestGraph,
    NotRecognisedError,
    dependent_on,
    named_parameters,
    open_forest,
    passes_through,
)
from pymc_trees.targets.likelihoods.expressions import output_column, slope_of
from pymc_trees.targets.terms import summands

MOST_SUMS = 500
"""Arrays of sums, such as one for each stratum of a loop: their graphs are differentiated."""


@dataclass(frozen=True)
class Linear:
    """Linear in f and in logarithms of sums."""

    value: Variable
    is_row: bool = False
    rises: bool = False
    """If ``is_row``: whether each entry rises with f, or is minus infinity."""


@dataclass(frozen=True)
class Summed:
    """c + sum_i A_i exp f_i for each entry."""

    value: Variable
    rises: bool
    """Whether c is known to be 0."""


@dataclass(frozen=True)
class Ratio:
    """Exponential of something linear; ``value`` is the expression, ``log`` its logarithm."""

    value: Variable
    log: Linear


Read = Linear | Summed | Ratio


@dataclass
class LogSums:
    """A likelihood of logarithms of sums over rows."""

    total: Variable
    """Log-likelihood, linear in ``eta`` and ``logs``."""
    eta: Variable
    """(n,) input: f, or an affine function of it."""
    of_outputs: Variable
    """(n,) eta as a function of the outputs."""
    outputs: Variable
    """(n, K) the forest's outputs."""
    logs: list[Variable]
    """Inputs that stand for the logarithms of the sums."""
    sums: list[Variable]
    """The sums, functions of ``eta``."""
    rise: bool
    """Whether all c are known to be 0."""


def read_log_sums(graph: ForestGraph) -> LogSums:
    """The likelihood of a forest as logarithms of sums over rows.

    Raises
    ------
    NotRecognisedError
        When it is not known to be one.
    """
    if graph.layout.n_rows == 1 or not (graph.combines or graph.layout.n_outputs == 1):
        raise NotRecognisedError("a single row, or several outputs")
    model = graph.model
    softmaxes: list[Variable] = []
    others: list[Variable] = []
    for rv in graph.terms:
        is_choice = rv.owner is not None and isinstance(rv.owner.op, CategoricalRV | MultinomialRV)
        (softmaxes if is_choice else others).append(rv)
    parameters = [named_parameters(rv) for rv in softmaxes]
    values = [model.rvs_to_values[rv] for rv in softmaxes]
    whole = model.logp(vars=[*others, *graph.potentials], sum=False)
    opened, outputs = open_forest(graph, [*(p for one in parameters for p in one), *whole])  # type: ignore[union-attr]
    terms = summands(opened[len(opened) - len(whole) :], outputs)
    if any(term.conditions for term in terms):
        raise NotRecognisedError("a condition on the forest")
    expressions = [term.value for term in terms]
    chosen = []
    for rv, value in zip(softmaxes, values, strict=True):
        if isinstance(rv.owner.op, CategoricalRV):
            [p], opened = opened[:1], opened[1:]
            chosen.append((p, value, None))
        else:
            [n, p], opened = opened[:2], opened[2:]
            chosen.append((p, value, n))
    everything = [*expressions, *(v for one in chosen for v in one if v is not None)]
    everything = _with_one_column(everything, outputs)
    base = _base(everything, outputs)
    eta = pt.vector("eta", dtype="float64", shape=(outputs.type.shape[0],))
    everything = clone_replace(everything, {base: eta}, rebuild_strict=False)
    if any(v in dependent_on(everything, outputs) for v in everything):
        raise NotRecognisedError("outputs that enter in several ways")
    reader = _Reader(eta, dependent_on(everything, eta))
    parts = [reader.linear(v).value.sum() for v in everything[: len(expressions)]]
    rest = everything[len(expressions) :]
    for _, _, n in chosen:
        p, value, *rest = rest
        if n is not None:
            n, *rest = rest
        parts.append(reader.of_choices(p, value, n))
    total = pt.add(pt.constant(0.0), *parts).astype("float64")
    return LogSums(total, eta, base, outputs, reader.logs, reader.sums, reader.rise)


def _with_one_column(expressions: list[Variable], outputs: Variable) -> list[Variable]:
    """Expressions with one variable in the place of all that are the output's vector."""
    column = outputs[:, 0]
    several = (v for node in toposort(expressions) for v in node.outputs)
    same = {v: column for v in several if output_column(v, outputs) == 0}
    return clone_replace(expressions, same, rebuild_strict=False)


def _base(expressions: list[Variable], outputs: Variable) -> Variable:
    """The last vector, affine in row i of the output, through which expressions see it."""
    dependent, seen = dependent_on(expressions, outputs), set(expressions)
    clients: dict[Variable, list] = {}
    for node in toposort(expressions):
        for v in set(node.inputs) & dependent:
            clients.setdefault(v, []).append(node)
    columns = [v for v in {*clients, *seen} if output_column(v, outputs) == 0]
    if len(columns) != 1:
        raise NotRecognisedError("outputs that are not one vector")
    [base] = columns
    while len(clients.get(base, [])) == 1 and base not in seen:
        [node] = clients[base]
        new = node.outputs[0]
        try:
            slope_of(new, outputs)
        except NotRecognisedError:
            break
        if new.ndim != 1 or new.type.shape != base.type.shape:
            break
        base = new
    return base


class _Reader:
    """Reads an expression, the Op that makes it last."""

    def __init__(self, eta: Variable, dependent: set[Variable]):
        self.eta, self.dependent = eta, dependent
        self.logs: list[Variable] = []
        self.sums: list[Variable] = []
        self.rise = True
        self.known: dict[Variable, Read] = {}

    # -------------------------------------------------------------------------- Kinds and changes

    def read(self, e: Variable) -> Read:
        """An expression that depends on f."""
        if e not in self.known:
            self.known[e] = self._read(e)
        return self.known[e]

    def _read(self, e: Variable) -> Read:
        if e is self.eta:
            return Linear(e, True, True)
        inner = passes_through(e)
        if inner is not None:
            return self.read(inner)
        if e.owner is None or len(e.owner.outputs) > 1:
            raise NotRecognisedError(str(e))
        return self._of(e.owner.op, e, e.owner.inputs)

    def linear(self, e: Variable) -> Linear:
        """An expression that is to be linear, or does not depend on f."""
        if e not in self.dependent:
            return Linear(e, True, is_data(e) and bool((data_of(e) == -np.inf).all()))
        read = self.read(e)
        if not isinstance(read, Linear):
            raise NotRecognisedError("an exponential in a sum of logarithms")
        return read

    def summed(self, e: Variable) -> Summed:
        """An expression that is to be a sum of exponentials, or not negative and free of f."""
        if e not in self.dependent:
            if not is_positive(e):
                raise NotRecognisedError("a number in a sum that may be negative")
            return Summed(e, is_data(e) and not data_of(e).any())
        read = self.read(e)
        if isinstance(read, Ratio) and read.log.is_row:
            return Summed(e, read.log.rises)
        if isinstance(read, Summed):
            return read
        raise NotRecognisedError("not a sum of exponentials")

    def log(self, e: Variable) -> Linear:
        """The logarithm of an expression."""
        if e not in self.dependent:
            return Linear(pt.log(e), True, is_data(e) and not data_of(e).any())
        read = self.read(e)
        if isinstance(read, Ratio):
            return read.log
        if isinstance(read, Summed):
            return self.log_of_sum(read)
        raise NotRecognisedError("the logarithm of something linear")

    def log_of_sum(self, summed: Summed) -> Linear:
        """A new variable in the place of the logarithm of a sum."""
        total = summed.value
        self.rise &= summed.rises
        if total not in self.sums:
            if len(self.sums) == MOST_SUMS:
                raise NotRecognisedError("very many sums")
            self.sums.append(total)
            self.logs.append(pt.TensorType("float64", total.type.shape)(f"log_{len(self.logs)}"))
        return Linear(self.logs[self.sums.index(total)])

    def moved(self, op, e, inputs, entries: list[Variable]) -> Read:
        """After an Op each of whose entries is one of the entries of some arrays."""
        if any(v in self.dependent for v in inputs if v not in entries):
            raise NotRecognisedError(f"{op}, an index that depends on it")
        kinds = {type(self.read(v)) for v in entries if v in self.dependent}
        if kinds == {Ratio} and all(v in self.dependent for v in entries):
            logs = [self.log(v) for v in entries]
            return Ratio(e, self._linear(op, e, inputs, entries, logs))
        if Linear not in kinds:
            return Summed(e, all([self.summed(v).rises for v in entries]))
        return self._linear(op, e, inputs, entries, [self.linear(v) for v in entries])

    def _linear(self, op, e, inputs, entries, reads: list[Linear]) -> Linear:
        """After an Op each of whose entries is one of the entries of some linear expressions."""
        value = self._again(op, e, inputs, entries, reads)
        return Linear(value, all(r.is_row for r in reads), all(r.rises for r in reads))

    def _again(self, op, e, inputs, entries, reads: list[Linear]) -> Variable:
        """The same Op of other arrays."""
        other = dict(zip(entries, (r.value for r in reads), strict=True))
        return op.make_node(*(other.get(v, v) for v in inputs)).outputs[0]

    def of_choices(self, p: Variable, value: Variable, n: Variable | None) -> Variable:
        """Log-likelihood of a Categorical, or of a Multinomial of n trials."""
        if p not in self.dependent or any(v in self.dependent for v in (value, n)):
            raise NotRecognisedError("a number of trials that depends on the forest")
        # they add up to 1 whatever f is: nothing is checked of a softmax
        log = self.softmax(p, p.ndim - 1)
        if n is None:
            if p.ndim != value.ndim + 1 or value.ndim == 0:
                raise NotRecognisedError("choices of other dimensions")
            flat = log.reshape((-1, p.shape[-1]))
            return flat[pt.arange(flat.shape[0]), value.reshape((-1,))].sum()
        if p.ndim != value.ndim or n.ndim != value.ndim - 1:
            raise NotRecognisedError("counts of other dimensions")
        constant = pt.gammaln(n + 1).sum() - pt.gammaln(value + 1).sum()
        # 0 log 0 = 0: an alternative that is not available, and was not chosen
        none = pt.eq(value, 0)
        return pt.switch(none, 0.0, value * pt.switch(none, 0.0, log)).sum() + constant

    def softmax(self, p: Variable, axis: int) -> Variable:
        """Logarithm of a softmax along an axis."""
        read = self.read(p)
        inner = p
        while (through := passes_through(inner)) is not None:
            inner = through
        op = inner.owner.op if inner.owner else None
        along = None
        if isinstance(op, Softmax):
            along = op.axis
        elif isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.TrueDiv):
            along = _axes_of_share(*inner.owner.inputs)
        axes = {a % p.ndim for a in np.atleast_1d(along)} if along is not None else set()
        if not isinstance(read, Ratio) or axes != {axis}:
            raise NotRecognisedError("probabilities that are not a softmax along the last axis")
        return read.log.value

    # ------------------------------------------------------------------------------------- By Op

    @singledispatchmethod
    def _of(self, op, e, inputs) -> Read:
        raise NotRecognisedError(str(op))

    @_of.register(DimShuffle | Reshape | Subtensor | AdvancedSubtensor | Alloc | SpecifyShape)
    def _entries(self, op, e, inputs):
        return self.moved(op, e, inputs, inputs[:1])

    @_of.register
    def _join(self, op: Join, e, inputs):
        return self.moved(op, e, inputs, list(inputs))

    @_of.register
    def _vector(self, op: MakeVector, e, inputs):
        return self.moved(op, e, inputs, list(inputs))

    @_of.register(IncSubtensor | AdvancedIncSubtensor)
    def _changed(self, op, e, inputs):
        if op.set_instead_of_inc:
            return self.moved(op, e, inputs, list(inputs[:2]))
        return self._added(op, e, inputs, list(inputs[:2]))

    @_of.register
    def _reduced(self, op: CAReduce, e, inputs):
        if isinstance(op.scalar_op, scalars.Add):
            return self._added(op, e, inputs, list(inputs))
        if isinstance(op.scalar_op, scalars.Mul):
            return Ratio(e, Linear(self.log(inputs[0]).value.sum(axis=op.axis)))
        raise NotRecognisedError(str(op))

    @_of.register
    def _cumulated(self, op: CumOp, e, inputs):
        if op.mode != "add":
            raise NotRecognisedError(str(op))
        return self._added(op, e, inputs, list(inputs))

    def _added(self, op, e, inputs, terms) -> Read:
        """After an Op that adds up entries of some arrays."""
        if any(v in self.dependent for v in inputs if v not in terms):
            raise NotRecognisedError(f"{op}, an index that depends on it")
        if any(isinstance(self.read(v), Linear) for v in terms if v in self.dependent):
            reads = [self.linear(v) for v in terms]
            return Linear(self._again(op, e, inputs, terms, reads))
        return Summed(e, all([self.summed(v).rises for v in terms]))

    @_of.register(Dot | Blockwise)
    def _product(self, op, e, inputs):
        core = op.core_op if isinstance(op, Blockwise) else op
        bound = [v for v in inputs if v in self.dependent]
        if not isinstance(core, Dot) or len(bound) != 1:
            raise NotRecognisedError(str(op))
        [other] = [v for v in inputs if v not in self.dependent]
        if isinstance(self.read(bound[0]), Linear):
            return Linear(self._again(op, e, inputs, bound, [self.linear(bound[0])]))
        self.summed(other)
        return Summed(e, self.summed(bound[0]).rises)

    @_of.register
    def _log_sum(self, op: LogSumExp, e, inputs):
        one = self._row_exp(inputs[0])
        return self.log_of_sum(Summed(one.value.sum(axis=op.axis), one.rises))

    @_of.register
    def _log_pair(self, op: LogAddExp, e, inputs):
        one, other = (self._row_exp(v) for v in inputs)
        return self.log_of_sum(Summed(one.value + other.value, one.rises and other.rises))

    def _row_exp(self, x: Variable) -> Summed:
        """Exponential of an expression whose entries see a row each."""
        read = self.linear(x)
        if not read.is_row:
            raise NotRecognisedError("the exponential of several rows")
        return Summed(pt.exp(read.value), read.rises)

    def _above_one(self, one: Summed) -> Linear:
        """Logarithm of 1 + x."""
        return self.log_of_sum(Summed(1.0 + one.value, False))

    @_of.register(Softmax | LogSoftmax)
    def _softmax(self, op, e, inputs):
        one = self._row_exp(inputs[0])
        total = Summed(one.value.sum(axis=op.axis, keepdims=True), one.rises)
        logs = Linear(self.linear(inputs[0]).value - self.log_of_sum(total).value)
        return logs if isinstance(op, LogSoftmax) else Ratio(e, logs)

    @_of.register
    def _symbolic(self, op: OpFromGraph, e, inputs):
        """An Op that contains a graph."""
        [inside] = op.fgraph.bind(inputs)
        self.dependent |= dependent_on([inside], self.eta)
        return self.read(inside)

    @_of.register
    def _one_by_one(self, op: Elemwise, e, inputs):
        return self._scalar(op.scalar_op, op, e, inputs)

    # ---------------------------------------------------------------------- By function of numbers

    @singledispatchmethod
    def _scalar(self, kind, op, e, inputs) -> Read:
        raise NotRecognisedError(str(kind))

    @_scalar.register
    def _plus(self, kind: scalars.Add, op, e, inputs):
        bound = [v for v in inputs if v in self.dependent]
        if not any(isinstance(self.read(v), Linear) for v in bound):
            return Summed(e, all([self.summed(v).rises for v in inputs]))
        return self._difference(op, e, inputs, bound)

    @_scalar.register
    def _minus(self, kind: scalars.Sub, op, e, inputs):
        bound = [v for v in inputs if v in self.dependent]
        return self._difference(op, e, inputs, bound if bound[0] is inputs[0] else [*bound, None])

    def _difference(self, op, e, inputs, bound) -> Linear:
        """A sum, or difference, of linear expressions and others."""
        reads = [self.linear(v) for v in inputs]
        value = self._again(op, e, inputs, list(inputs), reads)
        if len(bound) > 1:
            return Linear(value)
        own = self.linear(bound[0])
        return Linear(value, own.is_row, own.rises)

    @_scalar.register
    def _negative(self, kind: scalars.Neg, op, e, inputs):
        return Linear(-self.linear(inputs[0]).value)

    @_scalar.register
    def _times(self, kind: scalars.Mul, op, e, inputs):
        bound = [v for v in inputs if v in self.dependent]
        others = [v for v in inputs if v not in self.dependent]
        reads = [self.read(v) for v in bound]
        if isinstance(reads[0], Linear):
            if len(bound) > 1:
                raise NotRecognisedError("a product of two that depend on it")
            return Linear(self._again(op, e, inputs, bound, [reads[0]]))
        for v in others:
            self.summed(v)
        if len(bound) == 1 and isinstance(reads[0], Summed):
            return Summed(e, reads[0].rises)
        value = pt.add(*(self.log(v).value for v in inputs))
        own = self.log(bound[0]) if len(bound) == 1 else Linear(value)
        return Ratio(e, Linear(value, own.is_row, own.rises))

    @_scalar.register
    def _over(self, kind: scalars.TrueDiv, op, e, inputs):
        above, below = inputs
        if below not in self.dependent:
            read = self.read(above)
            if isinstance(read, Linear):
                return Linear(self._again(op, e, inputs, [above], [read]))
            self.summed(below)
            if isinstance(read, Summed):
                return Summed(e, read.rises)
        elif above not in self.dependent:
            self.summed(above)
        value, own = self.log(above).value - self.log(below).value, self.log(above)
        if below in self.dependent:
            own = Linear(value)
        return Ratio(e, Linear(value, own.is_row, own.rises))

    @_scalar.register
    def _chosen(self, kind: scalars.Switch, op, e, inputs):
        return self.moved(op, e, inputs, list(inputs[1:]))

    @_scalar.register
    def _same(self, kind: scalars.Second, op, e, inputs):
        """The second of two, in the shape of both."""
        if inputs[1] not in self.dependent:
            raise NotRecognisedError(str(kind))
        read, like = self.read(inputs[1]), pt.zeros_like(inputs[0])
        if isinstance(read, Linear):
            return replace(read, value=pt.second(like, read.value))
        if isinstance(read, Summed):
            return replace(read, value=e)
        return Ratio(e, replace(read.log, value=pt.second(like, read.log.value)))

    @_scalar.register
    def _exponential(self, kind: scalars.Exp, op, e, inputs):
        return Ratio(e, self.linear(inputs[0]))

    @_scalar.register
    def _logarithm(self, kind: scalars.Log, op, e, inputs):
        return self.log(inputs[0])

    @_scalar.register
    def _logarithm_above(self, kind: scalars.Log1p, op, e, inputs):
        return self._above_one(self.summed(inputs[0]))

    @_scalar.register
    def _softplus(self, kind: Softplus, op, e, inputs):
        return self._above_one(self._row_exp(inputs[0]))

    @_scalar.register
    def _sigmoid(self, kind: Sigmoid, op, e, inputs):
        one = self._above_one(self._row_exp(inputs[0]))
        return Ratio(e, Linear(self.linear(inputs[0]).value - one.value))

    @_scalar.register
    def _power(self, kind: scalars.Pow, op, e, inputs):
        if inputs[1] in self.dependent:
            raise NotRecognisedError("an exponent that depends on it")
        return Ratio(e, Linear(self.log(inputs[0]).value * inputs[1]))

    @_scalar.register
    def _inverse(self, kind: scalars.Reciprocal, op, e, inputs):
        return Ratio(e, Linear(-self.log(inputs[0]).value))


def _axes_of_share(weights: Variable, total: Variable):
    """Axes over which ``weights`` are summed to ``total`` with its dimensions kept, else None."""
    while (inner := passes_through(total)) is not None:
        total = inner
    if total.owner and isinstance(total.owner.op, DimShuffle):
        order, total = total.owner.op.new_order, total.owner.inputs[0]
        op = total.owner.op if total.owner else None
        if isinstance(op, CAReduce) and isinstance(op.scalar_op, scalars.Add):
            axes = op.axis if op.axis is not None else tuple(range(weights.ndim))
            kept = [k for k in range(weights.ndim) if k not in axes]
            wanted = tuple("x" if k in axes else kept.index(k) for k in range(weights.ndim))
            same = total.owner.inputs[0] is weights
            return axes if same and order == wanted else None
    return None
