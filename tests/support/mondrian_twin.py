"""Mondrian trees in plain Python: exact laws by enumeration, and slow twins of the kernels.

A hierarchy of rows is coded by its blocks: bit ``b`` of the code is set when the set of rows with
bit mask ``b`` is the block of a node.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from pymc_trees.mondrian.kernels.categories import make_categories
from pymc_trees.mondrian.kernels.extend import extend_tree
from pymc_trees.mondrian.kernels.grow import grow_tree
from pymc_trees.mondrian.kernels.labels import make_moments
from pymc_trees.mondrian.kernels.tree import ROOT, USED, Rules, make_tree

NO_LIMIT = 2**62
NEVER = np.zeros(1, dtype=np.bool_)
"""Growing is not to end early."""


def rules(
    min_samples_split=2,
    pause_pure=False,
    max_leaves=NO_LIMIT,
    max_nodes=NO_LIMIT,
    max_block=NO_LIMIT,
):
    return Rules(min_samples_split, pause_pure, max_leaves, max_nodes, NO_LIMIT, max_block)


def make(X, y, lifetime=np.inf):
    """Empty tree, and label statistics by the kind of y."""
    labels = make_categories(int(y.max()) + 1, 1) if y.dtype.kind == "i" else make_moments(1)
    return make_tree(X.shape[1], lifetime, 1, 1), labels


def grow(rng, X, y, rule, lifetime=np.inf):
    return grow_tree(rng, *make(X, y, lifetime), rule, X, y, len(X), NEVER)


def stream(rng, X, y, rule, lifetime=np.inf, start=0):
    """One row at a time, the first ``start`` as a batch."""
    tree, labels = make(X, y, lifetime)
    if start:
        tree, labels = grow_tree(rng, tree, labels, rule, X, y, start, NEVER)
    return extend_tree(rng, tree, labels, rule, X, y, start, len(X))


# ------------------------------------------------------------------------------- exact laws


@njit(cache=True)
def code_of(tree, X, names):
    """Code of the hierarchy of some rows; ``names[i]`` is the bit of row i, -1 to leave it out."""
    masks = np.zeros(tree.column.size, dtype=np.int64)
    for i in range(X.shape[0]):
        if names[i] < 0:
            continue
        j = tree.state[ROOT]
        while True:
            masks[j] |= 1 << names[i]
            if tree.column[j] < 0:
                break
            j = tree.left[j] if X[i, tree.column[j]] <= tree.cut[j] else tree.right[j]
    code = 0
    for j in range(masks.size):
        if masks[j] > 0:
            code |= 1 << masks[j]
    return code


def block(rows):
    return 1 << sum(1 << i for i in rows)


def splits(X, rows):
    """Linear dimension of some rows, and [(share of it, left rows, right rows)]."""
    found, total = [], 0.0
    for d in range(X.shape[1]):
        values = np.unique(X[list(rows), d])
        total += values[-1] - values[0]
        for low, high in zip(values[:-1], values[1:]):
            left = tuple(i for i in rows if X[i, d] <= low)
            found.append((high - low, left, tuple(i for i in rows if i not in left)))
    return total, [(length / total, left, right) for length, left, right in found]


def stops(y, rows, rule):
    """Whether the rules pause a block."""
    return len(rows) < rule.min_samples_split or (
        rule.pause_pure and len({y[i] for i in rows}) == 1
    )


def hierarchy_law(X, y, rule):
    """dict code -> probability of a tree of infinite lifetime."""

    @cache
    def law(rows):
        total = 0.0 if stops(y, rows, rule) else splits(X, rows)[0]
        if total == 0.0:
            return {block(rows): 1.0}
        out: dict[int, float] = {}
        for share, left, right in splits(X, rows)[1]:
            for code, p in law(left).items():
                for other, q in law(right).items():
                    both = code | other | block(rows)
                    out[both] = out.get(both, 0.0) + share * p * q
        return out

    return law(tuple(range(len(X))))


def lifetime_law(X, y, rule, lifetime, steps=400):
    """dict code -> probability of a tree with a finite lifetime, by Simpson's rule."""
    h = lifetime / steps
    times = h * np.arange(steps + 1)

    def integral(values):  # of values from 0 to each time: Simpson on pairs, quadratic between
        out = np.zeros_like(values)
        f = values
        for k in range(1, steps + 1):
            if k % 2 == 0:
                out[k] = out[k - 2] + h / 3 * (f[k - 2] + 4 * f[k - 1] + f[k])
            else:
                after = f[k + 1] if k < steps else f[k]
                out[k] = out[k - 1] + h / 12 * (5 * f[k - 1] + 8 * f[k] - after)
        return out

    @cache
    def law(rows):
        """dict code -> probability, for each time that is left."""
        total = 0.0 if stops(y, rows, rule) else splits(X, rows)[0]
        out = {block(rows): np.exp(-total * times)}
        if total == 0.0:
            return out
        for share, left, right in splits(X, rows)[1]:
            for code, p in law(left).items():
                for other, q in law(right).items():
                    # split after v, with u - v left: exp(-total (u - w)) over w = u - v
                    grown = np.exp(-total * times) * integral(
                        total * np.exp(total * times) * share * p * q
                    )
                    both = code | other | block(rows)
                    out[both] = out.get(both, 0.0) + grown
        return out

    return {code: p[-1] for code, p in law(tuple(range(len(X)))).items()}


def budget_law(X, y, rule):
    """dict code -> probability of the tree of the first ``max_leaves - 1`` splits in time."""
    out: dict[int, float] = {}

    def go_on(blocks, code, p):
        rates = {b: 0.0 if stops(y, b, rule) else splits(X, b)[0] for b in blocks}
        total = sum(rates.values())
        if len(blocks) == rule.max_leaves or total == 0.0:
            out[code] = out.get(code, 0.0) + p
            return
        for rows, rate in rates.items():
            if rate > 0.0:
                for share, left, right in splits(X, rows)[1]:
                    rest = tuple(b for b in blocks if b != rows)
                    go_on(
                        (*rest, left, right),
                        code | block(left) | block(right),
                        p * rate / total * share,
                    )

    everything = tuple(range(len(X)))
    go_on((everything,), block(everything), 1.0)
    return out


# ------------------------------------------------------------------------------- checks


def live(tree):
    """Nodes of a tree, parents first."""
    nodes = [int(tree.state[ROOT])]
    for j in nodes:
        if tree.column[j] >= 0:
            nodes += [int(tree.left[j]), int(tree.right[j])]
    return nodes


def rows_below(tree, X):
    """dict node -> rows that reach it."""
    below: dict[int, list[int]] = {j: [] for j in live(tree)}
    for i, x in enumerate(X):
        j = int(tree.state[ROOT])
        while True:
            below[j].append(i)
            if tree.column[j] < 0:
                break
            j = int(tree.left[j] if x[tree.column[j]] <= tree.cut[j] else tree.right[j])
    return below


def check_tree(tree, X, y, rule):
    """Everything that holds for a tree that has seen the rows of X."""
    below = rows_below(tree, X)
    leaves = [j for j in below if tree.column[j] < 0]
    assert tree.state[3] == len(leaves) <= rule.max_leaves
    free, j = 0, tree.state[2]
    while j >= 0:
        free, j = free + 1, tree.parent[j]
    assert tree.state[USED] == len(below) + free
    for j, rows in below.items():
        assert rows
        assert tree.count[j] == len(rows)
        np.testing.assert_array_equal(tree.box[j], [X[rows].min(0), X[rows].max(0)])
        parent = tree.parent[j]
        start = 0.0 if parent < 0 else tree.time[parent]
        assert (parent < 0) == (j == tree.state[ROOT])
        if tree.column[j] >= 0:
            assert start <= tree.time[j] < tree.lifetime[0]
            assert not stops(y, rows, rule)
            assert tree.box[j, 0, tree.column[j]] <= tree.cut[j] < tree.box[j, 1, tree.column[j]]
        else:
            assert np.isinf(tree.time[j])
            assert tree.paused[j] == stops(y, rows, rule)
        if tree.paused[j] and tree.column[j] < 0:
            kept, row = [], tree.first_row[j]
            while row >= 0:
                kept, row = [*kept, int(row)], tree.next_row[row]
            assert sorted(kept) == rows
