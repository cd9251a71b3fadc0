"""Models of the estimators take other rows: `pm.sample` has no reason to warn that they do not."""

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees import causal, survival
from pymc_trees.hooks.data import will_be_fixed

RNG = np.random.default_rng(1)
X = RNG.random((30, 2))
Y = X[:, 0] + RNG.normal(0, 0.1, 30)
Z = np.arange(30) % 2
SITE = np.repeat(["a", "b", "c"], 10)


class Seen(Exception):
    """Ends a fit where it would sample."""


def declared(fit, monkeypatch):
    """The model that a fit would sample."""

    def sample(*args, model, **options):
        seen.append(model)
        raise Seen

    seen: list[pm.Model] = []
    monkeypatch.setattr(pm, "sample", sample)
    with pytest.raises(Seen):
        fit()
    return seen[0]


FITS = {
    "one sigma": lambda: pmt.BARTRegressor(m=2, noise="constant").fit(X, Y),
    "noise": lambda: pmt.BARTRegressor(m=2).fit(X, Y),
    "student": lambda: pmt.BARTRegressor(m=2, noise="student").fit(X, Y),
    "weights": lambda: pmt.BARTRegressor(m=2).fit(X, Y, sample_weight=1 + Z),
    "two classes": lambda: pmt.BARTClassifier(m=2).fit(X, Z),
    "weighted classes": lambda: pmt.BARTClassifier(m=2).fit(X, Z, sample_weight=1 + Z),
    "three classes": lambda: pmt.BARTClassifier(m=2).fit(X, SITE),
    "weighted three": lambda: pmt.BARTClassifier(m=2).fit(X, SITE, sample_weight=1 + Z),
    **{
        forests: lambda forests=forests: causal.BayesianCausalForest(m=2, forests=forests).fit(
            X, Y, Z, propensity=np.full(30, 0.5), group=SITE
        )
        for forests in ("two", "one", "arms")
    },
    "dose": lambda: causal.BayesianCausalForest(m=2, treatment="dose").fit(
        X, Y, X[:, 1], propensity=X[:, 1]
    ),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_rows_of_estimators_follow_their_inputs(fit, monkeypatch):
    assert will_be_fixed(declared(fit, monkeypatch)) == {}


def test_rows_of_survival_models_follow_their_inputs():
    time, causes = 1 + 10 * X[:, 0], np.where(Z, "wear", "accident").astype(object)
    three = np.where(np.arange(30) % 3, causes, "theft")
    for model in (
        survival.discrete_time(X, time, Z, times=4, m=2),
        survival.competing_risks(X, time, causes, times=4, m=2),
        survival.competing_risks(X, time, three, times=4, m=2),
        survival.accelerated_failure_time(X, time, Z, m=2),
    ):
        assert will_be_fixed(model) == {}
