"""The group ``sample_stats`` of a top-down SMC run."""

import numpy as np
import xarray as xr

from pymc_trees.inference.tree_smc.run import Island


def smc_statistics(
    found: list[Island], log_z: np.ndarray, island: np.ndarray, number: np.ndarray
) -> xr.Dataset:
    """Statistics of islands and of their draws.

    Parameters
    ----------
    found : list of Island
        One per chain.
    log_z : (chains,) float64
        Log evidence.
    island, number : (chains, draws) int64
        Island of each draw, and its number there.
    """

    def pick(field):
        return np.stack([getattr(one, field) for one in found])[island, number]

    n_stages = max(one.ess.size for one in found)
    ess = np.full((len(found), n_stages), np.nan)
    resampled = np.zeros((len(found), n_stages), dtype=bool)
    for k, one in enumerate(found):
        ess[k, : one.ess.size] = one.ess
        resampled[k, : one.ess.size] = one.resampled
    counts = pick("counts")
    draws, stages = ("chain", "draw"), ("chain", "stage")
    weights = np.stack([one.log_weights for one in found])
    variables = {
        "log_marginal_likelihood": (("chain",), log_z),
        "log_weights": (("chain", "particle_number"), weights),
        "island": (draws, island),
        "particle": (draws, pick("particle")),
        "n_leaves": (draws, counts[..., 0]),
        "max_depth": (draws, counts[..., 1]),
        "variable_inclusion": ((*draws, "column"), pick("inclusion")),
        "stage_ess": (stages, ess),
        "resampled": (stages, resampled),
    }
    sizes = {
        "chain": len(found),
        "draw": island.shape[1],
        "particle_number": weights.shape[1],
        "stage": n_stages,
    }
    return xr.Dataset(variables, {name: np.arange(size) for name, size in sizes.items()})
