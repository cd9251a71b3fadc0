"""One sweep of particle Gibbs where leaf values do not integrate out.

The state is a tree T with its leaf values mu, given the other trees. Particles grow as in
`conditional_smc` under a surrogate, Gaussian rows near the likelihood (`leaves.surrogate`), whose
leaf values do integrate out: partial trees have the weights of

    p(T) prod_leaves m(rows),    m(rows) = int prod_rows N(r_i; mu, 1 / w_i) dN(mu; mean, sd^2).

One more step takes finished particles to the target itself: each draws leaf values from q, the
Laplace approximation given its leaves, the reference keeps its own, and all weights are multiplied
by

    prod_rows p(y_i | mu) prod_leaves p(mu) / (q(mu | T) m(rows)).

With it this is conditional SMC on (T, mu) whose last target is the posterior: it leaves that
invariant for any surrogate and any q which do not look at the present tree (Andrieu, Doucet and
Holenstein 2010, theorem 5). Leaving out any factor of it would sample the surrogate's posterior or
a mixture of the two. A refresh of the leaf values follows whatever particle was chosen, since a
refresh for the reference alone would depend on the choice.
"""

import numpy as np

from pymc_trees.core.compile.borrow import borrowed
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import add_rows, draw_leaves, next_tree
from pymc_trees.core.leaves.nonconjugate.surrogate import fill_surrogate, finish_tree
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.priors.contract import renew_times
from pymc_trees.core.random import pick
from pymc_trees.core.samplers.particle_gibbs.conditional_smc import choose, grow_particles
from pymc_trees.core.samplers.particle_gibbs.sweep import replace_tree
from pymc_trees.core.samplers.particles.growth import CEASED, FULL


@njit(cache=True)
def correct_weights(rng, trees, leaf, particles, nodes, n_nodes, stats):
    """Draw leaf values for the particles; multiply the weights by what the surrogate left out."""
    log_w, column, log_m = particles.log_w, particles.column, particles.log_m
    for c in range(log_w.size):
        if log_w[c] == -np.inf:
            continue
        if c == 0:
            for k in range(n_nodes):
                if trees.column[nodes[k]] < 0:
                    log_w[0] += stats[nodes[k], 0]
        else:
            log_w[c] += finish_tree(leaf, rng, particles, c)
        for k in range(particles.n_nodes[c]):
            if column[c, k] < 0:
                log_w[c] -= log_m[c, k]


@njit(cache=True, nogil=True)
def surrogate_sweep(
    rng,
    trees,
    design,
    bins,
    prior,
    leaf,
    surrogate,
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
    leaf : RowwiseData or JointData
        The likelihood.
    surrogate : NormalData
        Room for a surrogate, with a precision for each row.
    tuning : bool
        As for `particle_sweep`.
    outcome : (2,) float64
        Number of trees replaced, and sum of the effective numbers of particles; added to.
    """
    rng, trees, design, bins, prior, leaf, surrogate, particles, look, work = borrowed(
        (rng, trees, design, bins, prior, leaf, surrogate, particles, look, work)
    )
    roots, nodes, stats = trees.roots, work.nodes, work.stats
    column, values = trees.column, trees.values
    m, n_values = roots.size, leaf.mean.size
    rows = np.arange(surrogate.r.size)
    root_stats = np.zeros(particles.stats.shape[2])
    old = -1
    for step in range(n_updated):
        t = (first + step) % m
        n_nodes = preorder(trees, roots[t], nodes)
        next_tree(leaf, trees, old, t, nodes, n_nodes, stats)
        # with several outputs one of them, chosen anew for each tree, surrogates
        k = pick(rng, n_values)
        fill_surrogate(leaf, k, surrogate.r, surrogate.w)
        near = NormalData(leaf.mean[k], leaf.sd[k], surrogate.r, surrogate.w, surrogate.lanes)
        add_rows(near, rows, 0, rows.size, root_stats)
        status = grow_particles(
            rng,
            trees,
            t,
            design,
            bins,
            prior,
            near,
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
        chosen, ess = 0, 1.0
        if not full:
            correct_weights(rng, trees, leaf, particles, nodes, n_nodes, stats)
            chosen, ess = choose(rng, particles.log_w)
        if not replace_tree(
            trees, t, particles, chosen, ess, full, tuning, n_nodes, stats, nodes, outcome
        ):
            return False
        n_nodes = preorder(trees, roots[t], nodes)
        draw_leaves(leaf, rng, column, values, trees.leaf_of[t], nodes, n_nodes, stats)
        old = t
    if old >= 0:
        next_tree(leaf, trees, old, -1, nodes, 0, stats)
    renew_times(rng, prior, trees, nodes)
    return True
