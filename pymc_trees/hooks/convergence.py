"""PyMC's convergence warnings, judged on function values.

PyMC computes R-hat and ESS of every free random variable. Nodes of encoded trees mean nothing
from draw to draw, so that every forest would alarm. The check is shown, under the forest's name,
what the forest stands for: its function at up to 50 evenly spaced training rows. Models without a
forest are judged as before.

Two faults that R-hat cannot see are reported besides: a forest that never moved, whose R-hat is not
a number, and draws that are no forests. A step that knows no forests does either.
"""

import functools

import numpy as np
import pymc.sampling.mcmc
import xarray as xr
from pymc.stats.convergence import SamplerWarning, WarningType

from pymc_trees.core.leaves.outputs import ConstantLeaf
from pymc_trees.core.value.checksum import is_intact
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import CHECKSUM, sizes
from pymc_trees.distributions.ops.forest_rv import is_forest

ROWS = 50
NOTHING_TO_JUDGE = "No free variable is among the draws: convergence was not checked."


def function_values(forest, draws: np.ndarray) -> np.ndarray:
    """Outputs at evenly spaced training rows of (chain, draw, rows, fields) encoded forests."""
    layout = forest.owner.op.layout
    X, _, _, fingerprint = (v.data for v in forest.owner.inputs[2:6])
    n = layout.n_rows
    chosen = np.unique(np.linspace(0, n - 1, min(ROWS, n)).astype(int))
    leaf = ConstantLeaf(layout.n_values)
    out = np.empty((*draws.shape[:2], len(chosen) * layout.n_values))
    for chain, draw in np.ndindex(*draws.shape[:2]):
        value = np.ascontiguousarray(draws[chain, draw])
        if layout.cache_fit:
            start = sizes(layout).fit_start
            flat = value[layout.max_nodes :].reshape(-1)
            fit = flat[start : start + n * layout.n_values].reshape(n, -1)[chosen]
        else:
            fit = evaluate(value, X[chosen], X, leaf, sizes(layout), float(fingerprint))
        out[chain, draw] = fit.reshape(-1)
    return out


def faults_of(forest, draws: np.ndarray) -> list[SamplerWarning]:
    """What is wrong with (chain, draw, rows, fields) draws beside their mixing."""
    layout = forest.owner.op.layout
    fingerprint = float(forest.owner.inputs[5].data)
    messages = []
    if not all(
        is_intact(np.ascontiguousarray(draws[at]), layout.max_nodes, fingerprint)
        for at in np.ndindex(*draws.shape[:2])
    ):
        messages.append("holds draws that are not forests, by another step method or edited draws")
    checksums = draws.reshape(*draws.shape[:2], -1)[
        ..., layout.max_nodes * layout.fields + CHECKSUM
    ]
    stuck = np.flatnonzero((checksums == checksums[:, :1]).all(axis=1)).tolist()
    if stuck and checksums.shape[1] > 1:
        messages.append(f"never moved in chains {stuck}")
    return [
        SamplerWarning(
            WarningType.CONVERGENCE,
            f"{forest.name} {message}. Leave it to pm.sample(), which assigns pymc_trees.Hybrid.",
            "error",
        )
        for message in messages
    ]


def judge_function_values() -> None:
    """Wrap `pymc.sampling.mcmc.run_convergence_checks`, once."""
    original = pymc.sampling.mcmc.run_convergence_checks
    if getattr(original, "judges_forests", False):
        return

    @functools.wraps(original)
    def run_convergence_checks(idata, model):
        posterior = getattr(idata, "posterior", None)
        forests = [rv for rv in model.free_RVs if is_forest(rv)]
        if posterior is None or not forests:
            return original(idata, model)
        if not any(rv.name in posterior for rv in model.free_RVs):
            return [SamplerWarning(WarningType.BAD_PARAMS, NOTHING_TO_JUDGE, "info")]
        forests = [rv for rv in forests if rv.name in posterior]
        if not forests:
            return original(idata, model)
        shown = {
            rv.name: (
                ("chain", "draw", f"{rv.name}_output"),
                function_values(rv, posterior[rv.name].values),
            )
            for rv in forests
        }
        names = [rv.name for rv in forests]
        judged = posterior.to_dataset().drop_vars(names).assign(shown)
        tree = idata.copy()
        tree["posterior"] = xr.DataTree(judged)
        faults = [w for rv in forests for w in faults_of(rv, posterior[rv.name].values)]
        with np.errstate(invalid="ignore"):  # R-hat of what never moved, which is said in faults
            return [*original(tree, model), *faults]

    run_convergence_checks.judges_forests = True  # type: ignore[attr-defined]
    pymc.sampling.mcmc.run_convergence_checks = run_convergence_checks
