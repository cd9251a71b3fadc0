"""`plot_convergence`: whether chains agree about f, over rows."""

import numpy as np
import pymc as pm
import xarray as xr
from arviz_plots import visuals

from pymc_trees.plots.figure import picture, wrapped
from pymc_trees.posterior.convergence import summarise_function
from pymc_trees.posterior.draws import draws_of

SIZE = (660, 290)
"""Dots of the figure."""
R_HAT, ESS_A_CHAIN = 1.01, 100
"""What ArviZ and Vehtari et al. (2021) ask for: at most, and at least for each chain."""


@picture
def plot_convergence(
    idata,
    model: pm.Model | None = None,
    rows=None,
    *,
    var_name: str | None = None,
    func=None,
    backend: str | None = None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Distribution over rows of R-hat and of effective sample sizes of f.

    The numbers are those of `summarise_function`: the cumulative share of rows by R-hat, bulk and
    tail ESS, with the recommended limits (Vehtari et al. 2021): R-hat below 1.01, and an ESS of 100
    per chain.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file; two chains or more.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rows : (n, p) array or frame, optional
        Rows, with the columns of X. Default: the rows currently in the model.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f.
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
        For one chain, which has no R-hat, or a function that does not exist.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021). Rank-normalization, folding, and
    localization: an improved R-hat. Bayesian Analysis 16(2).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=20, chains=2, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_convergence(idata, model, backend="none")
    """
    summary = summarise_function(
        idata, model, rows, var_name=var_name, func=func, progressbar=progressbar
    )
    n_chains = draws_of(idata)["posterior"].sizes["chain"]
    if n_chains < 2:
        raise ValueError("idata has one chain, for which R-hat is undefined: sample two or more.")
    shown = {name: _distribution(summary[name]) for name in ("r_hat", "ess_bulk", "ess_tail")}
    drawn = xr.Dataset(shown)
    layout = {"cols": ["__variable__"], "col_wrap": 3, **pc_kwargs}
    size = SIZE
    collection = wrapped(drawn.isel(plot_axis=0, row=0), size, backend, layout, sharey=True)
    collection.map(visuals.line_xy, "distribution", data=drawn, color="C0")
    least = ESS_A_CHAIN * n_chains
    limits = {"r_hat": R_HAT, "ess_bulk": least, "ess_tail": least}
    limit = {"color": "gray", "linestyle": "C1"}
    collection.map(visuals.vline, "threshold", data=xr.Dataset(limits), **limit)
    words = {"r_hat": "R-hat", "ess_bulk": "ESS, bulk", "ess_tail": "ESS, tail"}
    for k, (name, text) in enumerate(words.items()):
        target = collection.viz["plot"].to_dataset()[name].item()
        plot = visuals.backend_from_object(target)
        plot.xlabel(text, target)
        if k == 0:
            plot.ylabel("share of rows", target)
    return collection


def _distribution(values: xr.DataArray) -> xr.DataArray:
    """(plot_axis, row) points of the empirical distribution function."""
    x = np.sort(values.to_numpy().ravel())
    y = np.arange(1, x.size + 1) / x.size
    return xr.DataArray([x, y], coords={"plot_axis": ["x", "y"]}, dims=["plot_axis", "row"])
