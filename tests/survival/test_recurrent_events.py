"""Expected numbers of events against the sum over all histories."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy.special import ndtr
from support.fitted import predicted_of

import pymc_trees as pmt
from pymc_trees import survival

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 30
RNG = np.random.default_rng(5)
X, NEW = RNG.random((N, 1)), np.array([[0.1], [0.5], [0.9]])
GRID = np.array([0.5, 1.0, 1.5, 2.5])
QUIET = {"progressbar": False}


def records():
    """Events that come sooner after another one."""
    found = []
    for i in range(N):
        t, gap = 0.0, 1.5
        while (t := t + RNG.exponential(gap)) < 2.5:
            found.append((i, t, 1))
            gap = 0.5
        found.append((i, 2.5, 0))
    return (np.array(column) for column in zip(*found, strict=True))


SUBJECT, TIME, EVENT = records()


@cache
def fitted():
    model = survival.recurrent_events(X, TIME, EVENT, SUBJECT, times=GRID, m=6)
    options = {"tune": 30, "draws": 3, "chains": 1, "progressbar": False, "random_seed": 2}
    return model, pm.sample(model=model, compute_convergence_checks=False, **options)


@cache
def over_all_histories():
    """Mean and variance, over histories, of the sum of probabilities up to each time."""
    model, idata = fitted()
    first, second = np.zeros((2, 3, len(NEW), GRID.size))
    for history in product([0, 1], repeat=GRID.size):
        last, count, weight = 0.0, 0, np.ones((3, len(NEW)))
        total = np.zeros((3, len(NEW)))
        sums = []
        for g, happens in zip(GRID, history, strict=True):
            rows = np.column_stack([np.tile([g, g - last, count], (len(NEW), 1)), NEW])
            p = ndtr(predicted_of(model, idata, "f_forest", rows)[0])
            total = total + p
            sums.append(total)
            weight = weight * (p if happens else 1 - p)
            if happens:
                last, count = g, count + 1
        sums = np.stack(sums, axis=-1)
        first += weight[..., None] * sums
        second += weight[..., None] * sums**2
    return first, second - first**2


def test_the_mean_over_histories_is_the_expected_number():
    """24 averages that vary, within 5 standard errors of independent histories."""
    model, idata = fitted()
    mean, variance = over_all_histories()
    paths = 4000
    found = survival.expected_events(idata, model, NEW, paths=paths, random_seed=1, **QUIET)
    assert found["expected"].dims == ("chain", "draw", "row", "time")
    error = (
        np.sqrt(np.maximum(variance, 0) / paths) + 1e-6
    )  # PyMC's normal law is good to seven digits
    assert np.abs((found["expected"].to_numpy()[0] - mean) / error).max() < 5.0
    assert np.ptp(mean[..., -1]) > 0.1 and variance[..., -1].max() > 0.001


def test_that_history_matters_is_found_out():
    """Without it the numbers would be others: the simulation can fail."""
    model, idata = fitted()
    mean, _ = over_all_histories()
    p = [ndtr(predicted_of(model, idata, "f_forest", _rows(g, g, 0.0))[0]) for g in GRID]
    assert np.abs(np.sum(p, axis=0) - mean[..., -1]).max() > 0.05


def _rows(time, since, count):
    return np.column_stack([np.tile([time, since, count], (len(NEW), 1)), NEW])


def test_seeds_times_and_groups():
    model, idata = fitted()

    def asked(**given):
        return survival.expected_events(idata, model, NEW, paths=3, **QUIET, **given)["expected"]

    one = asked(random_seed=1)
    np.testing.assert_array_equal(asked(random_seed=1), one)
    assert not np.array_equal(asked(random_seed=2), one)
    between = asked(random_seed=1, times=[0.2, 0.5, 1.2])
    np.testing.assert_array_equal(between[..., 0], np.zeros((1, 3, 3)))
    np.testing.assert_array_equal(between[..., 1:], one[..., [0, 1]])
    np.testing.assert_allclose(asked(random_seed=1, by=True), one.mean("row"), rtol=1e-12)


def test_a_model_written_by_hand():
    long = survival.long_form(X, TIME, EVENT, times=GRID, subject=SUBJECT)
    with pm.Model() as model:
        f = pmt.BART("f", long.X, m=6, leaf=pmt.NormalLeaf(-0.1, 0.3))
        pm.Bernoulli("again", logit_p=f, observed=long.y)
    options = {"tune": 5, "draws": 3, "chains": 1, "progressbar": False, "random_seed": 2}
    idata = pm.sample(model=model, compute_convergence_checks=False, **options)
    found = survival.expected_events(idata, model, NEW, random_seed=1, **QUIET)["expected"]
    assert (found.diff("time") > 0).all()


def test_hazards_without_a_history_are_refused():
    """A frame is known by its names, an array by its numbers."""
    for rows in (pd.DataFrame(NEW, columns=list("abcdefgh")[: NEW.shape[1]]), NEW):
        model = survival.discrete_time(rows, np.arange(len(NEW)) + 1.0, np.ones(len(NEW)), m=2)
        idata = pm.sample_prior_predictive(2, model=model, random_seed=1)
        with pytest.raises(ValueError, match="is not a model of recurrent events"):
            survival.expected_events(idata, model, rows, group="prior", **QUIET)


def test_more_events_are_expected_where_there_were_more():
    """Rates of 2 and 1/2: the numbers by 2.5 within 3 posterior sds of 5 and 1.25."""
    rng = np.random.default_rng(3)
    x = np.repeat([[0.0], [1.0]], 60, axis=0)
    found = []
    for i, rate in enumerate(np.repeat([0.5, 2.0], 60)):
        times = np.cumsum(rng.exponential(1 / rate, 30))
        found += [(i, t, 1) for t in times[times < 2.5]] + [(i, 2.5, 0)]
    subject, time, event = (np.array(column) for column in zip(*found, strict=True))
    grid = np.arange(1, 51) / 20
    model = survival.recurrent_events(x, time, event, subject, times=grid, m=10)
    options = {"tune": 100, "draws": 60, "chains": 1, "progressbar": False, "random_seed": 2}
    idata = pm.sample(model=model, compute_convergence_checks=False, **options)
    asked = {"paths": 20, "random_seed": 1, "progressbar": False}
    expected = survival.expected_events(idata, model, [[0.0], [1.0]], **asked)["expected"]
    last = expected.isel(time=-1)
    # of 60 subjects the mean number has an sd of sqrt(5 / 60) and sqrt(1.25 / 60)
    assert abs(float(last.sel(row=0).mean()) - 1.25) < 3 * np.sqrt(1.25 / 60) + 0.1
    assert abs(float(last.sel(row=1).mean()) - 5.0) < 3 * np.sqrt(5 / 60) + 0.3
