"""One backfitting sweep of particle Gibbs: trees by conditional SMC, then their leaf values."""

import numpy as np

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import split_leaf
from pymc_trees.core.forest.trees import NONE, preorder
from pymc_trees.core.leaves.contract import draw_values, next_tree
from pymc_trees.core.priors.contract import renew_times
from pymc_trees.core.samplers.particle_gibbs.conditional_smc import choose, grow_particles
from pymc_trees.core.samplers.particles.growth import CEASED, FULL


@njit(cache=True)
def plant(trees, tree, particles, c, stats, nodes):
    """Make particle ``c`` the tree; False, with a tree to throw away, when the pool has no room."""
    root = trees.roots[tree]
    free, n_free = trees.free, trees.n_free
    for k in range(preorder(trees, root, nodes)):
        if nodes[k] != root:
            free[n_free[0]] = nodes[k]
            n_free[0] += 1
    trees.column[root] = NONE
    trees.left[root] = NONE
    trees.right[root] = NONE
    trees.log_cut[root] = 0.0
    trees.log_column[root] = 0.0
    nodes[0] = root
    rows, leaf_of = particles.rows, trees.leaf_of
    for k in range(particles.n_nodes[c]):
        node = nodes[k]
        start, stop = particles.start[c, k], particles.stop[c, k]
        trees.count[node] = stop - start
        trees.unsplittable[node] = particles.unsplittable[c, k]
        trees.rate[node] = particles.rate[c, k]
        for d in range(stats.shape[1]):
            stats[node, d] = particles.stats[c, k, d]
        column = particles.column[c, k]
        if column < 0:
            for i in range(start, stop):
                leaf_of[tree, rows[c, i]] = node
            continue
        if not split_leaf(trees, node, column, particles.cut[c, k]):
            return False
        trees.log_cut[node] = particles.log_cut[c, k]
        trees.log_column[node] = particles.log_column[c, k]
        left = particles.left[c, k]
        trees.time[node] = particles.begin[c, left]
        nodes[left] = trees.left[node]
        nodes[left + 1] = trees.right[node]
    return True


@njit(cache=True)
def replace_tree(trees, tree, particles, chosen, ess, full, tuning, n_nodes, stats, nodes, outcome):
    """Plant the chosen particle, unless it is the reference; False when the pool has no room.

    In tuning a tree stays as it is when a new one finds no room: far from the posterior, on many
    rows, one tree alone would explain nearly everything and be huge.
    """
    if full or particles.n_nodes[chosen] - n_nodes > trees.n_free[0]:
        if not tuning:
            return False
        chosen = 0
    outcome[1] += ess
    if chosen > 0:
        outcome[0] += 1.0
        plant(trees, tree, particles, chosen, stats, nodes)
    return True


@njit(cache=True, nogil=True)
def particle_sweep(
    rng,
    trees,
    design,
    bins,
    prior,
    leaf,
    proposal,
    scheme,
    particles,
    look,
    work,
    first,
    n_updated,
    tuning,
    outcome,
):
    """Update ``n_updated`` trees from tree ``first`` on.

    False when the forest outgrew its pool, or on ``particles.cease``.

    Parameters
    ----------
    tuning : bool
        Whether a tree stays as it is when a new one finds no room.
    outcome : (2,) float64
        Number of trees replaced, and sum of the effective numbers of particles; added to.
    """
    rng, trees, design, bins, prior, leaf, particles, look, work = borrowed(
        (rng, trees, design, bins, prior, leaf, particles, look, work)
    )
    roots, column, values = trees.roots, trees.column, trees.values
    nodes, stats = work.nodes, work.stats
    m = roots.size
    root_stats = np.empty(stats.shape[1])
    old = -1
    for step in range(n_updated):
        t = (first + step) % m
        n_nodes = preorder(trees, roots[t], nodes)
        next_tree(leaf, trees, old, t, nodes, n_nodes, stats)
        root_stats[:] = 0.0
        for k in range(n_nodes):
            if column[nodes[k]] < 0:
                for d in range(root_stats.size):
                    root_stats[d] += stats[nodes[k], d]
        status = grow_particles(
            rng,
            trees,
            t,
            design,
            bins,
            prior,
            leaf,
            proposal,
            scheme,
            particles,
            look,
            root_stats,
            nodes,
            work.spare,
        )
        if status == CEASED:
            return False
        full = status == FULL
        chosen, ess = choose(rng, particles.log_w) if not full else (0, 1.0)
        if not replace_tree(
            trees, t, particles, chosen, ess, full, tuning, n_nodes, stats, nodes, outcome
        ):
            return False
        n_nodes = preorder(trees, roots[t], nodes)
        for k in range(n_nodes):
            if column[nodes[k]] < 0:
                draw_values(leaf, rng, stats[nodes[k]], values[nodes[k]])
        old = t
    if old >= 0:
        next_tree(leaf, trees, old, -1, nodes, 0, stats)
    renew_times(rng, prior, trees, nodes)
    return True
