"""PyMC's convergence warnings on models with a soft tree, judged on function values.

The numbers of an encoded tree mean nothing from draw to draw; PyMC's check is shown, under the
tree's name, its function at up to 50 evenly spaced rows, as for forests (`convergence`).
"""

import functools

import numpy as np
import pymc.sampling.mcmc
import xarray as xr
from pymc.stats.convergence import SamplerWarning, WarningType
from pytensor.graph.traversal import ancestors

from pymc_trees.core.soft.encode import evaluate
from pymc_trees.distributions.ops.soft_evaluation import SoftEvaluate
from pymc_trees.distributions.ops.soft_tree_rv import fingerprint_of, is_soft_tree
from pymc_trees.hooks.convergence import ROWS


def function_values(model, tree, draws: np.ndarray) -> np.ndarray:
    """Outputs at evenly spaced rows of (chain, draw, rows, fields) encoded trees."""
    node = next(
        v.owner
        for v in ancestors(model.deterministics)
        if v.owner and isinstance(v.owner.op, SoftEvaluate) and v.owner.inputs[0] is tree
    )
    X, low, span, h = (v.eval() for v in node.inputs[1:5])
    X = X[np.unique(np.linspace(0, len(X) - 1, min(ROWS, len(X))).astype(int))]
    n_values, fingerprint = tree.owner.op.n_values, fingerprint_of(tree)
    out = np.empty((*draws.shape[:2], len(X) * n_values))
    for at in np.ndindex(*draws.shape[:2]):
        value = np.ascontiguousarray(draws[at])
        out[at] = evaluate(value, X, low, span, float(h), n_values, fingerprint).reshape(-1)
    return out


def judge_soft_trees() -> None:
    """Wrap `pymc.sampling.mcmc.run_convergence_checks`, once."""
    original = pymc.sampling.mcmc.run_convergence_checks
    if getattr(original, "judges_soft_trees", False):
        return

    @functools.wraps(original)
    def run_convergence_checks(idata, model):
        posterior = getattr(idata, "posterior", None)
        trees = [rv for rv in model.free_RVs if is_soft_tree(rv)]
        trees = [rv for rv in trees if posterior is not None and rv.name in posterior]
        if posterior is None or not trees:
            return original(idata, model)
        shown, faults = {}, []
        for tree in trees:
            values = function_values(model, tree, posterior[tree.name].values)
            shown[tree.name] = ("chain", "draw", f"{tree.name}_output"), values
            if values.shape[1] > 1 and (values == values[:, :1]).all(axis=(1, 2)).any():
                faults.append(
                    SamplerWarning(
                        WarningType.CONVERGENCE,
                        f"{tree.name} never moved in some chain. Sample it with "
                        "pymc_trees.DCCTree.",
                        "error",
                    )
                )
        judged = idata.copy()
        data = posterior.to_dataset().drop_vars(list(shown)).assign(shown)
        judged["posterior"] = xr.DataTree(data)
        with np.errstate(invalid="ignore"):  # R-hat of what never moved
            return [*original(judged, model), *faults]

    run_convergence_checks.judges_soft_trees = True  # type: ignore[attr-defined]
    pymc.sampling.mcmc.run_convergence_checks = run_convergence_checks
