"""Leaf values of soft trees and Gaussian vectors in one draw, against quadrature.

One column with five rows, as in `support.laws.soft`. The shapes of up to three leaves are written
out, their cuts and bandwidth integrated by Gauss-Legendre, and given these and a hyperparameter all
moments are closed forms. The chain is compared on the draws with no more leaves. Averages over 60
batches: beyond 5 standard errors (t law, 59 degrees of freedom) one in 180,000 lies by chance.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.laws.soft import (
    ALPHA,
    BANDWIDTH,
    BETA,
    MEAN,
    SD,
    SHAPES,
    SIGMA,
    U,
    Y,
    ratio_gap,
)
from support.naive import soft_forest as naive
from support.naive.joint_gaussian import Around, moments

import pymc_trees as pmt
from pymc_trees.terms import joint

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("quick_compile")]
BATCHES, Z, DRAWS, TUNE = 60, 5.0, 5_000, 100
N = len(Y)
GROUP = np.array([0, 1, 0, 1, 0])
COLUMN, SDS = np.array([0.5, -1.0, 0.8, 1.2, -0.6]), np.linspace(0.4, 0.8, N)
LOG_TAU = np.arange(-10.0, 2.6, 0.4)
LEAF = pmt.NormalLeaf(MEAN, SD)
SOFT = {"alpha": ALPHA, "beta": BETA, "bandwidth": BANDWIDTH, "leaf": LEAF, "max_nodes": 60}


class Case(NamedTuple):
    """A model, the covariances of its forests in the mean, and what is around them."""

    declare: Callable
    """To the forests in the mean, the terms, and the sd."""
    forests: Callable
    """To (P, N, N) covariances and (P,) log prior weights."""
    centre: np.ndarray
    around: list[Around]
    sd: float | np.ndarray = SIGMA
    shapes: tuple = SHAPES
    """Of each soft tree that are kept."""
    options: dict = {}


def one_tree():
    a = pm.Normal("v", 0.3, pm.HalfNormal("tau", 1.0), shape=2)
    return pmt.SoftBART("f", U[:, None], m=1, **SOFT), a[GROUP]


def two_trees():
    z = pm.Normal("v", shape=2)
    return pmt.SoftBART("f", U[:, None], m=2, **SOFT), pm.HalfNormal("tau", 1.0) * z[GROUP]


def with_a_hard_tree():
    soft = pmt.SoftBART("f", U[:, None], m=1, **SOFT) * COLUMN
    hard = pmt.BART("g", U[:, None], m=1, alpha=ALPHA, beta=BETA, leaf=LEAF, max_nodes=31)
    return soft + hard, pm.Normal("v", 0.0, 0.8, shape=2)[GROUP]


def atoms(shapes):
    """(A, N, N) covariances of a soft tree, and (A,) weights."""
    found = [naive.Atoms(kind, U, ALPHA, BETA, BANDWIDTH, 4, 2) for kind in shapes]
    V = [SD**2 * np.einsum("ail,ajl->aij", one.phi, one.phi) for one in found]
    return np.concatenate(V), np.concatenate([one.weight for one in found])


def of_one():
    V, weight = atoms(SHAPES)
    return V, np.log(weight)


def of_two():
    V, weight = atoms(SHAPES[:2])
    pairs = np.array(list(combinations_with_replacement(range(len(V)), 2)))
    i, j = pairs.T
    return V[i] + V[j], np.log(weight[i] * weight[j]) + np.log(2) * (i != j)


def of_both():
    V, weight = atoms(SHAPES)
    V = V * np.outer(COLUMN, COLUMN)
    prior = o.partition_prior(U[:, None], alpha=ALPHA, beta=BETA)
    hard = np.array([SD**2 * o.same_leaf(part, N) for part in prior], dtype=float)
    sums = (V[:, None] + hard).reshape(-1, N, N)
    return sums, np.log(np.outer(weight, list(prior.values()))).ravel()


ONE_HOT = np.eye(2)[GROUP]


def over_tau(centred: bool):
    """Groups whose sd, or scale, has a half-normal prior."""
    found = []
    for log_tau in LOG_TAU:
        tau = np.exp(log_tau)
        log_prior = stats.halfnorm(scale=1.0).logpdf(tau) + log_tau
        if centred:
            found.append(Around(log_tau, log_prior, ONE_HOT, tau**2 * np.eye(2), np.full(2, 0.3)))
        else:
            found.append(Around(log_tau, log_prior, tau * ONE_HOT, np.eye(2), np.zeros(2)))
    return found


FIXED = [Around(0.0, 0.0, ONE_HOT, 0.64 * np.eye(2), np.zeros(2))]
CASES = {
    "one tree": Case(one_tree, of_one, np.full(N, MEAN), over_tau(True)),
    "two trees, one at a time": Case(
        two_trees,
        of_two,
        np.full(N, 2 * MEAN),
        over_tau(False),
        shapes=SHAPES[:2],
        options={"most_leaves": 2},
    ),
    "beside a hard tree": Case(with_a_hard_tree, of_both, MEAN * (1 + COLUMN), FIXED, sd=SDS),
}


def shapes_of(trees):
    """Place in `SHAPES` of each tree; -1 for more leaves."""
    size, column = trees.size, trees.column
    third = np.where(column[:, 1] >= 0, 2, 3)
    return np.where(size == 1, 0, np.where(size == 3, 1, np.where(size == 5, third, -1)))


def run(case: Case, seed: int, draws: int):
    """(draws, N + K + 1) forests in the mean, v and log tau; which draws are kept."""
    with pm.Model() as model:
        forests, terms = case.declare()
        pm.Deterministic("forests", forests)
        pm.Normal("y", forests + terms, case.sd, observed=Y)
        soft, joined = pmt.SoftCGM(), pmt.GaussianTerms(**case.options)
        steps = [soft, *([pmt.CGM()] if "g" in model.named_vars else []), joined]
    joined.share(soft)
    rng = np.random.default_rng(seed)
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], TUNE, draws)
    numbers = model.compile_fn(
        model.replace_rvs_by_values([model["forests"], model["v"]]),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    point, rows, kept = model.initial_point(), [], []
    for k in range(draws + TUNE):
        if k == TUNE:
            for step in steps:
                step.stop_tuning()
        for step in steps:
            point, _ = step.step(point)
        if k >= TUNE:
            shapes = shapes_of(soft.states[0].forest.trees)
            kept.append(((shapes >= 0) & (shapes < len(case.shapes))).all())
            rows.append(np.concatenate([*numbers(point), [point.get("tau_log__", 0.0)]]))
    return np.array(rows), np.array(kept)


def gaps(case: Case, seed: int, draws: int = DRAWS):
    V, log_weight = case.forests()
    first, second = moments(V, log_weight, case.centre, Y, case.sd, case.around)
    last = len(first) - (len(case.around) == 1)
    mean, sd = first[:last], np.sqrt(second - first**2)[:last]
    chain, kept = run(case, seed, draws)
    chain = (chain[:, :last] - mean) / sd
    assert kept.mean() > 0.25
    return ratio_gap(chain, kept, 0.0, BATCHES), ratio_gap(chain**2, kept, 1.0, BATCHES)


@pytest.mark.parametrize("name", CASES)
def test_quadrature(name):
    first, second = gaps(CASES[name], seed=3)
    assert first.within(Z, 0.15), first
    assert second.within(Z, 0.25), second


def test_a_mistake_is_seen(monkeypatch):
    """Leaf values drawn given the vectors of before."""
    draw = joint.draw_leaves
    monkeypatch.setattr(
        joint, "draw_leaves", lambda rng, marginal, scaled: draw(rng, marginal, 0.5 * scaled)
    )
    first, second = gaps(CASES["one tree"], seed=3, draws=2_000)
    assert max(first.z, second.z) > 2 * Z
