"""The terms of a model that depend on a forest."""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, explicit_graph_inputs, toposort
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import Shape, Shape_i

from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.targets.errors import ForestUseError
from pymc_trees.targets.stacks import depends_on, without_picks


class ForestGraph(NamedTuple):
    """A forest and what depends on it."""

    rv: Variable
    """The forest."""
    value: Variable
    """Its value variable."""
    terms: list[Variable]
    """Other random variables whose parameters depend on the forest."""
    potentials: list[Variable]
    """Potentials that depend on it."""


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
    return ForestGraph(rv, model.rvs_to_values[rv], terms, potentials)


def open_forest(
    model: pm.Model, graph: ForestGraph, expressions: list[Variable]
) -> tuple[list[Variable], Variable]:
    """Rewrite expressions as functions of values and of the forest's outputs.

    Returns
    -------
    expressions : list of variables
        With random variables replaced by values and the forest by ``outputs``.
    outputs : (n, K) matrix variable
        The forest's outputs at its training rows.

    Raises
    ------
    ForestUseError
        If an expression uses the forest other than at its training inputs.
    """
    layout = graph.rv.owner.op.layout
    expressions = without_picks(model.replace_rvs_by_values(expressions))
    outputs = pt.tensor("outputs", dtype="float64", shape=(layout.n_rows, layout.n_outputs))
    found = evaluations(expressions, graph.value)
    check_inputs(graph.rv, [one.X for one in found])
    replaced = clone_replace(
        expressions, {one.outputs: outputs for one in found}, rebuild_strict=False
    )
    if any(v is graph.value for v in ancestors(replaced)):
        raise ForestUseError(
            f"{graph.rv.name} is used other than through evaluate(forest, X): use the function "
            "returned by BART, DecisionTree or evaluate."
        )
    return replaced, outputs


def inputs_seen(model: pm.Model, rv: Variable) -> list[Variable]:
    """Inputs at which the terms that depend on a forest evaluate it."""
    graph = read_graph(model, rv)
    seen = [*(v for term in graph.terms for v in term.owner.inputs), *graph.potentials]
    return [one.X for one in evaluations(seen, rv, blockers=model.basic_RVs)]


def check_inputs(rv: Variable, inputs: list[Variable]) -> None:
    """Raise an error for inputs other than those of the declaration of a forest."""
    X_train = training_rows(rv)
    for X in inputs:
        try:
            known = present(X)
        except MissingInputError:
            raise ForestUseError(
                f"{rv.name} is evaluated at inputs that depend on other variables of the model: "
                "its inputs must be data."
            ) from None
        if known is not X_train and not np.array_equal(known, X_train):
            raise ForestUseError(
                f"{rv.name} is evaluated at inputs other than those it was declared with. "
                "Sampling needs the training inputs: set the data back with pm.set_data, or "
                "declare the model again with the new ones."
            )


def dependent_on(expressions: list[Variable], outputs: Variable) -> set[Variable]:
    """Variables of a graph whose numbers depend on ``outputs``; a shape does not."""
    found = {outputs}
    for node in toposort(expressions):
        if not isinstance(node.op, Shape | Shape_i) and any(v in found for v in node.inputs):
            found.update(node.outputs)
    return found


def compile_values(model: pm.Model, expressions: list[Variable], first: list[Variable]):
    """Function of ``first`` and of the value variables the expressions need, and their names.

    The graphs are small and called once a sweep: they are simplified, and run without compilation.
    """
    needed = set(explicit_graph_inputs(expressions))
    values = [v for v in model.value_vars if v in needed]
    function = pytensor.function(
        [*first, *values],
        expressions,
        mode=pytensor.compile.mode.Mode(linker="py", optimizer="fast_run").excluding("fusion"),
        on_unused_input="ignore",
    )
    function.trust_input = False
    return function, [v.name for v in values]


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
    found = named_parameters(rv)
    return list(rv.owner.inputs) if found is None else found


# ------------ Subexpressions that do not depend on one of the variables, cut off and computed once


def cut_free(
    total: Variable, changing: Variable
) -> tuple[Variable, list[Variable], list[Variable]]:
    """Replace subexpressions that do not depend on a variable by inputs.

    Returns
    -------
    total : Variable
        The expression as a function of ``changing`` and of ``free``.
    expressions : list of Variable
        Values of the inputs, as expressions: float64, of at least one dimension.
    free : list of Variable
        The inputs.
    """
    seeing = dependent_on([total], changing)
    replaced: dict[Variable, Variable] = {}
    expressions: list[Variable] = []
    free: list[Variable] = []
    for node in toposort([total]):
        if not any(v in seeing for v in node.outputs):
            continue
        for v in (t for u in node.inputs if u not in seeing for t in _tensors(u)):
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
