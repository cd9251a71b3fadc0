"""A random column of X given the trees: the function at all cells of it, and a draw of each row.

Given all else, row i of column z has the density

    p(z) ~ b_i(z) L_i(f(c(z)), z),

with b_i a law whose cells have known probabilities, c(z) the cell in which z lies, and L_i the
likelihood of the row. Cells are the intervals between two cuts, or the categories of a discrete
column, for which a table of b_i L_i is all there is to know.

Where L_i sees an interval through f alone, a draw from b_i that is accepted with probability
L_i / max L_i is one from p. Rows whose first `TRIES` proposals fail are drawn from the table: a
cell with weight ``b_i(cell) L_i(f(cell))``, and z from b_i within it. Either is a draw from p
whatever the other does, so that it is one in any case; the table, which needs the probabilities of
all cells, is made for few rows.

Otherwise the pair from the table is a proposal with weights ``b_i(cell) L_i(f(cell), z~)``, z~ a
point of the cell that does not depend on the present z, and is accepted with probability

    min(1, (L_i(f', z') / L_i(f', z~')) / (L_i(f, z) / L_i(f, z~))).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.search import n_below, parts_of
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.pointer import by_pointer
from pymc_trees.core.leaves.latent.augmentations import draw_truncated, log_between
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.random import draw_by_weight
from pymc_trees.core.value.evaluate import goes_left, links_of, rules_of

ROOT_HALF = math.sqrt(0.5)
TRIES = 3
"""Proposals from the prior before the table of a row."""
LEAST_LOG = -35.0
"""Log-likelihood, below the largest of a row, of cells that are left out of a sum of `LEAST`."""
LEAST = 1e-5
"""Sum of the weights of a row, the largest likelihood being 1, from which on a difference of two
distribution functions will do for a probability. It is off by some 1e-16, and all cells that are
left out have e^-35 together, so that the shares of cells are off by 1e-10 at most."""
MOST_OTHERS, MOST_OWN = 6, 64
"""Splits of a tree on other columns, and steps along the column, up to which it has a table."""
BLOCK = 128
"""Rows that are passed down a tree together."""


@by_pointer
class CellTrees(NamedTuple):
    """A forest as a function of the cell, for each way in which a row answers the other splits.

    Tree t has a table with a row for each pattern of answers to its splits on other columns, bit k
    of which is 1 where a row goes left at the k-th. Along the row of the table are the values in
    the first cell, and by how much they change where the tree steps.
    """

    value: np.ndarray
    """The encoded forest."""
    column: np.ndarray
    right: np.ndarray
    roots: np.ndarray
    missing_left: np.ndarray
    levels: np.ndarray
    n_levels: np.ndarray
    """As in `Links` and `MixedRules`."""
    points: np.ndarray
    """(C,) a number of each cell, on the same side of all cuts as the cell."""
    own: int
    """Number of the random column."""
    others: np.ndarray
    """Split nodes on other columns, tree by tree."""
    first_other: np.ndarray
    """(m + 1,) where those of a tree begin."""
    steps: np.ndarray
    """Cells at which a tree steps, tree by tree; the first one is cell 0."""
    first_step: np.ndarray
    """(m + 1,) where those of a tree begin."""
    table: np.ndarray
    """Tables, tree by tree: (patterns, steps, V)."""
    first_entry: np.ndarray
    """(m,) where that of a tree begins; -1 for a tree that is walked instead."""
    n_values: int
    mixed: bool


@njit(cache=True)
def cuts_in_use(value, sizes, p, column):
    """Cuts of a column in a forest, in any order, with repetitions."""
    links = links_of(value, sizes)
    out = np.empty(sizes.max_nodes)
    n = 0
    for k in range(sizes.max_nodes):
        if links.column[k] >= 0 and links.column[k] % p == column:
            out[n] = value[k, 1]
            n += 1
    return out[:n]


@njit(cache=True)
def cell_trees(value, X, X_train, sizes, column, points):
    """`CellTrees` of an intact forest.

    Parameters
    ----------
    X, X_train : (n, p) float64
        Rows, and those of the declaration; cells of the column are whole numbers in both if it is
        split by levels, and not looked at otherwise.
    points : (C,) float64
        Increasing: a number of each cell.
    """
    links = links_of(value, sizes)
    rules = rules_of(value, X, X_train, sizes, links.column)
    n_cells, n_values, m = points.size, sizes.n_values, sizes.m
    others, first_other = np.empty(sizes.max_nodes, np.int64), np.zeros(m + 1, np.int64)
    steps, first_step = np.empty(m * n_cells, np.int64), np.zeros(m + 1, np.int64)
    first_entry = np.empty(m, dtype=np.int64)
    n_others, n_steps, n_entries = 0, 0, 0
    for t in range(m):
        stop = links.roots[t + 1] if t + 1 < m else sizes.max_nodes
        first_other[t], first_step[t] = n_others, n_steps
        steps[n_steps] = 0
        n_steps += 1
        any_own = False
        k = links.roots[t]
        open_nodes = 1
        while open_nodes > 0 and k < stop:
            if links.column[k] < 0:
                open_nodes -= 1
            else:
                open_nodes += 1
                if links.column[k] == column:
                    any_own = True
                else:
                    others[n_others] = k
                    n_others += 1
            k += 1
        if any_own:
            for c in range(1, n_cells):
                for j in range(links.roots[t], k):
                    if links.column[j] == column:
                        here = goes_left(points[c], value[j, 1], rules, j, column)
                        if here != goes_left(points[c - 1], value[j, 1], rules, j, column):
                            steps[n_steps] = c
                            n_steps += 1
                            break
        n_own, n_asked = n_steps - first_step[t], n_others - first_other[t]
        first_entry[t] = -1
        if n_asked <= MOST_OTHERS and n_own <= MOST_OWN:
            first_entry[t] = n_entries
            n_entries += (n_own * n_values) << n_asked
    first_other[m], first_step[m] = n_others, n_steps
    table = np.empty(n_entries)
    place = np.empty(sizes.max_nodes, dtype=np.int64)
    for t in range(m):
        if first_entry[t] < 0:
            continue
        at = first_entry[t]
        for u in range(first_other[t], first_other[t + 1]):
            place[others[u]] = u - first_other[t]
        for pattern in range(1 << (first_other[t + 1] - first_other[t])):
            before = -1
            for s in range(first_step[t], first_step[t + 1]):
                k = links.roots[t]
                while links.column[k] >= 0:
                    if links.column[k] == column:
                        left = goes_left(points[steps[s]], value[k, 1], rules, k, column)
                    else:
                        left = (pattern >> place[k]) & 1 == 1
                    k = k + 1 if left else links.right[k]
                for v in range(n_values):
                    table[at + v] = value[k, 1 + v]
                    if before >= 0:
                        table[at + v] -= value[before, 1 + v]
                at += n_values
                before = k
    return CellTrees(
        value,
        links.column,
        links.right,
        links.roots,
        rules.missing_left,
        rules.levels,
        rules.n_levels,
        points,
        column,
        others[:n_others].copy(),
        first_other,
        steps[:n_steps].copy(),
        first_step,
        table,
        first_entry,
        n_values,
        sizes.mixed,
    )


@njit(cache=True)
def _answer(trees, X, rows, start, n, k, bit, patterns):
    """Set a bit of the patterns of some rows where they go left at a split."""
    column, cut = trees.column[k], trees.value[k, 1]
    if trees.mixed:
        for b in range(n):
            left = goes_left(X[rows[start + b], column], cut, trees, k, column)
            patterns[b] |= np.int64(left) << bit
    else:
        for b in range(n):
            patterns[b] |= np.int64(X[rows[start + b], column] <= cut) << bit


@njit(cache=True, nogil=True)
def outputs_by_cell(trees, X, rows, first, out):
    """Write the outputs of a forest at rows of X, for all cells of a column.

    Each tree adds by how much it changes where it steps; running sums over the cells are the
    function.

    Parameters
    ----------
    trees : CellTrees
    X : (n, p) float64
        Rows; the cells of the column are not read.
    rows : (b,) int64
        Rows of X.
    out : (C, b, K) float64
        Overwritten from the output ``first`` on.
    """
    n_values, n_cells, m = trees.n_values, out.shape[0], trees.roots.size
    changes = np.empty((n_cells, n_values, BLOCK))
    patterns, total = np.empty(BLOCK, dtype=np.int64), np.empty(BLOCK)
    for start in range(0, rows.size, BLOCK):
        n = min(BLOCK, rows.size - start)
        changes[:] = 0.0
        for t in range(m):
            at, first_step = trees.first_entry[t], trees.first_step[t]
            n_own = trees.first_step[t + 1] - first_step
            if at < 0:
                _walk_tree(trees, X, rows, start, n, t, changes)
                continue
            patterns[:n] = 0
            for u in range(trees.first_other[t], trees.first_other[t + 1]):
                bit = u - trees.first_other[t]
                _answer(trees, X, rows, start, n, trees.others[u], bit, patterns)
            width = n_own * n_values
            for s in range(n_own):
                for v in range(n_values):
                    row = changes[trees.steps[first_step + s], v]
                    here = at + s * n_values + v
                    for b in range(n):
                        row[b] += trees.table[here + patterns[b] * width]
        for v in range(n_values):
            total[:] = 0.0
            for c in range(n_cells):
                for b in range(n):
                    total[b] += changes[c, v, b]
                    out[c, start + b, first + v] = total[b]


@njit(cache=True)
def _walk_tree(trees, X, rows, start, n, t, changes):
    """Add the changes of a tree that has no table, by a walk for each of its steps."""
    for b in range(n):
        i, before = rows[start + b], -1
        for s in range(trees.first_step[t], trees.first_step[t + 1]):
            k, cell = trees.roots[t], trees.steps[s]
            while trees.column[k] >= 0:
                column = trees.column[k]
                x = trees.points[cell] if column == trees.own else X[i, column]
                left = goes_left(x, trees.value[k, 1], trees, k, column)
                k = k + 1 if left else trees.right[k]
            for v in range(trees.n_values):
                changes[cell, v, b] += trees.value[k, 1 + v]
                if before >= 0:
                    changes[cell, v, b] -= trees.value[before, 1 + v]
            before = k


@njit(cache=True, nogil=True)
def log_likelihoods(address, rows, outputs, table, data, logs):
    """Write the log-likelihood of rows, (C, b), at the outputs of each cell, (C, b, K).

    The other arguments are those of `call_native`.
    """
    for c in range(outputs.shape[0]):
        call_native(address, rows.size, rows, outputs[c], table, data, logs[c])


@njit(cache=True, nogil=True)
def largest_of_rows(logs, largest):
    """Largest log-likelihood of each row over its cells, (C, b); NaN becomes -inf.

    -inf where that is infinite, so that the row cannot be drawn.
    """
    largest[:], n_nan = -np.inf, 0
    for c in range(logs.shape[0]):
        for i in range(logs.shape[1]):
            log = logs[c, i]
            n_nan += log != log
            largest[i] = log if log > largest[i] else largest[i]
    if n_nan > 0:
        for c in range(logs.shape[0]):
            for i in range(logs.shape[1]):
                if logs[c, i] != logs[c, i]:
                    logs[c, i] = -np.inf
    for i in range(largest.size):
        if largest[i] == np.inf:
            largest[i] = -np.inf


@njit(cache=True, nogil=True)
def try_proposals(proposals, waits, cuts, logs, largest, out, missed):
    """Accept the first proposal of each row that its likelihood lets pass.

    Parameters
    ----------
    proposals : (b, T) float64
        Draws from the prior.
    waits : (b, T) float64
        Standard exponential.
    cuts : (C - 1,) float64
    logs : (C, b) float64
        Log-likelihood of each cell.
    largest : (b,) float64
        Its maximum; rows where it is not finite are left alone.
    out : (b,) float64
        Overwritten where a proposal was accepted.
    missed : (b,) int64
        Overwritten with the rows where none was.

    Returns
    -------
    int
        Number of these.
    """
    n = 0
    scale, offset, first = parts_of(cuts)
    for i in range(out.size):
        if largest[i] == -np.inf:
            continue
        found = False
        for t in range(proposals.shape[1]):
            z = proposals[i, t]
            if not abs(z) < np.inf:
                continue
            if logs[n_below(cuts, scale, offset, first, z), i] - largest[i] >= -waits[i, t]:
                out[i] = z
                found = True
                break
        if not found:
            missed[n] = i
            n += 1
    return n


@njit(cache=True, nogil=True)
def choose_cells(logs, which, uniforms, chosen):
    """Draw a cell of some rows by log weights, (C, b); -1 where all are 0.

    Parameters
    ----------
    which : (k,) int64
        Rows.
    uniforms : (k,) float64
    chosen : (k,) int64
        Overwritten.
    """
    weights = np.empty(logs.shape[0])
    for j in range(which.size):
        i, largest, total = which[j], -np.inf, 0.0
        for c in range(weights.size):
            largest = max(largest, logs[c, i])
        chosen[j] = -1
        if not (largest > -np.inf and largest < np.inf):
            continue
        for c in range(weights.size):
            weights[c] = math.exp(logs[c, i] - largest)
            total += weights[c]
        chosen[j] = draw_by_weight(weights, 0, weights.size, uniforms[j] * total)


@njit(cache=True, nogil=True)
def choose_normal_cells(mean, sd, edges, logs, largest, which, uniforms, chosen):
    """Draw a cell of some rows by likelihood times Normal mass.

    Parameters
    ----------
    mean, sd : (b,) float64
        Of the Normal of each row.
    edges : (C + 1,) float64
        Bounds of the cells.
    logs, largest : (C, b), (b,) float64
        Log-likelihood, and its maximum, which is finite.
    which, uniforms, chosen
        As in `choose_cells`.
    """
    n_cells = logs.shape[0]
    weights = np.empty(n_cells)
    for j in range(which.size):
        i = which[j]
        m, s, total = mean[i], sd[i], 0.0
        below, is_known = 0.0, True  # the first cell begins at -inf
        for c in range(n_cells):
            weights[c] = 0.0
            log = logs[c, i] - largest[i]
            if log < LEAST_LOG:
                is_known = False
                continue
            if not is_known:
                below = 0.5 * math.erfc((m - edges[c]) / s * ROOT_HALF)
            above = 0.5 * math.erfc((m - edges[c + 1]) / s * ROOT_HALF)
            weights[c] = math.exp(log) * max(above - below, 0.0)
            total += weights[c]
            below, is_known = above, True
        if not total >= LEAST:
            largest_weight, total = -np.inf, 0.0
            for c in range(n_cells):
                weights[c] = logs[c, i] + log_between((edges[c] - m) / s, (edges[c + 1] - m) / s)
                largest_weight = max(largest_weight, weights[c])
            for c in range(n_cells):
                weights[c] = math.exp(weights[c] - largest_weight)
                total += weights[c]
        chosen[j] = draw_by_weight(weights, 0, n_cells, uniforms[j] * total)


@njit(cache=True)
def draw_normals(rng, mean, sd, low, high, out):
    """Draw from Normals between two bounds."""
    for b in range(out.size):
        m, s = mean[b], sd[b]
        drawn = m + s * draw_truncated(rng, (low[b] - m) / s, (high[b] - m) / s)
        out[b] = min(max(drawn, np.nextafter(low[b], np.inf)), high[b])


@njit(cache=True)
def middle_points(mean, sd, edges, out):
    """A point of each cell, (C, b): its middle, or of an unbounded one a point near the mean."""
    for c in range(out.shape[0]):
        a, b = edges[c], edges[c + 1]
        for i in range(out.shape[1]):
            m, s = mean[i], sd[i]
            if a == -np.inf and b == np.inf:
                out[c, i] = m
            elif a == -np.inf:
                out[c, i] = min(b, max(m, b - s))
            elif b == np.inf:
                out[c, i] = max(a, min(m, a + s))
            else:
                out[c, i] = 0.5 * (a + b)
