"""`survival_function`, and the restricted mean survival time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.posterior.check_draws import SAMPLE, model_of
from pymc_trees.posterior.comparisons import means_over
from pymc_trees.posterior.reading.draw_by_draw import for_each_draw
from pymc_trees.survival.laws import TimeLaw, read_law

STEPWISE = "stepwise"
"""Attribute of a Dataset: 1 where curves are steps between their times."""


def survival_function(
    idata,
    model: pm.Model | None = None,
    X=None,
    times=None,
    *,
    by=None,
    var_name: str | None = None,
    group: str = "posterior",
    progressbar: bool = True,
) -> xr.Dataset:
    """Probability of having no event up to each time, draw by draw.

    The distribution of the times is read from the model, which may be any PyMC model: a Bernoulli
    of a forest on rows of `long_form`, or a distribution of times with a distribution function in
    PyMC, possibly in `pymc.Censored`, whose parameters are functions of forests.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (n, p) array or frame, optional
        Subjects, without a column for the time. Default: those of the model, unless its rows are
        those of the long form.
    times : increasing array, optional
        In the units of the observed variable. Default: the grid of the long form, or 50 times up to
        the largest that was observed.
    by : bool or column, optional
        True for the mean over all rows, a column for the means over the rows with each of its
        values. Default: one value for each row.
    var_name : str, optional
        Observed variable, where several depend on trees.
    group : str, default "posterior"
        Group of ``idata`` that holds the draws; "prior" gives the same quantity under the prior.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``survival`` with the dimensions chain, draw, ``row`` (none, or that of ``by``) and time.

    Raises
    ------
    ValueError
        For times beyond the grid, and for a model without a distribution of times; the message
        gives the reason.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2016). Nonparametric survival analysis using Bayesian
    Additive Regression Trees (BART). Statistics in Medicine 35(16).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> from pymc_trees import survival
    >>> rng = np.random.default_rng(1)
    >>> X, T = rng.random((30, 1)), rng.exponential(size=30)
    >>> with pm.Model() as model:
    ...     f = pmt.BART("f", X, m=5, leaf=pmt.NormalLeaf(0, 0.3))
    ...     t = pm.Exponential("t", pm.math.exp(f), observed=T)
    ...     idata = pm.sample(5, tune=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = survival.survival_function(idata, model, times=[0.5, 1.0], by=True)
    >>> dict(found["survival"].sizes)
    {'chain': 1, 'draw': 5, 'time': 2}
    """
    law = read_law(idata, model_of(model), var_name, times, group)
    rows = law.rows(X)
    share, dims = means_over(law.columns, rows, by)

    def curves(chain, draw):
        return share(law.survival(chain, draw, rows))

    found = each_curve(law, curves, dims, progressbar)
    return xr.Dataset({"survival": found}, attrs={STEPWISE: int(law.stepwise)})


def each_curve(
    law: TimeLaw, curves: Callable, dims: dict[str, Any], progressbar: bool, before=None
) -> xr.DataArray:
    """What ``curves`` makes of each chain and draw, its last axis the times in the end.

    It returns the axes of ``before``, the times, and the axes of ``dims``.
    """
    before = before or {}
    named = before | {"time": law.times} | dims
    shape = law.expression.shape
    found = np.empty((*shape, *(len(of) for of in named.values())))

    def work(chain, draw):
        found[chain, draw] = curves(chain, draw)

    # one after the other: a compiled function of PyTensor serves one thread at a time
    for_each_draw(work, shape, law.expression.name, 1, progressbar)
    array = xr.DataArray(found, law.expression.coords | named, [*SAMPLE, *named])
    return array.transpose(..., "time")


def restricted_mean(survival: xr.Dataset, horizon: float) -> xr.DataArray:
    """Mean time without an event up to a horizon: the area under survival curves.

    Parameters
    ----------
    survival : xarray.Dataset
        From `survival_function`. Curves on all times of the grid are step functions; other curves
        are interpolated linearly between their times.
    horizon : float
        Up to the last time of the curves.

    Returns
    -------
    xarray.DataArray
        ``restricted_mean`` with the dimensions of the curves but for time.

    Raises
    ------
    ValueError
        For a horizon beyond the curves.

    References
    ----------
    Royston and Parmar (2013). Restricted mean survival time: an alternative to the hazard ratio for
    the design and analysis of randomized trials with a time-to-event outcome. BMC Medical Research
    Methodology 13.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_trees import survival
    >>> curve = xr.DataArray([[[0.5, 0.25]]], {"time": [1.0, 2.0]}, ["chain", "draw", "time"])
    >>> found = xr.Dataset({"survival": curve}, attrs={"stepwise": 1})
    >>> float(survival.restricted_mean(found, 2.0).item())
    1.5
    """
    curve = check_curves(survival)
    time = curve["time"].to_numpy()
    if not 0 < horizon <= time[-1]:
        raise ValueError(
            f"horizon={horizon!r}: give a time above 0 and up to {time[-1]:g}, the last of the "
            "curves."
        )
    curve = curve.isel(time=np.flatnonzero(time > 0))
    start = xr.ones_like(curve.isel(time=[0])).assign_coords(time=[0.0])
    whole = xr.concat([start, curve], dim="time")
    if not survival.attrs.get(STEPWISE):
        end = whole.interp(time=[horizon])
        kept = whole.sel(time=whole["time"] < horizon)
        area = xr.concat([kept, end], dim="time").integrate("time")
    else:
        ends = np.minimum(np.append(whole["time"].to_numpy()[1:], np.inf), horizon)
        widths = np.maximum(ends - whole["time"].to_numpy(), 0.0)
        area = (whole * xr.DataArray(widths, dims=["time"])).sum("time")
    return area.rename("restricted_mean")


def check_curves(survival) -> xr.DataArray:
    """Draws of survival curves, time last."""
    curve = getattr(survival, "data_vars", {}).get("survival")
    if curve is None or not {*SAMPLE, "time"} <= set(curve.dims):
        raise ValueError("survival: give the Dataset returned by survival_function.")
    return curve.transpose(*SAMPLE, ..., "time")
