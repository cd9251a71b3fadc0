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

import pytest
from support.laws.exact import DRAWS
from support.laws.exact import compare_particles as check
from support.tiers import tiers


@pytest.mark.parametrize("particles", tiers(DRAWS, quick=[3]))
def test_the_posterior_does_not_move_with_the_number_of_particles(particles):
    check("deep", "normal", particles, "prior", "multinomial")


CASES = [
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
]


@pytest.mark.parametrize(
    "name, leaf, particles, proposal, scheme",
    tiers(
        CASES,
        quick=[
            ("deep", "normal", 50, "optimal", "systematic"),
            ("binary_constant", "normal", 3, "optimal", "multinomial"),
            ("grid", "normal", 10, "empirical", "multinomial"),
        ],
    ),
)
def test_every_leaf_proposal_and_scheme(name, leaf, particles, proposal, scheme):
    check(name, leaf, particles, proposal, scheme)


@pytest.mark.full
def test_the_order_of_the_particles_does_not_matter():
    """Long enough to see (z = 8) stratified draws in which the reference always comes first."""
    check("gaps", "normal", 3, "prior", "stratified", draws=400_000)


COARSE = [
    ("three_columns", "normal", 3, "stratified", 0.3, 100),
    ("three_columns", "normal_gamma", 10, "systematic", 0.7, 100),
    ("binary_constant", "normal", 10, "multinomial", 0.4, 100),
    ("grid", "dirichlet", 3, "multinomial", 0.5, 2),
    ("deep", "normal", 3, "multinomial", 1.0, 2),
    ("grid", "normal", 3, "systematic", 1.0, 2),
    ("repeats", "dirichlet", 10, "stratified", 0.5, 2),
]


@pytest.mark.parametrize(
    "name, leaf, particles, scheme, share, n_bins",
    tiers(
        COARSE,
        quick=[
            ("three_columns", "normal", 3, "stratified", 0.3, 100),
            ("grid", "normal", 3, "systematic", 1.0, 2),
        ],
    ),
)
def test_random_columns_and_coarse_bins(name, leaf, particles, scheme, share, n_bins):
    check(name, leaf, particles, "optimal", scheme, share, n_bins)
