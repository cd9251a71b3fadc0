"""`plot_overlap`: propensities of the treated and the others."""

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection, visuals

from pymc_trees.arguments import check_number
from pymc_trees.plots.figure import picture, targets, wrapped

WIDTH, HEIGHT = 560, 340
"""Of the figure, in dots."""


@picture
def plot_overlap(
    overlap: xr.Dataset, *, bins: int = 20, backend: str | None = None, **pc_kwargs
) -> PlotCollection:
    """Share of the rows of each arm by propensity.

    Where only one curve is at 0, there are no rows to compare with, and effects are extrapolated.

    Parameters
    ----------
    overlap : xarray.Dataset
        From `pymc_trees.causal.overlap`.
    bins : int, default 20
        Between the lowest propensity and the highest.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: ArviZ's setting, ``rcParams["plot.backend"]``.
    **pc_kwargs
        To `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        A Dataset that is not one of `overlap`.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> found = pmt.causal.overlap([0.1, 0.4, 0.6, 0.5, 0.95], [0, 0, 0, 1, 1])
    >>> drawn = pmt.plot_overlap(found, backend="none")
    """
    if not {"propensity", "treated", "outside"} <= set(getattr(overlap, "data_vars", ())):
        raise ValueError("overlap: give the Dataset returned by pymc_trees.causal.overlap.")
    bins = check_number("bins", bins, 1)
    p, treated = overlap["propensity"].to_numpy(), overlap["treated"].to_numpy()
    edges = np.histogram_bin_edges(p, bins)
    lines = []
    for arm in (~treated, treated):
        share = np.histogram(p[arm], edges)[0] / arm.sum()
        lines.append([np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(share, 2), [0.0]])])
    coords = {"arm": ["not treated", "treated"], "plot_axis": ["x", "y"]}
    steps = xr.DataArray(np.array(lines), coords, ["arm", "plot_axis", "end"])
    ds = xr.Dataset({"share": steps})
    layout = {"cols": ["__variable__"], "aes": {"color": ["arm"]}, **pc_kwargs}
    collection = wrapped(ds.isel(plot_axis=0, end=0), (WIDTH, HEIGHT), backend, layout)
    collection.map(visuals.line_xy, "line", data=ds)
    outside = float(overlap["outside"].mean())
    [(target, _)] = targets(collection, "share")
    plot = visuals.backend_from_object(target)
    plot.xlabel("propensity", target)
    plot.ylabel("share of the rows of an arm", target)
    plot.title(f"{outside:.1%} beyond the other arm", target)
    collection.add_legend("arm")
    return collection
