"""A plot: how deep the trees are. Numbers first, then a picture of them."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr


def depth_distribution(idata):
    """Share of the draws at each depth of the deepest leaf, chain by chain.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pm.sample` for a model with one forest.

    Returns
    -------
    xarray.DataArray
        Dimensions ``chain`` and ``depth``; each chain sums to 1.
    """
    if "max_depth" not in getattr(idata, "sample_stats", {}):
        raise ValueError("idata has no max_depth: pass what pm.sample returned for one forest.")
    depth = idata.sample_stats["max_depth"]
    depths = np.arange(int(depth.max()) + 1)
    found = (depth == xr.DataArray(depths, dims="depth", coords={"depth": depths})).mean("draw")
    return found.rename("share").transpose("chain", "depth")


def plot_depths(idata, *, ax=None):
    """Bars of `depth_distribution`, one colour a chain; the axes."""
    found = depth_distribution(idata)
    ax = plt.subplots()[1] if ax is None else ax
    width = 0.8 / found.sizes["chain"]
    for k, chain in enumerate(found["chain"].values):
        at = found["depth"].values - 0.4 + (k + 0.5) * width
        ax.bar(at, found.sel(chain=chain).values, width, label=f"chain {chain}")
    ax.set(xlabel="depth of the deepest leaf", ylabel="share of the draws")
    ax.legend(frameon=False)
    return ax
