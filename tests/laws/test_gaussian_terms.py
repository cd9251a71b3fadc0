"""Leaf values and Gaussian vectors in one draw, against sums over all pairs of partitions.

Given the partitions of two trees and a hyperparameter, rows are ``y = B u + G v + e`` with Gaussian
u and v: moments of f, v and of the hyperparameter are closed forms, summed over some 3,000
unordered pairs of partitions and a grid of the hyperparameter. Averages over 60 batches of the
chain are compared in standard errors: beyond 5 (t law, 59 degrees of freedom) one average in
180,000 lies by chance.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive.batches import batch_means, gap
from support.naive.joint_gaussian import Around, moments
from support.naive.laws import PROBLEMS
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.terms import draw as terms_draw
from pymc_trees.terms import joint

pytestmark = pytest.mark.usefixtures("quick_compile")
BATCHES, Z = 60, 5.0
PROBLEM = PROBLEMS["gaps"]
X, Y, N = PROBLEM.X, PROBLEM.y, PROBLEM.n
GROUP = np.array([0, 1, 2, 0, 1, 2, 0, 1])[:N]
COLUMN = np.linspace(-1.0, 1.0, N) ** 2
TREATED = (np.arange(N) % 2).astype(float)
SDS = np.linspace(0.4, 1.1, N)
LEAF = pmt.NormalLeaf(0.2, 0.6)
GRID = np.linspace(-10.0, 2.5, 101)
"""Of the logarithm of the hyperparameter."""
LAPLACIAN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
W = np.diag(np.diag(LAPLACIAN)) - LAPLACIAN
ONE_HOT = np.eye(3)[GROUP]


class Case(NamedTuple):
    """A model, and the same as matrices."""

    declare: Callable
    """Mean apart from the forests, declared in a model; the hyperparameter is named tau."""
    columns: Callable
    """tau to (N, K) G as it multiplies v."""
    covariance: Callable
    """tau to (K, K) covariance of v."""
    mean: Callable = lambda tau: 0.0
    sd: float | np.ndarray = 0.7
    factors: tuple = (1.0, 1.0)
    """What the two trees are multiplied by in each row; one forest if they are the same."""
    has_tau: bool = True
    normalised: bool = True
    """Whether PyMC's density of the vector is, as a function of tau."""


def half_normal():
    return pm.HalfNormal("tau", 1.5)


def centred():
    return pm.Normal("v", 0.3, half_normal(), shape=3)[GROUP]


def non_centred():
    return half_normal() * pm.Normal("v", shape=3)[GROUP]


def zero_sum():
    return pm.ZeroSumNormal("v", half_normal(), shape=3)[GROUP]


def slopes():
    v = pm.MvNormal("v", np.zeros(2), np.array([[1.0, 0.4], [0.4, 0.5]]))
    return v[0] + v[1] * COLUMN


def walk():
    v = pm.GaussianRandomWalk(
        "v", mu=0.1, sigma=half_normal(), init_dist=pm.Normal.dist(0, 0.8), steps=2
    )
    return v[GROUP]


def icar():
    return pm.ICAR("v", W=W, sigma=half_normal(), zero_sum_stdev=0.5)[GROUP]


def two_vectors():
    """A shared hyperparameter: the sd of one, the scale of the other."""
    tau = half_normal()
    a, b = pm.Normal("v", 0, tau, shape=2), pm.Normal("b", 0.5, 1.0)
    return pm.math.dot(np.column_stack([np.ones(N), COLUMN]), a) + tau * b * TREATED


def eye(tau):
    return np.eye(3)


CENTRE = np.eye(3) - 1 / 3
DIFFERENCES = np.eye(3) - np.eye(3, k=-1)
CASES = {
    "centred": Case(
        centred, lambda t: ONE_HOT, lambda t: t**2 * np.eye(3), mean=lambda t: 0.3 * np.ones(3)
    ),
    "not centred": Case(non_centred, lambda t: t * ONE_HOT, eye),
    "zero sum": Case(zero_sum, lambda t: ONE_HOT, lambda t: t**2 * CENTRE, sd=SDS),
    "correlated": Case(
        slopes,
        lambda t: np.column_stack([np.ones(N), COLUMN]),
        lambda t: np.array([[1.0, 0.4], [0.4, 0.5]]),
        factors=(1.0, TREATED),
        has_tau=False,
    ),
    "random walk": Case(
        walk,
        lambda t: ONE_HOT,
        lambda t: (
            np.linalg.inv(DIFFERENCES) @ np.diag([0.64, t**2, t**2]) @ np.linalg.inv(DIFFERENCES).T
        ),
        mean=lambda t: np.array([0.0, 0.1, 0.2]),
        factors=(COLUMN, COLUMN),
    ),
    "neighbours": Case(
        icar,
        lambda t: ONE_HOT,
        lambda t: np.linalg.inv(LAPLACIAN / t**2 + np.ones((3, 3)) / (0.5 * 3) ** 2),
        factors=(1.0, COLUMN),
        sd=SDS,
        normalised=False,
    ),
    "two vectors": Case(
        two_vectors,
        lambda t: np.column_stack([np.ones(N), COLUMN, t * TREATED]),
        lambda t: np.diag([t**2, t**2, 1.0]),
        mean=lambda t: np.array([0.0, 0.0, 0.5]),
        factors=(TREATED + 0.5, TREATED + 0.5),
    ),
}


def model_of(case: Case):
    one_forest = np.array_equal(*case.factors)
    prior = {k: v for k, v in PROBLEM.prior.items() if k in ("alpha", "beta")}
    with pm.Model() as model:
        terms = case.declare()
        names = ["f"] if one_forest else ["f", "g"]
        parts = [
            pmt.BART(name, X, m=2 if one_forest else 1, leaf=LEAF, max_nodes=60, **prior) * factor
            for name, factor in zip(names, case.factors, strict=False)
        ]
        mean = pm.Deterministic("forests", sum(parts)) + terms
        pm.Normal("y", mean, case.sd, observed=Y)
    return model


def exact(case: Case):
    """Mean and sd of f in the mean, of v, and of log tau."""
    prior = o.partition_prior(X, **PROBLEM.prior)
    partitions = list(prior)
    log_prior = np.log([prior[part] for part in partitions])
    same = np.array([o.same_leaf(part, N) for part in partitions], dtype=float)
    one, other = (np.broadcast_to(factor, (N,)) for factor in case.factors)
    exchangeable = np.array_equal(one, other)
    pairs = np.array(
        list(
            combinations_with_replacement(range(len(partitions)), 2)
            if exchangeable
            else product(range(len(partitions)), repeat=2)
        )
    )
    weight = log_prior[pairs].sum(axis=1)
    if exchangeable:
        weight += np.log(2) * (pairs[:, 0] != pairs[:, 1])
    V = 0.36 * (same[pairs[:, 0]] * np.outer(one, one) + same[pairs[:, 1]] * np.outer(other, other))
    centre = 0.2 * (one + other)
    around = []
    for log_tau in GRID if case.has_tau else [0.0]:
        tau = np.exp(log_tau)
        C, log_weight = case.covariance(tau), 0.0
        if not case.normalised:
            log_weight += 0.5 * np.linalg.slogdet(C)[1]
        if case.has_tau:
            log_weight += stats.halfnorm(scale=1.5).logpdf(tau) + log_tau
        around.append(Around(log_tau, log_weight, case.columns(tau), C, case.mean(tau)))
    first, second = moments(V, weight, centre, Y, case.sd, around)
    return first, np.sqrt(np.maximum(second - first**2, 1e-12))


def run(case: Case, draws: int, seed: int, **options):
    """(draws, N + K + 1) f in the mean, v and log tau."""
    model = model_of(case)
    with model:
        trees = pmt.CGM()
        terms = pmt.GaussianTerms(**options)
    assert {rv.name for rv in model.free_RVs if not rv.name.endswith("_forest")} == {
        model.values_to_rvs[v].name for v in terms.vars
    }
    rng = np.random.default_rng(seed)
    for step in (trees, terms):
        step.setup_chain(rng.spawn(1)[0], 100, draws)
    shapes = [model[name] for name in ("v", "b") if name in model.named_vars]
    wanted = model.replace_rvs_by_values([model["forests"], *shapes])
    numbers = model.compile_fn(wanted, inputs=model.value_vars, on_unused_input="ignore")
    point, rows = model.initial_point(), []
    for k in range(draws + 100):
        if k == 100:
            trees.stop_tuning()
            terms.stop_tuning()
        point, _ = trees.step(point)
        point, _ = terms.step(point)
        if k >= 100:
            log_tau = point["tau_log__"] if case.has_tau else 0.0
            parts = [np.atleast_1d(part) for part in (*numbers(point), log_tau)]
            rows.append(np.concatenate(parts))
    return np.array(rows)


@pytest.mark.parametrize("name", tiers(list(CASES), quick=["not centred"]))
def test_pairs_of_partitions(name):
    case = CASES[name]
    mean, sd = exact(case)
    chain = (run(case, 6_000, seed=3) - mean) / sd
    first = gap(batch_means(chain, BATCHES), 0.0)
    assert first.within(Z, 0.15), first
    last = chain.shape[1] - (not case.has_tau)
    second = gap(batch_means(chain[:, :last] ** 2, BATCHES), 1.0)
    assert second.within(Z, 0.25), second


@pytest.mark.full
@pytest.mark.parametrize("name", ["centred", "zero sum"])
def test_some_of_the_leaves_at_every_other_step(name, monkeypatch):
    """As where leaves or vectors are many: the evidence by factorisations, too."""
    monkeypatch.setattr(joint, "steps_between", lambda *sizes: 2)
    monkeypatch.setattr(terms_draw, "MOST_DECOMPOSED", 0)
    mean, sd = exact(CASES[name])
    chain = (run(CASES[name], 12_000, seed=4, most_leaves=2) - mean) / sd
    first = gap(batch_means(chain, BATCHES), 0.0)
    assert first.within(Z, 0.15), first
    second = gap(batch_means(chain**2, BATCHES), 1.0)
    assert second.within(Z, 0.25), second


@pytest.mark.full
def test_a_mistake_is_seen(monkeypatch):
    """Leaf values drawn given the vectors of before."""
    draw = joint.draw_leaves
    monkeypatch.setattr(
        joint, "draw_leaves", lambda rng, marginal, scaled: draw(rng, marginal, 0.5 * scaled)
    )
    case = CASES["not centred"]
    mean, sd = exact(case)
    chain = (run(case, 6_000, seed=3) - mean) / sd
    assert not gap(batch_means(chain[:, :N] ** 2, BATCHES), 1.0).within(Z, 0.25)
