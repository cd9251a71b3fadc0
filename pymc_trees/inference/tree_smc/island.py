"""One island of top-down SMC, from arrays to arrays: any process can run it."""

from functools import partial
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design
from pymc_trees.core.columns.mixed import MixedDesign, rules_from_prior
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.histograms.contract import make_bins
from pymc_trees.core.interrupts import deferred_interrupts, run_interruptible
from pymc_trees.core.leaves.contract import add_rows, n_stats
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.order.directions import Directions
from pymc_trees.core.priors.cgm import CGMPrior
from pymc_trees.core.priors.mondrian import MondrianProcess
from pymc_trees.core.samplers.growth import Growth
from pymc_trees.core.samplers.optimal import make_look_ahead
from pymc_trees.core.samplers.particles import SCHEMES, draw_ancestors, make_particles
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.top_down import (
    DEGENERATE,
    DONE,
    EXPANSIONS,
    Draws,
    Schedule,
    encode_in_order,
    encode_particles,
    make_draws,
    make_stages,
    top_down_smc,
)
from pymc_trees.core.value.fields import Sizes

BINS = 255
"""Intervals per column of the optimal proposal, which tries up to 256 distinct values."""

LONG = 300_000
"""Rows times particles above which an island must answer interrupts before it ends."""


class TreeModel(NamedTuple):
    """Design, prior and data of a model, as the kernels see them."""

    design: Design | MixedDesign
    prior: CGMPrior | MondrianProcess
    leaf: tuple
    sizes: Sizes
    fingerprint: float
    directions: Directions | None
    """Monotone columns, or None."""


class Settings(NamedTuple):
    """Settings of a run, checked."""

    particles: int
    proposal: str
    expansion: str
    resampling: str
    ess_threshold: float
    max_stages: int


class Island(NamedTuple):
    """Results of one island."""

    status: int
    """Of `top_down_smc`; arrays are empty unless it is `DONE`."""
    log_z: float
    """Without the constant of the leaf model."""
    log_weights: np.ndarray
    """(C,) normalised, before the final resampling."""
    particle: np.ndarray
    """(C,) particle of each draw."""
    values: np.ndarray
    """(C, rows, fields) encoded draws, equally weighted."""
    counts: np.ndarray
    """(C, 2) leaves and depth."""
    inclusion: np.ndarray
    """(C, p) split nodes per column."""
    ess: np.ndarray
    """(stages,)"""
    resampled: np.ndarray
    """(stages,)"""


def run_island(rng: np.random.Generator, model: TreeModel, settings: Settings) -> Island:
    """Run all particles, resample them to equal weights, draw leaf values and encode."""
    with deferred_interrupts():
        return _run_island(rng, model, settings)


def _run_island(rng, model, settings):
    design, prior, leaf, directions = (_writable(v) for v in (*model[:3], model.directions))
    sizes, n_particles = model.sizes, settings.particles
    n, most_nodes = sizes.n_rows, min(2 * sizes.n_rows - 1, sizes.max_nodes)
    trees = make_trees(1, sizes.max_nodes, sizes.n_values, n)
    particles = make_particles(n_particles, most_nodes, n, n_stats(leaf))
    optimal = settings.proposal == "optimal"
    bins = make_bins(design.columns, BINS if optimal else 1, rules_from_prior(design))
    look_ahead = make_look_ahead(leaf, bins, *((n_particles, most_nodes) if optimal else (1, 1)))
    buffer = np.empty(n, dtype=np.uint32)
    growth = Growth(particles, bins, look_ahead, PROPOSALS.index(settings.proposal), buffer)
    root_stats = np.empty(n_stats(leaf))
    add_rows(leaf, np.arange(n, dtype=np.uint32), 0, n, root_stats)
    stages, weights = make_stages(settings.max_stages), np.empty(n_particles)
    scheme = SCHEMES.index(settings.resampling)
    schedule = Schedule(EXPANSIONS.index(settings.expansion), scheme, settings.ess_threshold)
    forest = Problem(trees, design, prior, leaf)
    grow = partial(top_down_smc, rng, forest, growth, schedule, root_stats, stages, weights)
    interruptible = n * n_particles > LONG
    status, n_stages, log_z = (
        run_interruptible(grow, particles.stop_flag) if interruptible else grow()
    )
    chosen = np.empty(n_particles if status == DONE else 0, dtype=np.int64)
    draws = make_draws(len(chosen), sizes, len(bins.offsets) - 1)
    encoding = (sizes, model.fingerprint, draws)
    if status == DONE and directions is None:
        resample_draws(rng, scheme, weights, chosen)
        write = partial(encode_particles, rng, forest, particles, chosen, *encoding)
        _run_to_end(write, particles, interruptible)
    elif status == DONE:
        log_order = np.empty(n_particles)
        order = directions.with_room(sizes.max_nodes, n, n_stats(leaf))
        write = partial(encode_in_order, rng, forest, particles, order, *encoding, log_order)
        _run_to_end(write, particles, interruptible)
        weights *= np.exp(log_order)
        total = weights.sum()
        if total > 0.0:
            log_z, weights = log_z + np.log(total), weights / total
            resample_draws(rng, scheme, weights, chosen)
            draws = Draws(*(field[chosen] for field in draws))
        else:
            status = DEGENERATE
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    stage_stats = (stages.ess[:n_stages], stages.resampled[:n_stages])
    return Island(status, log_z, log_weights, chosen, *draws, *stage_stats)


def resample_draws(rng, scheme, weights, chosen):
    """Write the particle of each draw, in random order."""
    draw_ancestors(rng, scheme, weights, chosen)
    rng.shuffle(chosen)


def _run_to_end(write, particles, interruptible):
    fits = run_interruptible(write, particles.stop_flag) if interruptible else write()
    assert fits, "a tree of max_nodes nodes fits max_nodes"


def _writable(record):
    """The NamedTuple with writable arrays, which another process may have made read-only."""
    if record is None:
        return None
    arrays = (np.require(v, None, ["C", "W"]) if isinstance(v, np.ndarray) else v for v in record)
    return type(record)(*arrays)
