"""Rotate: a split node and its split parent change places, with the subtrees below them.

Pratola (2016, section 3) rotates a tree as a search tree is rotated. Let the parent have rule P and
children c, with rule R and subtrees A and B, and C; here c is drawn on the left:

**turn**, where R sends all rows of C one way, that of B say::

    P(R(A, B), C)  <->  R(A, P(B, C))

which keeps the rows of all leaves and is reversed by a turn;

**part**, where R parts the rows of C and C is a leaf, and **join**, its reverse, where both
children of a node have one rule and the leaves C1, C2 on one side of it::

    P(R(A, B), C)  <->  R(P(A, C1), P'(B, C2))

Two nodes never share a real-valued cut, so P' has the column of P and a cut that partitions its
rows as that of P does, uniform among these (`columns.alike`).

If R divides the rows of a C that is itself split, nothing is proposed: of Pratola's ways to merge
two subtrees only this one, which has a unique reverse, is used. The child c is uniform over the N
split nodes below the root. A join keeps the rule and the time of c, and takes one of the k sides,
one or two, on which it finds two leaves; a part gives the rule P and the time of c to one of the
two nodes, at random, and draws the cut and the time of the other, this one from its prior given
that the node splits: q is their density. So

    ratio of a turn = p(subtree') / p(subtree) * choice
    ratio of a part = p(subtree') / p(subtree) * choice * 2 N / (N' k' q),    N' = N + 1
    ratio of a join = p(subtree') / p(subtree) * choice * q N k / (2 N'),     N' = N - 1

with the terms of `swap`.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import draw_cut
from pymc_trees.core.columns.row_set import left_rows
from pymc_trees.core.columns.steps import alike_cuts, is_alike, log_alike
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.edit import (
    child_on,
    join_leaves,
    leaves_on,
    split_leaf,
    transpose,
    turn,
)
from pymc_trees.core.forest.trees import is_nog
from pymc_trees.core.moves.census import SPLIT, NodeCounts, draw_node
from pymc_trees.core.moves.choice import log_choice_ratio
from pymc_trees.core.moves.contract import FULL, Needs, register
from pymc_trees.core.moves.problem import proposed_rows, rows_of, unite_rows
from pymc_trees.core.moves.subtree import commit, load_subtree, log_current, log_replaced, send_down
from pymc_trees.core.priors.contract import (
    Place,
    draw_time,
    log_split,
    log_split_at,
    node_summary_of_set,
    place_of,
)
from pymc_trees.core.random import accepts, pick


class Rotate(NamedTuple):
    """A split node and its split parent change places."""


NOTHING, TURN, PART, JOIN = -2, 0, 1, -1
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
    way: int
    """Side to which the child's rule sends the sibling's rows, in a turn."""
    code: int
    """The parent's rule."""
    cut: float
    alike: tuple
    """Interval of cuts that partition the sibling's rows as its own does, in a join."""
    kept: tuple
    """Cut, time, and prior terms of the rule, of the child and of its sibling."""


@njit(cache=True)
def keep(trees, node):
    """Fields of a node that a rotation overwrites."""
    return trees.cut[node], trees.time[node], trees.log_cut[node], trees.log_column[node]


@njit(cache=True)
def restore(trees, node, kept):
    """Restore them."""
    trees.cut[node], trees.time[node], trees.log_cut[node], trees.log_column[node] = kept


@njit(cache=True)
def rotation_of(trees, design, child, work):
    """The `Rotation` that moves a child up."""
    top, column, cut = trees.parent[child], trees.column, trees.cut
    side = int(trees.right[top] == child)
    other = child_on(trees, top, 1 - side)
    rows = rows_of(trees, other, work)
    n_left = left_rows(design, column[child], cut[child], rows, work.proposed[0])
    kind, alike = NOTHING, (0.0, 0.0)
    if n_left == 0 or n_left == rows.n:
        kind = TURN
    elif column[other] < 0:
        kind = PART
    elif column[other] == column[child]:
        left = rows_of(trees, trees.left[other], work)
        right = rows_of(trees, trees.right[other], work)
        alike = alike_cuts(design, column[other], cut[other], left, right)
        if is_alike(cut[child], alike) and (leaves_on(trees, top, 0) or leaves_on(trees, top, 1)):
            kind = JOIN
    kept, way = (keep(trees, child), keep(trees, other)), int(n_left == 0)
    return Rotation(kind, top, child, other, side, way, column[top], cut[top], alike, kept)


@njit(cache=True)
def clear_rows(leaf, work):
    """Mark a node as a leaf without rows until its rows are set."""
    work.sets[leaf] = np.uint64(0)
    work.stats[leaf] = 0.0


@njit(cache=True)
def part(rng, problem, rotation, work):
    """Split a leaf by the rule of its sibling, and transpose; log of ``2 / (k' q)``."""
    trees, design, prior = problem.trees, problem.design, problem.prior
    top, child, other = rotation.top, rotation.child, rotation.other
    code, cut = trees.column[child], trees.cut[child]
    new = pick(rng, 2)
    send_down(design, code, cut, rows_of(trees, top, work), 0, 1, work)
    rows = proposed_rows(work, new)
    send_down(design, rotation.code, rotation.cut, rows, 2, 3, work)
    left, right = proposed_rows(work, 2), proposed_rows(work, 3)
    alike = alike_cuts(design, rotation.code, rotation.cut, left, right)
    unsplittable, rate = node_summary_of_set(prior, design, rows)
    place = Place(np.int64(trees.depth[child]), trees.time[top], rate, unsplittable)
    time, time_of_child = draw_time(rng, prior, place), trees.time[child]
    split_leaf(trees, other, code, cut)
    clear_rows(trees.left[other], work)
    clear_rows(trees.right[other], work)
    transpose(trees, top, 0)
    node = child_on(trees, top, new)
    if alike[0] < alike[1]:
        trees.cut[node] = draw_cut(rng, design, alike[0], alike[1])
    trees.time[node], trees.time[child_on(trees, top, 1 - new)] = time, time_of_child
    k = int(leaves_on(trees, top, 0)) + int(leaves_on(trees, top, 1))
    log_q = log_split_at(prior, place, time) - log_split(prior, place) + log_alike(alike)
    return np.log(2.0 / k) - log_q


@njit(cache=True)
def join(rng, problem, rotation, work):
    """Transpose, and join two leaves; log of ``q k / 2``."""
    trees, prior, top, other = problem.trees, problem.prior, rotation.top, rotation.other
    place, time_of_child = place_of(trees, other), trees.time[rotation.child]
    log_q = log_split_at(prior, place, trees.time[other]) - log_split(prior, place)
    log_q += log_alike(rotation.alike)
    on_left, on_right = leaves_on(trees, top, 0), leaves_on(trees, top, 1)
    side = pick(rng, 2) if on_left and on_right else int(on_right)
    transpose(trees, top, rotation.side)
    joined = child_on(trees, top, side)
    join_leaves(trees, joined)
    clear_rows(joined, work)
    trees.time[child_on(trees, top, 1 - side)] = time_of_child
    return log_q + np.log((int(on_left) + int(on_right)) / 2.0)


@njit(cache=True)
def do(rng, problem, rotation, work):
    """Rotate; log ratio of the probabilities of the reverse and of this move, without N."""
    trees = problem.trees
    log_back = 0.0
    if rotation.kind == TURN:
        turn(trees, rotation.top, rotation.side, rotation.way, work.below)
    elif rotation.kind == PART:
        log_back = part(rng, problem, rotation, work)
    else:
        log_back = join(rng, problem, rotation, work)
    return log_back


@njit(cache=True)
def undo(trees, rotation, work):
    """Restore the tree as it was before `do`."""
    top, child, other = rotation.top, rotation.child, rotation.other
    if rotation.kind == TURN:
        turn(trees, top, rotation.way, rotation.side, work.below)
    elif rotation.kind == PART:
        transpose(trees, top, 0)
        trees.cut[top] = rotation.cut
        join_leaves(trees, other)
    else:
        joined = child if trees.column[child] < 0 else other
        split_leaf(trees, joined, rotation.code, rotation.cut)  # with the same nodes of the pool
        transpose(trees, top, 0)
        unite_rows(work.sets, trees.left[joined], trees.right[joined], joined)
    restore(trees, child, rotation.kept[0])
    restore(trees, other, rotation.kept[1])


@njit(cache=True)
def offered(trees, unsplittable, subtree, work):
    """Leaves of a subtree that can grow, and its splits that can be pruned."""
    splittable_leaves, nogs = 0, 0
    for k in range(subtree.n_nodes):
        node = work.below[k]
        if trees.column[node] >= 0:
            nogs += is_nog(trees, node)
        else:
            splittable_leaves += not unsplittable[node]
    return splittable_leaves, nogs


@njit(cache=True)
def rotate(move, rng, problem, tree, moves, census, work):
    """Propose to rotate a random split node up; 1 when accepted, else 0.

    `FULL` when there is no room for a part to be proposed.
    """
    trees = problem.trees
    child = draw_node(rng, trees, work.nodes, 1, census.n_nodes, SPLIT, census.splits - 1)
    rotation = rotation_of(trees, problem.design, child, work)
    if rotation.kind == NOTHING:
        return 0
    if rotation.kind == PART and trees.n_free[0] < 2:
        return FULL
    subtree = load_subtree(trees, rotation.top, work)
    log_old = log_current(problem, subtree, work)
    open_before, nogs_before = offered(trees, trees.unsplittable, subtree, work)
    log_back = do(rng, problem, rotation, work)
    subtree = load_subtree(trees, rotation.top, work)
    log_new = log_replaced(problem, subtree, work, True)
    if log_new > -1e300:
        open_after, nogs_after = offered(trees, work.unsplittable, subtree, work)
        after = NodeCounts(
            census.n_nodes + 2 * rotation.kind,
            census.splittable_leaves + open_after - open_before,
            census.splits + rotation.kind,
            census.nogs + nogs_after - nogs_before,
        )
        log_ratio = (
            log_new
            - log_old
            + log_choice_ratio(moves, census, after)
            + log_back
            + np.log((census.splits - 1) / (after.splits - 1))
        )
        if accepts(rng, log_ratio):
            commit(trees, tree, subtree, work)
            return 1
    undo(trees, rotation, work)
    return 0


register("rotate", Rotate, needs=Needs(splits=2), asks=(alike_cuts,), propose=rotate)
