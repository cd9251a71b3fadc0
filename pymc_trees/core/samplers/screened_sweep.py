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
is refused, as `counts` shows. To keep trees from getting stuck where the rows are wrong or too
precise, some visits use other rows, centred at the sum of the other trees, half of them raised to a
power uniform in (0, 1). The choice is random and independent of the state.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.undo import keep_tree, restore_tree
from pymc_trees.core.leaves.contract import add_set
from pymc_trees.core.leaves.nonconjugate.gaussian import (
    aim_screen,
    expand_at_current,
    fit_screen,
    log_value_weight,
    propose_value,
)
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows, keep_rows
from pymc_trees.core.leaves.outputs import add_outputs, subtract_outputs
from pymc_trees.core.moves.census import count_nodes
from pymc_trees.core.moves.contract import FULL
from pymc_trees.core.moves.problem import ensure_rows, rows_of
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.priors.contract import renew_times
from pymc_trees.core.random import accepts
from pymc_trees.core.samplers.backfitting import metropolis_move


@njit(cache=True)
def add_leaves(near, trees, n_nodes, work):
    """Write the statistics of the leaves of the open tree."""
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            add_set(near, rows_of(trees, node, work), work.stats[node])


@njit(cache=True)
def weigh_leaves(leaf, screen, trees, n_nodes, work, is_wide):
    """Log of v(T, mu) without the likelihood."""
    total = 0.0
    for k in range(n_nodes):
        node = work.nodes[k]
        if trees.column[node] < 0:
            stats, value = work.stats[node], trees.values[node]
            total += log_value_weight(leaf, screen, stats, value, is_wide)
    return total


@njit(cache=True, nogil=True)
def screened_sweep(rng, problem, screened, screen, moves, work, kept, counts):
    """Update all trees once; False when the forest outgrew its pool, or on ``work.stop_flag``.

    Parameters
    ----------
    problem : Problem
        Its leaf, a `RowwiseData` whose ``log_rows`` are those of the current trees, is the
        likelihood.
    screened : Problem
        The same forest, under ``screen.near``.
    screen : Screen
        With its Gaussian rows.
    moves, work
        As for `sweep`.
    kept : KeptTree
        Overwritten.
    counts : (2, K + 1) int64
        Moves proposed and accepted, and in the last column visits and accepted visits; incremented.
        Moves of a refused visit count as refused.
    """
    trees, leaf, near, n_moves = problem.trees, problem.leaf, screen.near, moves.per_visit
    values, nodes, log_rows = trees.values, work.nodes, leaf.log_rows
    n_kinds = moves.weights.size
    moved = np.zeros(n_kinds, dtype=np.int64)
    for t in range(trees.roots.size):
        if work.stop_flag[0]:
            return False
        leaf_of = trees.leaf_of[t]
        subtract_outputs(leaf, values, leaf_of, leaf.offset)
        is_local = rng.random() < screen.local[0]
        if is_local:
            expand_at_current(leaf, screen, min(1.0, 2.0 * rng.random()))
        else:
            aim_screen(leaf.offset, screen)
        census = count_nodes(trees, t, nodes)
        n_nodes = census.n_nodes
        ensure_rows(trees, t, n_nodes, work)
        keep_tree(trees, t, nodes, n_nodes, work.sets, n_moves, kept)
        add_leaves(near, trees, n_nodes, work)
        before = weigh_leaves(leaf, screen, trees, n_nodes, work, is_local)
        for i in range(log_rows.size):
            before += log_rows[i]
        moved[:] = 0
        for _ in range(n_moves):
            kind, outcome = metropolis_move(rng, screened, t, moves, census, work)
            if outcome == FULL:
                return False
            if kind >= 0:
                counts[0, kind] += 1
                moved[kind] += outcome
            if outcome != 0:
                census = count_nodes(trees, t, nodes)
        for k in range(census.n_nodes):
            node = nodes[k]
            if trees.column[node] < 0:
                propose_value(rng, leaf, screen, work.stats[node], is_local, values[node])
        after = weigh_leaves(leaf, screen, trees, census.n_nodes, work, is_local)
        add_outputs(leaf, values, leaf_of, leaf.offset)
        after += evaluate_rows(leaf)
        counts[0, n_kinds] += 1
        if is_ordered(work.order, trees, t) and accepts(rng, after - before):
            counts[1, n_kinds] += 1
            for k in range(n_kinds):
                counts[1, k] += moved[k]
            keep_rows(leaf)
        else:
            subtract_outputs(leaf, values, leaf_of, leaf.offset)
            restore_tree(trees, t, n_nodes, work.sets, n_moves, kept)
            add_outputs(leaf, values, leaf_of, leaf.offset)
    renew_times(rng, problem.prior, trees, nodes)
    return True


@njit(cache=True, nogil=True)
def screened_sweeps(rng, problem, screened, screen, moves, work, kept, n_sweeps, counts):
    """Several calls of `screened_sweep` in one; evaluates the current rows first."""
    leaf = problem.leaf
    fit_screen(leaf, screen)
    evaluate_rows(leaf)
    keep_rows(leaf)
    for _ in range(n_sweeps):
        if not screened_sweep(rng, problem, screened, screen, moves, work, kept, counts):
            return False
    return True
