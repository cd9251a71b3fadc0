"""Concordance and Brier scores against sums over pairs and rows."""

import builtins

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from pymc_trees import survival

N, DRAWS = 40, 3
RNG = np.random.default_rng(2)
RATE = RNG.gamma(2.0, 0.5, N)
TIME = RNG.exponential(1 / RATE)
CENSORED = RNG.exponential(2.0, N)
EVENT = TIME <= CENSORED
SEEN = np.minimum(TIME, CENSORED)
TIMES = np.linspace(0.05, 1.5, 12)


def curves(times=TIMES, stepwise=0):
    """Exponential curves whose rates are off by a factor of their own in each draw and row."""
    rates = RATE * np.exp(RNG.normal(0, 0.7, (1, DRAWS, N)))
    values = np.exp(-rates[..., None] * times)
    draws = xr.DataArray(values, {"time": times}, ["chain", "draw", "row", "time"])
    return xr.Dataset({"survival": draws}, attrs={"stepwise": stepwise})


def pairs(risk, time, event, weights=None):
    """Concordant pairs over those whose order is known; half for a tie of the risks."""
    weights = np.ones(len(time)) if weights is None else weights
    right = total = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            if event[i] and time[i] < time[j]:
                total += weights[i]
                right += weights[i] * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return right / total


def staying(time, event):
    """Kaplan-Meier of the censoring, just after each time."""
    law = stats.ecdf(stats.CensoredData.right_censored(time, event)).sf
    return lambda t: law.evaluate(t)


def areas(found):
    """By the trapezium rule from 1 at 0."""
    mean = found["survival"].mean(("chain", "draw")).to_numpy()
    whole = np.concatenate([np.ones((N, 1)), mean], axis=1)
    return np.trapezoid(whole, np.append(0.0, found["time"]), axis=1)


def test_concordance_counts_pairs():
    found = curves()
    wanted = pairs(-areas(found), SEEN, EVENT)
    assert survival.concordance(found, SEEN, EVENT) == pytest.approx(wanted, rel=1e-12)
    assert 0.55 < wanted < 0.95


def test_concordance_by_weights_of_the_training_rows():
    found = curves()
    train = (np.concatenate([SEEN, CENSORED]), np.concatenate([EVENT, np.zeros(N, bool)]))
    alive = staying(*train)(SEEN)
    wanted = pairs(-areas(found), SEEN, EVENT, alive**-2)
    ours = survival.concordance(found, SEEN, EVENT, train=train)
    assert ours == pytest.approx(wanted, rel=1e-12)
    early = survival.concordance(found, SEEN, EVENT, train=train, tau=0.5)
    assert early == pytest.approx(
        pairs(-areas(found), SEEN, EVENT & (SEEN < 0.5), alive**-2), rel=1e-12
    )


def test_brier_scores_without_censoring_are_mean_squares():
    found = curves()
    scores = survival.brier_score(found, TIME, np.ones(N))
    inside = TIMES[(TIMES >= TIME.min()) & (TIMES < TIME.max())]
    np.testing.assert_array_equal(scores["time"], inside)
    mean = found["survival"].mean(("chain", "draw")).sel(time=inside).to_numpy()
    squares = (mean - (TIME[:, None] > inside)) ** 2
    np.testing.assert_allclose(scores["brier"], squares.mean(0), rtol=1e-12)
    area = np.trapezoid(squares.mean(0), inside) / (inside[-1] - inside[0])
    assert float(scores["integrated"]) == pytest.approx(area, rel=1e-12)


def test_brier_scores_make_up_for_censored_rows():
    found = curves()
    train = (np.concatenate([SEEN, CENSORED]), np.concatenate([EVENT, np.zeros(N, bool)]))
    scores = survival.brier_score(found, SEEN, EVENT, train=train)
    alive = staying(*train)
    at = scores["time"].to_numpy()
    mean = found["survival"].mean(("chain", "draw")).sel(time=at).to_numpy()
    wanted = np.zeros(len(at))
    for k, t in enumerate(at):
        died = (SEEN <= t) & EVENT
        terms = np.where(died, mean[:, k] ** 2 / alive(SEEN), 0.0)
        terms += np.where(SEEN > t, (1 - mean[:, k]) ** 2 / alive(np.array([t])), 0.0)
        wanted[k] = terms.mean()
    np.testing.assert_allclose(scores["brier"], wanted, rtol=1e-12)


def test_the_truth_scores_better_than_a_coin():
    """A curve of 1/2 throughout has 1/4, whatever happened."""
    coin = curves()
    coin["survival"] = xr.full_like(coin["survival"], 0.5)
    scores = survival.brier_score(coin, TIME, np.ones(N))
    np.testing.assert_allclose(scores["brier"], 0.25, rtol=1e-12)
    exact = curves()
    exact["survival"] = xr.zeros_like(exact["survival"]) + xr.DataArray(
        np.exp(-RATE[:, None] * TIMES), dims=["row", "time"]
    )
    assert float(survival.brier_score(exact, TIME, np.ones(N))["integrated"]) < 0.25


def test_rows_that_are_followed_longer_than_the_training_rows():
    found, end = curves(), 0.8
    train = np.minimum(SEEN, end), EVENT & (SEEN <= end)
    with pytest.raises(ValueError, match=r"train has a follow-up up to 0.8.*tau=0.8"):
        survival.concordance(found, SEEN, EVENT, train=train)
    alive = staying(*train)(np.minimum(SEEN, end))
    weights = np.divide(1.0, alive, out=np.zeros(N), where=alive > 0) ** 2
    wanted = pairs(-areas(found), SEEN, EVENT & (SEEN < end), weights)
    ours = survival.concordance(found, SEEN, EVENT, train=train, tau=end)
    assert ours == pytest.approx(wanted, rel=1e-12)
    # no score before the end depends on what happens after it
    scores = survival.brier_score(found, SEEN, EVENT, train=train)
    np.testing.assert_array_equal(scores["time"], TIMES[(TIMES >= SEEN.min()) & (TIMES < end)])
    assert not train[1][train[0] == end].any()
    longer = survival.brier_score(found, SEEN, EVENT, train=(SEEN, EVENT | (SEEN == SEEN.max())))
    at = scores["time"]
    np.testing.assert_allclose(scores["brier"], longer["brier"].sel(time=at), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: survival.concordance(f, SEEN[:5], EVENT[:5]), "time has shape"),
        (lambda f: survival.concordance(f.mean("row"), SEEN, EVENT), "one curve per row"),
        (lambda f: survival.concordance(f["survival"], SEEN, EVENT), "survival: give the Dataset"),
        (lambda f: survival.concordance(None, SEEN, EVENT), "survival: give the Dataset"),
        (
            lambda f: survival.brier_score(f, SEEN + 9, EVENT),
            "fewer than two times within the follow-up",
        ),
        (lambda f: survival.restricted_mean(f, 2.0), "up to 1.5, the last of the curves"),
        (lambda f: survival.restricted_mean(f, 0.0), "horizon=0.0"),
    ],
)
def test_questions_that_have_no_answer(call, words):
    with pytest.raises(ValueError, match=words):
        call(curves())


def test_scores_name_what_they_need(monkeypatch):
    imported = builtins.__import__

    def without(name, *given, **more):
        if name.startswith("sksurv"):
            raise ImportError(name)
        return imported(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pymc_trees\[survival\]"):
        survival.brier_score(curves(), TIME, np.ones(N))
