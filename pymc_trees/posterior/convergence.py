"""Whether chains agree about f, row by row: `summarise_function`."""

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.reading.functions import Function

BLOCK = 5_000_000
"""Values of f, draws times rows, that are judged at a time."""


def summarise_function(
    idata,
    model: pm.Model | None = None,
    rows=None,
    *,
    var_name: str | None = None,
    func=None,
    ci_prob: float | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Mean, interval and convergence of f at rows.

    The trees of different chains cannot be compared directly. Their function can: R-hat and
    effective sample sizes of f at many rows show whether chains agree.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rows : (n, p) array or frame, optional
        Rows, with the columns of X. Default: the rows currently in the model.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f; an inverse link such as `numpy.exp`, for example.
    ci_prob : float, optional
        Probability of the interval. Default: that of ArviZ (``rcParams["stats.ci_prob"]``).
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        With the dimensions of the outputs and row: ``mean``, ``sd``, ``low`` and ``high`` (an
        equal-tailed interval), ``r_hat``, ``ess_bulk``, ``ess_tail`` and ``mcse_mean``, the latter
        four as ArviZ has them (R-hat is NaN for one chain).

    Raises
    ------
    ValueError
        For a function that does not exist; the message lists those that do.

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
    >>> found = pmt.summarise_function(idata, model)
    >>> dict(found["r_hat"].sizes)
    {'row': 30}
    """
    prob = probability_of(ci_prob)
    function = Function(idata, pm.modelcontext(model), var_name, func)
    X = function.rows(rows)
    f = function.reduced(X, lambda values: values, {"row": np.arange(len(X))}, progressbar)
    # ArviZ makes several copies of what it judges: some rows at a time.
    width = max(1, BLOCK // int(np.prod(function.shape + function.outputs)))
    starts = range(0, len(X), width)
    parts = [_summary(f.isel(row=slice(i, i + width)), prob) for i in starts]
    return xr.concat(parts, dim="row").assign_attrs(function=function.name, ci_prob=prob)


def _summary(f: xr.DataArray, prob: float) -> xr.Dataset:
    low, high = (f.quantile(q, SAMPLE, skipna=False) for q in (0.5 - prob / 2, 0.5 + prob / 2))
    several = f.sizes["chain"] > 1
    summary = {
        "mean": f.mean(SAMPLE),
        "sd": f.std(SAMPLE, ddof=1),
        "low": low.drop_vars("quantile"),
        "high": high.drop_vars("quantile"),
        "r_hat": az.rhat(f) if several else xr.full_like(low.drop_vars("quantile"), np.nan),
        "ess_bulk": az.ess(f, method="bulk"),
        "ess_tail": az.ess(f, method="tail"),
        "mcse_mean": az.mcse(f, method="mean"),
    }
    return xr.Dataset(summary)


def probability_of(ci_prob: float | None) -> float:
    """Probability of an interval: that given, or ArviZ's."""
    prob = az.rcParams["stats.ci_prob"] if ci_prob is None else ci_prob
    if not (isinstance(prob, int | float) and 0 < prob < 1):
        raise ValueError(f"ci_prob={ci_prob!r}: must be between 0 and 1.")
    return float(prob)
