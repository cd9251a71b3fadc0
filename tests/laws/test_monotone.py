"""Monotone trees: the posterior listed with its orders, the prior, pairs of points, refusals.

Every tree on a grid of cuts is listed with the pairs of leaves that it orders, found by trying
points (`support.oracle.ordered`), and the values of its leaves in order are integrated over by
quadrature. Chains are compared with that as `support.naive.linear_sums` says, at 6 standard errors.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive import linear_sums
from support.oracle import ordered
from support.stepping import tempered
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.targets.choose import read_target

MEAN, SD, ALPHA, BETA = 0.2, 0.8, 0.7, 1.0
GRID = np.linspace(MEAN - 7 * SD, MEAN + 7 * SD, 1401)
SIGMA = np.array([0.6, 0.7, 0.5, 0.8, 0.6])


class Case(NamedTuple):
    """A small table, and the directions of its columns."""

    X: np.ndarray
    y: np.ndarray
    directions: tuple
    n_levels: tuple = (0, 0)


NUMBERS = np.array([[0.1, 0.5], [0.3, 0.1], [0.5, 0.9], [0.7, 0.3], [0.9, 0.7]])
MIXED = np.array([[0.1, 0], [0.4, 1], [np.nan, 0], [0.9, 2]])
Y = np.array([0.3, 1.1, 0.2, -0.4, 0.9])
CASES = {
    "one": Case(NUMBERS[:4], Y[:4], (1, 0)),
    "two": Case(NUMBERS, Y, (1, -1)),
    "levels": Case(MIXED, Y[:4], (-1, 0), (0, 3)),
}
COUNTS, OUTCOMES = np.array([1, 3, 1, 0, 2]), np.array([0, 1, 0, 1, 1])


def log_rows(likelihood, case):
    """(n, G) log density of each row at each value of f."""
    n = len(case.y)
    if likelihood == "prior":
        return np.zeros((n, len(GRID)))
    if likelihood in ("normal", "joint"):
        return stats.norm.logpdf(case.y[:, None], GRID, SIGMA[:n, None])
    if likelihood == "poisson":
        return stats.poisson.logpmf(COUNTS[:n, None], np.exp(GRID))
    if likelihood == "gumbel":
        return stats.gumbel_r.logpdf(case.y[:, None], GRID, 0.7)
    chance = stats.norm.logcdf(np.where(OUTCOMES[:n, None] == 1, GRID, -GRID))
    return chance


def observe(likelihood, f, case):
    n = len(case.y)
    seen = {"shape": f.shape}
    if likelihood == "normal":
        data = pm.Data("seen", case.y)
        return pm.Normal("y", f, SIGMA[:n], observed=data, **seen)
    if likelihood == "joint":
        return pm.MvNormal("y", f, cov=np.diag(SIGMA[:n] ** 2), observed=case.y)
    if likelihood == "poisson":
        return pm.Poisson("y", pm.math.exp(f), observed=COUNTS[:n], **seen)
    if likelihood == "gumbel":
        return pm.Gumbel("y", f, 0.7, observed=case.y, **seen)
    return pm.Bernoulli("y", p=pm.math.invprobit(f), observed=OUTCOMES[:n], **seen)


@cache
def states(name):
    case = CASES[name]
    cuts = [
        [] if levels else np.convolve(np.unique(x[~np.isnan(x)]), [0.5, 0.5], "valid")
        for x, levels in zip(case.X.T, case.n_levels, strict=True)
    ]
    mixed = any(case.n_levels) or np.isnan(case.X).any()
    columns = ordered.Columns(cuts, list(case.n_levels), mixed)
    return ordered.ordered_states(case.X, columns, ALPHA, BETA, case.directions)


@cache
def exact(name, likelihood, has_order=True):
    """Posterior of one tree."""
    case, rows = CASES[name], log_rows(likelihood, CASES[name])
    n, prior = len(case.y), stats.norm.logpdf(GRID, MEAN, SD)
    law, leaves, pairs, mean, second = {}, {}, 0.0, 0.0, 0.0
    for (parts, below), p in states(name).items():
        densities = np.exp([prior + rows[sorted(part)].sum(axis=0) for part in parts])
        below = below if has_order else frozenset()
        total, first, moments = ordered.ordered_integrals(densities, below, GRID)
        member = np.array([[i in part for i in range(n)] for part in parts], dtype=float)
        key = frozenset([frozenset(parts)])
        law[key] = law.get(key, 0.0) + p * total
        leaves[len(parts)] = leaves.get(len(parts), 0.0) + p * total
        pairs = pairs + p * total * member.T @ member
        mean = mean + p * first @ member
        second = second + p * member.T @ moments @ member
    z = sum(law.values())
    scaled = [{key: p / z for key, p in one.items()} for one in (law, leaves)]
    return linear_sums.Exact(np.log(z), *scaled, pairs / z, mean / z, second / z)


def declare(name, likelihood, m=1, **given):
    case = CASES[name]
    X = case.X
    if any(case.n_levels):
        X = pd.DataFrame({"c0": X[:, 0], "c1": [f"l{v:.0f}" for v in X[:, 1]]})
    named = {j: d for j, d in enumerate(case.directions) if d}
    with pm.Model() as model:
        f = pmt.BART(
            "f",
            X,
            m=m,
            alpha=ALPHA,
            beta=BETA,
            leaf=pmt.NormalLeaf(MEAN, SD),
            monotone=named,
            n_cuts=10,
            max_nodes=m * (2 * len(X) - 1),
            **given,
        )
        if likelihood != "prior":
            observe(likelihood, f, case)
    return model


@pytest.mark.parametrize("name", CASES)
def test_the_list_of_trees_has_the_prior_over_partitions(name):
    case, law = CASES[name], {}
    for (parts, _), p in states(name).items():
        law[frozenset(parts)] = law.get(frozenset(parts), 0.0) + p
    kinds = ["subset" if levels else "number" for levels in case.n_levels]
    cuts = [np.convolve(np.unique(x[~np.isnan(x)]), [0.5, 0.5], "valid") for x in case.X.T]
    known = o.partition_prior(case.X, ALPHA, BETA, cuts=cuts, kinds=kinds)
    assert law.keys() == known.keys()
    assert np.allclose([law[part] for part in known], list(known.values()), rtol=1e-12)


ALL = {"grow": 1, "prune": 1, "change": 1, "swap": 1, "perturb": 1, "rotate": 1, "restructure": 1}
STEPS = {
    "cgm": (pmt.CGM, 60_000),
    "all_moves": (lambda **given: pmt.CGM(moves=ALL, moves_per_visit=3, **given), 40_000),
    "optimal": (
        lambda **given: pmt.ParticleGibbs(num_particles=4, proposal="optimal", **given),
        30_000,
    ),
    "prior": (
        lambda **given: pmt.ParticleGibbs(num_particles=4, proposal="prior", **given),
        30_000,
    ),
    "tempering": (tempered, 30_000),
}
# Every step, data set and target, not their product: most cases compile kernels of their own. The
# steps of `Hybrid` are moves and particles as here.
CHAINS = [
    ("cgm", "one", "normal", "conjugate"),
    ("all_moves", "levels", "normal", "conjugate"),
    ("prior", "two", "probit", "latent"),
    ("cgm", "two", "gumbel", "rowwise"),
    ("optimal", "one", "poisson", "rowwise"),
    ("cgm", "one", "joint", "joint"),
    ("tempering", "two", "normal", "conjugate"),
    ("tempering", "one", "probit", "latent"),
]


@pytest.mark.parametrize(
    "step, name, likelihood, kind",
    tiers(CHAINS, quick=[CHAINS[0]]),
)
def test_steps_leave_the_listed_posterior_invariant(step, name, likelihood, kind):
    model = declare(name, likelihood)
    target = read_target(model, model["f_forest"])
    assert target.kind == kind or (kind == "rowwise" and target.needs_surrogate)
    make, draws = STEPS[step]
    known = exact(name, likelihood)
    linear_sums.check_chain(
        model, make(model=model, rng=5), draws, known, lambda outputs: outputs[..., 0]
    )


def test_the_comparison_tells_an_order_from_none():
    """The same chain is far from the posterior without an order."""
    with pytest.raises(AssertionError):
        linear_sums.check_chain(
            declare("one", "normal"),
            pmt.CGM(model=declare("one", "normal"), rng=5),
            20_000,
            exact("one", "normal", has_order=False),
            lambda outputs: outputs[..., 0],
        )


def sum_of_two(one):
    """Prior of a sum of two trees, from that of one."""
    law, leaves = {}, {}
    for a, p in one.law.items():
        for b, q in one.law.items():
            law[a | b] = law.get(a | b, 0.0) + p * q
    for a, p in one.leaves.items():
        for b, q in one.leaves.items():
            leaves[a + b] = leaves.get(a + b, 0.0) + p * q
    second = 2 * one.second + 2 * np.outer(one.mean, one.mean)
    return linear_sums.Exact(0.0, law, leaves, one.pairs, 2 * one.mean, second)


def test_drawing_forest_and_data_in_turn_keeps_the_prior(rng):
    """Geweke's test with two trees: partitions and moments are those of the prior."""
    model, n = declare("one", "normal", m=2), len(CASES["one"].y)
    make, draws = STEPS["cgm"]

    def draw_data(f):
        model["seen"].set_value(f + SIGMA[:n] * rng.standard_normal(n))

    linear_sums.check_chain(
        model,
        make(model=model, rng=5),
        draws,
        sum_of_two(exact("one", "prior")),
        lambda outputs: outputs[..., 0],
        draw_data,
    )


@pytest.mark.full
def test_top_down_smc_finds_evidence_and_means():
    """Ten runs of 2,000 particles; their spread is the Monte Carlo error, at 5 standard errors."""
    with declare("levels", "normal"):
        options = {"particles": 2000, "progressbar": False, "cores": 1}
        runs = [pmt.sample_tree_smc(**options, random_seed=seed) for seed in range(10)]
    known, prior = exact("levels", "normal"), exact("levels", "prior")
    log_evidence = known.log_evidence - prior.log_evidence
    ratios = np.exp([run.attrs["log_marginal_likelihood"] - log_evidence for run in runs])
    assert abs(ratios.mean() - 1.0) < 5.0 * ratios.std(ddof=1) / np.sqrt(10) < 0.1
    f = np.array([run.posterior["f"].mean(("chain", "draw")) for run in runs])
    error = f.std(axis=0, ddof=1) / np.sqrt(10)
    assert (np.abs(f.mean(axis=0) - known.mean) < 5.0 * error).all() and error.max() < 0.02


def largest_fall(forest, value, X, directions, rng):
    """Largest fall of f from x to x', over 10^6 ordered pairs, beyond the training rows too."""
    n, low, high = 10**6, X.min(axis=0), X.max(axis=0)
    x = rng.uniform(low - 0.3, high + 0.3, size=(n, X.shape[1]))
    further = x + rng.exponential(0.3 * (high - low), size=x.shape) * directions
    fingerprint = declared(forest).fingerprint
    given = (ConstantLeaf(1), sizes(forest.owner.op.layout), fingerprint)
    before, after = (evaluate(value, rows, X, *given) for rows in (x, further))
    return (before - after).max()


def table(rng, n=200):
    X = rng.random((n, 3))
    return X, 2 * X[:, 0] - X[:, 1] ** 2 + np.sin(6 * X[:, 2]) + 0.3 * rng.normal(size=n)


def test_no_draw_violates_the_order_at_a_million_pairs(rng):
    X, y = table(rng)
    with pm.Model() as model:
        # cuts on a grid, for which the chains above have the kernels
        f = pmt.BART("f", X, y, m=20, monotone={0: 1, 1: -1}, n_cuts=100)
        pm.Normal("y", f, 0.3, observed=y, shape=f.shape)
    step, point = pmt.CGM(model=model, rng=3), model.initial_point()
    for _ in range(200):
        point, _ = step.step(point)
    forest, directions = model["f_forest"], np.array([1, -1, 0])
    assert step.states[0].forest.trees.column.max() >= 0
    for value in (point["f_forest"], *pm.draw(forest, 2, random_seed=3)):
        assert largest_fall(forest, value, X, directions, rng) <= 0.0
    with pm.Model() as free:
        pmt.BART("f", X, y, m=20)
        value = pm.draw(free["f_forest"], random_seed=3)
    assert largest_fall(free["f_forest"], value, X, directions, rng) > 0.01


def test_the_prior_has_the_listed_law():
    """20,000 draws: standard errors of frequencies at most 0.0035, at 5 of them."""
    model, known, n = declare("levels", "prior"), exact("levels", "prior"), 4
    draws = pm.draw(model["f"], 20_000, random_seed=2)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - known.mean) < 5 * error).all()
    products = draws[:, :, None] * draws[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(products.mean(axis=0) - known.second) < 5 * error).all()
    same = np.array([[draws[:, i] == draws[:, j] for j in range(n)] for i in range(n)])
    assert np.abs(same.mean(axis=2) - known.pairs).max() < 0.018


def test_random_means_and_scales_are_allowed_and_trees_must_be_numbers(rng):
    X, y = table(rng, 30)
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0)
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, sd), monotone={0: 1})
        pm.Normal("y", f, 0.3, observed=y, shape=f.shape)
    assert np.isfinite(model.compile_logp()(model.initial_point()))
    for given in ("alpha", "beta", "split_prior", "lifetime"):
        with pm.Model():
            p = pm.Dirichlet("p", np.ones(3)) if given == "split_prior" else pm.Beta("p", 2, 2)
            settings = {given: p}
            if given == "lifetime":
                settings = {"tree_prior": pmt.MondrianPrior(p)}
            with pytest.raises(NotImplementedError, match=f"{given} is a random variable"):
                pmt.BART("f", X, y, m=3, monotone={0: 1}, **settings)
