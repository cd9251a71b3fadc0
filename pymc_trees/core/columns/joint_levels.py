"""Sets of levels that keep blocks of rows together; missing cells count as one more level."""

import numpy as np

from pymc_trees.core.compile.bits import popcount
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.random import pick

MISSING_LEVEL = np.int64(1) << np.int64(62)
"""Bit of the missing cells in a set of levels."""


@njit(cache=True)
def join_levels(levels, missing, blocks, start, stop):
    """Write the sets of levels that stay together to ``joint``; return their number."""
    order, joint = blocks.order, blocks.joint
    n = 0
    for k in range(start, stop):
        block, kept = order[k], 0
        found = levels[block] | (MISSING_LEVEL if missing[block] else np.int64(0))
        for q in range(n):
            if joint[q] & found != 0:
                found |= joint[q]
            else:
                joint[kept] = joint[q]
                kept += 1
        joint[kept] = found
        n = kept + 1
    return n


@njit(cache=True)
def is_single(levels):
    """Whether a set has exactly one level; missing cells do not count."""
    return popcount(np.uint64(levels & ~MISSING_LEVEL)) == 1


@njit(cache=True)
def chances_of_levels(kind, joint, n_joint):
    """Of missing rows apart, and of a set of levels elsewhere: `chance_uncut`; the missing's set.

    ``joint[:n_joint]`` is from `join_levels`; the missing cells' set is 0 where none is missing.
    """
    present, of_missing, n_single = np.int64(0), np.int64(0), 0
    for q in range(n_joint):
        present |= joint[q] & ~MISSING_LEVEL
        n_single += is_single(joint[q])
        if joint[q] & MISSING_LEVEL != 0:
            of_missing = joint[q]
    n_present = popcount(np.uint64(present))
    is_alone = of_missing == MISSING_LEVEL
    apart, elsewhere = 0.0, 1.0
    if of_missing != 0:
        apart = 1.0 if n_present == 1 else 1.0 / (1.0 + n_present)
        elsewhere = 1.0 - apart
        if n_present == 0 or not is_alone:
            apart = 0.0
        if not is_alone:
            elsewhere *= 0.5
    if n_present < 2:
        elsewhere = 0.0
    elif kind < 0:
        elsewhere *= n_single / n_present
    else:
        elsewhere *= (2.0 ** (n_joint - int(is_alone)) - 2.0) / (2.0**n_present - 2.0)
    return apart, elsewhere, of_missing


@njit(cache=True)
def draw_levels_uncut(rng, kind, joint, n_joint):
    """`draw_uncut` of a column of levels: the side of missing rows, and the set that goes left."""
    apart, elsewhere, of_missing = chances_of_levels(kind, joint, n_joint)
    every = (np.int64(1) << abs(kind)) - 1
    side = int(rng.random() < 0.5)
    if rng.random() * (apart + elsewhere) < apart:
        return side, 0.0 if side == 1 else float(every)
    chosen = np.int64(0)
    if kind < 0:
        n_single = 0
        for q in range(n_joint):
            n_single += is_single(joint[q])
        target = pick(rng, n_single)
        for q in range(n_joint):
            if is_single(joint[q]):
                if target == 0:
                    chosen = joint[q]
                target -= 1
    else:
        present = np.int64(0)
        for q in range(n_joint):
            present |= joint[q] & ~MISSING_LEVEL
        inside = np.int64(0)
        while inside == 0 or inside == present:
            chosen = np.int64(0)
            for q in range(n_joint):
                if rng.random() < 0.5:
                    chosen |= joint[q]
            inside = chosen & present
        for level in range(kind):
            if (present >> level) & 1 == 0 and rng.random() < 0.5:
                chosen |= np.int64(1) << level
    if of_missing != 0 and of_missing != MISSING_LEVEL:
        side = int(chosen & MISSING_LEVEL != 0)
    return side, float(chosen & ~MISSING_LEVEL)
