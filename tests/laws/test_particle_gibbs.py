"""Particle Gibbs on data so small that every partition can be listed: the posterior is exact.

It must not move with the number of particles, the proposal, the resampling scheme, the columns
looked at or the bins. The cases are not the full product: they hold every pair of a leaf, a number
of particles, a proposal and a scheme.

Tolerances. Averages are compared in standard errors by batch means (`support.naive.batches`, 60
batches). The file looks at some 2,500 averages; at 6.0 standard errors, of a t law with 59 degrees
of freedom, one would fail by chance in 4,000 runs of the file with fresh seeds, and the seeds are
fixed; the largest seen is 4.9, a mean of the skew normal-gamma precision (0.7 in ten times the
draws). The absolute tolerances are those of `test_exact_posterior`; the error of a probability
here is at most 0.006 (9,000 draws, 50 particles).
"""

import zlib

import numpy as np
import pytest
from support import oracle as o
from support.chains import make_setup, make_tools, run_particles, with_float_cells
from support.naive.batches import gap, independent_se, law_gap
from support.naive.laws import EVERY, law
from test_exact_posterior import _check_values, _depths, partition_shares

Z = 6.0
DRAWS = {2: 60_000, 3: 40_000, 10: 20_000, 50: 9_000}


def check(name, leaf, particles, proposal, scheme, share=1.0, n_bins=100, draws=None):
    """Compare one chain with the list, as `test_exact_posterior` does."""
    exact, n = law(name, leaf), EVERY[name].n
    draws = draws or DRAWS[particles]
    setup = with_float_cells(make_setup(EVERY[name], leaf))
    tools = make_tools(setup, particles, proposal, scheme, share, n_bins)
    key = f"{name} {leaf} {particles} {proposal} {scheme} {share} {n_bins}"
    chain = run_particles(zlib.crc32(key.encode()), setup, tools, draws, keep_fits=True)

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
    return max(partitions.z, pairs.z, leaves.z, depths.z)


@pytest.mark.parametrize("particles", DRAWS)
def test_the_posterior_does_not_move_with_the_number_of_particles(particles):
    check("deep", "normal", particles, "prior", "multinomial")


@pytest.mark.parametrize(
    "name, leaf, particles, proposal, scheme",
    [
        ("deep", "normal_gamma", 3, "empirical", "multinomial"),
        ("deep", "dirichlet", 10, "optimal", "stratified"),
        ("deep", "normal", 50, "optimal", "systematic"),
        ("binary_constant", "normal", 3, "optimal", "multinomial"),
        ("binary_constant", "normal_gamma", 50, "prior", "stratified"),
        ("binary_constant", "dirichlet", 2, "empirical", "systematic"),
        ("grid", "normal", 10, "empirical", "multinomial"),
        ("grid", "normal_gamma", 2, "optimal", "stratified"),
        ("grid", "dirichlet", 3, "prior", "systematic"),
        ("three_columns", "normal", 50, "empirical", "stratified"),
        ("three_columns", "normal_gamma", 10, "prior", "systematic"),
        ("three_columns", "dirichlet", 50, "optimal", "multinomial"),
        ("noisy", "normal", 10, "optimal", "multinomial"),
    ],
)
def test_every_leaf_proposal_and_scheme(name, leaf, particles, proposal, scheme):
    check(name, leaf, particles, proposal, scheme)


def test_the_order_of_the_particles_does_not_matter():
    """Long enough to see (z = 8) stratified draws in which the reference always comes first."""
    check("gaps", "normal", 3, "prior", "stratified", draws=400_000)


@pytest.mark.parametrize(
    "name, leaf, particles, scheme, share, n_bins",
    [
        ("three_columns", "normal", 3, "stratified", 0.3, 100),
        ("three_columns", "normal_gamma", 10, "systematic", 0.7, 100),
        ("binary_constant", "normal", 10, "multinomial", 0.4, 100),
        ("grid", "dirichlet", 3, "multinomial", 0.5, 2),
        ("deep", "normal", 3, "multinomial", 1.0, 2),
        ("grid", "normal", 3, "systematic", 1.0, 2),
        ("repeats", "dirichlet", 10, "stratified", 0.5, 2),
    ],
)
def test_random_columns_and_coarse_bins(name, leaf, particles, scheme, share, n_bins):
    check(name, leaf, particles, "optimal", scheme, share, n_bins)
