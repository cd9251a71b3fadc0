"""The observed variable that a forest sees, and what it sees of a mixture or a hurdle.

The likelihood of a row of a mixture is a sum, ``w_1 g_1(y) + w_2 g_2(y) + ..``. Mostly a forest is
in one g, or in the weights of two: given everything else, its rows are

    log(exp(a_i) + exp(b_i) g(y_i | f_i)),   or   log(exp(a_i) (1 - p(f_i)) + exp(b_i) p(f_i)),

with numbers a and b. Of a hurdle it is known which summand a row belongs to, so the model falls
apart: a forest in psi has a Bernoulli of ``y != 0``, one in g has the rows with ``y != 0`` alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable, equal_computations
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import (
    BernoulliRV,
    BinomialRV,
    ExponentialRV,
    GammaRV,
    LogNormalRV,
    NegBinomialRV,
    PoissonRV,
)
from pytensor.tensor.random.op import RandomVariable

from pymc_trees.targets.graph import (
    ForestGraph,
    NotASliceError,
    NotRecognisedError,
    constant,
    dependent_on,
    named_parameters,
    open_forest,
    place_of,
    slice_of,
    slices,
    stripped,
)


class OpenedTerm(NamedTuple):
    """A term as a function of the forest's outputs."""

    value: Variable
    parameters: list[Variable]
    outputs: Variable


@dataclass(frozen=True)
class ObservedTerm:
    """The only variable of a model that depends on a forest, or its only slice that does."""

    graph: ForestGraph
    rv: Variable
    completed: Variable | None = field(default=None, kw_only=True)
    """Its value, if the model has separate ones of what is observed and of what is missing."""

    @property
    def name(self) -> str:
        """The name of the variable of the model."""
        return self.rv.name

    @property
    def value(self) -> Variable:
        """Its value variable, or the slice of it."""
        return self._opened.value

    @property
    def distribution(self) -> str:
        """Its distribution, as a user wrote it."""
        node, ending = self.rv.owner, ""
        if isinstance(node.op, MinibatchRandomVariable):
            node, ending = node.inputs[0].owner, " with total_size"
        return "pm." + type(node.op).__name__.removesuffix("RV") + ending

    def opened(self) -> tuple[list[Variable], Variable]:
        """Its parameters as functions of the forest's outputs, and those outputs.

        None of them for a distribution that does not name them: ask for its Op first.
        """
        return self._opened.parameters, self._opened.outputs

    @cached_property
    def _opened(self) -> OpenedTerm:
        node, value = self.rv.owner, self.completed
        if value is None:
            value = self.graph.model.rvs_to_values[self.rv]
        named = parameters_in_order(self.rv)
        parameters, outputs = open_forest(self.graph, named or [])
        whole = OpenedTerm(value, parameters, outputs)
        if named is None or self.rv.ndim != 2 or node.op.ndim_supp > 0:
            return whole
        dependent = dependent_on(parameters, outputs)
        try:
            places = {place_of(v, dependent) for v in parameters if v in dependent}
            if len(places) != 1:
                return whole
            [(axis, k)] = places
            return OpenedTerm(
                value[k] if axis == 0 else value[:, k],
                list(slices(parameters, axis, k, dependent)),
                outputs,
            )
        except NotASliceError:
            return whole


def parameters_in_order(rv: Variable) -> list[Variable] | None:
    """Parameters of a distribution, and of a truncated one the limits after those of its base."""
    op = rv.owner.op
    if isinstance(op, pm.Truncated.rv_type) and isinstance(op.base_rv_op, RandomVariable):
        _, _, *parameters = rv.owner.inputs  # without a generator and a size
        return parameters
    return named_parameters(rv)


# ------------------------------------------------------ The part of a mixture that sees the forest


HURDLE = type(pm.HurdleLogNormal.dist(0.5).owner.op)
"""Op of all hurdles."""


@dataclass(frozen=True)
class Part(ObservedTerm):
    """A component of a mixture or a hurdle, ``rv``: what a forest sees given everything else."""

    whole: ObservedTerm
    """The mixture."""
    own: OpenedTerm
    """Of the component; where its density is 0 in any case, ``value`` is another number."""
    others: tuple[Variable, ...] = ()
    """a and b: log densities of the other components, and log weight of this one; none if all rows
    belong to it."""
    rows: Variable | None = None
    """Where it is known, whether each row belongs to the component."""
    constant: Variable | None = None
    """Log density of each row given the component, if that is not of it alone."""

    @property
    def name(self) -> str:
        """The name of the mixture."""
        return self.whole.name

    @property
    def distribution(self) -> str:
        """The distribution of the mixture."""
        return self.whole.distribution

    @property
    def _opened(self) -> OpenedTerm:
        return self.own


def seen_parts(term: ObservedTerm) -> list[ObservedTerm]:
    """A term and, if it is a mixture, what the forest sees of it; the latter alone of a hurdle."""
    op = term.rv.owner.op
    if not isinstance(op, pm.Mixture.rv_type | HURDLE):
        return [term]
    if term.rv.ndim != 1 or term.graph.layout.n_rows == 1:
        return [term]
    part = (_part_of_hurdle if isinstance(op, HURDLE) else _part_of_mixture)(term)
    if part is None:
        return [term]
    return [part] if isinstance(op, HURDLE) else [term, part]


def _part_of_hurdle(term) -> Part | None:
    """A Bernoulli of ``y != 0``, or the distribution of the rows with ``y != 0``."""
    (weights, _, positive), outputs = term.opened()
    dependent = dependent_on([weights, positive], outputs)
    y = term.value
    rows = pt.neq(y, 0)
    seen = pt.switch(rows, y, 1)  # as PyMC has it
    if weights in dependent and positive not in dependent:
        try:
            psi = slice_of(weights, 1, 1, dependent)
        except NotASliceError:
            return None
        some = OpenedTerm(rows.astype("int64"), [psi], outputs)
        log_density = pt.switch(rows, pm.logp(positive, seen), 0.0)
        law = pm.Bernoulli.dist(p=psi)
        return Part(term.graph, law, term, some, constant=log_density)
    if positive in dependent and weights not in dependent:
        parameters = parameters_in_order(positive)
        if parameters is None:
            return None
        psi = weights[..., 1]
        others = (
            pt.switch(rows, -np.inf, pt.log(1.0 - psi)),
            pt.switch(rows, pt.log(psi), -np.inf),
        )
        own = OpenedTerm(seen, parameters, outputs)
        return Part(term.graph, positive, term, own, others, rows)
    return None


def parts_of_hurdle(term, expressions, singles) -> list[tuple[Part, int]]:
    """The Bernoulli and the positive part of a hurdle, each with the output of trees it sees.

    Parameters
    ----------
    expressions : list of variables
        Parameters of the hurdle as functions of ``singles``, one variable for each output.

    Raises
    ------
    NotRecognisedError
        Unless each sees an output of its own.
    """
    weights, _, positive = expressions
    found: list[tuple[Part, int]] = []
    y = term.value
    rows = pt.neq(y, 0)
    for which in (weights, positive):
        seen = [k for k, one in enumerate(singles) if which in dependent_on([which], one)]
        if len(seen) != 1 or seen[0] in [k for _, k in found]:
            raise NotRecognisedError("no output of its own")
        dependent = dependent_on([which], singles[seen[0]])
        if which is weights:
            psi = slice_of(weights, 1, 1, dependent)
            own = OpenedTerm(rows.astype("int64"), [psi], singles[seen[0]])
            law = pm.Bernoulli.dist(p=psi)
        else:
            parameters = parameters_in_order(positive)
            if parameters is None:
                raise NotRecognisedError(term.distribution)
            own, law = OpenedTerm(pt.switch(rows, y, 1), parameters, singles[seen[0]]), positive
        found.append((Part(term.graph, law, term, own, rows=rows), seen[0]))
    return found


def _part_of_mixture(term) -> Part | None:
    """The only component that sees the forest, if the weights do not."""
    (weights, *components), outputs = term.opened()
    dependent = dependent_on([weights, *components], outputs)
    seeing = [k for k, component in enumerate(components) if component in dependent]
    if len(components) == 1 or len(seeing) != 1 or weights in dependent:
        return None
    [k] = seeing
    parameters = parameters_in_order(components[k])
    if parameters is None:
        return None
    support = _support(components[k].owner.op, parameters, term)
    if support is None:
        return None
    value, inside = support
    logs = [pt.log(weights[..., j]) for j in range(len(components))]
    rest = [
        logs[j] + pm.logp(component, term.value) for j, component in enumerate(components) if j != k
    ]
    a = rest[0] if len(rest) == 1 else pt.logsumexp(pt.stack(rest), axis=0)
    b = logs[k] if inside is None else pt.switch(inside, logs[k], -np.inf)
    is_hurdle = isinstance(components[k].owner.op, LogNormalRV) and all(
        isinstance(other.owner.op, pm.DiracDelta.rv_type)
        and constant(stripped(other.owner.inputs[-1])) == 0.0
        for j, other in enumerate(components)
        if j != k
    )
    own = OpenedTerm(value, parameters, outputs)
    rows = inside if is_hurdle else None
    return Part(term.graph, components[k], term, own, (a, b), rows)


def _support(op, parameters, term) -> tuple[Variable, Variable | None] | None:
    """The observed values with others in place of those outside of the support, and which are not.

    None of a distribution whose density at 0 may be 0, finite or infinite, if there are zeros.
    """
    y = term.value
    if isinstance(op, LogNormalRV):
        return _within(y, y > 0, 1)
    if isinstance(op, ExponentialRV):
        return _within(y, y >= 0, 1)
    if isinstance(op, BernoulliRV | BinomialRV):
        trials = parameters[0] if isinstance(op, BinomialRV) else 1
        return _within(y, (y >= 0) & (y <= trials), 0)
    if isinstance(op, PoissonRV | NegBinomialRV):
        return _within(y, y >= 0, 0)
    if isinstance(op, pm.TruncatedNormal.rv_type | pm.Censored.rv_type | pm.Truncated.rv_type):
        *_, lower, upper = parameters
        return _within(y, (y >= lower) & (y <= upper), pt.clip(y, lower, upper))
    if isinstance(op, GammaRV | pm.Weibull.rv_type):
        is_observed = term.rv in term.graph.model.observed_RVs
        return (y, None) if is_observed and (y > 0).all().eval() else None
    return y, None


def _within(y, inside, other) -> tuple[Variable, Variable]:
    return pt.switch(inside, y, other), inside


def shares(term: ObservedTerm) -> Iterator[tuple[Variable, list[Variable]]]:
    """Of a mixture of two whose weights are p and 1 - p: p, and its log density of each row.

    The latter as a list: of the component with weight p, and of the other. In any order.
    """
    (weights, *components), outputs = term.opened()
    dependent = dependent_on([weights, *components], outputs)
    if len(components) != 2 or weights not in dependent or weights.ndim != 2:
        return
    if any(component in dependent for component in components):
        return
    try:
        columns = [stripped(slice_of(weights, 1, k, dependent)) for k in range(2)]
    except NotASliceError:
        return
    for k, p in enumerate(columns):
        if _is_complement(columns[1 - k], p):
            logs = [pm.logp(component, term.value) for component in components]
            yield p, [logs[k], logs[1 - k]]


def _is_complement(q: Variable, p: Variable) -> bool:
    """Whether q is 1 - p."""
    op = q.owner.op if q.owner else None
    if not (isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Sub)):
        return False
    one, other = q.owner.inputs
    return constant(one) == 1.0 and equal_computations([stripped(other)], [p])
