"""Working arrays to the encoded value of `fields` and back."""

import numpy as np

from pymc_trees.core.columns.design import partition_rows
from pymc_trees.core.columns.mixed import column_of, n_codes
from pymc_trees.core.columns.rules import log_rule, rule_code, rule_value
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import preorder, split_leaf
from pymc_trees.core.leaves.contract import leaf_output
from pymc_trees.core.priors.contract import (
    add_time_terms,
    context_of,
    is_valid_time,
    log_column,
    node_summary,
)
from pymc_trees.core.value.fields import (
    BITS,
    CHECKSUM,
    LEAF,
    LOG_COLUMNS,
    LOG_CUTS,
    TIME_TERMS,
    UNSPLITTABLE,
    UNUSED,
    compute_checksum,
)


@njit(cache=True)
def encode(trees, design, prior, sizes, fingerprint, nodes):
    """Encoded value of a forest.

    Parameters
    ----------
    prior : tree prior
        Its type determines the meaning of times; its settings are not used.
    nodes : (max_nodes,) int32
        Overwritten.
    """
    n_values = sizes.n_values
    value = np.zeros((sizes.rows, sizes.fields))
    certificate = value[sizes.max_nodes :].reshape(-1)
    row, leaf = 0, 0
    log_cuts, log_columns = 0.0, 0.0
    for t in range(sizes.m):
        for k in range(preorder(trees, trees.roots[t], nodes)):
            node = nodes[k]
            column = trees.column[node]
            if column >= 0:
                value[row, 0] = column
                value[row, 1] = rule_value(design, column, trees.cut[node])
                if sizes.timed:
                    value[row, sizes.fields - 1] = trees.time[node]
                log_cuts += trees.log_cut[node]
                log_columns += trees.log_column[node]
            else:
                value[row, 0] = LEAF
                for v in range(n_values):
                    value[row, 1 + v] = trees.values[node, v]
                if trees.unsplittable[node]:
                    certificate[UNSPLITTABLE + leaf // BITS] += 2.0 ** (leaf % BITS)
                leaf += 1
            row += 1
    for k in range(row, sizes.max_nodes):
        value[k, 0] = UNUSED
    certificate[LOG_CUTS] = log_cuts
    certificate[LOG_COLUMNS] = log_columns
    if sizes.timed:
        terms = certificate[sizes.stop - TIME_TERMS : sizes.stop]
        add_time_terms(prior, trees, nodes, terms)
    certificate[CHECKSUM] = compute_checksum(value, sizes.max_nodes, fingerprint)
    return value


@njit(cache=True)
def decode(value, design, prior, sizes, trees, rows, buffer):
    """Fill working arrays from the node rows of a value; False if they are not a valid forest.

    Every rule is checked: whole column numbers of columns that vary, cuts inside the range of the
    node's training rows (so that no leaf is empty), trees that end where the next one starts. The
    prior terms of every node are recomputed from the training rows.

    Parameters
    ----------
    prior : tree prior
        Of the trees; only the split weights are used.
    trees : Trees
        Fresh from `make_trees`; overwritten.
    rows, buffer : (n,) uint32
        Overwritten.
    """
    n, n_rule_codes = sizes.n_rows, n_codes(design)
    starts = np.empty(sizes.max_nodes, dtype=np.int64)
    stops = np.empty(sizes.max_nodes, dtype=np.int64)
    stack = np.empty(sizes.max_nodes, dtype=np.int32)
    row = 0
    for t in range(sizes.m):
        for i in range(n):
            rows[i] = i
        root = trees.roots[t]
        starts[root], stops[root] = 0, n
        stack[0] = root
        height = 1
        while height > 0:
            height -= 1
            node = stack[height]
            start, stop = starts[node], stops[node]
            if row >= sizes.max_nodes:
                return False
            kind = value[row, 0]
            trees.count[node] = stop - start
            trees.unsplittable[node], trees.rate[node] = node_summary(
                prior, design, rows, start, stop
            )
            if kind == LEAF:
                for v in range(sizes.n_values):
                    trees.values[node, v] = value[row, 1 + v]
                    if not np.isfinite(value[row, 1 + v]):
                        return False
                for k in range(start, stop):
                    trees.leaf_of[t, rows[k]] = node
            else:
                if not (kind >= 0 and kind < n_rule_codes and kind == np.floor(kind)):
                    return False
                column = int(kind)
                cut = rule_code(design, column, value[row, 1])
                log_cut = log_rule(design, column, cut, rows, start, stop)
                if log_cut == -np.inf or not split_leaf(trees, node, column, cut):
                    return False
                context = context_of(trees, node)
                time = value[row, sizes.fields - 1] if sizes.timed else 0.0
                if not is_valid_time(prior, context, time):
                    return False
                trees.time[node] = time
                trees.log_cut[node] = log_cut
                split_column = column_of(design, column)
                trees.log_column[node] = log_column(
                    prior, design, split_column, log_cut, context.rate, rows, start, stop
                )
                middle = partition_rows(design, column, cut, rows, start, stop, buffer)
                left, right = trees.left[node], trees.right[node]
                starts[left], stops[left] = start, middle
                starts[right], stops[right] = middle, stop
                stack[height] = right
                stack[height + 1] = left
                height += 2
            row += 1
    for k in range(row, sizes.max_nodes):
        if value[k, 0] != UNUSED:
            return False
    return True


BLOCK = 1024
"""Rows of which all trees are added up before the next."""


@njit(cache=True)
def fit_of(leaf, trees, fit):
    """Write the sum over trees of the outputs at the training rows to ``fit``, (n, K).

    Each sum is taken in the order of the trees, as `evaluate` does, and so are those of
    `add_up_values` and `add_up_outputs`: they are equal to the last bit.
    """
    add_up_outputs(leaf, trees.values, trees.leaf_of, fit, 0, fit.shape[0])


@njit(cache=True, nogil=True)
def add_up_outputs(leaf, values, leaf_of, fit, first, last):
    """Write the sum over trees of the outputs at some training rows to ``fit``, (n, K)."""
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for i in range(start, stop):
            for k in range(fit.shape[1]):
                fit[i, k] = 0.0
        for t in range(leaf_of.shape[0]):
            of_tree = leaf_of[t]
            for i in range(start, stop):
                output = leaf_output(leaf, values[of_tree[i]], i)
                for k in range(fit.shape[1]):
                    fit[i, k] += output[k]


@njit(cache=True, nogil=True)
def add_up_values(values, leaf_of, out, first, last):
    """`add_up_outputs` of leaves with one value, which is their output.

    Parameters
    ----------
    values : (N,) float64
    leaf_of : (m, n) uint16 or uint32
    out : (n,) float64
    """
    m = leaf_of.shape[0]
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        total = out[start:stop]
        for i in range(total.size):
            total[i] = 0.0
        t = 0
        while t + 8 <= m:  # eight trees a visit of a row: its sum stays in a register
            a, b = leaf_of[t, start:stop], leaf_of[t + 1, start:stop]
            c, d = leaf_of[t + 2, start:stop], leaf_of[t + 3, start:stop]
            e, f = leaf_of[t + 4, start:stop], leaf_of[t + 5, start:stop]
            g, h = leaf_of[t + 6, start:stop], leaf_of[t + 7, start:stop]
            for i in range(total.size):
                s = total[i] + values[a[i]]
                s += values[b[i]]
                s += values[c[i]]
                s += values[d[i]]
                s += values[e[i]]
                s += values[f[i]]
                s += values[g[i]]
                total[i] = s + values[h[i]]
            t += 8
        while t < m:
            a = leaf_of[t, start:stop]
            for i in range(total.size):
                total[i] += values[a[i]]
            t += 1
