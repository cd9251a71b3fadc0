"""One backfitting sweep of particle Gibbs: trees by conditional SMC, then their leaf values."""

from typing import NamedTuple

import numpy as np
from numba import typeof

from pymc_trees.core.columns.design import draw_cut, partition_rows, varying, write_cells
from pymc_trees.core.columns.mixed import column_of, rule_from_prior
from pymc_trees.core.columns.rules import draw_rule, draw_side, log_rule, log_side
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.compile.handle import Handles, made_in_kernels
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.forest.trees import Labels, Trees, all_rows, preorder
from pymc_trees.core.histograms.contract import (
    ColumnSubset,
    CutScores,
    Histogram,
    Packed,
    add_to_histogram,
    left_stats,
    pack_rows,
    score_cuts,
    tempering,
)
from pymc_trees.core.leaves.coefficients import BasisData, LinearData
from pymc_trees.core.leaves.contract import (
    add_rows,
    draw_leaves,
    log_marginal,
    path_below,
    reads_path,
    resample_latents,
    swap_residual,
)
from pymc_trees.core.leaves.nonconjugate.coefficients import log_ratio_of_particle
from pymc_trees.core.leaves.nonconjugate.gaussian import GaussianVector, with_prior
from pymc_trees.core.leaves.nonconjugate.surrogate import fill_surrogate, finish_tree
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.leaves.path import write_paths
from pymc_trees.core.leaves.vector_lines import VectorLines
from pymc_trees.core.moves.by_address import is_common
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import Problem, Workspace
from pymc_trees.core.order.contract import accept_ordered, draw_ordered, snapshot_tree
from pymc_trees.core.priors.contract import (
    NodeContext,
    column_weight,
    draw_column,
    draw_time,
    log_column,
    log_split,
    log_stop,
    node_summary,
    resample_times,
    split_weight,
)
from pymc_trees.core.samplers.growth import (
    INTERRUPTED,
    Growth,
    count_incomplete,
    grow_particle,
    is_incomplete,
    next_generation,
    start_particles,
)
from pymc_trees.core.samplers.optimal import (
    LookAhead,
    candidate_columns,
    draw_candidates,
    mark_from_prior,
)
from pymc_trees.core.samplers.particles import (
    effective_size,
    forced_move,
    normalise,
    resample_given_first,
    write_tree,
)
from pymc_trees.core.samplers.proposals import OPTIMAL

# ------ Likelihood under which particles grow: the leaf model, or a surrogate corrected afterwards
#
# Where leaf values integrate out, particles grow under the leaf model and need no correction.
#
# Elsewhere the state is a tree T with its leaf values mu, given the other trees. Particles grow
# under a surrogate, Gaussian rows near the likelihood of all outputs, whose leaf values do
# integrate out: partial trees have the weights of
#
#     p(T) prod_leaves m(rows),    m(rows) = int prod_rows exp(l~_i(mu)) dN(mu; mean, sd^2).
#
# One more step takes finished particles to the target itself: each draws leaf values from q, the
# Laplace approximation given its leaves, the reference keeps its own, and all weights are
# multiplied by
#
#     prod_rows p(y_i | mu) prod_leaves p(mu) / (q(mu | T) m(rows)).
#
# With it this is conditional SMC on (T, mu) whose last target is the posterior: it leaves that
# invariant for any surrogate and any q that do not depend on the current tree (Andrieu, Doucet
# and Holenstein 2010, theorem 5). Leaving out any factor of it would sample the surrogate's
# posterior or a mixture of the two. The leaf values are refreshed whichever particle is chosen: a
# refresh for the reference alone would depend on the choice.


@generic("surrogate")
def start_growth(rng, problem, surrogate, work, n_nodes, root_stats):
    """Prepare the leaf model under which particles grow; write the statistics of all rows."""


@generic("surrogate")
def correct_weights(rng, problem, surrogate, particles, work, n_nodes):
    """Multiply the weights of complete particles by the factors missing from the surrogate."""


@njit(cache=True)
def _sum_statistics(rng, problem, surrogate, work, n_nodes, root_stats):
    root_stats[:] = 0.0
    for k in range(n_nodes):
        node = work.nodes[k]
        if problem.trees.column[node] < 0:
            for d in range(root_stats.size):
                root_stats[d] += work.stats[node, d]
    if reads_path(problem.leaf):
        root_stats[root_stats.size - 1] = 0.0


@njit(cache=True)
def _no_correction(rng, problem, surrogate, particles, work, n_nodes):
    pass


@njit(cache=True)
def _use_surrogate(rng, problem, surrogate, work, n_nodes, root_stats):
    fill_surrogate(problem.leaf, surrogate)
    n = problem.trees.leaf_of.shape[1]
    add_rows(surrogate, work.rows, 0, all_rows(n, work.rows), root_stats)


@njit(cache=True)
def _correct_for_surrogate(rng, problem, surrogate, particles, work, n_nodes):
    """Draw leaf values for the particles, and weigh them."""
    log_w = particles.log_w
    for c in range(log_w.size):
        if log_w[c] == -np.inf:
            continue
        if c == 0:
            for k in range(n_nodes):
                node = work.nodes[k]
                if problem.trees.column[node] < 0:
                    log_w[0] += work.stats[node, 0]
        else:
            log_w[c] += finish_tree(problem.leaf, rng, particles, c)
        for k in range(particles.n_nodes[c]):
            if particles.column[c, k] < 0:
                log_w[c] -= particles.log_m[c, k]


@njit(cache=True)
def _correct_for_gaussian_rows(rng, problem, surrogate, particles, work, n_nodes):
    """The same of coefficients: the factors are likelihood over Gaussian rows."""
    for c in range(particles.log_w.size):
        if particles.log_w[c] > -np.inf:
            current = work.stats[:, : problem.trees.values.shape[1]]
            ratio = log_ratio_of_particle(problem.leaf, surrogate, rng, particles, c, current)
            particles.log_w[c] += ratio


register(type(None), start_growth=_sum_statistics, correct_weights=_no_correction)
for kind in (LinearData, BasisData, VectorLines):
    register(kind, start_growth=_use_surrogate, correct_weights=_correct_for_gaussian_rows)
for kind in (NormalData, GaussianVector):
    register(kind, start_growth=_use_surrogate, correct_weights=_correct_for_surrogate)


# ------------- Conditional sequential Monte Carlo on one tree (Lakshminarayanan 2015, algorithm 2)
#
# Particle 0 replays the current tree, the reference, node by node in the same breadth-first
# order; the others grow from the root. Between stages, if the weights have become uneven, all are
# resampled with the reference among the possible ancestors and kept as child 0, and every weight
# becomes the mean W / C. The new tree is chosen by the final weights (`draw_particle`), which
# `correct_weights` corrects before.


@njit(cache=True)
def grow_particles(rng, problem, tree, growth, scheme, root_stats, nodes):
    """Grow all particles to complete trees; 0, `FULL` or `INTERRUPTED`. Weights are in ``log_w``.

    Parameters
    ----------
    problem : Problem
        With the leaf model under which they grow.
    tree : int
        The current tree.
    scheme : int
        Index in `resampling.CONDITIONAL_SCHEMES`.
    root_stats : (D,) float64
        Statistics of all rows.
    nodes : (N,) int32
        Buffer for the nodes of a tree.
    """
    trees, design, particles = problem.trees, problem.design, growth.particles
    n_particles = particles.log_w.size
    weights = np.empty(n_particles)
    ancestors = np.empty(n_particles, dtype=np.int64)
    root = trees.roots[tree]
    if growth.proposal == OPTIMAL:
        draw_candidates(rng, growth.look_ahead, design, trees, tree, nodes)
    start_particles(problem, growth, root_stats, not varying(design).any(), trees.rate[root])
    particles.reference[0] = root
    while True:
        for c in range(n_particles):
            if is_incomplete(particles, c):
                if particles.stop_flag[0]:
                    return INTERRUPTED
                if grow_particle(rng, problem, growth, c, c == 0) == FULL:
                    return FULL
        log_sum = normalise(particles.log_w, weights)
        if count_incomplete(particles) == 0:
            return 0
        if effective_size(weights) < 0.5 * n_particles:
            resample_given_first(rng, scheme, weights, ancestors)
            next_generation(growth, ancestors, log_sum)


@njit(cache=True)
def draw_particle(rng, log_w):
    """Particle chosen by its weight (0: the tree stays), and the effective number of particles."""
    weights = np.empty(log_w.size)
    normalise(log_w, weights)
    return forced_move(rng, weights), effective_size(weights)


# --------------------------------------------------------------------------------------------------


@by_pointer
class Batch(NamedTuple):
    """Which trees a sweep visits."""

    first: int
    n_updated: int
    """Number of trees, from the first on; the last tree is followed by tree 0."""
    tuning: bool
    """Whether a tree that finds no room is rejected, instead of ending the sweep: far from the
    posterior, on many rows, a single tree can explain nearly everything and grow huge."""


@njit(cache=True, nogil=True)
def particle_sweep(rng, problem, growth_problem, surrogate, growth, scheme, work, batch, outcome):
    """Update a batch of trees; False when the forest outgrew its pool, or on a stop flag.

    Parameters
    ----------
    growth_problem : Problem
        The same forest under the leaf model under which particles grow: the problem itself, or with
        the surrogate for a leaf.
    surrogate : NormalData, GaussianVector or None
        Arrays for Gaussian rows, with the prior of a leaf, if leaf values do not integrate out.
    growth : Growth
        Particles; the first replays the current tree.
    scheme : int
        Index in `resampling.CONDITIONAL_SCHEMES`.
    batch : Batch
        The trees.
    outcome : (2,) float64
        Number of trees replaced, and sum of the effective numbers of particles; incremented.
    """
    trees, design, prior, leaf = problem.trees, problem.design, problem.prior, problem.leaf
    particles, nodes, stats, roots = growth.particles, work.nodes, work.stats, trees.roots
    root_stats = np.zeros(particles.stats.shape[2])
    previous = -1
    for step in range(batch.n_updated):
        t = (batch.first + step) % roots.size
        n_nodes = preorder(trees, roots[t], nodes)
        swap_residual(leaf, trees, previous, t, nodes, n_nodes, stats)
        write_paths(leaf, design, trees, nodes, n_nodes, stats)
        snapshot_tree(work.order, problem, t, n_nodes, work)
        start_growth(rng, problem, surrogate, work, n_nodes, root_stats)
        status = grow_particles(rng, growth_problem, t, growth, scheme, root_stats, nodes)
        if status == INTERRUPTED:
            return False
        chosen, ess = 0, 1.0
        if status != FULL:
            correct_weights(rng, problem, surrogate, particles, work, n_nodes)
            chosen, ess = draw_particle(rng, particles.log_w)
        if status == FULL or particles.n_nodes[chosen] - n_nodes > trees.n_free[0]:
            if not batch.tuning:
                return False
            chosen = 0
        outcome[1] += ess
        if chosen > 0:
            write_tree(trees, t, particles, chosen, stats, nodes)
            work.rows_valid[roots[t]] = False
            if accept_ordered(work.order, rng, problem, t, work, False):
                outcome[0] += 1.0
        n_nodes = preorder(trees, roots[t], nodes)
        draw_ordered(work.order, rng, problem, t, n_nodes, work)
        previous = t
    if previous >= 0:
        swap_residual(leaf, trees, previous, -1, nodes, 0, stats)
    resample_times(rng, prior, trees, nodes)
    return True


# --------------------------------- The model by address: kernels that the growth of particles calls


DESIGN = (
    column_of,
    varying,
    draw_cut,
    rule_from_prior,
    draw_rule,
    log_rule,
    draw_side,
    log_side,
    partition_rows,
    write_cells,
    mark_from_prior,
)
PRIOR = (
    node_summary,
    log_split,
    log_stop,
    draw_time,
    draw_column,
    log_column,
    column_weight,
    split_weight,
    resample_times,
)
LEAF = (
    reads_path,
    path_below,
    swap_residual,
    resample_latents,
    add_rows,
    log_marginal,
    draw_leaves,
    pack_rows,
    add_to_histogram,
    tempering,
    score_cuts,
    left_stats,
)


def particle_handles() -> Handles:
    """Makes handles for one forest."""
    return Handles({"design": DESIGN, "prior": PRIOR, "leaf": LEAF})


def growth_by_address(
    handles: Handles, problem: Problem, growth: Growth, surrogate, work: Workspace, *, always=False
) -> tuple:
    """Arguments of `particle_sweep`: the problem, the one under which particles grow, a surrogate.

    Handles stand for the model, so that growth is compiled once for all models but the common one.
    A leaf with a surrogate is passed by value.
    """

    def argument_types():
        histograms = growth.look_ahead.histograms
        return {
            Trees: typeof(problem.trees),
            Labels: typeof(problem.trees.leaf_of[0]),
            NodeContext: typeof(NodeContext(0, 0.0, 0.0, False)),
            LookAhead: typeof(growth.look_ahead),
            Packed: typeof(histograms.packed),
            Histogram: typeof(histograms.sums[0]),
            ColumnSubset: made_in_kernels(candidate_columns.py_func(growth.look_ahead)),
            CutScores: typeof(growth.look_ahead.scores),
        }

    trees, design, prior, leaf = problem
    if surrogate is not None:
        surrogate = with_prior(surrogate, leaf.mean, leaf.sd)
    growth_problem = problem if surrogate is None else problem._replace(leaf=surrogate)
    if work.order is not None or (
        is_common(growth_problem) and not always
    ):  # an order knows the leaf
        return growth_problem._replace(leaf=leaf), growth_problem, surrogate
    parts = {"design": design, "prior": prior, "leaf": growth_problem.leaf}
    growth_problem = Problem(trees, *handles(argument_types, frozenset(), **parts))
    return (
        growth_problem if surrogate is None else growth_problem._replace(leaf=leaf),
        growth_problem,
        surrogate,
    )
