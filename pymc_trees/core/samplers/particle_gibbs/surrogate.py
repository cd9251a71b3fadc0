"""Likelihood under which particles grow: the leaf model, or a surrogate corrected afterwards.

Where leaf values integrate out, particles grow under the leaf model: nothing is to correct.

Elsewhere the state is a tree T with its leaf values mu, given the other trees. Particles grow as in
`conditional_smc` under a surrogate, Gaussian rows near the likelihood of all outputs, whose
leaf values do integrate out: partial trees have the weights of

    p(T) prod_leaves m(rows),    m(rows) = int prod_rows exp(l~_i(mu)) dN(mu; mean, sd^2).

One more step takes finished particles to the target itself: each draws leaf values from q, the
Laplace approximation given its leaves, the reference keeps its own, and all weights are multiplied
by

    prod_rows p(y_i | mu) prod_leaves p(mu) / (q(mu | T) m(rows)).

With it this is conditional SMC on (T, mu) whose last target is the posterior: it leaves that
invariant for any surrogate and any q that do not depend on the current tree (Andrieu, Doucet and
Holenstein 2010, theorem 5). Leaving out any factor of it would sample the surrogate's posterior or
a mixture of the two. The leaf values are refreshed whichever particle is chosen: a refresh for the
reference alone would depend on the choice.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import generic, register
from pymc_trees.core.forest.rows import all_rows
from pymc_trees.core.leaves.contract import add_rows, reads_path
from pymc_trees.core.leaves.nonconjugate.gaussian.vector import GaussianVector
from pymc_trees.core.leaves.nonconjugate.surrogate import fill_surrogate, finish_tree
from pymc_trees.core.leaves.normal import NormalData


@generic("surrogate")
def start_growth(rng, problem, surrogate, work, n_nodes, root_stats):
    """Prepare the leaf model under which particles grow; write the statistics of all rows."""


@generic("surrogate")
def correct_weights(rng, problem, surrogate, particles, work, n_nodes):
    """Multiply the weights of complete particles by the factors missing from the surrogate."""


@njit(cache=True)
def _add_up(rng, problem, surrogate, work, n_nodes, root_stats):
    root_stats[:] = 0.0
    for k in range(n_nodes):
        node = work.nodes[k]
        if problem.trees.column[node] < 0:
            for d in range(root_stats.size):
                root_stats[d] += work.stats[node, d]
    if reads_path(problem.leaf):
        root_stats[root_stats.size - 1] = 0.0


@njit(cache=True)
def _nothing_to_correct(rng, problem, surrogate, particles, work, n_nodes):
    pass


@njit(cache=True)
def _see_rows(rng, problem, surrogate, work, n_nodes, root_stats):
    fill_surrogate(problem.leaf, surrogate)
    n = problem.trees.leaf_of.shape[1]
    add_rows(surrogate, work.rows, 0, all_rows(n, work.rows), root_stats)


@njit(cache=True)
def _correct_for_both(rng, problem, surrogate, particles, work, n_nodes):
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


register(type(None), start_growth=_add_up, correct_weights=_nothing_to_correct)
for kind in (NormalData, GaussianVector):
    register(kind, start_growth=_see_rows, correct_weights=_correct_for_both)
