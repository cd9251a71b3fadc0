"""How far draws are from what is asked of them: R-hat, ESS and the pool of named variables."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.distributions.tree_variable import (
    TreeVariable,
    evaluations,
    evenly_spaced,
    is_tree_variable,
    tree_variable,
)
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.pool import PoolCheck, judge_pool, scalars_of
from pymc_trees.posterior.reading.functions import Function

ENTRIES = 50
"""Rows of f, or entries of another variable, that are judged."""
FOREST = "_forest"
"""End of the name of a forest, without which it is that of its function."""


class Goal(NamedTuple):
    """What is asked of each variable."""

    r_hat: float
    ess: float
    pooled: float | None
    """Relative change of the pooled sd of f; None where the pool does not count."""


class Reached(NamedTuple):
    """What a variable has reached, over its entries."""

    name: str
    r_hat: float
    """The largest."""
    ess: float
    """The smallest, of bulk and tail."""
    draws: int
    """Of each chain."""
    pool: PoolCheck | None
    """Of functions of trees."""

    def has_mixed(self, goal: Goal) -> bool:
        """Whether R-hat and ESS are as asked."""
        return self.r_hat <= goal.r_hat and self.ess >= goal.ess

    def is_pooled(self, goal: Goal) -> bool:
        """Whether the pool of chains is flat enough."""
        if self.pool is None or goal.pooled is None:
            return False
        return self.pool.usable and abs(self.pool.spread.size) <= goal.pooled

    def needs(self, goal: Goal) -> float:
        """Draws of a chain at which R-hat and ESS would be as asked.

        ESS grows in proportion to the draws, and R-hat**2 - 1 falls so, of chains that mix.
        """
        if self.has_mixed(goal):
            return self.draws
        shares = [1.0, goal.ess / self.ess if self.ess > 0 else math.inf]
        if self.r_hat > goal.r_hat:
            below = goal.r_hat**2 - 1
            shares.append((self.r_hat**2 - 1) / below if below > 0 else math.inf)
        return self.draws * max(shares)

    def words(self, goal: Goal) -> str:
        """What is reached, and of what is not the goal."""
        if self.has_mixed(goal):
            return f"{self.name} has R-hat {self.r_hat:.3f} and ESS {self.ess:.0f}"
        text = f"{self.name} has R-hat {self.r_hat:.3f} (asked {goal.r_hat:g}) and ESS "
        text += f"{self.ess:.0f} (asked {goal.ess:g})"
        if self.pool is not None and goal.pooled is not None:
            text += f"; {self.pool}"
        return text


def variables_of(model: pm.Model, of: Sequence[str] | None, recorded=None) -> list[str]:
    """Names of variables to judge, or an error that lists those there are.

    Parameters
    ----------
    model : pymc.Model
    of : sequence of str or None
        Free variables, Deterministics and functions of trees; None for all free variables.
    recorded : str, sequence or None
        The ``var_names`` of the draws, if they are not to hold all variables.
    """
    trees = [str(rv.name) for rv in model.free_RVs if is_tree_variable(rv)]
    functions = {name.removesuffix(FOREST): name for name in trees}
    others = [str(rv.name) for rv in model.free_RVs if not is_tree_variable(rv)]
    if of is None:
        return _recorded(model, [*functions, *others], recorded, all_of_them=True)
    names = _listed(of)
    known = {*functions, *trees, *others, *(str(v.name) for v in model.deterministics)}
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        choices = [*functions, *others, *(known - {*functions, *trees, *others})]
        raise ValueError(f"of={of!r}: choose from {sorted(choices)}.")
    names = [name.removesuffix(FOREST) if name in trees else name for name in names]
    return _recorded(model, list(dict.fromkeys(names)), recorded)


def _recorded(model: pm.Model, names: list[str], recorded, all_of_them: bool = False) -> list[str]:
    """The names that can be judged by the draws of some variables, or an error."""
    if recorded is None:
        return names
    kept = {str(getattr(one, "name", one)) for one in _listed(recorded)}
    forests = {str(rv.name) for rv in model.free_RVs if is_tree_variable(rv)}

    def is_known(name: str) -> bool:
        tree = _tree_of(model, name)
        if name in kept or (tree is not None and tree.name in kept):
            return True
        return tree is None and forests <= kept and _is_function(model, name)

    known = [name for name in names if is_known(name)]
    if not known or (len(known) < len(names) and not all_of_them):
        lacking = [name for name in names if name not in known]
        raise ValueError(
            f"var_names={sorted(kept)}: {lacking} could not be judged. Add them, or leave "
            "var_names out."
        )
    return known


def _listed(names) -> list:
    return [names] if isinstance(names, str) else list(names)


def reached(idata: xr.DataTree, model: pm.Model, names: Sequence[str]) -> list[Reached]:
    """What each variable has reached.

    Parameters
    ----------
    idata : xarray.DataTree
        Draws of all chains.
    model : pymc.Model
    names : sequence of str
        As from `variables_of`.
    """
    posterior = idata["posterior"].to_dataset()
    scalars = scalars_of(posterior, model)
    found = []
    for name in names:
        values, is_function = values_at(idata, model, name)
        pool = judge_pool(values, scalars) if is_function else None
        found.append(Reached(name, *worst(values), values.shape[1], pool))
    return found


def values_at(idata: xr.DataTree, model: pm.Model, name: str) -> tuple[np.ndarray, bool]:
    """(chains, draws, entries) values of a variable, and whether it is a function of trees."""
    posterior, tree = idata["posterior"].to_dataset(), _tree_of(model, name)
    if tree is not None and tree.name in posterior:
        draws = posterior[tree.name].transpose(*SAMPLE, ...).to_numpy()
        return tree.function_values(model, draws, ENTRIES), True
    is_function = _is_function(model, name)
    if name in posterior:
        values = posterior[name].transpose(*SAMPLE, ...).to_numpy()
        values = values.reshape(*values.shape[:2], -1)
        return values[..., evenly_spaced(values.shape[-1], ENTRIES)].astype(np.float64), is_function
    if not is_function:
        raise ValueError(
            f"of={name!r}: it is not among the draws. Leave it out of of=, or name it in var_names."
        )
    function = Function(idata, model, name)
    rows = function.rows(None)
    rows = rows[evenly_spaced(len(rows), ENTRIES)]
    computed = function.reduced(rows, lambda f: f, {"row": np.arange(len(rows))}, False)
    values = computed.transpose(*SAMPLE, ...).to_numpy()
    return values.reshape(*values.shape[:2], -1), True


def _is_function(model: pm.Model, name: str) -> bool:
    return bool(evaluations([model[name]], blockers=model.basic_RVs))


def _tree_of(model: pm.Model, name: str) -> TreeVariable | None:
    """The trees whose function, or whose own name, that is."""
    for full in (name + FOREST, name):
        if full in model.named_vars and is_tree_variable(model[full]):
            return tree_variable(model[full])
    return None


def worst(values: np.ndarray) -> tuple[float, float]:
    """Largest R-hat and smallest ESS of (chains, draws, entries) values.

    Entries that are the same in all draws do not count. One that a chain never changes has no ESS.
    """
    values = values[..., np.ptp(values, axis=(0, 1)) > 0]
    if values.shape[-1] == 0:
        return 1.0, math.inf
    if (np.ptp(values, axis=1) == 0).any() or values.shape[1] < 4:
        return math.inf, 0.0
    array = xr.DataArray(values, dims=("chain", "draw", "entry"))
    r_hat = float(az.rhat(array).max()) if len(values) > 1 else math.inf
    return r_hat, float(min(az.ess(array, method=kind).min() for kind in ("bulk", "tail")))
