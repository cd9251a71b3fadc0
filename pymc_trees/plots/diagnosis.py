"""`plot_diagnosis`: where chains differ, and whether they still change."""

import numpy as np
import xarray as xr
from arviz_plots import visuals

from pymc_trees.plots.figure import picture, wrapped
from pymc_trees.posterior.diagnosis import Diagnosis

SIZE = (900, 300)
"""Dots of the figure."""
SHOWN = 6
"""Columns and pairs."""


@picture
def plot_diagnosis(diagnosis: Diagnosis, *, backend: str | None = None, **pc_kwargs):
    """Three panels of a diagnosis: rows, columns, and the run.

    The share of rows by the width of a chain's own interval, relative to that of all chains
    together; how much of the variance between chains' means columns and pairs explain; and the
    pooled sd of the function over the draws, relative to that of all draws.

    Parameters
    ----------
    diagnosis : Diagnosis
        Result of `diagnose`, of two chains or more.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        When it is no result of `diagnose`, or of one chain.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=20, chains=2, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.diagnose(idata, model, progressbar=False)
    >>> drawn = pmt.plot_diagnosis(found, backend="none")
    """
    if not isinstance(diagnosis, Diagnosis) or not diagnosis.shares:
        raise ValueError(
            "diagnosis: give the result of pymc_trees.diagnose, of draws of two chains or more."
        )
    width = np.sort(diagnosis.rows["width"].to_numpy())
    by_row = _points(width, np.arange(1, width.size + 1) / width.size)
    top = [(names, share) for names, share in diagnosis.shares.items()][: SHOWN + 1]
    top = sorted(top, key=lambda item: item[1])
    labels = [" x ".join(names) or "level" for names, _ in top]
    bars = _points(np.array([share for _, share in top]), np.arange(len(top), dtype=float))
    run = _points(diagnosis.run["part"].to_numpy(), diagnosis.run["spread"].to_numpy())
    shown = {"rows": by_row, "columns": bars, "run": run}
    ds = xr.Dataset({name: one.rename(point=f"point_{name}") for name, one in shown.items()})
    first = {"plot_axis": 0} | {f"point_{name}": 0 for name in shown}
    layout = {"cols": ["__variable__"], "col_wrap": 3, **pc_kwargs}
    collection = wrapped(ds.isel(first), SIZE, backend, layout)
    collection.map(visuals.line_xy, "lines", data=ds[["rows", "run"]], color="C0")
    collection.map(visuals.scatter_xy, "points", data=ds[["columns"]], color="C0")
    limits = xr.Dataset({"rows": 1.0, "columns": 0.0})
    collection.map(visuals.vline, "limit", data=limits, color="gray", linestyle="C1")
    words = {
        "rows": ("width of a chain's interval / pool's", "share of rows"),
        "columns": ("share of variance between chains", ""),
        "run": ("share of the draws", "pooled sd / that of all draws"),
    }
    for name, (x, y) in words.items():
        target = collection.viz["plot"].to_dataset()[name].item()
        plot = visuals.backend_from_object(target)
        plot.xlabel(x, target)
        if y:
            plot.ylabel(y, target)
        else:
            plot.yticks(np.arange(len(labels), dtype=float), labels, target)
    return collection


def _points(x: np.ndarray, y: np.ndarray) -> xr.DataArray:
    return xr.DataArray([x, y], {"plot_axis": ["x", "y"]}, ["plot_axis", "point"])
