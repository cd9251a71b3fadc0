"""The terms of a model that depend on a forest."""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, explicit_graph_inputs, toposort
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.shape import Shape, Shape_i

from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.targets.errors import ForestUseError
from pymc_trees.targets.parameters import parameters_of
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
