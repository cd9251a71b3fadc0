"""Rotate: a split node and its split parent change places, with the subtrees below them.

Pratola (2016, section 3) rotates a tree as a search tree is rotated. Let the parent have rule P and
children c, with rule R and subtrees A and B, and C; here c is drawn on the left:

**plain**, where R sends all rows of C one way, that of B say::

    P(R(A, B), C)  <->  R(A, P(B, C))

which keeps the rows of all leaves and is reversed by a plain rotation;

**splitting**, where R splits the rows of C and C is a leaf, and **joining**, its reverse, where
both children of a node have one rule and the leaves C1, C2 on one side of it::

    P(R(A, B), C)  <->  R(P(A, C1), P'(B, C2))

Two nodes never share a real-valued cut, so P' has the column of P and a cut that partitions its
rows as that of P does, uniform among these (`equivalent_cuts`).

If R divides the rows of a C that is itself split, nothing is proposed: of Pratola's ways to merge
two subtrees only this one, which has a unique reverse, is used. The child c is uniform over the N
split nodes below the root. Joining keeps the rule and the time of c, and takes one of the k sides,
one or two, on which it finds two leaves; splitting gives the rule P and the time of c to one of the
two nodes, at random, and draws the cut and the time of the other, the time from its prior given
that the node splits: q is their density. So

    ratio of plain     = p(subtree') / p(subtree) * choice
    ratio of splitting = p(subtree') / p(subtree) * choice * 2 N / (N' k' q),    N' = N + 1
    ratio of joining   = p(subtree') / p(subtree) * choice * q N k / (2 N'),     N' = N - 1

with the terms of `swap`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import draw_cut
from pymc_trees.core.columns.row_set import left_rows
from pymc_trees.core.columns.steps import equivalent_cuts, is_equivalent, log_equivalent
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import (
    child_on,
    join_leaves,
    leaves_on,
    rotate_up,
    split_leaf,
    transpose,
)
from pymc_trees.core.moves.contract import FULL, Needs, log_choice_ratio, register
from pymc_trees.core.moves.problem import (
    SPLIT,
    NodeCounts,
    draw_node,
    proposed_rows,
    rows_of,
    union_rows,
)
from pymc_trees.core.moves.subtree import (
    commit,
    count_candidates,
    load_subtree,
    log_current,
    log_proposed,
    split_rows,
)
from pymc_trees.core.priors.contract import (
    NodeContext,
    context_of,
    draw_time,
    log_time,
    node_summary_of_set,
)
from pymc_trees.core.random import accepts, pick


class Rotate(NamedTuple):
    """A split node and its split parent change places."""


IMPOSSIBLE, PLAIN, SPLITTING, JOINING = -2, 0, 1, -1
"""Kinds; their values are the number of splits added."""


class Rotation(NamedTuple):
    """A rotation of a tree, and the fields that it overwrites."""

    kind: int
    top: int
    """Parent."""
    child: int
    """The child that moves up."""
    other: int
    """Its sibling."""
    side: int
    """Side of the child."""
    other_side: int
    """Side to which the child's rule sends the sibling's rows, in a plain rotation."""
    code: int
    """The parent's rule."""
    cut: float
    equivalent: tuple
    """Interval of cuts that partition the sibling's rows as its own does, in joining."""
    saved: tuple
    """Cut, time, and prior terms of the rule, of the child and of its sibling."""


@njit(cache=True)
def save_fields(trees, node):
    """Fields of a node that a rotation overwrites."""
    return trees.cut[node], trees.time[node], trees.log_cut[node], trees.log_column[node]


@njit(cache=True)
def restore_fields(trees, node, saved):
    """Restore what `save_fields` returned."""
    trees.cut[node], trees.time[node], trees.log_cut[node], trees.log_column[node] = saved


@njit(cache=True)
def rotation_of(trees, design, child, work):
    """The `Rotation` that moves a child up."""
    top, column, cut = trees.parent[child], trees.column, trees.cut
    side = int(trees.right[top] == child)
    other = child_on(trees, top, 1 - side)
    rows = rows_of(trees, other, work)
    n_left = left_rows(design, column[child], cut[child], rows, work.proposed[0])
    kind, equivalent = IMPOSSIBLE, (0.0, 0.0)
    if n_left == 0 or n_left == rows.n:
        kind = PLAIN
    elif column[other] < 0:
        kind = SPLITTING
    elif column[other] == column[child]:
        left = rows_of(trees, trees.left[other], work)
        right = rows_of(trees, trees.right[other], work)
        equivalent = equivalent_cuts(design, column[other], cut[other], left, right)
        if is_equivalent(cut[child], equivalent) and (
            leaves_on(trees, top, 0) or leaves_on(trees, top, 1)
        ):
            kind = JOINING
    saved, other_side = (save_fields(trees, child), save_fields(trees, other)), int(n_left == 0)
    return Rotation(
        kind, top, child, other, side, other_side, column[top], cut[top], equivalent, saved
    )


@njit(cache=True)
def clear_rows(leaf, work):
    """Mark a node as a leaf without rows until its rows are set."""
    work.sets[leaf] = np.uint64(0)
    work.stats[leaf] = 0.0


@njit(cache=True)
def rotate_and_split(rng, problem, rotation, work):
    """Split a leaf by the rule of its sibling, and transpose; log of ``2 / (k' q)``."""
    trees, design, prior = problem.trees, problem.design, problem.prior
    top, child, other = rotation.top, rotation.child, rotation.other
    code, cut = trees.column[child], trees.cut[child]
    new = pick(rng, 2)
    split_rows(design, code, cut, rows_of(trees, top, work), 0, 1, work)
    rows = proposed_rows(work, new)
    split_rows(design, rotation.code, rotation.cut, rows, 2, 3, work)
    left, right = proposed_rows(work, 2), proposed_rows(work, 3)
    equivalent = equivalent_cuts(design, rotation.code, rotation.cut, left, right)
    unsplittable, rate = node_summary_of_set(prior, design, rows)
    context = NodeContext(np.int64(trees.depth[child]), trees.time[top], rate, unsplittable)
    time, child_time = draw_time(rng, prior, context), trees.time[child]
    split_leaf(trees, other, code, cut)
    clear_rows(trees.left[other], work)
    clear_rows(trees.right[other], work)
    transpose(trees, top, 0)
    node = child_on(trees, top, new)
    if equivalent[0] < equivalent[1]:
        trees.cut[node] = draw_cut(rng, design, equivalent[0], equivalent[1])
    trees.time[node], trees.time[child_on(trees, top, 1 - new)] = time, child_time
    k = int(leaves_on(trees, top, 0)) + int(leaves_on(trees, top, 1))
    log_q = log_time(prior, context, time) + log_equivalent(equivalent)
    return np.log(2.0 / k) - log_q


@njit(cache=True)
def rotate_and_join(rng, problem, rotation, work):
    """Transpose, and join two leaves; log of ``q k / 2``."""
    trees, prior, top, other = problem.trees, problem.prior, rotation.top, rotation.other
    context, child_time = context_of(trees, other), trees.time[rotation.child]
    log_q = log_time(prior, context, trees.time[other]) + log_equivalent(rotation.equivalent)
    on_left, on_right = leaves_on(trees, top, 0), leaves_on(trees, top, 1)
    side = pick(rng, 2) if on_left and on_right else int(on_right)
    transpose(trees, top, rotation.side)
    joined = child_on(trees, top, side)
    join_leaves(trees, joined)
    clear_rows(joined, work)
    trees.time[child_on(trees, top, 1 - side)] = child_time
    return log_q + np.log((int(on_left) + int(on_right)) / 2.0)


@njit(cache=True)
def apply_rotation(rng, problem, rotation, work):
    """Rotate; log ratio of the probabilities of the reverse and of this move, without N."""
    trees = problem.trees
    log_reverse = 0.0
    if rotation.kind == PLAIN:
        rotate_up(trees, rotation.top, rotation.side, rotation.other_side, work.below)
    elif rotation.kind == SPLITTING:
        log_reverse = rotate_and_split(rng, problem, rotation, work)
    else:
        log_reverse = rotate_and_join(rng, problem, rotation, work)
    return log_reverse


@njit(cache=True)
def revert_rotation(trees, rotation, work):
    """Restore the tree as it was before `apply_rotation`."""
    top, child, other = rotation.top, rotation.child, rotation.other
    if rotation.kind == PLAIN:
        rotate_up(trees, top, rotation.other_side, rotation.side, work.below)
    elif rotation.kind == SPLITTING:
        transpose(trees, top, 0)
        trees.cut[top] = rotation.cut
        join_leaves(trees, other)
    else:
        joined = child if trees.column[child] < 0 else other
        split_leaf(trees, joined, rotation.code, rotation.cut)  # with the same nodes of the pool
        transpose(trees, top, 0)
        union_rows(work.sets, trees.left[joined], trees.right[joined], joined)
    restore_fields(trees, child, rotation.saved[0])
    restore_fields(trees, other, rotation.saved[1])


@njit(cache=True)
def rotate(move, rng, problem, tree, moves, node_counts, work):
    """Propose to rotate a random split node up; 1 when accepted, else 0.

    `FULL` if the pool has no room for the nodes of a splitting rotation.
    """
    trees = problem.trees
    child = draw_node(rng, trees, work.nodes, 1, node_counts.n_nodes, SPLIT, node_counts.splits - 1)
    rotation = rotation_of(trees, problem.design, child, work)
    if rotation.kind == IMPOSSIBLE:
        return 0
    if rotation.kind == SPLITTING and trees.n_free[0] < 2:
        return FULL
    subtree = load_subtree(trees, rotation.top, work)
    log_old = log_current(problem, subtree, work)
    splittable_before, nogs_before = count_candidates(trees, trees.unsplittable, subtree, work)
    log_reverse = apply_rotation(rng, problem, rotation, work)
    subtree = load_subtree(trees, rotation.top, work)
    log_new = log_proposed(problem, subtree, work, True)
    if log_new > -1e300:
        splittable_after, nogs_after = count_candidates(trees, work.unsplittable, subtree, work)
        after = NodeCounts(
            node_counts.n_nodes + 2 * rotation.kind,
            node_counts.splittable_leaves + splittable_after - splittable_before,
            node_counts.splits + rotation.kind,
            node_counts.nogs + nogs_after - nogs_before,
        )
        log_ratio = (
            log_new
            - log_old
            + log_choice_ratio(moves, node_counts, after)
            + log_reverse
            + np.log((node_counts.splits - 1) / (after.splits - 1))
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    revert_rotation(trees, rotation, work)
    return 0


register("rotate", Rotate, needs=Needs(splits=2), uses=(equivalent_cuts,), propose=rotate)
