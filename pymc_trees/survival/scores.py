"""How well survival curves predict: concordance and Brier scores, by scikit-survival."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.survival.curves import check_curves, restricted_mean
from pymc_trees.survival.long_table import Outcome, check_outcome


def concordance(survival: xr.Dataset, time: Any, event: Any, *, train=None, tau=None) -> float:
    """Share of the pairs of rows whose events happen in the predicted order.

    Rows are ordered by the restricted mean survival time up to the last time of the curves
    (`restricted_mean`), computed from posterior mean curves.

    Parameters
    ----------
    survival : xarray.Dataset
        From `survival_function`, row by row.
    time, event : (n,) arrays
        What happened to the rows.
    train : pair of arrays, optional
        ``(time, event)`` of the training rows, used to weight the pairs by the inverse probability
        of censoring (Uno 2011), which is unknown after their last time. Default: no weights, all
        pairs whose order is known (Harrell).
    tau : float, optional
        With ``train``, events later than this are left out.

    Returns
    -------
    float
        From 0 to 1; 1/2 is no better than chance.

    Raises
    ------
    ImportError
        Without scikit-survival.
    ValueError
        Another number of rows; events after the follow-up of ``train``, unless ``tau`` leaves them
        out.

    References
    ----------
    Harrell, Califf, Pryor, Lee and Rosati (1982). Evaluating the yield of medical tests. JAMA 247.
    Uno, Cai, Pencina, D'Agostino and Wei (2011). On the C-statistics for evaluating overall
    adequacy of risk prediction procedures with censored survival data. Statistics in Medicine 30.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_trees import survival
    >>> draws = xr.DataArray([[[[0.9, 0.8], [0.5, 0.1], [0.7, 0.6]]]],
    ...     {"time": [1.0, 2.0]}, ["chain", "draw", "row", "time"])
    >>> curves = xr.Dataset({"survival": draws}, attrs={"stepwise": 1})
    >>> survival.concordance(curves, [3.0, 1.0, 2.0], [1, 1, 1])
    1.0
    """
    metrics = _metrics()
    curve, outcome = _asked(survival, time, event)
    mean = xr.Dataset({"survival": curve.mean(SAMPLE).expand_dims(SAMPLE)}, attrs=survival.attrs)
    risk = -restricted_mean(mean, float(curve["time"][-1])).to_numpy().ravel()
    if train is None:
        return float(metrics.concordance_index_censored(outcome.event, outcome.time, risk)[0])
    known = check_outcome(*train)
    _check_weights(known, outcome, tau)
    rows = _structured(known), _structured(outcome)
    return float(metrics.concordance_index_ipcw(*rows, risk, tau=tau)[0])


def _check_weights(known: Outcome, outcome: Outcome, tau) -> None:
    """Raise an error for events at which everybody of the training rows had left."""
    end = known.time.max()
    events = outcome.time[outcome.event]
    events = events if tau is None else events[events < tau]
    all_left = not known.event[known.time == end].all()
    if (events > end).any() or (all_left and (events == end).any()):
        raise ValueError(
            f"train has a follow-up up to {end:g}, but there are events up to {events.max():g}, "
            f"whose weights it does not tell: give tau={float(end)!r}, which leaves out events "
            "from then on, or a train with a longer follow-up."
        )


def brier_score(survival: xr.Dataset, time: Any, event: Any, *, train=None) -> xr.Dataset:
    """Mean squared difference between predicted and observed survival, at each time.

    Computed from posterior mean curves. Censoring is corrected for by inverse probability weights
    (Graf 1999).

    Parameters
    ----------
    survival : xarray.Dataset
        From `survival_function`, row by row. Times beyond the follow-up of the rows, or of
        ``train``, are left out.
    time, event : (n,) arrays
        What happened to the rows.
    train : pair of arrays, optional
        ``(time, event)`` of the rows that were fitted, from which censoring is estimated. Default:
        the rows themselves.

    Returns
    -------
    xarray.Dataset
        ``brier`` by time, and ``integrated``, its mean over time. A constant curve of 1/2 has a
        score of 1/4.

    Raises
    ------
    ImportError
        Without scikit-survival.
    ValueError
        Another number of rows; fewer than two times within the follow-up.

    References
    ----------
    Graf, Schmoor, Sauerbrei and Schumacher (1999). Assessment and comparison of prognostic
    classification schemes for survival data. Statistics in Medicine 18.

    Examples
    --------
    >>> import xarray as xr
    >>> from pymc_trees import survival
    >>> draws = xr.DataArray([[[[0.9, 0.8], [0.5, 0.1], [0.7, 0.6]]]],
    ...     {"time": [1.0, 2.0]}, ["chain", "draw", "row", "time"])
    >>> curves = xr.Dataset({"survival": draws}, attrs={"stepwise": 1})
    >>> found = survival.brier_score(curves, [3.0, 1.0, 2.0], [1, 1, 1])
    >>> found["brier"].values.round(4).tolist()
    [0.1167, 0.1367]
    """
    metrics = _metrics()
    curve, outcome = _asked(survival, time, event)
    known = outcome if train is None else check_outcome(*train)
    # what happens later does not matter at earlier times, and has no weights
    end = known.time.max()
    event = outcome.event & (outcome.time <= end)
    outcome = outcome._replace(time=np.minimum(outcome.time, end), event=event)
    at = curve["time"].to_numpy()
    inside = (at >= outcome.time.min()) & (at < outcome.time.max())
    if inside.sum() < 2:
        raise ValueError(
            "survival has fewer than two times within the follow-up of the rows, from "
            f"{outcome.time.min():g} to before {outcome.time.max():g}."
        )
    at = at[inside]
    estimate = curve.mean(SAMPLE).isel(time=np.flatnonzero(inside)).to_numpy()
    rows = _structured(known), _structured(outcome)
    _, scores = metrics.brier_score(*rows, estimate, at)
    integrated = np.trapezoid(scores, at) / (at[-1] - at[0])
    return xr.Dataset({"brier": ("time", scores), "integrated": integrated}, {"time": at})


def _asked(survival, time, event) -> tuple[xr.DataArray, Outcome]:
    curve = check_curves(survival)
    if curve.dims != (*SAMPLE, "row", "time"):
        raise ValueError(
            f"survival has the dimensions {curve.dims}: call survival_function without by, for "
            "one curve per row."
        )
    return curve, check_outcome(time, event, curve.sizes["row"])


def _structured(outcome: Outcome) -> np.ndarray:
    """As scikit-survival takes times and events."""
    records = np.empty(outcome.time.size, dtype=[("event", bool), ("time", float)])
    records["event"], records["time"] = outcome.event, outcome.time
    return records


def _metrics():
    try:
        from sksurv import metrics
    except ImportError as error:
        raise ImportError(
            'Scores are scikit-survival\'s: pip install "pymc_trees[survival]".'
        ) from error
    return metrics
