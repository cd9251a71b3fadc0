"""What is refused, and in which words."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees import survival

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 6
X = np.arange(12.0).reshape(N, 2)
TIME = np.array([1.0, 2.0, 3.0, 1.5, 2.5, 3.5])
EVENT = np.array([1, 0, 1, 1, 0, 1])
CAUSE = np.array([1, 0, 2, 1, 0, 2])
NAMED = pd.DataFrame(X, columns=["time", "dose"])
QUIET = {"progressbar": False}


def replaced(values, entry):
    values = np.array(values, dtype=float)
    values[2] = entry
    return values


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": TIME[:5]}, r"time has shape \(5,\): give 6 numbers"),
        ({"time": replaced(TIME, 0.0)}, "time must be positive, but the least is 0"),
        ({"time": replaced(TIME, -1.0)}, "time must be positive, but the least is -1"),
        ({"time": replaced(TIME, np.nan)}, "time holds missing or infinite"),
        ({"time": replaced(TIME, np.inf)}, "time holds missing or infinite"),
        ({"time": ["soon"] * N}, "time must hold numbers"),
        ({"event": EVENT[:5]}, "event has 5 entries, but time has 6"),
        ({"event": replaced(EVENT, 2)}, "event holds 2: give 1 for an event"),
        ({"event": np.zeros(N)}, "event is 0 in every row"),
        ({"entry": TIME}, "entry must be at least 0 and below time"),
        ({"entry": -TIME}, "entry must be at least 0 and below time"),
        ({"times": 0}, "times=0: must be a whole number of at least 1"),
        ({"times": 2.5}, "times=2.5: must be a whole number"),
        ({"times": "all"}, "times='all'"),
        ({"times": []}, "times must be positive and increasing"),
        ({"times": [2.0, 1.0]}, "times must be positive and increasing"),
        ({"times": [0.0, 1.0]}, "times must be positive and increasing"),
        ({"times": [0.2, 0.5]}, "No event happens by 0.5, the last of times"),
        ({"X": NAMED}, r"X has columns \['time'\], which are also names"),
        ({"X": pl.DataFrame(X, schema=["time", "dose"])}, r"X has columns \['time'\]"),
        ({"X": X[:, 0]}, "X must be two-dimensional"),
    ],
)
def test_long_form(given, words):
    settings = {"X": X, "time": TIME, "event": EVENT} | given
    with pytest.raises((ValueError, TypeError), match=words):
        survival.long_form(**settings)
    if "entry" not in given:
        with pytest.raises((ValueError, TypeError), match=words.split(", names")[0]):
            survival.discrete_time(**settings)


RECORDS = {
    "X": X[:3],
    "time": [1.0, 2.0, 3.0, 1.5, 2.5],
    "event": [1, 0, 0, 1, 0],
    "subject": [0, 0, 1, 2, 2],
}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subject": [0, 0, 1]}, "subject has 3 entries, but time has 5"),
        ({"subject": [0, 0, 1, 2, 3]}, "subject must hold rows of X, numbered from 0 to 2"),
        ({"subject": [0, 0, 1, 2, -1]}, "subject must hold rows of X"),
        ({"subject": [0, 0, 1, 2, 1.5]}, "subject must hold rows of X"),
        ({"subject": [0, 0, 0, 1, 2]}, "The follow-up of row 0 of X ends, with event 0, before"),
        (
            {"subject": [0, 0, 2, 2, 2], "event": [1, 0, 1, 1, 0]},
            r"The rows \[1\] of X have no record",
        ),
        ({"event": [0, 1, 0, 1, 0]}, "The follow-up of row 0 of X ends"),
    ],
)
def test_records_of_recurrent_events(given, words):
    with pytest.raises(ValueError, match=words):
        survival.long_form(**RECORDS | given)
    with pytest.raises(ValueError, match=words):
        survival.recurrent_events(**RECORDS | given, m=2)


def test_late_entry_and_recurrent_events_do_not_go_together():
    with pytest.raises(ValueError, match="entry: recurrent events are counted from time 0"):
        survival.long_form(**RECORDS, entry=[0.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cause": CAUSE[:5]}, r"cause has shape \(5,\): give 6 causes"),
        ({"cause": CAUSE > 0}, r"cause names \[True\]: competing risks need"),
        ({"cause": np.zeros(N)}, r"cause names \[\]"),
        ({"cause": [None, "death", None, "death", None, "death"]}, r"cause names \['death'\]"),
        ({"cause": CAUSE.astype(str)}, "cause holds the text '0'.*the number 0, or None"),
        ({"cause": [1, "death", None, "death", None, "death"]}, "cause must hold numbers or text"),
        ({"link": "cauchit"}, "link='cauchit'.*'cloglog'"),
        ({"m": 0}, "m=0"),
        ({"k": -1}, "k=-1: must be a positive number"),
    ],
)
def test_competing_risks(given, words):
    settings = {"X": X, "time": TIME, "cause": CAUSE, "m": 3} | given
    with pytest.raises((ValueError, TypeError), match=words):
        survival.competing_risks(**settings)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"distribution": "gamma"}, "distribution='gamma'.*'weibull'"),
        ({"m": 0}, "m=0"),
        ({"k": 0}, "k=0: must be a positive number"),
        ({"time": -TIME}, "time must be positive"),
        ({"event": np.zeros(N)}, "event is 0 in every row"),
        ({"alpha": 1.5}, "alpha"),
    ],
)
def test_accelerated_failure_time(given, words):
    settings = {"X": X, "time": TIME, "event": EVENT, "m": 3} | given
    with pytest.raises(ValueError, match=words):
        survival.accelerated_failure_time(**settings)


def prior_of(model):
    return pm.sample_prior_predictive(2, model=model, random_seed=1), model


def of_the_grid():
    return prior_of(survival.discrete_time(X, TIME, EVENT, m=2))


def of_free_times():
    return prior_of(survival.accelerated_failure_time(X, TIME, EVENT, m=2))


def of_counts():
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0, 1))
        pm.Poisson("n", pm.math.exp(f), observed=EVENT)
    return prior_of(model)


def of_another_first_column():
    with pm.Model() as model:
        frame = pd.DataFrame(X, columns=["dose", "time"])
        f = pmt.BART("f", frame, m=2, leaf=pmt.NormalLeaf(0, 1))
        pm.Bernoulli("y", logit_p=f, observed=EVENT)
    return prior_of(model)


def of_an_offset():
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0, 1))
        pm.LogNormal("t", f + np.arange(N), 1.0, observed=TIME)
    return prior_of(model)


def of_an_unknown_law():
    with pm.Model() as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0, 1))
        pm.Rice("t", nu=pm.math.exp(f), sigma=1.0, observed=TIME)
    return prior_of(model)


def without_trees():
    with pm.Model() as model:
        pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0, 1))
        pm.Exponential("t", 1.0, observed=TIME)
    return prior_of(model)


@pytest.mark.parametrize(
    ("made", "given", "words"),
    [
        (
            of_the_grid,
            {},
            "X=None: give the subjects, because the rows of the model are those of the long form",
        ),
        (of_the_grid, {"X": X[:, :1]}, "X has 1 columns, but the model was declared with 2"),
        (of_the_grid, {"X": X[:0]}, "evaluated at no rows"),
        (of_the_grid, {"X": X, "times": [4.0]}, "times up to 4, but the hazards of the model end"),
        (of_the_grid, {"X": X, "by": 2}, "2 is not a column of X, which has 2"),
        (of_free_times, {"times": []}, "times: give at least one, in increasing order"),
        (of_free_times, {"times": [2.0, 1.0]}, "times: give at least one, in increasing order"),
        (of_free_times, {"times": [np.nan]}, "times holds missing"),
        (
            of_free_times,
            {"var_name": "f"},
            r"var_name='f' is not a one-dimensional observed.*\['time'\]",
        ),
        (of_counts, {}, "n is a Poisson, not a distribution of times"),
        (of_another_first_column, {"X": X}, "y is a Bernoulli of a forest whose first column is"),
        (of_an_offset, {}, "t depends on more than the columns of X row by row"),
        (of_an_unknown_law, {}, "t has a distribution without a distribution function"),
        (without_trees, {}, r"var_name=None is not a one-dimensional observed.*\[\]"),
    ],
)
def test_survival_function(made, given, words):
    idata, model = made()
    with pytest.raises(ValueError, match=words):
        survival.survival_function(idata, model, group="prior", **QUIET, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "X=None: give the subjects"),
        ({"X": X[:, :1]}, "X has 1 columns, but the model was declared with 2: give it the same"),
        ({"X": X, "paths": 0}, "paths=0: must be a whole number of at least 1"),
        ({"X": X, "random_seed": "x"}, "random_seed='x'"),
        ({"X": X, "times": [9.0]}, "times up to 9, but the hazards of the model end"),
    ],
)
def test_expected_events(given, words):
    idata, model = prior_of(survival.recurrent_events(**RECORDS, m=2))
    with pytest.raises((ValueError, TypeError), match=words):
        survival.expected_events(idata, model, group="prior", **QUIET, **given)


def test_expected_events_of_another_law():
    idata, model = of_free_times()
    with pytest.raises(ValueError, match="time is not a Bernoulli: hazards are read from a"):
        survival.expected_events(idata, model, X, group="prior", **QUIET)
