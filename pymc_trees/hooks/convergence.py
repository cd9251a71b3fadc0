"""PyMC's convergence warnings, judged on function values.

PyMC computes R-hat and ESS of every free random variable. The nodes of encoded trees are not
comparable between draws, so every forest would cause a warning. The check is shown, under the name
of a forest or soft tree, what it stands for: its function at up to 50 evenly spaced rows. Models
without trees are judged as before.

Two faults that R-hat cannot see are reported besides: trees that never moved, whose R-hat is not
a number, and draws that are no trees. A step that knows no trees does either. `still_trees` adds
trees that hardly move under the steps of this package.
"""

import numpy as np
import pymc.sampling.mcmc
import xarray as xr
from pymc.stats.convergence import SamplerWarning, WarningType

from pymc_trees.distributions.tree_variable import TreeVariable, tree_variables
from pymc_trees.hooks.still_trees import after_sampling
from pymc_trees.hooks.wrap import wrap

ROWS = 50
NOTHING_TO_JUDGE = "No free variable is among the draws: convergence was not checked."


def judge_function_values() -> None:
    """Wrap PyMC's convergence checks."""
    wrap([pymc.sampling.mcmc], "run_convergence_checks", _judge)


def _judge(original, idata, model):
    posterior = getattr(idata, "posterior", None)
    trees = tree_variables(model)
    if posterior is None or not trees:
        return original(idata, model)
    still = after_sampling(idata, model)
    if not any(rv.name in posterior for rv in model.free_RVs):
        return [SamplerWarning(WarningType.BAD_PARAMS, NOTHING_TO_JUDGE, "info"), *still]
    trees = [tree for tree in trees if tree.name in posterior]
    if not trees:
        return [*original(idata, model), *still]
    shown, faults = {}, []
    for tree in trees:
        draws = posterior[tree.name].values
        values = tree.function_values(model, draws, ROWS)
        shown[tree.name] = ("chain", "draw", f"{tree.name}_output"), values
        faults += faults_of(tree, draws)
    judged = idata.copy()
    data = posterior.to_dataset().drop_vars(list(shown)).assign(shown)
    judged["posterior"] = xr.DataTree(data)
    with np.errstate(invalid="ignore"):  # R-hat of what never moved, which is said in faults
        return [*original(judged, model), *faults, *still]


def faults_of(tree: TreeVariable, draws: np.ndarray) -> list[SamplerWarning]:
    """Faults of (chain, draw, rows, fields) draws other than poor mixing."""
    messages = []
    if not all(tree.is_intact(draws[at]) for at in np.ndindex(*draws.shape[:2])):
        messages.append(
            f"holds draws that are not {tree.what}s, by another step method or edited draws"
        )
    checksums = tree.checksums(draws)
    stuck = np.flatnonzero((checksums == checksums[:, :1]).all(axis=1)).tolist()
    if stuck and checksums.shape[1] > 1:
        messages.append(f"never moved in chains {stuck}")
    return [
        SamplerWarning(
            WarningType.CONVERGENCE,
            f"{tree.name} {message}. Leave it to pm.sample(), which assigns {tree.step}.",
            "error",
        )
        for message in messages
    ]
