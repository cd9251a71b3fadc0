"""Chains of particle Gibbs, run inside compiled code."""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.columns.mixed import rules_from_prior
from pymc_trees.core.histograms.contract import make_bins
from pymc_trees.core.leaves.contract import resample_latents
from pymc_trees.core.leaves.nonconjugate.gaussian import make_gaussian_leaf
from pymc_trees.core.samplers.growth import Growth
from pymc_trees.core.samplers.optimal import make_look_ahead
from pymc_trees.core.samplers.particle_gibbs import (
    Batch,
    growth_by_address,
    particle_handles,
    particle_sweep,
)
from pymc_trees.core.samplers.particles import CONDITIONAL_SCHEMES, make_particles
from pymc_trees.core.samplers.proposals import PROPOSALS

from .record import Chain, record


class Tools(NamedTuple):
    """What particle Gibbs takes beside a `Setup`."""

    growth: Growth
    scheme: int
    surrogate: tuple | None

    @property
    def particles(self):
        return self.growth.particles


def make_tools(setup, particles, proposal, scheme, share=1.0, n_bins=100, guide=None):
    """Particles and a proposal; ``share`` of the columns looked at by the optimal one."""
    p, n = setup.design.columns.shape
    n_stats = setup.work.stats.shape[1]
    tabled = setup.leaf if guide is None else guide
    bins = make_bins(setup.design.columns, n_bins, rules_from_prior(setup.design))
    growth = Growth(
        make_particles(particles, 2 * n - 1, n, n_stats),
        bins,
        make_look_ahead(tabled, bins, particles, 2 * n - 1, share),
        PROPOSALS.index(proposal),
        setup.work.buffer,
    )
    return Tools(growth, CONDITIONAL_SCHEMES.index(scheme), guide)


@njit(cache=True)
def run_particle_sweeps(
    rng, problem, grown, surrogate, work, growth, scheme, draws, records, outcome
):
    """As `run_sweeps`, by particle Gibbs."""
    trees, leaf = problem.trees, problem.leaf
    codes, depths, roots, fits = records
    batch = Batch(0, trees.roots.size, False)
    for s in range(draws):
        if not particle_sweep(rng, problem, grown, surrogate, growth, scheme, work, batch, outcome):
            raise ValueError("full")
        resample_latents(leaf, rng)
        record(trees, work.nodes, s, codes, depths, roots, fits)


def run_particles(seed, setup, tools, draws, keep_fits=False):
    """Run particle Gibbs from stumps; ``accepted`` holds trees changed and summed ESS."""
    m, n = setup.trees.leaf_of.shape
    codes, depths, roots = np.empty((3, draws, m), dtype=np.int64)
    fits = np.empty((draws if keep_fits else 0, n, setup.trees.values.shape[1]))
    outcome = np.zeros(2)
    rng = np.random.default_rng(seed)
    given = setup.problem, tools.growth, tools.surrogate, setup.work
    given = growth_by_address(particle_handles(), *given, always=True)
    records = codes, depths, roots, fits
    given = (*given, setup.work, tools.growth, tools.scheme, draws, records, outcome)
    run_particle_sweeps(rng, *given)
    return Chain(codes, depths, roots, fits, draws * m, outcome)


def run_guided(seed, setup, particles, proposal, draws, scheme="multinomial", n_bins=100):
    """Run particle Gibbs under a guide from stumps, with the outputs recorded."""
    n = setup.trees.leaf_of.shape[1]
    k = setup.trees.values.shape[1]
    guide = make_gaussian_leaf(np.zeros(k), np.ones(k), n, 1)
    tools = make_tools(setup, particles, proposal, scheme, n_bins=n_bins, guide=guide)
    return run_particles(seed, setup, tools, draws, keep_fits=True)
