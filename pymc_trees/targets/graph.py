"""What depends on a forest in a model: its terms, and of an expression the Ops in between."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.graph.utils import MissingInputError
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.data.random_columns import split_inputs
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations


class UnsupportedModelError(NotImplementedError):
    """A model that no sampler of forests supports; the message names alternatives."""


class NotConjugateError(UnsupportedModelError):
    """A forest whose leaf values do not integrate out under its likelihood."""


class ForestUseError(UnsupportedModelError):
    """A forest that is not used through its function at its training inputs."""


class LeafNotProposedError(UnsupportedModelError):
    """A leaf without proposals for its values, under a nonconjugate likelihood."""


class NotRecognisedError(UnsupportedModelError):
    """An expression or a likelihood that is not known to be of some kind; the message says why."""


# ---------------------------------------------------- The terms of a model that depend on a forest


@dataclass(eq=False)
class ForestGraph:
    """A forest, or another variable of a model, and what depends on it."""

    model: pm.Model
    rv: Variable
    """The forest."""
    terms: list[Variable]
    """Other random variables whose parameters depend on the forest."""
    potentials: list[Variable]
    """Potentials that depend on it."""
    readings: dict[Callable, object] = field(default_factory=dict)
    """Results of functions `read_once`."""
    reduce: Callable | None = None
    """What makes expressions functions of fewer outputs (`combination.combined`)."""

    @property
    def combines(self) -> bool:
        """Whether what the likelihood sees of a forest is a combination of its outputs."""
        return self.reduce is not None

    @property
    def layout(self) -> Layout:
        """Sizes of the forest."""
        return self.rv.owner.op.layout


@dataclass
class Term:
    """A summand of the log-likelihood."""

    value: Variable
    """Its entries are to be added up."""
    conditions: list[Variable] = field(default_factory=list)
    """The likelihood is 0 if an entry of these is false."""


def log_indicator(condition: Variable) -> Term:
    """Term of a condition: 0 if it holds, else -inf."""
    return Term(pt.switch(condition, 0.0, -np.inf))


def read_graph(model: pm.Model, rv: Variable) -> ForestGraph:
    """Terms of the model that depend on a forest: directly, not through another of its variables.

    Given a variable that depends on the forest, its descendants carry no further information on the
    forest.
    """
    blockers = set(model.basic_RVs) - {rv}

    def depends(variables):
        return depends_on(variables, rv, blockers)

    terms = [v for v in model.basic_RVs if v is not rv and depends(parameters_of(v))]
    potentials = [v for v in model.potentials if depends([v])]
    return ForestGraph(model, rv, terms, potentials)


def read_once[T](read: Callable[[ForestGraph], T]) -> Callable[[ForestGraph], T]:
    """Keep the result of a function of a graph with the graph, for all kinds of targets."""

    @wraps(read)
    def kept(graph: ForestGraph) -> T:
        if read not in graph.readings:
            graph.readings[read] = read(graph)
        return graph.readings[read]  # type: ignore[return-value]

    return kept


def open_forest(graph: ForestGraph, expressions: list[Variable]) -> tuple[list[Variable], Variable]:
    """Rewrite expressions as functions of values and of the forest's outputs.

    Returns
    -------
    expressions : list of variables
        With random variables replaced by values and the forest by ``outputs``.
    outputs : (n, K) matrix variable
        The forest's outputs at its training rows, or what the graph reduces them to.

    Raises
    ------
    ForestUseError
        If an expression uses the forest other than at its training inputs.
    NotRecognisedError
        If the graph cannot reduce the outputs.
    """
    layout, value = graph.layout, graph.model.rvs_to_values[graph.rv]
    expressions = without_picks(graph.model.replace_rvs_by_values(expressions))
    outputs = pt.tensor("outputs", dtype="float64", shape=(layout.n_rows, layout.n_outputs))
    evaluated = evaluations(expressions, value)
    check_inputs(graph.rv, [one.X for one in evaluated])
    replaced = clone_replace(
        expressions, {one.outputs: outputs for one in evaluated}, rebuild_strict=False
    )
    if any(v is value for v in ancestors(replaced)):
        raise ForestUseError(
            f"{graph.rv.name} is used other than through evaluate(forest, X): use the function "
            "returned by BART, DecisionTree or evaluate."
        )
    return (replaced, outputs) if graph.reduce is None else graph.reduce(replaced, outputs)


def inputs_seen(model: pm.Model, rv: Variable) -> list[Variable]:
    """Inputs at which the terms that depend on a forest evaluate it."""
    graph = read_graph(model, rv)
    seen = [*(v for term in graph.terms for v in term.owner.inputs), *graph.potentials]
    return [one.X for one in evaluations(seen, rv, blockers=model.basic_RVs)]


def moves_rows(model: pm.Model, rv: Variable) -> bool:
    """Whether a variable is a column of a forest: rows then change their leaves with it.

    What moves such a variable given the outputs of forests would take them for constants.
    """
    others = {v for v in model.basic_RVs if v is not rv}
    everything = [*model.basic_RVs, *model.deterministics, *model.potentials]
    return any(depends_on([one.X], rv, others) for one in evaluations(everything))


def check_inputs(rv: Variable, inputs: list[Variable]) -> None:
    """Raise an error for inputs other than those of the declaration of a forest."""
    X_train, n_random = training_rows(rv), n_random_columns(rv)
    if n_random and len(set(inputs)) > 1:
        raise ForestUseError(_other_inputs(rv))
    if n_random:
        X_train = X_train[:, :-n_random]
    for X in inputs:
        if n_random:
            X = _constant_columns(rv, X)
        try:
            known = present(X)
        except MissingInputError:
            raise ForestUseError(
                f"{rv.name} is evaluated at inputs that depend on other variables of the model: "
                "its inputs must be data."
            ) from None
        if known is not X_train and not np.array_equal(known, X_train):
            raise ForestUseError(_other_inputs(rv))


def _other_inputs(rv) -> str:
    return (
        f"{rv.name} is evaluated at inputs other than those it was declared with. "
        "Sampling needs the training inputs: set the data back with pm.set_data, or "
        "declare the model again with the new ones."
    )


def _constant_columns(rv, X: Variable) -> Variable:
    """Those of inputs with random columns, or an error for other inputs."""
    parts = split_inputs(X, n_random_columns(rv))
    if parts is None:
        raise ForestUseError(_other_inputs(rv))
    return parts[0]


def dependent_on(expressions: list[Variable], outputs: Variable) -> set[Variable]:
    """Variables of a graph whose numbers depend on ``outputs``; a shape does not."""
    dependent = {outputs}
    for node in toposort(expressions):
        if not isinstance(node.op, Shape | Shape_i) and any(v in dependent for v in node.inputs):
            dependent.update(node.outputs)
    return dependent


# ---------------------- The parameters of a random variable, for every Op that PyMC makes one with


def named_parameters(
    rv: Variable, kinds: type[Op] | tuple[type[Op], ...] = Op
) -> list[Variable] | None:
    """Parameters in the order of the Op's signature, if it is one of some kinds and has one.

    None for any other variable: `pm.Truncated` of most distributions has no signature, what
    ``total_size=`` wraps around a distribution has parameters only inside it.
    """
    op = rv.owner.op if rv.owner else None
    if not isinstance(op, kinds):
        return None
    is_symbolic = isinstance(op, SymbolicRandomVariable) and op.extended_signature is not None
    return list(op.dist_params(rv.owner)) if is_symbolic or isinstance(op, RandomVariable) else None


def parameters_of(rv: Variable) -> list[Variable]:
    """The same without a restriction, or all inputs of an Op without a signature, size included."""
    named = named_parameters(rv)
    return list(rv.owner.inputs) if named is None else named


# ------------ Subexpressions that do not depend on one of the variables, cut off and computed once


def cut_free(
    total: Variable, *changing: Variable
) -> tuple[Variable, list[Variable], list[Variable]]:
    """Replace subexpressions that do not depend on some variables by inputs.

    Returns
    -------
    total : Variable
        The expression as a function of ``changing`` and of ``free``.
    expressions : list of Variable
        Values of the inputs, as expressions: float64, of at least one dimension.
    free : list of Variable
        The inputs.
    """
    dependent = set().union(*(dependent_on([total], one) for one in changing))
    replaced: dict[Variable, Variable] = {}
    expressions: list[Variable] = []
    free: list[Variable] = []
    for node in toposort([total]):
        if not any(v in dependent for v in node.outputs):
            continue
        for v in (t for u in node.inputs if u not in dependent for t in _tensors(u)):
            if v in replaced or (isinstance(v, Constant) and v.data.size == 1):
                continue
            new = pt.tensor(f"free_{len(free)}", dtype="float64", shape=v.type.shape or (1,))
            inside = new if v.ndim else new[0]
            inside = pt.neq(inside, 0.0) if v.dtype == "bool" else inside.astype(v.dtype)
            replaced[v] = pt.specify_shape(inside, v.type.shape)
            expressions.append((v if v.ndim else v[None]).astype("float64"))
            free.append(new)
    [total] = clone_replace([total], replaced, rebuild_strict=False)
    return total, expressions, free


def _tensors(var):
    """The variable, or the tensors of which another type was built."""
    if isinstance(var.type, pt.TensorType):
        yield var
    elif var.owner:
        for v in var.owner.inputs:
            yield from _tensors(v)


# ------------------------- Stacked outputs: the slice of an expression that depends on one of them
#
# `BART(shape=(K, n))` returns a stack of K forests' functions. An entry of the stack depends on
# one of them, and so does one slice of any expression that acts on slices separately, for example
# the mean of a Normal. Such slices are followed through the Ops in between, never guessed.


def passes_through(var: Variable) -> Variable | None:
    """The input of an Op that returns it unchanged, else None.

    A check of parameters is not such an Op: it determines where the likelihood is 0.
    """
    if var.owner is None:
        return None
    op = var.owner.op
    if isinstance(op, DimShuffle):
        unchanged = op.new_order == tuple(range(var.owner.inputs[0].ndim))
    elif isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Cast):
        unchanged = var.dtype == "float64"
    elif isinstance(op, Elemwise):
        unchanged = isinstance(op.scalar_op, scalars.Identity)
    else:
        unchanged = isinstance(op, SpecifyShape) or type(op).__name__ in ("ViewOp", "DeepCopyOp")
    return var.owner.inputs[0] if unchanged else None


def constant(var: Variable) -> float | None:
    """Value of a constant with one entry, through broadcasting, else None."""
    while var.owner and isinstance(var.owner.op, DimShuffle):
        var = var.owner.inputs[0]
    if isinstance(var, Constant) and var.data.size == 1:
        return float(var.data.item())
    return None


class NotASliceError(Exception):
    """No single slice of an expression depends on the forest; the message names the Op."""


def picked(var: Variable) -> Variable | None:
    """The part if ``var`` is an entry of a stack, ``pt.stack([a, b, ...])[k]``, else None."""
    owner = var.owner
    if owner is None or not isinstance(owner.op, Subtensor):
        return None
    stack = stripped(owner.inputs[0])
    if stack.owner is None or not isinstance(stack.owner.op, Join):
        return None
    indices = indices_from_subtensor(owner.inputs[1:], owner.op.idx_list)
    axis = stack.owner.op.axis
    if len(indices) <= axis or any(i != slice(None) for i in indices[:axis] + indices[axis + 1 :]):
        return None
    k, parts = _known(indices[axis]), stack.owner.inputs
    if k is None or any(part.type.shape[axis] != 1 for part in parts):
        return None
    part = parts[k].owner
    if part is None or not isinstance(part.op, DimShuffle) or part.op.new_order[axis] != "x":
        return None
    order = part.op.new_order[:axis] + part.op.new_order[axis + 1 :]
    return part.inputs[0] if order == tuple(range(part.inputs[0].ndim)) else None


def _known(index):
    if isinstance(index, Variable):
        number = constant(index)
        return None if number is None else int(number)
    return index if isinstance(index, int) else None


def stripped(var: Variable) -> Variable:
    """An expression without the Ops around it that return it unchanged."""
    while (inner := passes_through(var)) is not None:
        var = inner
    return var


def depends_on(variables: Iterable[Variable], wanted: Variable, blockers: set[Variable]) -> bool:
    """Whether numbers of expressions depend on a variable; a shape does not.

    Entries of stacks only depend on their part.
    """
    todo, known = list(variables), set()
    while todo:
        var = todo.pop()
        if var in known:
            continue
        known.add(var)
        if var is wanted:
            return True
        if var.owner is not None and var not in blockers and not _is_shape(var.owner.op):
            part = picked(var)
            todo += var.owner.inputs if part is None else [part]
    return False


def _is_shape(op) -> bool:
    return isinstance(op, Shape | Shape_i)


def without_picks(expressions: list[Variable]) -> list[Variable]:
    """Expressions with entries of stacks replaced by the parts that they are."""
    entries = {}
    for node in toposort(expressions):
        for var in node.outputs:
            part = picked(var)
            if part is not None:
                entries[var] = part
    return clone_replace(expressions, entries, rebuild_strict=False) if entries else expressions


def place_of(var: Variable, dependent: set[Variable]) -> tuple[int, int]:
    """Axis and index of the only slice of a matrix that depends on the forest.

    Raises
    ------
    NotASliceError
        When it is not known to be one.
    """
    var = stripped(var)
    op = var.owner.op if var.owner else None
    inputs = [v for v in var.owner.inputs if v in dependent] if var.owner else []
    if isinstance(op, Join) and len(inputs) == 1:
        [part] = inputs
        before = [v.type.shape[op.axis] for v in var.owner.inputs[: var.owner.inputs.index(part)]]
        axis, k = (op.axis, 0) if part.type.shape[op.axis] == 1 else place_of(part, dependent)
        if axis == op.axis and None not in before:
            return axis, sum(before) + k
    if isinstance(op, Elemwise):
        places = {place_of(v, dependent) for v in inputs}
        if len(places) == 1:
            return places.pop()
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        axis, k = place_of(inputs[0], dependent)
        return 1 - axis, k
    raise NotASliceError(str(op))


def slice_of(var: Variable, axis: int, k: int, dependent: set[Variable]) -> Variable:
    """A matrix at one place of one axis, as a vector.

    Raises
    ------
    NotASliceError
        When an Op between it and the forest is not known.
    """
    if var not in dependent:
        at = 0 if var.type.broadcastable[axis] else k
        return var[at] if axis == 0 else var[:, at]
    var = stripped(var)
    node, op = var.owner, var.owner.op if var.owner else None
    if isinstance(op, Elemwise):
        inputs = [slice_of(v, axis, k, dependent) for v in node.inputs]
        return op.make_node(*inputs).outputs[node.outputs.index(var)]
    if isinstance(op, Join) and op.axis == axis:
        for part in node.inputs:
            if k < part.type.shape[axis]:
                return slice_of(part, axis, k, dependent)
            k -= part.type.shape[axis]
    if isinstance(op, DimShuffle) and op.new_order == (1, 0):
        return slice_of(node.inputs[0], 1 - axis, k, dependent)
    if isinstance(op, DimShuffle) and op.new_order[axis] == "x":
        order = op.new_order[:axis] + op.new_order[axis + 1 :]
        return node.inputs[0].dimshuffle(order)
    raise NotASliceError(str(op))


def slices(variables: list[Variable], axis: int, k: int, dependent: set[Variable]) -> Iterator:
    """`slice_of` of numbers, vectors and matrices that are broadcast with each other."""
    for var in variables:
        if var.ndim == 2:
            yield slice_of(var, axis, k, dependent)
        elif var in dependent:
            raise NotASliceError("a vector among matrices")
        elif var.ndim == 1 and axis == 1:
            yield var[0 if var.type.broadcastable[0] else k]
        else:
            yield var
