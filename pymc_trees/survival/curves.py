"""Expected curves of subjects, draw by draw: survival, cumulative incidence, numbers of events."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.distributions.data.table import encode
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.posterior.comparisons import means_over
from pymc_trees.posterior.draws import SAMPLE, for_each_draw, model_of
from pymc_trees.posterior.reading.functions import Expression
from pymc_trees.survival.laws import Columns, GridLaw, TimeLaw, at_each_time, observed_of, read_law

TAKEN = frozenset({"time", "cause", "part"})
"""Dimensions of results, which no column may give its name to."""
STEPWISE = "stepwise"
"""Attribute of a Dataset: 1 where curves are steps at their times, and change nowhere else."""


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
    share, dims = means_over(law.columns, rows, by, taken=TAKEN)

    def curves(chain, draw):
        return share(law.survival(chain, draw, rows))

    values = each_curve(law, curves, dims, progressbar)
    return xr.Dataset({"survival": values}, attrs={STEPWISE: int(law.stepwise)})


def each_curve(
    law: TimeLaw, curves: Callable, dims: dict[str, Any], progressbar: bool, before=None
) -> xr.DataArray:
    """What ``curves`` makes of each chain and draw, its last axis the times in the end.

    It returns the axes of ``before``, the times, and the axes of ``dims``.
    """
    before = before or {}
    named = before | {"time": law.times} | dims
    shape = law.expression.shape
    values = np.empty((*shape, *(len(of) for of in named.values())))

    def work(chain, draw):
        values[chain, draw] = curves(chain, draw)

    # one after the other: a compiled function of PyTensor serves one thread at a time
    for_each_draw(work, shape, law.expression.name, 1, progressbar)
    array = xr.DataArray(values, law.expression.coords | named, [*SAMPLE, *named])
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


# ----------- `cumulative_incidence`: of each cause, the probability that it has happened by a time


def cumulative_incidence(
    idata,
    model: pm.Model | None = None,
    X=None,
    times=None,
    *,
    by=None,
    event: str = "event",
    cause: str = "cause",
    group: str = "posterior",
    progressbar: bool = True,
) -> xr.Dataset:
    """Probability that an event of each cause has happened by a time, draw by draw.

    F_k(t) is the sum, over the times of the grid up to t, of the probability of no event before,
    times the hazard, times the probability of cause k given an event (Sparapani et al. 2020).
    Survival and the incidences of all causes add up to one.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack. From `competing_risks`, or like it.
    X : (n, p) array or frame
        Subjects, without a column for the time.
    times : increasing array, optional
        Default: the grid of the long form.
    by : bool or column, optional
        As for `survival_function`.
    event, cause : str, default "event" and "cause"
        Observed variables: a Bernoulli on the long form, and a Bernoulli or Categorical on its rows
        with an event.
    group, progressbar
        As for `survival_function`.

    Returns
    -------
    xarray.Dataset
        ``incidence`` with the dimensions chain, draw, cause, ``row`` (none, or that of ``by``) and
        time, and ``survival`` without cause. Causes are named by the coords ``causes`` of the
        model, where it has them.

    Raises
    ------
    ValueError
        As `survival_function`; variables that are not those of competing risks.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2020). Nonparametric competing risks analysis using
    Bayesian Additive Regression Trees. Statistical Methods in Medical Research 29(1).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from pymc_trees import survival
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 1))
    >>> time, cause = rng.exponential(size=60), rng.choice([0, 1, 2], 60)
    >>> model = survival.competing_risks(X, time, cause, times=5, m=5)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> found = survival.cumulative_incidence(idata, model, X, by=True, progressbar=False)
    >>> total = found["incidence"].sum("cause") + found["survival"]
    >>> dict(found["incidence"].sizes), bool(np.allclose(total, 1.0, rtol=0, atol=1e-12))
    ({'chain': 1, 'draw': 5, 'cause': 2, 'time': 5}, True)
    """
    model = model_of(model)
    happens, kind = observed_of(model, event), observed_of(model, cause)
    if not isinstance(happens.owner.op, BernoulliRV):
        raise ValueError(
            f"{event} is not a Bernoulli: hazards are read from a Bernoulli on the long form."
        )
    law = GridLaw(idata, model, happens, times, group)
    given_event = _Causes(idata, model, kind, group)
    if not given_event.has_columns(law.columns):
        raise ValueError(
            f"{event} and {cause} have forests on different columns: give both the same columns."
        )
    rows = law.rows(X)
    # the forests may have columns in another order, and levels of the rows with events alone
    rows_of_causes = encode(X, given_event.columns.schema)
    share, dims = means_over(law.columns, rows, by, taken=TAKEN)

    def curves(chain, draw):
        hazards = law.hazards(chain, draw, rows)
        survival = np.cumprod(1.0 - hazards, axis=0)
        before = np.concatenate([np.ones((1, len(rows))), survival[:-1]])
        steps = before * hazards * given_event.at(chain, draw, rows_of_causes, law.grid)
        incidence = np.moveaxis(law.up_to(np.cumsum(np.moveaxis(steps, 1, 0), 0), 0.0), 1, 0)
        return share(np.concatenate([law.up_to(survival, 1.0)[None], incidence]))

    known = model.coords.get("causes")
    names = np.arange(given_event.number) if known is None else np.asarray(known)
    # survival is put before the causes, so that all are averaged and stored together
    parts = {"part": np.arange(given_event.number + 1)}
    values = each_curve(law, curves, dims, progressbar, parts)
    incidence = values.isel(part=slice(1, None)).rename(part="cause").assign_coords(cause=names)
    survival = values.isel(part=0, drop=True)
    both = {"incidence": incidence, "survival": survival}
    return xr.Dataset(both, attrs={STEPWISE: int(law.stepwise)})


class _Causes:
    """Probabilities of the causes, given an event."""

    def __init__(self, idata, model: pm.Model, rv, group: str):
        if not isinstance(rv.owner.op, BernoulliRV | CategoricalRV):
            raise ValueError(f"{rv.name} is neither Bernoulli nor Categorical, as causes must be.")
        [p] = rv.owner.op.dist_params(rv.owner)
        self.expression = Expression(idata, model, p, rv.name, group)
        self.number = self.expression.outputs[0] if self.expression.outputs else 2
        self.columns = Columns.of_subjects(self.expression, 1)

    def has_columns(self, others: Columns) -> bool:
        """Whether its columns are those of other forests, in any order where they have names."""
        names, known = self.columns.schema.names, others.schema.names
        if names is None or known is None:
            return self.columns.n_columns == others.n_columns
        return sorted(names) == sorted(known)

    def at(self, chain, draw, rows, grid) -> np.ndarray:
        """(causes, grid, n) probabilities."""
        p = at_each_time(self.expression.at(chain, draw), rows, grid)
        return p if self.expression.outputs else np.stack([1.0 - p, p])


# ------------- `expected_events`: how many events there are by a time, where they can happen again


HISTORY = 3
"""Columns before those of the subject: time, since, count."""


def _check_history(name: str, law: GridLaw) -> None:
    """Raise an error if the forests lack the history of events among their columns."""
    names = law.expression.schema.names
    if names is not None:
        known = names[:HISTORY] == ("time", "since", "count")
    else:
        first = training_rows(law.expression.trees[0])[:, :HISTORY]
        known = first.shape[1] == HISTORY
        if known:
            time, since, count = first.T
            known = bool(((since <= time) & (count == np.floor(count))).all())
    if not known:
        raise ValueError(
            f"{name} is not a model of recurrent events, whose first columns are time, since and "
            "count: use survival_function."
        )


def expected_events(
    idata,
    model: pm.Model | None = None,
    X=None,
    times=None,
    *,
    by=None,
    paths: int = 1,
    random_seed=None,
    var_name: str | None = None,
    group: str = "posterior",
    progressbar: bool = True,
) -> xr.Dataset:
    """Expected number of events by each time, draw by draw, where they can happen again.

    The probability of an event depends on previous events, so histories are simulated for each draw
    and subject, starting without events at time 0. The expected number by t is the sum of the
    probabilities of an event over the times of the grid up to t, averaged over the histories.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack. From `recurrent_events`, or like it: the first
        columns are time, time since the last event, and events so far.
    X : (n, p) array or frame
        Subjects, without these columns.
    times : increasing array, optional
        Default: the grid of the long form.
    by : bool or column, optional
        As for `survival_function`.
    paths : int, default 1
        Number of histories per subject and draw. The mean over draws is correct with one; the
        spread over draws includes the variation between histories besides the uncertainty of the
        mean, and this part decreases with the number of histories.
    random_seed : int, Generator or None
        Seed of the histories.
    var_name : str, optional
        Observed variable, where several depend on trees.
    group, progressbar
        As for `survival_function`.

    Returns
    -------
    xarray.Dataset
        ``expected`` with the dimensions chain, draw, ``row`` (none, or that of ``by``) and time.

    Raises
    ------
    ValueError
        As `survival_function`.

    References
    ----------
    Sparapani, Rein, Tarima, Jackson and Meurer (2020). Non-parametric recurrent events analysis
    with BART and an application to the hospital admissions of patients with diabetes.
    Biostatistics 21(1).

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_trees import survival
    >>> time, event = [1.0, 2.0, 3.0, 1.5, 3.0, 3.0], [1, 1, 0, 1, 0, 0]
    >>> X = [[0.1], [0.2], [0.9]]
    >>> model = survival.recurrent_events(X, time, event, [0, 0, 0, 1, 1, 2], m=5)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> found = survival.expected_events(idata, model, X, paths=4, random_seed=1)["expected"]
    >>> dict(found.sizes), bool((found.diff("time") > 0).all())
    ({'chain': 1, 'draw': 5, 'row': 3, 'time': 3}, True)
    """
    rv = observed_of(model := model_of(model), var_name)
    if not isinstance(rv.owner.op, BernoulliRV):
        raise ValueError(
            f"{rv.name} is not a Bernoulli: hazards are read from a Bernoulli on the long form."
        )
    law = GridLaw(idata, model, rv, times, group, HISTORY)
    _check_history(rv.name, law)
    rows, rng = law.rows(X), check_seed(random_seed)
    many = np.repeat(rows, check_number("paths", paths, 1), axis=0)
    share, dims = means_over(law.columns, rows, by, taken=TAKEN)

    def curves(chain, draw):
        p = simulated(law.expression.at(chain, draw), many, law.grid, rng)
        mean = p.reshape(law.grid.size, len(rows), -1).mean(axis=-1)
        return share(law.up_to(np.cumsum(mean, axis=0), 0.0))

    values = each_curve(law, curves, dims, progressbar)
    return xr.Dataset({"expected": values}, attrs={STEPWISE: int(law.stepwise)})


def simulated(function, rows: np.ndarray, grid: np.ndarray, rng) -> np.ndarray:
    """(grid, n) probabilities of an event at each time, along a history of each row."""
    n = len(rows)
    last, count = np.zeros(n), np.zeros(n)
    probabilities = np.empty((grid.size, n))
    for k, time in enumerate(grid):
        probabilities[k] = function(np.column_stack([np.full(n, time), time - last, count, rows]))
        happens = rng.random(n) < probabilities[k]
        last[happens] = time
        count += happens
    return probabilities
