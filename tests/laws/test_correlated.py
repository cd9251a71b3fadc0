"""Forests of outputs with correlated errors: the posterior of two trees, listed pair by pair.

One tree for each of two functions, or one for both, on five rows. Given both partitions, functions
and rows are jointly normal, so that every pair of partitions is scored, and its moments are summed,
with dense matrices. Averages are compared in standard errors by batch means
(`support.naive.batches`), 60 batches: some 60 averages a case at 6.0 standard errors, of a t law
with 59 degrees of freedom, of which one fails by chance in 100,000 runs with fresh seeds. The
absolute tolerances are twice the largest gap seen.
"""

from collections import defaultdict
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.linalg import block_diag
from scipy.special import logsumexp
from support import oracle as o
from support.chains import partition_code, partition_of
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate import ConjugateTarget

pytestmark = pytest.mark.usefixtures("quick_compile")

N, BATCHES, Z = 5, 60, 6.0
X = np.array([[0.1, 0.7], [0.35, 0.7], [0.5, 0.2], [0.75, 0.4], [0.9, 0.1]])
Y = np.array([[-0.9, -1.3], [1.2, 0.4], [-0.5, 0.6], [0.8, 1.1], [1.6, 0.2]])
PRIOR = {"alpha": 0.8, "beta": 0.7}
MEAN, SD = (0.2, -0.1), (0.8, 0.6)
COV = np.array([[0.49, 0.42], [0.42, 0.64]])
OF_EACH_ROW = COV * np.linspace(0.5, 2.0, N)[:, None, None]
LOADINGS = np.array([[1.0, 0.7], [-0.4, 2.0]])

# The mean of the rows of two functions, its (2, 2) factors, its offset, the covariance.
CASES = {
    "own": (lambda f: f.T, np.eye(2), 0.0, COV),
    "sums": (lambda f: f.T @ LOADINGS.T + 0.3, LOADINGS, 0.3, OF_EACH_ROW),
    "one": (
        lambda f: pt.stack([f[0] + f[1], pt.zeros(N)], axis=1),
        np.array([[1.0, 1.0], [0.0, 0.0]]),
        0.0,
        COV,
    ),
}


def declare(case, is_shared):
    mean, _, _, cov = CASES[case]
    room = {"max_nodes": 2 * N - 1}
    with pm.Model() as model:
        if is_shared:
            leaf = pmt.NormalLeaf(MEAN, SD)
            f = pmt.BART(
                "f", X, m=1, leaf=leaf, shape=(2, N), separate_trees=False, **PRIOR, **room
            )
        else:
            f = pt.stack(
                [
                    pmt.BART(f"f{k}", X, m=1, leaf=pmt.NormalLeaf(MEAN[k], SD[k]), **PRIOR, **room)
                    for k in range(2)
                ]
            )
        pm.MvNormal("y", mean(f), cov=cov, observed=Y)
    return model


@cache
def exact(case, is_shared):
    """Law of the pair of partitions, means and second moments of both functions."""
    _, factors, offset, cov = CASES[case]
    prior = o.partition_prior(X, **PRIOR)
    parts = list(prior)
    each = [np.array([s**2 * o.same_leaf(part, N) for part in parts]) for s in SD]
    design = np.kron(np.eye(N), factors).reshape(2 * N, N, 2).transpose(0, 2, 1).reshape(2 * N, -1)
    noise = block_diag(*np.broadcast_to(cov, (N, 2, 2)))
    prior_mean = np.repeat(MEAN, N)
    away = Y.ravel() - offset - design @ prior_mean
    scores, law, means, seconds = [], {}, [], []
    for a, one in enumerate(parts):
        for b, two in enumerate(parts):
            if is_shared and a != b:
                continue
            K = block_diag(each[0][a], each[1][b])
            total = design @ K @ design.T + noise
            score = stats.multivariate_normal(cov=total).logpdf(away)
            law[one, two] = score + np.log(prior[one] * (1.0 if is_shared else prior[two]))
            gain = np.linalg.solve(total, design @ K).T
            means.append(prior_mean + gain @ away)
            seconds.append(K - gain @ design @ K + np.outer(means[-1], means[-1]))
    scores = np.array(list(law.values()))
    weights = np.exp(scores - logsumexp(scores))
    return (
        dict(zip(law, weights.tolist(), strict=True)),
        weights @ means,
        np.einsum("p,pij->ij", weights, seconds),
    )


# -------------------------- One output is binary, and an entry of the other is missing, four rows

FEW = 4
SIGN = np.array([1, 0, 1, 1])
WITH_LATENTS = np.column_stack([np.where(np.arange(FEW) == 2, np.nan, Y[:FEW, 0]), SIGN * np.nan])


def declare_binary():
    room = {"max_nodes": 2 * FEW - 1}
    with pm.Model() as model:
        functions = [
            pmt.BART(f"f{k}", X[:FEW], m=1, leaf=pmt.NormalLeaf(MEAN[k], SD[k]), **PRIOR, **room)
            for k in range(2)
        ]
        y = pm.MvNormal("y", pt.stack(functions, axis=1), cov=COV, observed=WITH_LATENTS)
        pm.Bernoulli("b", p=pt.switch(y[:, 1] > 0.3, 1.0, 0.0), observed=SIGN)
    return model


@cache
def exact_binary():
    """Law of the pair of partitions: densities of what is observed, times orthant probabilities."""
    prior = o.partition_prior(X[:FEW], **PRIOR)
    parts, law = list(prior), {}
    seen = np.flatnonzero(~np.isnan(WITH_LATENTS[:, 0]))
    away = WITH_LATENTS[seen, 0] - MEAN[0]
    side = np.where(SIGN == 1, 1.0, -1.0)
    latent = np.arange(FEW, 2 * FEW)
    for one in parts:
        for two in parts:
            total = np.kron(COV, np.eye(FEW))
            total += block_diag(
                SD[0] ** 2 * o.same_leaf(one, FEW), SD[1] ** 2 * o.same_leaf(two, FEW)
            )
            among, cross = total[np.ix_(seen, seen)], total[np.ix_(latent, seen)]
            gain = np.linalg.solve(among, cross.T).T
            mean = side * (MEAN[1] + gain @ away - 0.3)
            rest = total[np.ix_(latent, latent)] - gain @ cross.T
            law[one, two] = (
                prior[one]
                * prior[two]
                * stats.multivariate_normal(cov=among).pdf(away)
                * stats.multivariate_normal(cov=rest * np.outer(side, side)).cdf(mean, rng=1)
            )
    whole = sum(law.values())
    return {pair: p / whole for pair, p in law.items()}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
def test_a_binary_output_and_a_missing_entry():
    """Steps of the forests and of latent entries in turn; integrals to 5 digits by SciPy.

    Latent entries and trees take turns, so that the chain has a longer memory than the others: the
    largest gap seen is 0.034, at 2.2 standard errors.
    """
    model, draws = declare_binary(), 30_000
    forests = pmt.CGM(model=model, rng=3)
    with model:
        latents = pmt.LatentNormals(rng=4)
    point, codes = model.initial_point(), np.empty((draws, 2), dtype=int)
    for s in range(draws):
        point, _ = latents.step(point)
        point, _ = forests.step(point)
        codes[s] = [partition_code(one.forest.trees.leaf_of[0], FEW) for one in forests.states]
    check_partitions(codes, exact_binary(), FEW, most=0.05)


def check_partitions(codes, law, n, most=0.03):
    """Partitions of either tree, and the numbers of leaves of both, against their law."""
    draws, found = len(codes), {}
    for k in range(2):
        alone: dict = defaultdict(float)
        for pair, p in law.items():
            alone[pair[k]] += p
        keys, shares = frequencies(codes[:, k], BATCHES)
        parts = [frozenset(partition_of(key, n)) for key in keys]
        found[f"partitions {k}"] = law_gap(parts, shares, dict(alone), draws)
    leaves: dict = defaultdict(float)
    for (one, two), p in law.items():
        leaves[len(one), len(two)] += p
    size_of = {code: len(partition_of(code, n)) for code in np.unique(codes).tolist()}
    sizes = np.array([[size_of[code] for code in pair] for pair in codes.tolist()])
    keys, shares = frequencies(sizes @ np.array([1, n + 1]), BATCHES)
    counts = [(key % (n + 1), key // (n + 1)) for key in keys.tolist()]
    found["leaves"] = law_gap(counts, shares, dict(leaves), draws)
    wrong = {what: one for what, one in found.items() if not one.within(Z, most)}
    assert not wrong, wrong


STEPS = {
    "cgm": (pmt.CGM, 40_000),
    "hybrid": (pmt.Hybrid, 15_000),
    "particles": (lambda **given: pmt.ParticleGibbs(num_particles=4, **given), 20_000),
}
RUNS = [
    ("sums", False, "cgm"),
    ("own", False, "hybrid"),
    ("one", False, "particles"),
    ("sums", True, "cgm"),
    ("own", True, "hybrid"),
    ("one", True, "particles"),
]


@pytest.mark.parametrize("case, is_shared, step", tiers(RUNS, quick=RUNS[:1] + RUNS[3:4]))
def test_two_trees_of_correlated_outputs(case, is_shared, step):
    """Or one tree that both functions share."""
    model, (make, draws) = declare(case, is_shared), STEPS[step]
    forests = [rv for rv in model.free_RVs if rv.name.endswith("_forest")]
    assert len(forests) == 1 + (not is_shared)
    assert all(isinstance(read_target(model, one), ConjugateTarget) for one in forests)
    step = make(model=model, rng=3)
    point, codes, f = model.initial_point(), np.empty((draws, 2), dtype=int), []
    for s in range(draws):
        point, _ = step.step(point)
        states = [state.forest for state in step.states]
        codes[s] = [partition_code(state.trees.leaf_of[0], N) for state in states]
        f.append(np.concatenate([state.fit.T.ravel() for state in states]))
    f, (law, mean, second) = np.array(f), exact(case, is_shared)
    check_partitions(codes, law, N)
    squares = batch_means(f[:, :, None] * f[:, None, :], BATCHES).reshape(BATCHES, -1)
    assert gap(batch_means(f, BATCHES), mean).within(Z, 0.05)
    assert gap(squares, second.ravel()).within(Z, 0.1)
