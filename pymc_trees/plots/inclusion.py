"""`plot_variable_inclusion`: which columns the trees are split on."""

import numpy as np
import pymc as pm
import xarray as xr
from arviz_plots import visuals

from pymc_trees.arguments import check_number
from pymc_trees.plots.figure import picture, wrapped
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.inclusion import get_variable_inclusion

WIDTH, HEIGHT, ROW = 600, 250, 25
"""Dots: width of the figure, its height without the columns, and the height of each column."""


@picture
def plot_variable_inclusion(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    top: int | None = None,
    ci_prob: float | None = None,
    backend: str | None = None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Share of splits on each column, with intervals, the largest first.

    The numbers are those of `get_variable_inclusion`. The line is the share that each column would
    have if all columns, including those not shown, were split equally often.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest, or of a function, if the model has several forests. For a function with
        one forest per output, the splits of all its forests are counted.
    top : int, optional
        Number of columns shown. Default: all.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    progressbar : bool, default True
        Whether to show a progress bar.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a model without a forest, or with several; the message lists their names.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_variable_inclusion(idata, model, backend="none")
    """
    share = get_variable_inclusion(idata, model, forest=forest, progressbar=progressbar)["share"]
    prob = probability_of(ci_prob)
    top = None if top is None else check_number("top", top, 1)
    mean, alike = share.mean(SAMPLE), 1 / share.sizes["feature"]
    order = np.argsort(-mean.to_numpy(), kind="stable")[:top]
    mean, share = mean.isel(feature=order), share.isel(feature=order)
    y = -np.arange(order.size, dtype=float)
    low, high = (share.quantile(q, SAMPLE) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    one = xr.Dataset({"share": xr.DataArray(0.0)})
    size = (WIDTH, HEIGHT + ROW * order.size)
    collection = wrapped(one, size, backend, {"cols": ["__variable__"], **pc_kwargs})
    collection.map(visuals.vline, "alike", data=one + alike, color="gray")
    for k in range(order.size):
        ends = xr.DataArray([float(low[k]), float(high[k])], dims=["end"])
        kept = {"data": xr.Dataset({"share": ends}), "y": y[k], "color": "C0"}
        collection.map(visuals.line_x, f"interval_{k}", **kept)
    points = xr.DataArray([mean.to_numpy(), y], dims=["plot_axis", "column"])
    points = points.assign_coords(plot_axis=["x", "y"])
    collection.map(visuals.scatter_xy, "mean", data=xr.Dataset({"share": points}), color="C0")
    target = collection.viz["plot"].to_dataset()["share"].item()
    plot = visuals.backend_from_object(target)
    plot.xlabel("share of splits", target)
    plot.yticks(y, [str(name) for name in mean["feature"].to_numpy()], target)
    return collection
