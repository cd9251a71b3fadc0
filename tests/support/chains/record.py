"""What is kept of a chain: partitions as numbers, depths, columns of the roots, outputs."""

from typing import NamedTuple

import numpy as np
from numba import njit

from pymc_trees.core.forest.trees import preorder


class Chain(NamedTuple):
    """Record of a run."""

    codes: np.ndarray
    depths: np.ndarray
    roots: np.ndarray
    fits: np.ndarray
    proposed: np.ndarray
    accepted: np.ndarray


@njit(cache=True)
def partition_code(leaf_of, base):
    """Whole number that names the partition of one tree: labels in order of appearance."""
    n = leaf_of.size
    labels = np.empty(n, dtype=np.int64)
    code, used = 0, 0
    for i in range(n):
        labels[i] = used
        for k in range(i):
            if leaf_of[k] == leaf_of[i]:
                labels[i] = labels[k]
                break
        used += labels[i] == used
        code = code * base + labels[i]
    return code


@njit(cache=True)
def record(trees, nodes, s, codes, depths, roots, fits):
    """Write draw ``s`` of what `run_sweeps` records."""
    m, n = trees.leaf_of.shape
    for t in range(m):
        codes[s, t] = partition_code(trees.leaf_of[t], n)
        deepest = 0
        for k in range(preorder(trees, trees.roots[t], nodes)):
            deepest = max(deepest, trees.depth[nodes[k]])
        depths[s, t] = deepest
        roots[s, t] = trees.column[trees.roots[t]]
    if fits.shape[0] > 0:
        fits[s] = 0.0
        for t in range(m):
            for i in range(n):
                fits[s, i] += trees.values[trees.leaf_of[t, i]]


def partition_of(code, n):
    """Partition, as the oracle writes it, of a code."""
    labels = []
    for _ in range(n):
        code, label = divmod(int(code), n)
        labels.append(label)
    labels.reverse()
    groups = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    return frozenset(frozenset(rows) for rows in groups.values())
