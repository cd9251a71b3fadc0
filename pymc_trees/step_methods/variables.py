"""Which forests a step moves: what users may pass as ``vars``."""

from collections.abc import Callable
from typing import NamedTuple

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.data.named import bare
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import is_tree_variable, tree_variable
from pymc_trees.targets.forest_state import ForestData
from pymc_trees.targets.referenced_state import forest_data
from pymc_trees.targets.soft_forest_state import SoftForestData


class Kind(NamedTuple):
    """A kind of forests that a step moves."""

    includes: Callable[[Variable], bool]
    data: Callable[[pm.Model, Variable], ForestData | SoftForestData]
    declared_by: str
    """Public names that declare them."""


HARD = Kind(is_forest, forest_data, "BART or DecisionTree")
SOFT = Kind(is_soft_forest, SoftForestData, "SoftBART")


def forests_of(model: pm.Model, variables=None, kind: Kind = HARD) -> list:
    """Forests meant by what a user passed: forests, their values, or functions of one forest.

    Parameters
    ----------
    variables : sequence, optional
        None, or all value variables of the model, for every forest.
    kind : Kind
        Which forests a step moves.
    """
    forests = [rv for rv in model.free_RVs if kind.includes(rv)]
    others = [rv for rv in model.free_RVs if is_tree_variable(rv) and not kind.includes(rv)]
    if variables is not None and not isinstance(variables, list | tuple):
        variables = [variables]
    if variables is None or (
        len(variables) == len(model.value_vars)
        and all(v is w for v, w in zip(variables, model.value_vars, strict=True))
    ):
        if not forests and others:
            raise _of_other_kind(kind, others)
        if not forests:
            raise ValueError(f"The model has no forest: declare one with {kind.declared_by}.")
        return forests
    chosen: list = []
    for passed in variables:
        variable = model.named_vars.get(passed) if isinstance(passed, str) else passed
        variable = bare(variable) if isinstance(variable, Variable) else variable
        # By identity: an array, say, can be neither looked up nor compared.
        rv = next((r for v, r in model.values_to_rvs.items() if v is variable), variable)
        behind, of_others = _forests_behind(model, rv, forests), _forests_behind(model, rv, others)
        if not behind and of_others:
            raise _of_other_kind(kind, of_others)
        if len(behind) != 1:
            name = getattr(passed, "name", passed)
            raise ValueError(
                f"vars: {name!r} is neither a forest nor the function of one forest. Pass the "
                f"variables returned by {kind.declared_by}, or {[f.name for f in forests]}."
            )
        chosen += [f for f in behind if not any(f is c for c in chosen)]
    return chosen


def _of_other_kind(kind: Kind, forests: list) -> ValueError:
    alone = [tree for tree in map(tree_variable, forests) if tree.moves_with_all]
    if alone:
        return ValueError(
            f"vars: {alone[0].name} is a {alone[0].declared_by}: leave it to pm.sample(), which "
            "assigns its step."
        )
    names = [forest.name for forest in forests]
    if kind is HARD:
        return ValueError(
            f"vars: {names} are soft trees, which pymc_trees.SoftCGM samples: leave them to "
            "pm.sample(), which assigns it."
        )
    return ValueError(
        f"vars: {names} are trees with hard splits, which pymc_trees.CGM and Hybrid sample: leave "
        "them to pm.sample(), which assigns one of these."
    )


def _forests_behind(model, rv, forests) -> list:
    """Those among some forests that a variable is, or is a function of."""
    if any(rv is f for f in forests):
        return [rv]
    if any(rv is d for d in model.deterministics):
        return [f for f in forests if any(v is f for v in ancestors([rv]))]
    return []
