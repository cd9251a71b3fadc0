"""Where chains start: values of trees that a user gives (``initvals``, ``initval``), checked.

PyTensor's errors about another fit's values are of types of matrices. A value for the function of a
forest would be ignored by PyMC, which takes none for a Deterministic.
"""

from typing import Any

import numpy as np
import pymc as pm
import pymc.initial_point
import pymc.model.core
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.tree_variable import (
    TreeVariable,
    is_tree_variable,
    tree_variable,
    tree_variables,
)
from pymc_trees.hooks.wrap import wrap
from pymc_trees.posterior.check.check_draws import DIFFERENCES


def check_initial_values() -> None:
    """Wrap what makes initial points, for `pymc.sample`, `pymc.find_MAP` and others."""
    wrap([pymc.model.core, pymc.initial_point], "make_initial_point_fn", _checked)
    wrap([pm.Model], "set_initval", _set)


def _set(original, model, rv_var, initval):
    """A value given in the declaration."""
    if is_tree_variable(rv_var) and not isinstance(initval, str | Variable | None):
        initval = _check(tree_variable(rv_var), initval)
    return original(model, rv_var, initval)


def _checked(original, *, model, overrides=None, **given):
    trees = tree_variables(model)
    if not trees:
        return original(model=model, overrides=overrides, **given)
    found = {getattr(key, "name", key): value for key, value in (overrides or {}).items()}
    checked = {}
    for tree in trees:
        declared = model.rvs_to_initial_values[tree.rv]
        value = found.get(tree.name)
        value = declared if value is None else value
        if value is not None and not isinstance(value, str | Variable):
            checked[tree.name] = _check(tree, value)
    for function in model.deterministics:
        if found.get(function.name) is not None:
            _check_function(function, trees, found)
    return original(model=model, overrides={**found, **checked}, **given)


def _check(tree: TreeVariable, given: Any) -> np.ndarray:
    """Encoded trees as PyMC takes them, or an error that says in what they differ."""
    one = f"idata.posterior[{tree.name!r}].values[0, -1]"
    remedy = f"Leave it out of initvals, or give one draw of a fit of this model, {one}."
    try:
        value = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"initvals: {tree.name}={given!r} is no array of trees. {remedy}") from None
    about = DIFFERENCES[type(tree.op)]
    if value.shape != tree.shape:
        why = "it holds no trees"
        if value.ndim > 2 and value.shape[-2:] == tree.shape:
            why = "it holds several draws"
        elif value.ndim == 2:
            why = f"it belongs to another model, with other {about.differing_sizes(tree.rv, value)}"
        raise ValueError(
            f"initvals: {tree.name} has shape {value.shape}, but {tree.shape} in this model: "
            f"{why}. {remedy}"
        )
    if not tree.is_intact(value):
        why = about.differing_settings(tree.rv, [value])
        raise ValueError(
            f"initvals: the value of {tree.name} is not a {tree.what} of this model: {why}. "
            f"{remedy}"
        )
    return value


def _check_function(function: Variable, trees: list[TreeVariable], found: dict) -> None:
    """Refuse values of a function of trees that are to be found some other way."""
    below = set(ancestors([function]))
    lost = [tree.name for tree in trees if tree.rv in below and found.get(tree.name) is None]
    if lost:
        raise ValueError(
            f"initvals: {function.name} follows from the trees of {lost}, and cannot be set: leave "
            f"it out, or give {lost[0]!r} a draw of a fit of this model."
        )
