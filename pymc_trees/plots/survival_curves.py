"""`plot_survival`: survival curves and cumulative incidences, with empirical estimates."""

import numpy as np
import pandas as pd
import xarray as xr
from arviz_plots import PlotCollection, visuals
from scipy import stats

from pymc_trees.plots.figure import picture, targets, wrapped
from pymc_trees.posterior.convergence import probability_of
from pymc_trees.posterior.draws import SAMPLE

STARTS = {"incidence": 0.0, "survival": 1.0, "expected": 0.0}
"""What curves begin with, by their variable."""
LABELS = {
    "incidence": "probability that it has happened",
    "survival": "probability of no event yet",
    "expected": "expected number of events",
}
MOST = 10
"""Curves of a picture."""
WIDTH, HEIGHT, MARGIN, LEGEND = 400, 300, 80, 120
"""Dots of a panel, of all margins, and at the side for a legend."""


@picture
def plot_survival(
    curves: xr.Dataset,
    time=None,
    event=None,
    *,
    group=None,
    ci_prob: float | None = None,
    backend: str | None = None,
    **pc_kwargs,
) -> PlotCollection:
    """Survival curves with their intervals, and the Kaplan-Meier estimate.

    Parameters
    ----------
    curves : xarray.Dataset
        From `survival_function`, `cumulative_incidence` or `expected_events` of
        `pymc_trees.survival`, of at most 10 rows or groups. Incidences have a panel for each cause.
    time, event : (n,) arrays, optional
        Observed outcomes, for a dashed empirical estimate: Kaplan-Meier or, for incidences,
        Aalen-Johansen, where ``event`` holds the causes (0 or missing for a censored time).
    group : (n,) array, optional
        Which of the curves each of these rows belongs to, by the values of their dimension.
        Default: one estimate of all rows.
    ci_prob : float, optional
        Probability of the equal-tailed intervals. Default: that of ArviZ.
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
        For another Dataset, more curves than can be distinguished, and groups without a curve.

    References
    ----------
    Kaplan and Meier (1958). Nonparametric estimation from incomplete observations. Journal of the
    American Statistical Association 53.
    Aalen and Johansen (1978). An empirical transition matrix for non-homogeneous Markov chains
    based on censored observations. Scandinavian Journal of Statistics 5.

    Examples
    --------
    >>> import numpy as np, xarray as xr, pymc_trees as pmt
    >>> draws = np.linspace(0.4, 0.9, 8)[::-1].reshape(1, 2, 4)
    >>> curve = xr.DataArray(draws, {"time": [1.0, 2.0, 3.0, 4.0]}, ["chain", "draw", "time"])
    >>> found = xr.Dataset({"survival": curve}, attrs={"stepwise": 1})
    >>> drawn = pmt.plot_survival(found, [1.5, 2.0, 3.5], [1, 0, 1], backend="none")
    """
    name = next((one for one in STARTS if one in getattr(curves, "data_vars", ())), None)
    if name is None or not {*SAMPLE, "time"} <= set(curves[name].dims):
        raise ValueError(
            "curves: give the Dataset that survival_function, cumulative_incidence or "
            "expected_events of pymc_trees.survival returned."
        )
    values = curves[name]
    others = [str(dim) for dim in values.dims if dim not in (*SAMPLE, "cause", "time")]
    if any(values.sizes[dim] > MOST for dim in others):
        raise ValueError(
            f"curves has {dict(values[others[0]].sizes)} of them: choose at most {MOST}, as in "
            f"curves.isel({others[0]}=[0, 5]), or ask for means by survival_function(by=...)."
        )
    prob = probability_of(ci_prob)
    ends = {"y_bottom": 0.5 - prob / 2, "y_top": 0.5 + prob / 2}
    parts = {"y": values.mean(SAMPLE)}
    parts |= {key: values.quantile(q, SAMPLE).drop_vars("quantile") for key, q in ends.items()}
    lines = _points(parts, STARTS[name], bool(curves.attrs.get("stepwise")))
    panels = ["cause"] if "cause" in values.dims else []
    number = values.sizes.get("cause", 1)
    size = (WIDTH * number + LEGEND * bool(others), HEIGHT + MARGIN)
    layout = {"cols": ["__variable__", *panels], "aes": {"color": others}, **pc_kwargs}
    blank = xr.Dataset({name: parts["y"].isel(time=0, drop=True)})
    collection = wrapped(blank, size, backend, layout, sharey=True)
    own = {} if others else {"color": "C0"}
    band = xr.Dataset({name: lines.sel(kwarg=["x", "y_bottom", "y_top"])})
    collection.map(visuals.fill_between_y, "band", data=band, alpha=0.2, **own)
    line = lines.sel(kwarg=["x", "y"]).rename(kwarg="plot_axis")
    collection.map(visuals.line_xy, "line", data=xr.Dataset({name: line}), **own)
    if time is not None:
        if name == "expected":
            raise ValueError(
                "time: there is no empirical estimate to compare expected numbers of events "
                "with; leave time out."
            )
        seen = _estimates(values, name, others, time, event, group)
        look = {"linestyle": "C1", "width": 1.0}
        look |= {"color": "black", "ignore_aes": {"color"}} if group is None else own
        collection.map(visuals.line_xy, "seen", data=xr.Dataset({name: seen}), **look)
    for target, words in targets(collection, name):
        plot = visuals.backend_from_object(target)
        plot.xlabel("time", target)
        plot.ylabel(LABELS[name], target)
        if words:
            plot.title(", ".join(words), target)
    if others:
        collection.add_legend(others[0])
    return collection


def _points(parts: dict[str, xr.DataArray], start: float, stepwise: bool) -> xr.DataArray:
    """(..., kwarg, point) what is drawn, from time 0 on; two points a step."""
    x = np.append(0.0, parts["y"]["time"].to_numpy())
    of_x = of_y = np.arange(x.size)
    if stepwise:
        of_x, of_y = np.repeat(of_x, 2)[1:], np.repeat(of_y, 2)[:-1]
    ends = {"x": xr.DataArray(x[of_x], dims=["point"])}
    for key, values in parts.items():
        ahead = xr.concat([xr.full_like(values.isel(time=[0]), start), values], dim="time")
        ends[key] = ahead.drop_vars("time").isel(time=of_y).rename(time="point")
    return xr.concat(xr.broadcast(*ends.values()), dim="kwarg").assign_coords(kwarg=list(ends))


def _estimates(values, name: str, others: list[str], time, event, group) -> xr.DataArray:
    """(..., plot_axis, point) steps of the rows that were seen; of each group and cause."""
    time, event = np.asarray(time, dtype=float), np.asarray(event, dtype=object)
    if time.ndim != 1 or event.shape != time.shape:
        raise ValueError(
            f"time and event have shapes {time.shape} and {event.shape}: give one of each for "
            "every row."
        )
    happened = ~(pd.isna(event) | (event == 0)).astype(bool)
    causes = values["cause"].to_numpy() if "cause" in values.dims else [None]
    labels, members = [None], [np.ones(time.size, dtype=bool)]
    if group is not None:
        groups = np.asarray(group)
        labels = list(values[others[0]].to_numpy()) if others else []
        members = [groups == label for label in labels]
        if groups.shape != time.shape or not all(one.any() for one in members) or not labels:
            raise ValueError(
                f"group must hold the label of a curve for each row; the labels are {labels}."
            )
    steps = {}
    for label, of in zip(labels, members, strict=True):
        for cause in causes:
            counts = happened[of] if cause is None else happened[of] & (event[of] == cause)
            steps[label, cause] = _steps(time[of], happened[of], counts, name)
    longest = max(x.size for x, _ in steps.values())
    drawn = [
        np.pad(one, (0, longest - one.size), constant_values=np.nan)
        for pair in steps.values()
        for one in pair
    ]
    shape = (len(labels), len(causes), 2, longest)
    dims = ["group", "cause", "plot_axis", "point"]
    array = xr.DataArray(np.reshape(drawn, shape), {"plot_axis": ["x", "y"]}, dims)
    if group is None:
        array = array.isel(group=0)
    else:
        array = array.rename(group=others[0]).assign_coords({others[0]: labels})
    return array.assign_coords(cause=causes) if "cause" in values.dims else array.isel(cause=0)


def _steps(time, happened, counts, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Kaplan and Meier's survival, or Aalen and Johansen's incidence of the rows that count."""
    law = stats.ecdf(stats.CensoredData.right_censored(time, ~happened)).sf
    x, y = law.quantiles, law.probabilities
    if name == "incidence":
        at_risk = np.array([(time >= t).sum() for t in x])
        events = np.array([((time == t) & counts).sum() for t in x])
        y = np.cumsum(np.append(1.0, y[:-1]) * events / at_risk)
    x, y = np.append(0.0, x), np.append(STARTS[name], y)
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]
