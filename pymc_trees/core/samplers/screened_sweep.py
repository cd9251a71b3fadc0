"""One backfitting sweep under any likelihood of rows, screened by Gaussian rows.

Given the other trees, the log-likelihood of row i as a function of the tree's output there is
``l_i``, and that of a Gaussian row that does not depend on the current tree is ``l~_i``
(`leaves.nonconjugate.gaussian.screen`). Under the Gaussian rows,

    p~(T, mu) = p(T) p(mu) exp(sum_i l~_i(mu(x_i))),

leaf values integrate out, to p(T) prod_leaves m~. A visit therefore makes some moves of T with
values integrated out, each reversible with respect to p~(T), and draws values from q(mu | T), all
without the likelihood: together a proposal that is reversible with respect to p~(T) q(mu | T). It
is accepted with probability min(1, v(T', mu') / v(T, mu)),

    v(T, mu) = exp(sum_i l_i(mu(x_i))) prod_leaves p(mu) / (m~ q(mu | T)),

the Metropolis-Hastings ratio of such a proposal: one evaluation of the target after a step under an
approximation (Christen and Fox 2005), or after several (Liu 2001, section 9.4.3: surrogate
transitions). Any Gaussian rows leave the posterior invariant; under poor ones nearly every proposal
is rejected, as `counts` shows. To keep trees from getting stuck where the rows are wrong or too
precise, some visits use other rows, centred at the sum of the other trees, half of them raised to a
power uniform in (0, 1). The choice is random and independent of the state.
"""

import numpy as np

from pymc_trees.core.columns.row_set import own_rows
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import restore_tree, save_tree
from pymc_trees.core.leaves.contract import add_outputs, add_set, subtract_outputs
from pymc_trees.core.leaves.nonconjugate.gaussian import (
    expand_at_anchors,
    expand_at_current,
    fit_screen,
    log_correction,
    propose_values,
)
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows, store_log_rows
from pymc_trees.core.leaves.path import write_paths
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import count_nodes, ensure_rows, rows_of
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import resample_times
from pymc_trees.core.random import accepts
from pymc_trees.core.samplers.backfitting import metropolis_move


@njit(cache=True)
def write_leaf_statistics(gaussian, design, trees, n_nodes, work):
    """Write the statistics of the leaves of the open tree."""
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            add_set(gaussian, own_rows(rows_of(trees, node, work)), work.stats[node])
    write_paths(gaussian, design, trees, work.nodes, n_nodes, work.stats)


@njit(cache=True, nogil=True)
def screened_sweep(rng, problem, screened, screen, moves, work, saved, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.stop_flag``.

    Parameters
    ----------
    problem : Problem
        Its leaf, a `RowwiseData` whose ``log_rows`` are those of the current trees, is the
        likelihood.
    screened : Problem
        The same forest, under ``screen.gaussian``.
    screen : Screen
        With its Gaussian rows.
    moves, work
        As for `sweep`.
    saved : SavedTree
        Overwritten.
    counts : (2, K + 1) int64
        Moves proposed and accepted, and in the last column visits and accepted visits; incremented.
        Moves of a rejected visit count as rejected.
    """
    trees, leaf, gaussian, n_moves = problem.trees, problem.leaf, screen.gaussian, moves.per_visit
    values, nodes, log_rows = trees.values, work.nodes, leaf.log_rows
    n_kinds = moves.weights.size
    n_accepted = np.zeros(n_kinds, dtype=np.int64)
    for t in range(trees.roots.size):
        if work.stop_flag[0]:
            return False
        leaf_of = trees.leaf_of[t]
        subtract_outputs(gaussian, values, leaf_of, leaf.offset)
        is_local = rng.random() < screen.local[0]
        if is_local:
            expand_at_current(leaf, screen, min(1.0, 2.0 * rng.random()))
        else:
            expand_at_anchors(leaf.offset, screen)
        node_counts = count_nodes(trees, t, nodes)
        n_nodes = node_counts.n_nodes
        ensure_rows(trees, t, n_nodes, work)
        save_tree(trees, t, nodes, n_nodes, work.sets, n_moves, saved)
        write_leaf_statistics(gaussian, screened.design, trees, n_nodes, work)
        before = log_correction(gaussian, leaf, screen, trees, t, n_nodes, work, is_local)
        for i in range(log_rows.size):
            before += log_rows[i]
        n_accepted[:] = 0
        for _ in range(n_moves):
            kind, outcome = metropolis_move(rng, screened, t, moves, node_counts, work)
            if outcome == FULL:
                return False
            if kind >= 0:
                counts[0, kind] += 1
                n_accepted[kind] += outcome
            if outcome != 0:
                node_counts = count_nodes(trees, t, nodes)
        n_new = node_counts.n_nodes
        propose_values(gaussian, rng, leaf, screen, trees, n_new, work, is_local)
        after = log_correction(gaussian, leaf, screen, trees, t, n_new, work, is_local)
        add_outputs(gaussian, values, leaf_of, leaf.offset)
        after += evaluate_rows(leaf)
        counts[0, n_kinds] += 1
        if is_ordered(work.order, trees, t) and accepts(rng, after - before):
            counts[1, n_kinds] += 1
            for k in range(n_kinds):
                counts[1, k] += n_accepted[k]
            store_log_rows(leaf)
        else:
            subtract_outputs(gaussian, values, leaf_of, leaf.offset)
            restore_tree(trees, t, n_nodes, work.sets, n_moves, saved)
            add_outputs(gaussian, values, leaf_of, leaf.offset)
    resample_times(rng, problem.prior, trees, nodes)
    return True


@njit(cache=True, nogil=True)
def screened_sweeps(rng, problem, screened, screen, moves, work, saved, n_sweeps, counts):
    """Run `screened_sweep` several times, after evaluating the current rows."""
    leaf = problem.leaf
    fit_screen(leaf, screen)
    evaluate_rows(leaf)
    store_log_rows(leaf)
    for _ in range(n_sweeps):
        if not screened_sweep(rng, problem, screened, screen, moves, work, saved, counts):
            return False
    return True
