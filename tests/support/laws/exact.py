"""A chain of one tree against the listed posterior. Tolerances: see `laws/test_exact_posterior`."""

import zlib
from dataclasses import replace

import numpy as np

from support import oracle as o
from support.chains import (
    ALL_MOVES,
    MOVE_SETS,
    make_setup,
    make_tools,
    partition_of,
    run_chain,
    run_particles,
    with_float_cells,
)
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import EVERY, law, precision_moments

# Moves -> draws.
MOVES = {
    "cgm": 240_000,
    "grow_prune": 180_000,
    "change_swap": 120_000,
    "three_a_visit": 80_000,
    "all_moves": 180_000,
    "perturb": 240_000,
    "rotate": 240_000,
    "restructure": 240_000,
}
BATCHES = 60
Z = 6.0
# Number of particles -> draws.
DRAWS = {2: 60_000, 3: 40_000, 10: 20_000, 50: 9_000}


def by_moves(name, leaf, moves):
    """A chain of Metropolis moves agrees with the enumeration."""
    compare(chain_of(name, leaf, moves), name, leaf)


def chain_of(name, leaf, moves):
    weights, draws = MOVE_SETS[moves], MOVES[moves]
    seed = zlib.crc32(f"{name} {leaf} {moves}".encode())
    setup = with_float_cells(make_setup(EVERY[name], leaf))  # codes: `test_detailed_balance`
    return run_chain(seed, setup, weights, draws, keep_fits=True)


def partition_shares(chain, n, batches=BATCHES):
    codes, shares = frequencies(chain.codes[:, 0], batches)
    return [partition_of(code, n) for code in codes], shares


def compare(chain, name, leaf):
    """Partitions, pairs, leaves, depths and values of a chain against the enumeration."""
    exact, n, draws = law(name, leaf), EVERY[name].n, len(chain.codes)
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


def by_particles(name, leaf, particles, proposal, scheme, share=1.0, n_bins=100, draws=None):
    """A chain of particle Gibbs agrees with the enumeration."""
    draws = draws or DRAWS[particles]
    setup = with_float_cells(make_setup(EVERY[name], leaf))
    tools = make_tools(setup, particles, proposal, scheme, share, n_bins)
    key = f"{name} {leaf} {particles} {proposal} {scheme} {share} {n_bins}"
    chain = run_particles(zlib.crc32(key.encode()), setup, tools, draws, keep_fits=True)
    compare(chain, name, leaf)


def turned_round(name):
    """A chain on the table turned round, its levels renamed, finds the law of the table itself."""
    problem = EVERY[name]
    order = np.random.default_rng(4).permutation(problem.n)
    X = problem.X[order][:, ::-1].copy()
    kinds = problem.prior["kinds"][::-1]
    j = kinds.index("subset")
    X[:, j] = np.nanmax(X[:, j]) - X[:, j]
    prior = problem.prior | {"kinds": kinds}
    if "cuts" in prior:
        prior["cuts"] = prior["cuts"][::-1]
    turned = replace(problem, X=X, y=problem.y[order], prior=prior)
    chain = run_chain(7, with_float_cells(make_setup(turned, "normal")), ALL_MOVES, 80_000)
    states, shares = partition_shares(chain, problem.n)
    states = [frozenset(frozenset(int(order[i]) for i in leaf) for leaf in s) for s in states]
    found = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert found.within(Z, 0.03), found
