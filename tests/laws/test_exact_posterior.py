"""One tree on data so small that every partition can be listed: the chain finds the exact numbers.

Tolerances. Every average is compared in standard errors by batch means (`support.naive.batches`, 60
batches). The file looks at some 10,000 averages; at 6.0 standard errors, of a t law with 59
degrees of freedom, one of them would fail by chance in 1,000 runs of the file with fresh seeds,
and the seeds are fixed; the largest seen is 4.1. The absolute tolerances (0.03 on the probability
of a partition, 0.04 on sums of such) are set by the longest memory met, grow and prune alone on
"repeats" (0.02); half of the chains are within 0.004.
"""

import zlib

import numpy as np
import pytest
from support import oracle as o
from support.chains import CGM, CHANGE_SWAP, GROW_PRUNE, make_setup, partition_of, run_chain
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import (
    EVERY,
    MISTAKES,
    PROBLEMS,
    law,
    partition_posterior,
    precision_moments,
    wrong_partition_prior,
)

MOVES = {
    "cgm": (CGM, 240_000),
    "grow_prune": (GROW_PRUNE, 180_000),
    "change_swap": (CHANGE_SWAP, 120_000),
}
BATCHES = 60
Z = 6.0
# (problem, leaf): the noise of "noisy" is seen by the normal leaf only.
CASES = [
    (name, leaf)
    for leaf in ("normal", "normal_gamma", "dirichlet")
    for name in PROBLEMS
    if name != "noisy" or leaf == "normal"
]


def chain_of(name, leaf, moves):
    weights, draws = MOVES[moves]
    seed = zlib.crc32(f"{name} {leaf} {moves}".encode())
    return run_chain(seed, make_setup(EVERY[name], leaf), weights, draws, keep_fits=True)


def partition_shares(chain, n):
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    return [partition_of(code, n) for code in codes], shares


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("name, leaf", CASES)
def test_chain_agrees_with_the_enumeration(name, leaf, moves):
    exact, n = law(name, leaf), EVERY[name].n
    chain = chain_of(name, leaf, moves)
    draws = len(chain.codes)
    states, shares = partition_shares(chain, n)

    partitions = law_gap(states, shares, exact.partitions, draws)
    assert partitions.within(Z, 0.03), partitions

    above = np.triu_indices(n, 1)
    same = np.array([o.same_leaf(state, n)[above] for state in states])
    pairs = gap(shares @ same, exact.pairs[above], independent_se(exact.pairs[above], draws))
    assert pairs.within(Z, 0.04), pairs

    sizes = np.array([len(state) for state in states])
    counts = sorted(set(sizes.tolist()))
    by_size = np.stack([shares[:, sizes == k].sum(axis=1) for k in counts], axis=1)
    leaves = law_gap(counts, by_size, exact.leaf_counts, draws)
    assert leaves.within(Z, 0.04), leaves

    depths = law_gap(*_depths(chain), exact.depths, draws)
    assert depths.within(Z, 0.04), depths

    _check_values(chain, name, leaf, exact)


def _depths(chain):
    found, shares = frequencies(chain.depths[:, 0], BATCHES)
    return found.tolist(), shares


def _check_values(chain, name, leaf, exact):
    """Mean and sd of the leaf values at every row, in units of the exact sd.

    The square of a normal-gamma mean has no variance when a leaf holds one row (a t law with four
    degrees of freedom), so that only its z-score, which bounds itself, is looked at.
    """
    fits = chain.fits if leaf == "dirichlet" else chain.fits[:, :, 0]
    scaled = (fits - exact.mean) / exact.sd
    mean = gap(batch_means(scaled, BATCHES).reshape(BATCHES, -1), 0.0)
    assert mean.within(Z, 0.06), mean
    square = gap(batch_means(scaled**2, BATCHES).reshape(BATCHES, -1), 1.0)
    assert square.within(Z, np.inf if leaf == "normal_gamma" else 0.1), square
    if leaf == "normal_gamma":
        tau_mean, tau_sd = precision_moments(name)
        scaled = (chain.fits[:, :, 1] - tau_mean) / tau_sd
        mean = gap(batch_means(scaled, BATCHES), 0.0)
        assert mean.within(Z, 0.06), mean
        square = gap(batch_means(scaled**2, BATCHES), 1.0)
        assert square.within(Z, 0.2), square


def test_the_prior_that_mistakes_start_from_is_the_oracles():
    for problem in PROBLEMS.values():
        ours, theirs = wrong_partition_prior(problem), o.partition_prior(problem.X, **problem.prior)
        assert ours.keys() == theirs.keys()
        assert max(abs(ours[k] - theirs[k]) for k in ours) < 1e-12


# A problem on which the mistake moves the posterior by several per cent.
SHOWN_ON = {
    "alpha": "gaps",
    "beta": "deep",
    "depth": "deep",
    "alike": "repeats",
    "gaps": "gaps",
    "columns": "binary_constant",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_comparison_rejects_a_wrong_target(mistake):
    """The same chain, z-score and threshold, with one mistake in the target: it must fail."""
    name = SHOWN_ON[mistake]
    problem = PROBLEMS[name]
    chain = chain_of(name, "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    right = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert right.z < Z
    wrong = partition_posterior(problem, "normal", wrong_partition_prior(problem, mistake))
    found = law_gap(states, shares, wrong, len(chain.codes))
    assert found.z > 2 * Z, found


def test_the_comparison_rejects_a_wrong_likelihood():
    """Noise sd 10% too large or too small."""
    from dataclasses import replace

    problem = PROBLEMS["gaps"]
    chain = chain_of("gaps", "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    for wrong in (replace(problem, sigma=0.77), replace(problem, sigma=0.63)):
        found = law_gap(states, shares, partition_posterior(wrong, "normal"), len(chain.codes))
        assert found.z > 2 * Z, found
