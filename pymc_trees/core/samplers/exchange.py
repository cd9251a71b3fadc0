"""Trees of two posteriors that change places, their leaf values integrated out.

Tree T is under leaf model a, T' under leaf model b, with the same tree prior. With m_a(T) the
marginal likelihood of the rows under T and a, they change places with probability

    min(1, m_a(T') m_b(T) / (m_a(T) m_b(T')))

(Geyer 1991; Earl and Deem 2005, eq. 1), from which the prior cancels; then both draw their leaf
values from the conditional.
"""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder
from pymc_trees.core.leaves.contract import draw_leaves, log_marginal, swap_residual
from pymc_trees.core.leaves.path import write_paths


@njit(cache=True)
def _open(leaf, design, trees, old, work):
    """Statistics of the leaves of tree 0; its number of nodes."""
    nodes, stats = work.nodes, work.stats
    n_nodes = preorder(trees, trees.roots[0], nodes)
    swap_residual(leaf, trees, old, 0, nodes, n_nodes, stats)
    write_paths(leaf, design, trees, nodes, n_nodes, stats)
    return n_nodes


@njit(cache=True)
def _log_evidence(leaf, design, trees, old, work):
    """Log m(T) up to what is the same for every T."""
    n_nodes = _open(leaf, design, trees, old, work)
    total = 0.0
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            total += log_marginal(leaf, work.stats[node])
    return total


@njit(cache=True, nogil=True)
def log_exchange(a, b, work):
    """Log of the ratio above, of two `Problem`s of one tree each; both trees are left open."""
    design = a.design
    own_a = _log_evidence(a.leaf, design, a.trees, -1, work)
    own_b = _log_evidence(b.leaf, design, b.trees, -1, work)
    # No residual moves where a tree follows itself.
    new_a = _log_evidence(a.leaf, design, b.trees, 0, work)
    new_b = _log_evidence(b.leaf, design, a.trees, 0, work)
    return new_a + new_b - own_a - own_b


@njit(cache=True, nogil=True)
def close_exchanged(rng, problem, work):
    """Draw the leaf values of an open tree, and close it."""
    trees, leaf = problem.trees, problem.leaf
    n_nodes = _open(leaf, problem.design, trees, 0, work)
    column, values, leaf_of = trees.column, trees.values, trees.leaf_of[0]
    draw_leaves(leaf, rng, column, values, leaf_of, work.nodes, n_nodes, work.stats)
    swap_residual(leaf, trees, 0, -1, work.nodes, 0, work.stats)
