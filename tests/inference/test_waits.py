"""What is said while a call takes long: a bar in a terminal, elsewhere a line a minute."""

import logging
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from sklearn.base import BaseEstimator

import pymc_trees as pmt
import pymc_trees.hooks.runs as runs
from pymc_trees import causal, progress
from pymc_trees.mondrian import forest, trees
from pymc_trees.predictors import evaluation

X = np.random.default_rng(1).random((12, 2))
BRIEF = {"draws": 3, "tune": 2, "chains": 2, "random_seed": 1, "compute_convergence_checks": False}


@pytest.fixture
def slow(monkeypatch, caplog):
    """A clock that moves 40 seconds at each look, and the lines that are logged."""
    time = SimpleNamespace(now=0.0)

    def look():
        time.now += 40.0
        return time.now

    monkeypatch.setattr(progress, "perf_counter", look)
    caplog.set_level(logging.INFO, logger="pymc.trees")
    return lambda: [r.getMessage() for r in caplog.records if r.module == "progress"]


def draws_bars(monkeypatch, answer):
    for module in (progress, runs):
        monkeypatch.setattr(module, "can_draw", lambda: answer)


def test_lines_are_a_minute_apart(slow):
    assert list(progress.track("abcdef", "Letters", 6, True)) == list("abcdef")
    assert slow() == [
        "Letters: 2 of 6 after 1 min.",
        "Letters: 4 of 6 after 3 min.",
        "Letters: 6 of 6 after 4 min.",
    ]


def test_short_calls_say_nothing(caplog, capsys):
    caplog.set_level(logging.INFO)
    assert list(progress.track(range(3), "Numbers", 3, True)) == [0, 1, 2]
    assert caplog.messages == [] and capsys.readouterr() == ("", "")


@pytest.mark.parametrize("bars", [True, False])
def test_nothing_is_said_without_a_bar(slow, monkeypatch, bars):
    draws_bars(monkeypatch, bars)
    assert list(progress.track("abcdef", "Letters", 6, False)) == list("abcdef")
    assert slow() == []


def test_a_bar_in_a_terminal_takes_the_place_of_lines(slow, monkeypatch):
    draws_bars(monkeypatch, True)
    assert list(progress.track("abcdef", "Letters", 6, True)) == list("abcdef")
    assert slow() == []


def model_of():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, X[:, 0], m=2)
        pm.Normal("y", mu, 1.0, observed=X[:, 0], shape=mu.shape)
    return model


@pytest.mark.parametrize("cores", [1, 2])
def test_sampling_speaks_in_a_pipe_and_draws_the_same(slow, cores):
    seen = []
    model = model_of()
    with model:
        noted = lambda trace, draw: seen.append(draw.chain)  # noqa: E731
        spoken = pm.sample(**BRIEF, cores=cores, callback=noted)
        lines = slow()
        quiet = pm.sample(**BRIEF, cores=cores, progressbar=False)
    assert lines[0] == "Iterations of all chains: 2 after 1 min."
    assert slow() == lines
    assert sorted(set(seen)) == [0, 1]  # a callback of the user's is called too
    a, b = (one["posterior"]["mu_forest"].to_numpy() for one in (spoken, quiet))
    assert np.array_equal(a, b)


def test_models_without_trees_say_what_pymc_says(slow):
    with pm.Model():
        pm.Normal("x")
        pm.sample(**BRIEF, cores=1, progressbar=True, quiet=False)
    assert slow() == []


ESTIMATORS = [pmt.BARTRegressor, pmt.BARTClassifier, causal.BayesianCausalForest]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_estimators_speak_by_default(kind):
    estimator: BaseEstimator = kind()
    assert estimator.get_params()["progressbar"] is True


def test_a_fit_and_its_predictions_speak_in_a_pipe(slow, monkeypatch, caplog):
    monkeypatch.setattr(evaluation, "BLOCK", 1)  # a row at a time
    given = {"m": 2, "draws": 6, "tune": 2, "chains": 1, "cores": 1, "random_state": 1}
    fitted = pmt.BARTRegressor(noise="constant", **given).fit(X, X[:, 0])
    fits = slow()
    assert fits[0].startswith("Iterations of all chains: 2 after")
    assert not [r for r in caplog.records if r.name == "pymc.sampling.mcmc"]
    fitted.predict(X)
    assert slow()[len(fits)] == "rows: 2 of 12 after 1 min."
    known = len(slow())
    pmt.BARTRegressor(noise="constant", progressbar=False, **given).fit(X, X[:, 0]).predict(X)
    assert len(slow()) == known


@pytest.mark.parametrize("max_memory", [None, 1.0])
def test_mondrian_forests_speak_where_they_take_long(slow, monkeypatch, max_memory):
    def made(**options):
        return pmt.MondrianForestRegressor(4, max_memory=max_memory, random_state=1, **options)

    y = X[:, 0]
    silent = made().fit(X, y).predict(X)  # few rows are quick
    assert slow() == []
    for module in (trees, forest):
        monkeypatch.setattr(module, "SLOW", 0)
    monkeypatch.setattr(trees, "WORTH_A_THREAD", 0)
    spoken = made().fit(X, y)
    assert slow()[0] == "Mondrian trees: 2 of 4 after 1 min."
    assert np.array_equal(spoken.predict(X), silent)
    known = len(slow())
    more = np.repeat(X, 9, axis=0) + 1  # in two blocks, of 64 rows and of the rest
    spoken.partial_fit(more, more[:, 0])
    assert slow()[known:] == ["Rows of Mondrian trees: 108 of 108 after 1 min."]
    made(progressbar=False).fit(X, y).partial_fit(more, more[:, 0])
    assert len(slow()) == known + 1


def test_the_logger_is_shown_where_pymc_is_not_loaded():
    code = (
        "import sys, logging\n"
        "from pymc_trees.core.compile import announce\n"
        "assert 'pymc' not in sys.modules\n"
        "announce.show_lines()\n"
        "announce._log.info('Compiling a Mondrian tree')\n"
        "import pymc\n"
        "announce.show_lines()\n"
        "announce._log.info('once')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.split("\n")[0] == "Compiling a Mondrian tree"
    assert done.stderr.count("once") == 1
