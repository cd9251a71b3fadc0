"""Where leaf values do not integrate out, and what is refused, with what to use instead.

A `NormalLeaf` forest goes on beyond conjugacy, if it is used through its function; other leaves do
not.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError
from support.small_models import sample, step_data

import pymc_trees as pmt
from pymc_trees.targets.graph import ForestUseError, NotConjugateError, read_graph
from pymc_trees.targets.likelihoods.contract import recognise

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)
COUNTS = np.arange(20) % 4


def normal(mean, sd=1.0, name="y"):
    return pm.Normal(name, mean, sd, observed=Y)


REFUSED = {
    "Poisson": (lambda mu: pm.Poisson("y", pm.math.exp(mu), observed=COUNTS), "Poisson"),
    "StudentT": (
        lambda mu: pm.StudentT("y", nu=3, mu=mu, sigma=1.0, observed=Y),
        "is not pm.Normal",
    ),
    "Laplace": (lambda mu: pm.Laplace("y", mu, 1.0, observed=Y), "Laplace"),
    "SkewNormal": (lambda mu: pm.SkewNormal("y", mu, 1.0, observed=Y), "is not pm.Normal"),
    "MvNormal": (lambda mu: pm.MvNormal("y", mu, np.eye(20), observed=Y), "is not pm.Normal"),
    "Potential": (lambda mu: pm.Potential("pot", -(mu**2).sum()), "Potentials.*'pot'"),
    "Potential beside": (lambda mu: (normal(mu), pm.Potential("pot", mu.sum())), "Potentials"),
    "exp": (lambda mu: normal(pm.math.exp(mu)), "not an affine function.*[eE]xp"),
    "square": (lambda mu: normal(mu**2), "not an affine"),
    "product": (lambda mu: normal(mu * mu), "not an affine"),
    "inverse": (lambda mu: normal(1.0 / mu), "not an affine"),
    "clip": (lambda mu: normal(pm.math.clip(mu, -1, 1)), "not an affine"),
    "switch": (lambda mu: normal(pm.math.switch(mu > 0, mu, 0.0)), "not an affine"),
    "rows taken": (lambda mu: normal(mu[np.arange(20) // 2]), "not an affine"),
    "reversed": (lambda mu: normal(mu[::-1]), "not an affine"),
    "first row for all": (lambda mu: normal(mu[0] * np.ones(20)), "not an affine"),
    "summed": (lambda mu: normal(pt.cumsum(mu)), "not an affine"),
    "centred": (lambda mu: normal(mu - mu.mean()), "not an affine"),
    "matrix product": (lambda mu: normal(pt.dot(np.eye(20), mu)), "not an affine"),
    "cast": (lambda mu: normal(mu.astype("int64")), "not an affine"),
    "sd sees it": (lambda mu: normal(mu, pm.math.exp(mu)), "sd of y depends on it"),
    "sd sees it only": (lambda mu: normal(0.0, pm.math.exp(mu)), "sd of y depends on it"),
    "slope sees it": (lambda mu: normal(mu * pm.math.exp(mu)), "not an affine"),
    "two terms": (lambda mu: (normal(mu), normal(mu, 2.0, "z")), r"several.*\['y', 'z'\]"),
    "matrix": (
        lambda mu: pm.Normal("y", mu[:, None], 1.0, observed=np.ones((20, 2))),
        "2 dimensions instead of 1",
    ),
    "truncated": (
        lambda mu: pm.Truncated("y", pm.Normal.dist(mu, 1), lower=-9, observed=Y),
        "is not pm.Normal",
    ),
    "censored": (
        lambda mu: pm.Censored("y", pm.Normal.dist(mu, 1), None, 9.0, observed=Y),
        "is not pm.Normal",
    ),
    "other variable": (lambda mu: pm.Normal("b", mu.mean(), 1.0), "dimensions|not an affine"),
    "transformed latent": (
        lambda mu: pm.Normal(
            "b", mu, 1.0, transform=pm.distributions.transforms.ordered, initval=np.arange(20.0)
        ),
        "b is transformed",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_not_taken_for_conjugate(case):
    likelihood, said = REFUSED[case]
    with pm.Model() as model:
        likelihood(pmt.BART("mu", X, Y, m=3))
    with pytest.raises(NotConjugateError, match=f"(?s)mu_forest.*{said}"):
        recognise(read_graph(model, model["mu_forest"]))


def test_missing_responses():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=3)
        with pytest.warns(Warning, match="[Ii]mput|missing|nan"):
            pm.Normal("y", mu, 1.0, observed=np.where(np.arange(20) == 3, np.nan, Y))
    with pytest.raises(NotConjugateError, match="several variables.*y_unobserved|y_observed"):
        recognise(read_graph(model, model["mu_forest"]))


def test_infinite_response():
    with pm.Model():
        mu = pmt.BART("mu", X, Y, m=3)
        pm.Normal("y", mu, 1.0, observed=np.where(np.arange(20) == 3, np.inf, Y))
        with pytest.raises((ValueError, SamplingError), match="[Ii]nfinite|initial"):
            sample(2, 2)


def test_new_inputs_before_sampling():
    with pm.Model():
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, Y, m=3)
        pm.Normal("y", mu, 1.0, observed=Y)
        pm.set_data({"X": X + 1.0})
        with pytest.raises(ForestUseError, match="inputs other than.*pm.set_data"):
            pmt.CGM()
        pm.set_data({"X": X})
        pmt.CGM()


def test_a_response_with_other_rows():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=3)
        pm.Normal("y", mu[:1], 1.0, observed=Y)
    with pytest.raises(NotConjugateError, match="not an affine"):
        recognise(read_graph(model, model["mu_forest"]))


def test_the_encoding_itself():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=3)
        pm.Normal("y", mu + model["mu_forest"][0, 0], 1.0, observed=Y)
        with pytest.raises(ForestUseError, match=r"other than through evaluate"):
            pmt.CGM()


def precision_of_another(out):
    pm.Normal("y", out[0], tau=out[1] * 2.0, observed=Y)


@pytest.mark.parametrize(
    ("leaf", "likelihood"),
    [
        (pmt.NormalGammaLeaf(), lambda out: pm.Normal("y", out[0], 1.0, observed=Y)),
        (pmt.NormalGammaLeaf(), lambda out: pm.Normal("y", out[0], out[1], observed=Y)),
        (pmt.NormalGammaLeaf(), lambda out: pm.Normal("y", out[0] + 1, tau=out[1], observed=Y)),
        (pmt.NormalGammaLeaf(), lambda out: pm.Normal("y", out[1], tau=out[0], observed=Y)),
        (pmt.NormalGammaLeaf(), precision_of_another),
        (pmt.NormalGammaLeaf(), lambda out: pm.Normal("y", 0.0, tau=out[1], observed=Y)),
        (
            pmt.NormalGammaLeaf(),
            lambda out: pm.StudentT("y", nu=3, mu=out[0], lam=out[1], observed=Y),
        ),
        (pmt.DirichletLeaf(1, 2), lambda p: pm.Bernoulli("y", p=p[:, 0], observed=COUNTS % 2)),
        (pmt.DirichletLeaf(1, 3), lambda p: pm.Bernoulli("y", p=p[:, 1], observed=COUNTS % 2)),
        (pmt.DirichletLeaf(1, 3), lambda p: pm.Categorical("y", p=p[::-1], observed=COUNTS % 3)),
        (pmt.DirichletLeaf(1, 3), lambda p: pm.Categorical("y", p=p[:, ::-1], observed=COUNTS % 3)),
        (pmt.DirichletLeaf(1, 3), lambda p: pm.Categorical("y", logit_p=p, observed=COUNTS % 3)),
        (pmt.DirichletLeaf(1, 3), lambda p: pm.Normal("y", p[:, 0], 1.0, observed=Y)),
    ],
)
def test_other_leaves(leaf, likelihood):
    with pm.Model():
        likelihood(pmt.DecisionTree("t", X, leaf=leaf))
        with pytest.raises(NotConjugateError, match="(?s)t_forest.*NormalLeaf"):
            pmt.CGM()


@pytest.mark.parametrize("observed", [COUNTS, COUNTS - 1])
def test_classes_out_of_range(observed):
    with pm.Model():
        p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(1.0, 3))
        pm.Categorical("y", p=p, observed=observed)
        with pytest.raises((ValueError, SamplingError), match="from 0 to 2|initial"):
            sample(2, 2)
