"""Shapley values of any function of rows, from its values where columns of two rows are mixed.

A row is explained against a background. With the columns in S taken from the row, and the others
from each row of the background in turn, the game is the mean of g,

    nu(S) = mean over b of g(x in S, b elsewhere),    phi_j = sum_S w(|S|) (nu(S + j) - nu(S)),

S over the sets without j, w(s) = s! (k - s - 1)! / k! for k columns. A column at which g never
looks adds nothing to any set, so only the columns that matter are counted, draw by draw. If they
are few, all 2^k sets are evaluated (`of_all_sets`). Otherwise columns enter in random orders
(`of_random_orders`): phi_j is the mean, over all orders, of the change of nu when j enters. An
order and its reverse are taken together (Mitchell et al. 2022, section 3.3): for pairs of columns
the mean of the two is exact. Every row of the background has orders of its own. So the estimate is
unbiased, it adds up to g exactly, and its error is known from the spread between the orders of the
same row.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, applys_between
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.core.explain.paths import count_choices
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.posterior.reading.functions import without_cast
from pymc_trees.posterior.reading.table import ANY_X
from pymc_trees.posterior.reading.whole import WholeFunction

CELLS = 2**23
"""Cells of the mixed rows that are made at once, 64 MiB."""
PAIRS = 10
"""Pairs of orders where users give no number; then up to seven columns are enumerated."""

Game = Callable[[np.ndarray], np.ndarray]
"""(outputs, rows) values at a matrix of rows."""


def all_sets_are_cheaper(k: int, pairs: int) -> bool:
    """Whether all sets of k columns take no more evaluations than pairs of orders."""
    return 2**k <= 2 * k * pairs or k < 2


# ------------------------------------------------------------------------------ All sets of columns


@cache
def set_weights(k: int) -> np.ndarray:
    """(2^k, k) by which the game at each set, bit j for column j, enters the value of column j."""
    members = _members(np.arange(2**k), k)
    sizes = members.sum(axis=1, keepdims=True)
    each = np.array([1 / (k * math.comb(k - 1, s)) for s in range(k)])
    return np.where(members, each[sizes - 1], -each[np.minimum(sizes, k - 1)])


def of_all_sets(g: Game, X, background, columns) -> np.ndarray:
    """(n, p, outputs) Shapley values of the rows of X, from the game at all sets of columns."""
    (n, p), k = X.shape, len(columns)
    if k == 0:
        return np.zeros((n, p, len(g(X[:1]))))
    weights, room = set_weights(k), max(1, CELLS // (p * len(background)))
    at_once = max(1, room // 2**k)
    parts = []
    for start in range(0, n, at_once):
        x, values = X[start : start + at_once], 0.0
        for first in range(0, 2**k, room):
            sets = np.arange(first, min(first + room, 2**k))
            inside = _members(sets, k)[None, :, None]
            mixed = _mixed(x[:, None, None], background[None, None], inside, columns)
            game = g(mixed.reshape(-1, p)).reshape(-1, *mixed.shape[:-1]).mean(axis=-1)
            values = values + np.einsum("onS,Sj->njo", game, weights[sets])
        parts.append(values)
    return _spread(np.concatenate(parts), p, columns)


def _members(sets: np.ndarray, k: int) -> np.ndarray:
    """(sets, k) whether each column is in the set."""
    return (sets[:, None] >> np.arange(k) & 1).astype(bool)


def _mixed(x, background, inside, columns) -> np.ndarray:
    """Rows of the background with the columns inside a set from x; all of them broadcast."""
    shape = np.broadcast_shapes(x.shape[:-1], background.shape[:-1], inside.shape[:-1])
    mixed = np.array(np.broadcast_to(background, (*shape, x.shape[-1])))
    for k, j in enumerate(columns):
        mixed[..., j] = np.where(inside[..., k], x[..., j], background[..., j])
    return mixed


def _spread(values: np.ndarray, p: int, columns) -> np.ndarray:
    """(n, p, outputs) values of some columns; 0 in the others."""
    n, _, outputs = values.shape
    whole = np.zeros((n, p, outputs))
    whole[:, columns] = values
    return whole


# ---------------------------------------------------------------------------------- Random orders


def of_random_orders(rng, g: Game, X, background, columns, pairs) -> tuple[np.ndarray, np.ndarray]:
    """Unbiased Shapley values of the rows of X, and their standard errors: both (n, p, outputs).

    Parameters
    ----------
    pairs : int
        Orders, each with its reverse, for each row and row of the background; at least 2.
    """
    p, size, k = X.shape[1], len(background), len(columns)
    at_once = max(1, CELLS // (2 * (k - 1) * p * pairs))
    of_b = g(background)
    values, errors = [], []
    for x, of_x in zip(X, g(X).T, strict=True):
        mean, variance = np.zeros((2, len(of_x), k))
        for first in range(0, size, at_once):
            some = slice(first, first + at_once)
            b = background[some]
            rank = rng.permuted(np.tile(np.arange(k), (len(b), pairs, 1)), axis=-1)
            change = _changes(g, x, of_x, b, of_b[:, some], rank, columns)
            mean = mean + change.mean(axis=2).sum(axis=1) / size
            variance = variance + change.var(axis=2, ddof=1).sum(axis=1) / (pairs * size**2)
        values.append(np.transpose(mean))
        errors.append(np.sqrt(np.transpose(variance)))
    return _spread(np.array(values), p, columns), _spread(np.array(errors), p, columns)


def _changes(g: Game, x, of_x, background, of_b, rank, columns) -> np.ndarray:
    """(outputs, b, pairs, k) change of g when a column enters, over an order and its reverse.

    ``rank`` (b, pairs, k) is the place of each column in an order. The sets of the reverse order
    are what the sets of the order leave.
    """
    k = rank.shape[-1]
    inside = rank[..., None, :] < np.arange(1, k)[:, None]
    inside = np.concatenate([inside, ~inside[..., ::-1, :]], axis=-2)
    mixed = _mixed(x, background[:, None, None], inside, columns)
    between = g(mixed.reshape(-1, len(x))).reshape(-1, *mixed.shape[:-1])
    shape = (*between.shape[:-1], 1)
    start = np.broadcast_to(of_b[:, :, None, None], shape)
    end = np.broadcast_to(of_x[:, None, None, None], shape)
    change: np.ndarray = np.zeros(())
    for path, place in ((between[..., : k - 1], rank), (between[..., k - 1 :], k - 1 - rank)):
        steps = np.diff(np.concatenate([start, path, end], axis=-1))
        change = change + 0.5 * np.take_along_axis(steps, place[None], axis=-1)
    return change


# ----------------------------------------------------------------------- The columns that matter


class ColumnsThatMatter:
    """The columns of the table of a function that can change its value, draw by draw.

    Those on which a tree of the draw splits; data beside X; columns of X that the function uses
    outside its trees; and all columns of trees for which the splits are not all that counts, such
    as those with lines in leaves.
    """

    def __init__(self, function: WholeFunction):
        self._function = function
        self._always = _outside(function)
        self._splits: list[tuple[int, list[int]]] = []
        """Number of the tree variable, and the columns of the table that its columns are."""
        for one, base in zip(function.evaluated, function.bases, strict=True):
            place = function.table.columns_of(base)
            if without_cast(one.X) is base and _splits_are_all(one.tree):
                self._splits.append((function.trees.index(one.tree), place))
            else:
                self._always |= set(place)

    def at(self, chain: int, draw: int) -> set[int]:
        """Columns of the table."""
        found = set(self._always)
        for number, place in self._splits:
            p, layout = len(place), self._function.trees[number].owner.op.layout
            value = np.array(self._function.draws[number][chain, draw], order="C")
            counts, pairs = np.empty(p, dtype=np.int64), np.empty((0, 0), dtype=np.int64)
            count_choices(value, p, layout.m, counts, pairs)
            found |= {place[j] for j in np.flatnonzero(counts)}
        return found


def _splits_are_all(tree: Variable) -> bool:
    """Whether trees see nothing of a row but its sides at their splits, which are readable."""
    if is_soft_forest(tree):
        return True
    return is_forest(tree) and tree.owner.op.layout.own_outputs is None


def _outside(function: WholeFunction) -> set[int]:
    """Columns of the table that an expression uses beside what its trees return."""
    inputs = {one.outputs: one.outputs.type() for one in function.evaluated}
    [whole] = clone_replace([function.variable], inputs, rebuild_strict=False)
    found: set[int] = set()
    for source, place in zip(function.table.sources, function.table.places, strict=True):
        if source.schema is None:
            found |= set(place)
            continue
        own = [(v, place) for v in source.variables]
        own += [(v, [place[j] for j in columns]) for v, columns in source.inner]
        below = set(ancestors([whole]))
        for base, columns in own:
            for node in applys_between([base], [whole]) if base in below else ():
                if base in node.inputs and base.ndim == 2:
                    found |= {columns[j] for j in _taken_by(node, base, len(columns))}
                elif base in node.inputs:
                    found |= set(columns)
    return found


def _taken_by(node, base: Variable, p: int) -> set[int]:
    """Columns of X that a node takes: X[:, 2], none for its shape, and otherwise all."""
    if isinstance(node.op, Shape | Shape_i):
        return set()
    if isinstance(node.op, Subtensor) and node.inputs[0] is base:
        _, *columns = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
        if len(columns) == 1 and isinstance(columns[0], int | np.integer | Constant):
            return {int(getattr(columns[0], "data", columns[0])) % p}
    return set(range(p))


# --------------------------------------------------------------------------------------------------


class MixedRows:
    """Shapley values of a function of a model against rows of a background, draw by draw.

    Parameters
    ----------
    function : WholeFunction
        What is explained.
    X, background : ndarray
        (n, p) and (b, p) rows of its table.
    pairs : int
        Of orders, where the columns that matter are many.
    """

    def __init__(self, function: WholeFunction, X, background, pairs: int):
        function.check(X)
        function.check(background)
        self.function, self.X, self.background, self.pairs = function, X, background, pairs
        self._columns = ColumnsThatMatter(function)
        both = np.concatenate([X, background])
        self._vary = set(np.flatnonzero((both != both[0]).any(axis=0)))

    def at(self, chain: int, draw: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(n, p, outputs) values and standard errors, and the (outputs,) mean, in a draw."""
        function, values_at = self.function, self.function.at(chain, draw)

        def g(rows):
            f = function.func(values_at(rows)).reshape(-1, len(rows))
            if not np.isfinite(f).all():
                raise ValueError(
                    f"{function.name} is not finite where columns of a row of X and of the "
                    f"background are mixed, in chain {chain}, draw {draw}: give a background, or "
                    "a func, for which all such rows have a value."
                )
            return f

        columns = sorted(self._columns.at(chain, draw) & self._vary)
        base = g(self.background).mean(axis=-1)
        if all_sets_are_cheaper(len(columns), self.pairs):
            values = of_all_sets(g, self.X, self.background, columns)
            return values, np.zeros_like(values), base
        found = of_random_orders(rng, g, self.X, self.background, columns, self.pairs)
        return *found, base


def check_background(background, function: WholeFunction) -> None:
    """Raise an error where a mapping gives what is the same for all rows, or no data at all."""
    known = {str(name) for source in function.table.sources for name in _names_of(source)}
    other = [key for key in background if key not in known]
    if other:
        raise ValueError(
            f"background: {other} are no data with an entry for each row of {function.name}: give "
            "only such, and what is the same for all rows in X=."
        )


def _names_of(source) -> list[str]:
    of_X = [ANY_X] if source.schema is not None else []
    return [source.name, *(v.name for v in source.variables), *of_X]
