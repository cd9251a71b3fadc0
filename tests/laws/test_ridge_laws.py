"""Moves along ridges in chains, against the exact joint posterior of a tree and what it shifts.

Given the variables beside the tree, a partition's evidence is a product over leaves of integrals
over a leaf value; sums over all partitions and over grids of leaf value and variables are exact to
many digits. Of two forests, sums over partitions under Normal rows. Averages of a chain are held to
them in standard errors by batch means over 60 batches: beyond 5.5 (t law, 59 degrees of freedom)
one of some 60 averages fails by chance in 20,000 runs.
"""

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats
from support import oracle as o
from support.naive.batches import batch_means, gap
from support.naive.laws import PROBLEMS
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.targets.lift import Lift

pytestmark = pytest.mark.usefixtures("quick_compile")
BATCHES, Z, DRAWS, TUNE = 60, 5.5, 6_000, 200
PROBLEM = PROBLEMS["gaps"]
X, N = PROBLEM.X, PROBLEM.n
MEAN, SD = 0.1, 0.9
COUNTS = np.array([0, 2, 1, 0, 5, 3, 4, 1])[:N]
GROUP = np.array([0, 1, 1, 0, 1, 0, 1, 1])[:N]
CLASS = np.array([0, 1, 2, 0, 2, 1, 2, 1])[:N]
TAU, WIDE = 0.6, 1.5
"""Sd of groups around their mean, and of that mean."""
ORDERED = pm.distributions.transforms.ordered


class Case(NamedTuple):
    """A model of one tree with other variables, and their exact law on a grid."""

    declare: Callable
    """f to the model around it."""
    grid: np.ndarray
    """(g, d) values of the variables, evenly spaced in each."""
    log_prior: np.ndarray
    """(g,) up to a constant."""
    log_rows: Callable
    """(g, 1, d) and (q, 1) values of the leaf to (g, q, N) log-likelihoods."""
    read: Callable
    """Point to (d,) values of the variables."""
    step: Callable = pmt.CGM


def grid_of(*axes):
    return np.array(list(product(*axes)))


def with_intercept(f):
    b = pm.StudentT("b", nu=4, sigma=0.8)
    pm.Poisson("y", pm.math.exp(f + b), observed=COUNTS)


def with_groups(f):
    a = pm.Normal("a", pm.Normal("mu", 0.0, WIDE), TAU, shape=2)
    pm.Bernoulli("y", logit_p=f + a[GROUP], observed=COUNTS > 1)


def with_scaled_groups(f):
    a = pm.Normal("mu", 0.0, WIDE) + TAU * pm.Normal("z", shape=2)
    pm.Bernoulli("y", logit_p=f + a[GROUP], observed=COUNTS > 1)


def with_cut_points(f):
    cuts = pm.Normal("c", 0, 2, shape=2, transform=ORDERED, initval=[-1.0, 1.0])
    pm.OrderedLogistic("y", eta=f, cutpoints=cuts, observed=CLASS)


def counts(v, f):
    return stats.poisson.logpmf(COUNTS, np.exp(f + v[..., :1]))


def successes(v, f):
    eta = f + v[..., GROUP]
    return -np.log1p(np.exp(np.where(COUNTS > 1, -eta, eta)))


def classes(v, f):
    cuts = np.stack([v[..., 0], v[..., 0] + np.exp(v[..., 1])], axis=-1)
    below = special.expit(cuts[..., None, :] - f[..., None])
    zero, one = np.zeros((*below.shape[:-1], 1)), np.ones((*below.shape[:-1], 1))
    shares = np.diff(np.concatenate([zero, below, one], axis=-1), axis=-1)
    return np.log(shares)[..., 0, CLASS]


def hybrid():
    return pmt.Hybrid(local_sweeps=2)


LEVELS = grid_of(np.arange(-9.0, 9.05, 0.1))
PAIRS = grid_of(*2 * [np.arange(-7.0, 7.1, 0.25)])
CUTS = grid_of(np.arange(-8.0, 7.1, 0.3), np.arange(-6.0, 2.6, 0.25))
LOG_PAIRS = stats.multivariate_normal(cov=TAU**2 * np.eye(2) + WIDE**2).logpdf(PAIRS)
HIGHER = CUTS[:, 0] + np.exp(CUTS[:, 1])
LOG_CUTS = stats.norm(0, 2).logpdf(CUTS[:, 0]) + stats.norm(0, 2).logpdf(HIGHER) + CUTS[:, 1]
CASES = {
    "intercept": Case(
        with_intercept,
        LEVELS,
        stats.t(4, scale=0.8).logpdf(LEVELS[:, 0]),
        counts,
        lambda point: point["b"],
    ),
    "centred": Case(with_groups, PAIRS, LOG_PAIRS, successes, lambda point: point["a"], hybrid),
    "not centred": Case(
        with_scaled_groups,
        PAIRS,
        LOG_PAIRS,
        successes,
        lambda point: point["mu"] + TAU * point["z"],
        hybrid,
    ),
    "cut points": Case(
        with_cut_points, CUTS, LOG_CUTS, classes, lambda point: point["c_ordered__"], hybrid
    ),
}


def exact(case: Case):
    """Means and sds of the variables, and of f at the rows."""
    nodes = MEAN + SD * np.linspace(-7, 7, 121)
    of_leaf = stats.norm(MEAN, SD).logpdf(nodes) + np.log(nodes[1] - nodes[0])
    rows = case.log_rows(case.grid[:, None, None, :], nodes[:, None]).reshape(-1, nodes.size, N)
    partitions = o.partition_prior(X, **PROBLEM.prior)
    leaves = {}
    for leaf in {leaf for part in partitions for leaf in part}:
        score = of_leaf + rows[:, :, list(leaf)].sum(axis=2)
        total = special.logsumexp(score, axis=1)
        share = np.exp(score - total[:, None])
        leaves[leaf] = total, share @ nodes, share @ nodes**2
    scores = np.array(
        [case.log_prior + np.log(p) + sum(leaves[leaf][0] for leaf in part)
         for part, p in partitions.items()]
    )  # fmt: skip
    weights = np.exp(scores - special.logsumexp(scores))
    of_grid = weights.sum(axis=0)
    at_edge = (case.grid == case.grid.min(axis=0)) | (case.grid == case.grid.max(axis=0))
    assert of_grid[at_edge.any(axis=1)].max() < 1e-5  # nothing is left out
    first, second = np.zeros(N), np.zeros(N)
    for weight, part in zip(weights, partitions, strict=True):
        for leaf in part:
            first[list(leaf)] += weight @ leaves[leaf][1]
            second[list(leaf)] += weight @ leaves[leaf][2]
    mean = np.concatenate([of_grid @ case.grid, first])
    square = np.concatenate([of_grid @ case.grid**2, second])
    return mean, np.sqrt(square - mean**2)


def model_of(case: Case) -> pm.Model:
    prior = {k: v for k, v in PROBLEM.prior.items() if k in ("alpha", "beta")}
    with pm.Model() as model:
        f = pmt.BART("f", X, m=1, leaf=pmt.NormalLeaf(MEAN, SD), max_nodes=31, **prior)
        case.declare(f)
    return model


def chain_of(case: Case, seed: int):
    """(draws, d + N) variables and f; the step of the forest alone, but for what only a prior has.

    Where there are means of groups, these are drawn from their conditional.
    """
    rng = np.random.default_rng(seed)
    with model_of(case) as model:
        step = case.step()
    point = model.initial_point()
    step.setup_chain(rng.spawn(1)[0], TUNE, DRAWS)
    rows, shifts = np.empty((DRAWS, case.grid.shape[1] + N)), []
    for k in range(-TUNE, DRAWS):
        if k == 0:
            step.stop_tuning()
        if "a" in point:
            precision = 2 / TAU**2 + 1 / WIDE**2
            mean = point["a"].sum() / TAU**2 / precision
            point["mu"] = np.asarray(mean + rng.standard_normal() / np.sqrt(precision))
        point, [stats_of_step] = step.step(point)
        shifts.append(stats_of_step["ridge_shift"])
        rows[k] = np.concatenate([np.ravel(case.read(point)), step.states[0].forest.fit[:, 0]])
    assert np.mean(np.abs(shifts)) > 0.1
    return rows


def gaps(case: Case):
    mean, sd = exact(case)
    chain = (chain_of(case, 7) - mean) / sd
    return gap(batch_means(chain, BATCHES), 0.0), gap(batch_means(chain**2, BATCHES), 1.0)


@pytest.mark.parametrize("name", tiers(list(CASES), quick=["intercept"]))
def test_joint_posterior(name):
    first, second = gaps(CASES[name])
    assert first.within(Z, 0.25), first
    assert second.within(Z, 0.4), second


# ------------------------------------------------------------- A second forest, under Normal rows
#
# A ridge move changes the parts f and g of f - g / 2, whatever the likelihood. Under Normal rows
# they are jointly Gaussian given the partitions of one tree of f and two of g.

FACTOR, SDS = -0.5, np.linspace(0.5, 1.1, N)
OTHER_MEAN, OTHER_SD = -0.2, 0.6


def model_of_two() -> pm.Model:
    prior = {k: v for k, v in PROBLEM.prior.items() if k in ("alpha", "beta")}
    with pm.Model() as model:
        f = pmt.BART("f", X, m=1, leaf=pmt.NormalLeaf(MEAN, SD), max_nodes=31, **prior)
        leaf = pmt.NormalLeaf(OTHER_MEAN, OTHER_SD)
        g = pmt.BART("g", X, m=2, leaf=leaf, max_nodes=60, **prior)
        pm.Normal("y", f + FACTOR * g, SDS, observed=PROBLEM.y)
    return model


def exact_of_two():
    """Mean and sd of (f, g) at the rows, and correlations of f and g at each."""
    prior = o.partition_prior(X, **PROBLEM.prior)
    log_p = np.log(list(prior.values()))
    same = np.array([o.same_leaf(part, N) for part in prior], dtype=float)
    pairs = np.array(list(combinations_with_replacement(range(len(same)), 2)))
    log_pairs = log_p[pairs].sum(axis=1) + np.log(2) * (pairs[:, 0] != pairs[:, 1])
    of_g = OTHER_SD**2 * same[pairs].sum(axis=1)
    centre = np.repeat([MEAN, 2 * OTHER_MEAN], N)
    away = PROBLEM.y - centre[:N] - FACTOR * centre[N:]
    scores, firsts, seconds = [], [], []
    for log_part, part in zip(log_p, same, strict=True):
        of_f = np.broadcast_to(SD**2 * part, of_g.shape)
        total = of_f + FACTOR**2 * of_g + np.diag(SDS**2)
        inverse = np.linalg.inv(total)
        score = log_part + log_pairs - 0.5 * (inverse @ away @ away + np.linalg.slogdet(total)[1])
        with_rows = np.concatenate([of_f, FACTOR * of_g], axis=1)
        location = centre + with_rows @ inverse @ away
        gain = with_rows @ inverse @ with_rows.transpose(0, 2, 1)
        rows = np.arange(N)
        variance = np.concatenate([of_f[:, rows, rows], of_g[:, rows, rows]], axis=1)
        variance = variance - gain[:, np.arange(2 * N), np.arange(2 * N)]
        product = location[:, :N] * location[:, N:] - gain[:, rows, N + rows]
        weight = np.exp(score - score.max())
        scores.append(score.max())
        firsts.append(weight @ np.column_stack([location, np.ones(len(weight))]))
        seconds.append(weight @ np.column_stack([variance + location**2, product]))
    share = np.exp(np.array(scores) - max(scores))
    *first, mass = share @ np.array(firsts)
    mean, second = np.array(first) / mass, share @ np.array(seconds) / mass
    sd = np.sqrt(second[: 2 * N] - mean**2)
    return mean, sd, (second[2 * N :] - mean[:N] * mean[N:]) / (sd[:N] * sd[N:])


def gaps_of_two():
    """Of means, of second moments, and of products of f and g."""
    mean, sd, correlation = exact_of_two()
    with model_of_two() as model:
        step = pmt.CGM()
    point = model.initial_point()
    step.setup_chain(np.random.default_rng(8), TUNE, DRAWS)
    rows, shifts = np.empty((DRAWS, 2 * N)), []
    for k in range(-TUNE, DRAWS):
        if k == 0:
            step.stop_tuning()
        point, [found] = step.step(point)
        shifts.append(found["ridge_shift_g_forest"])
        rows[k] = np.concatenate([one.forest.fit[:, 0] for one in step.states])
    assert np.mean(np.abs(shifts)) > 0.1
    chain = (rows - mean) / sd
    products = chain[:, :N] * chain[:, N:]
    values = (chain, 0.0), (chain**2, 1.0), (products, correlation)
    return [gap(batch_means(value, BATCHES), wanted) for value, wanted in values]


@pytest.mark.full
def test_two_forests():
    found = gaps_of_two()
    assert all(one.within(Z, 0.25) for one in found), found


@pytest.mark.full
def test_a_mistake_between_two_forests_is_seen(monkeypatch):
    """No pull of the leaf priors."""
    right = Lift.of
    monkeypatch.setattr(Lift, "of", lambda *a: right(*a)._replace(slope=0.0))
    assert max(one.z for one in gaps_of_two()) > 2 * Z


@pytest.mark.full
def test_a_mistake_is_seen(monkeypatch):
    """No pull of the leaf prior."""
    right = Lift.of
    monkeypatch.setattr(Lift, "of", lambda *a: right(*a)._replace(slope=0.0))
    first, second = gaps(CASES["intercept"])
    assert max(first.z, second.z) > 2 * Z
