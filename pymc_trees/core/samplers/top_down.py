"""Top-down sequential Monte Carlo for one tree (Lakshminarayanan thesis, algorithm 3.1).

All particles grow from the root. After each stage, if the weights have become uneven, they are
resampled and every weight becomes the mean W / C. With W the sum of the final weights, W / C is an
unbiased estimate of the evidence, and weighted averages over the particles times W / C are unbiased
estimates of integrals under the unnormalised posterior.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import all_rows
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.priors.contract import node_summary
from pymc_trees.core.samplers.growth import (
    CEASED,
    count_waiting,
    grow_particle,
    is_waiting,
    next_generation,
    start_particles,
)
from pymc_trees.core.samplers.resampling import (
    MULTINOMIAL,
    SYSTEMATIC,
    effective_size,
    normalise,
)
from pymc_trees.core.samplers.resampling import SCHEMES as CONDITIONAL

# ------------------------------------------------------ Ancestors of a new generation of particles
#
# Every scheme gives particle c, of normalised weight w_c, C w_c children on average, which
# suffices for an unbiased evidence (Douc, Cappe and Moulines 2005). `resampling` has the schemes
# given a reference particle.
#
# multinomial
#     C independent draws by weight.
# systematic
#     The points ``(c + u) / C`` of the cumulated weights, with one uniform u for all.
# stratified
#     The same, with a uniform of its own for each point.
# residual
#     The integer part of ``C w_c`` children for certain; the others by multinomial draws from the
#     remaining weights.


RESIDUAL = 3
SCHEMES = (*CONDITIONAL, "residual")


@njit(cache=True)
def draw_ancestors(rng, scheme, weights, ancestors):
    """Write the ancestors of ``ancestors.size`` children, in no particular order.

    Parameters
    ----------
    scheme : int
        Index in `SCHEMES`.
    weights : (C,) float64
        Normalised.
    ancestors : (N,) int64
        Overwritten.
    """
    n = ancestors.size
    if scheme == MULTINOMIAL:
        _multinomial(rng, weights, ancestors)
    elif scheme == RESIDUAL:
        left = np.empty(weights.size)
        certain = 0
        for c in range(weights.size):
            whole = min(int(n * weights[c]), n - certain)
            ancestors[certain : certain + whole] = c
            certain += whole
            left[c] = max(n * weights[c] - whole, 0.0)
        if certain < n:
            left /= left.sum()
            _multinomial(rng, left, ancestors[certain:])
    else:
        u = rng.random()
        c, reached = 0, weights[0]
        for k in range(n):
            if k > 0 and scheme != SYSTEMATIC:
                u = rng.random()
            while reached * n <= k + u and c < weights.size - 1:
                c += 1
                reached += weights[c]
            while weights[c] == 0.0:  # rounding at the very end
                c -= 1
            ancestors[k] = c


@njit(cache=True)
def _multinomial(rng, weights, ancestors):
    cumulative = np.cumsum(weights)
    total = cumulative[-1]
    for k in range(ancestors.size):
        c = np.searchsorted(cumulative, rng.random() * total, side="right")
        while c >= weights.size or weights[c] == 0.0:  # rounding
            c -= 1
        ancestors[k] = c


# ------ Which nodes of a particle one stage of top-down SMC expands (Lakshminarayanan thesis, 3.3)
#
# The rule is a function of the partial tree and the data alone, so a tree is reached along one
# path only (3.4.1.1).
#
# node
#     The oldest waiting node: breadth first.
# lowest
#     The node of the lowest marginal likelihood; the oldest of several.
# layer
#     All waiting nodes.


NODE, LOWEST, LAYER = 0, 1, 2
EXPANSIONS = ("node", "lowest", "layer")


@njit(cache=True)
def last_place(particles, c, expansion):
    """Move the nodes of the next stage to the front of a particle's queue; return their end."""
    first, n_nodes = particles.waiting[c], particles.n_nodes[c]
    if expansion == LAYER:
        return n_nodes
    if expansion == LOWEST:
        queue, unsplittable, log_m = particles.queue, particles.unsplittable, particles.log_m
        lowest = first
        for place in range(first + 1, n_nodes):
            node = queue[c, place]
            if not unsplittable[c, node] and log_m[c, node] < log_m[c, queue[c, lowest]]:
                lowest = place
        chosen = queue[c, lowest]
        for place in range(lowest, first, -1):  # the others stay in order of age
            queue[c, place] = queue[c, place - 1]
        queue[c, first] = chosen
    return first + 1


# --------------------------------------------------------------------------------------------------


DONE, UNFINISHED, LOST = 1, 2, 3
"""Outcome of a run: trees complete, out of stages, or all weights 0; or `FULL`, or `CEASED`."""


@by_pointer
class Stages(NamedTuple):
    """Records of each stage; S = ``max_stages``."""

    ess: np.ndarray
    """(S,) float64: effective number of particles, before any resampling."""
    resampled: np.ndarray
    """(S,) bool."""


def make_stages(max_stages: int) -> Stages:
    """Records of up to ``max_stages``."""
    return Stages(np.full(max_stages, np.nan), np.zeros(max_stages, dtype=np.bool_))


@by_pointer
class Schedule(NamedTuple):
    """When nodes are expanded and particles resampled."""

    expansion: int
    """Index in `expansion.EXPANSIONS`."""
    scheme: int
    """Index in `ancestors.SCHEMES`."""
    threshold: float
    """Share of C; particles are resampled when their effective number is below
    ``threshold * C``."""


@njit(cache=True, nogil=True)
def top_down_smc(rng, problem, growth, schedule, root_stats, stages, weights):
    """Grow all particles from the root to complete trees.

    Parameters
    ----------
    problem : Problem
        Its trees are not read: there is no reference.
    growth : Growth
        All columns are candidates.
    root_stats : (D,) float64
        Statistics of all rows.
    stages : Stages
        Overwritten.
    weights : (C,) float64
        Overwritten by the final normalised weights.

    Returns
    -------
    status : int
        `DONE`, `UNFINISHED`, `LOST`, `FULL` or `CEASED`.
    n_stages : int
        Stages run.
    log_z : float
        Log of the estimated evidence.
    """
    particles = growth.particles
    n_particles = particles.log_w.size
    ancestors = np.empty(n_particles, dtype=np.int64)
    n = all_rows(growth.buffer.size, growth.buffer)
    unsplittable, rate = node_summary(problem.prior, problem.design, growth.buffer, 0, n)
    particles.log_w[:] = start_particles(problem, growth, root_stats, unsplittable, rate)  # line 4
    n_stages = 0
    log_sum = normalise(particles.log_w, weights)
    n_waiting = count_waiting(particles)
    while n_waiting > 0:
        if n_stages == stages.ess.size:
            return UNFINISHED, n_stages, np.nan
        for c in range(n_particles):
            if not is_waiting(particles, c):
                continue
            end = last_place(particles, c, schedule.expansion)
            while is_waiting(particles, c) and particles.waiting[c] < end:
                if particles.stop_flag[0]:
                    return CEASED, n_stages, np.nan
                if grow_particle(rng, problem, growth, c, False) == FULL:  # lines 8 and 10
                    return FULL, n_stages, np.nan
        log_sum = normalise(particles.log_w, weights)  # lines 11 and 12
        if log_sum == -np.inf:
            return LOST, n_stages, log_sum
        ess = effective_size(weights)
        stages.ess[n_stages] = ess
        n_waiting = count_waiting(particles)
        # Lines 13 to 15; complete trees keep their weights.
        if n_waiting > 0 and ess < schedule.threshold * n_particles:
            stages.resampled[n_stages] = True
            draw_ancestors(rng, schedule.scheme, weights, ancestors)
            next_generation(growth, ancestors, log_sum)
            n_waiting = count_waiting(particles)
            weights[:] = 1.0 / n_particles
        n_stages += 1
    return DONE, n_stages, log_sum - np.log(n_particles)
