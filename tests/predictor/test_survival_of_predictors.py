"""Survival curves of a predictor against those of its model."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support import predictor_models as models

import pymc_trees as pmt
from pymc_trees import survival
from pymc_trees.predictors import evaluation
from pymc_trees.predictors.laws import LAWS

rng = np.random.default_rng(1)
N = 40
FRAME = pd.DataFrame({"age": rng.random(N).round(1), "arm": rng.choice(["a", "b"], N)})
TIME = rng.exponential(1 + FRAME["age"])
EVENT = TIME < 1.5
TIME = np.minimum(TIME, 1.5)
NEW = pd.DataFrame({"age": [0.2, np.nan, 0.9], "arm": ["a", "b", "new"]})
EXACT = {"rtol": 1e-12, "atol": 1e-12}
MODELS = {
    "probit": lambda X: survival.discrete_time(X, TIME, EVENT, times=6, m=4),
    "logit": lambda X: survival.discrete_time(X, TIME, EVENT, times=6, m=4, link="logit"),
    "cloglog": lambda X: survival.discrete_time(X, TIME, EVENT, times=6, m=4, link="cloglog"),
    "lognormal": lambda X: survival.accelerated_failure_time(X, TIME, EVENT, m=4),
    "weibull": lambda X: survival.accelerated_failure_time(
        X, TIME, EVENT, m=4, distribution="weibull"
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_curves(name, tmp_path, monkeypatch):
    case = models.drawn(MODELS[name](FRAME), None)
    times = [0.1, 0.5, 1.0, 1.2]
    expected = survival.survival_function(
        case.idata, case.model, NEW, times, progressbar=False
    )["survival"].transpose("chain", "draw", "row", "time")  # fmt: skip
    expected = expected.to_numpy().reshape(-1, len(NEW), len(times))
    # the model's log survival of a Normal is off by some 1e-8; `test_times_of_a_law` is exact
    close = {"rtol": 1e-7} if name == "lognormal" else EXACT
    predictor = pmt.load(pmt.predictor(case.idata, case.model).save(tmp_path / "fit.pmt"))
    np.testing.assert_allclose(predictor.survival(NEW, times), expected.mean(axis=0), **close)
    found = predictor.survival(NEW, times, quantiles=(0.1, 0.9))
    q = np.moveaxis(np.quantile(expected, (0.1, 0.9), axis=0), 0, -1)
    np.testing.assert_allclose(found, q, **close)
    monkeypatch.setattr(evaluation, "BLOCK", 1)  # a row at a time
    found = predictor.survival(NEW.to_dict("records"), times, "sd", n_jobs=2)
    np.testing.assert_allclose(found, expected.std(axis=0), **close)


def test_the_grid_of_arrays_is_given():
    X = rng.random((N, 2))
    case = models.drawn(MODELS["logit"](X), None)
    grid = np.unique(case.model["X"].get_value()[:, 0])
    predictor, new = pmt.predictor(case.idata, case.model), rng.random((5, 2))
    expected = survival.survival_function(case.idata, case.model, new, progressbar=False)
    mean = expected["survival"].mean(("chain", "draw")).transpose("row", "time")
    np.testing.assert_allclose(predictor.survival(new, grid=grid), mean, **EXACT)
    with pytest.raises(ValueError, match="Give grid="):
        predictor.survival(new)


def test_times_of_a_law():
    numbers = {"normal": (1.0, 2.0), "lognormal": (0.1, 0.4), "exponential": (0.7,)}
    numbers["weibull"] = (1.7, 2.5)
    exact = {
        "normal": stats.norm(1, 2),
        "lognormal": stats.lognorm(0.4, scale=np.exp(0.1)),
        "exponential": stats.expon(scale=0.7),
        "weibull": stats.weibull_min(1.7, scale=2.5),
    }
    y = np.array([-1.0, 0.0, 0.3, 2.0, 9.0])
    assert set(numbers) == {name for name, law in LAWS.items() if law.survival}
    for name, given in numbers.items():
        with np.errstate(divide="ignore"):
            found = LAWS[name].survival(y, *(np.full((1, 1), one) for one in given))
        np.testing.assert_allclose(found[0], exact[name].sf(y), rtol=1e-12, atol=1e-300)


def test_moments_of_a_weibull_with_very_heavy_tails():
    alpha, beta = np.array([1.7, 0.011, 0.008, 0.005, 1e-320]), np.full(5, 2.5)
    law, exact = LAWS["weibull"], stats.weibull_min(1.7, scale=2.5)
    with np.errstate(divide="ignore", over="ignore"):
        mean, variance = law.mean(alpha, beta), law.variance(alpha, beta)
    np.testing.assert_allclose([mean[0], variance[0]], [exact.mean(), exact.var()])
    assert np.isfinite(mean[:3]).all() and np.isinf(mean[3:]).all()
    assert np.isinf(variance[1:]).all()


def test_draws_are_of_whole_times():
    """The response of a censored model is the time itself."""
    case = models.drawn(MODELS["weibull"](FRAME), None)
    predictor = pmt.predictor(case.idata, case.model)
    assert predictor.law == "weibull"
    drawn = predictor.sample_y(FRAME.iloc[np.zeros(4000, int)], random_seed=1)
    share = predictor.survival(FRAME.iloc[:1], [1.0])[0, 0]
    n = drawn.size  # five standard errors
    assert abs((drawn > 1.0).mean() - share) < 5 * np.sqrt(share * (1 - share) / n)


def test_what_is_refused():
    case = models.drawn(MODELS["logit"](FRAME), None)
    predictor = pmt.predictor(case.idata, case.model)
    with pytest.raises(ValueError, match="give earlier times"):
        predictor.survival(NEW, [100.0])
    with pytest.raises(ValueError, match="in increasing order"):
        predictor.survival(NEW, [1.0, 0.5])
    with pytest.raises(ValueError, match="X is evaluated at no rows"):
        predictor.survival(NEW.iloc[:0])
    counts = models.response("poisson")
    predictor = pmt.predictor(counts.idata, counts.model)
    with pytest.raises(ValueError, match="survival curves are not known here"):
        predictor.survival(counts.new, [1.0])
    case = models.drawn(MODELS["lognormal"](FRAME), None)
    with pytest.raises(ValueError, match="times=None"):
        pmt.predictor(case.idata, case.model).survival(NEW)
