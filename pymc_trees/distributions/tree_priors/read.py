"""The prior of the trees of a forest, read from its settings: split weights and grids, too."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple, cast

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.raise_op import Assert

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.table_file import each_column
from pymc_trees.distributions.data.numbers import is_random, present_numbers
from pymc_trees.distributions.data.schema import by_index, check_number_of_cuts
from pymc_trees.distributions.data.table import Table
from pymc_trees.distributions.tree_priors.contract import DepthPrior, TreePrior, check_depth_prior
from pymc_trees.predictors.columns import real_array

DEPTH_DEFAULTS = ((0.95, 2.0), (0.95, 1.0))
"""``alpha, beta`` of the front-ends where users give none."""


class DeclaredPrior(NamedTuple):
    """How trees over the rows of a table are split: checked settings."""

    trees: TreePrior
    weights: Variable
    """(p,) split weights."""
    weights_stamp: np.ndarray | str
    """What enters a forest's fingerprint for them."""
    kinds: np.ndarray
    """(p,) kinds of the columns, `Table.kinds`; empty when all are numbers, none missing."""
    cuts: np.ndarray
    """Grid cuts of all columns, one after another; empty for cuts anywhere."""
    offsets: np.ndarray
    """(p + 1,) where those of each column begin; empty likewise."""

    def check_fixed(self) -> None:
        """Raise an error for random settings, which ordered leaf values do not allow."""
        trees = {f.name: getattr(self.trees, f.name) for f in fields(cast(Any, self.trees))}
        for name, setting in (trees | {"split_prior": self.weights}).items():
            if isinstance(setting, Variable) and is_random(setting):
                raise NotImplementedError(
                    f"{name} is a random variable, but a forest with monotone columns needs a "
                    "number there: its conditional needs the prior probability of monotone trees "
                    "at each value. Only mean and sd of the leaf may be random: give a number."
                )


def read_prior(tree_prior, alpha, beta, split_prior, n_cuts, table: Table) -> DeclaredPrior:
    """Prior of trees over the rows of a table, or an error."""
    alpha, beta = check_depth_prior(alpha, beta)
    weights, stamp = read_split_prior(split_prior, table.schema.labels)
    kinds = table.kinds(_are_excluded(stamp, len(table.schema.rules)))
    trees = DepthPrior(alpha, beta) if tree_prior is None else _check(tree_prior, alpha, beta)
    trees.check_data(table.values, kinds, split_prior, n_cuts)
    grid = make_grid(table.values, n_cuts, kinds)
    grid = table.with_cuts(grid) if grid else grid
    cuts = np.concatenate(grid) if grid else np.empty(0)
    offsets = np.cumsum([0] + [len(g) for g in grid]) if grid else np.empty(0, dtype=np.int64)
    return DeclaredPrior(trees, weights, stamp, kinds, cuts, offsets.astype(np.int64))


def _check(tree_prior, alpha, beta) -> TreePrior:
    """A tree prior given in place of alpha and beta."""
    if isinstance(tree_prior, type) and issubclass(tree_prior, TreePrior):
        name = tree_prior.__name__
        raise TypeError(f"tree_prior is the class {name}: give {name}(...), with its settings.")
    if not isinstance(tree_prior, TreePrior):
        raise TypeError(
            f"tree_prior={tree_prior!r}: must be None, for the prior of alpha and beta, or "
            "pymc_trees.MondrianPrior(lifetime)."
        )
    is_given = isinstance(alpha, Variable) or isinstance(beta, Variable)
    if is_given or (alpha, beta) not in DEPTH_DEFAULTS:
        raise ValueError(
            "alpha and beta belong to the default tree prior: leave them out with "
            f"tree_prior={type(tree_prior).__name__}(...), which has its own settings."
        )
    return tree_prior


# ------------------------- Split weights of the columns: numbers, model data, or random variables


LEAST_WEIGHT = 1e-300
"""Weight below which a column that is not excluded does not fall."""


def read_split_prior(split_prior, labels: list) -> tuple[Variable, np.ndarray | str]:
    """Split weights of the p columns, checked as far as they are known.

    A 0 among numbers or model data excludes a column. New data cannot exclude others: the encoding
    of a forest knows which leaves have no column left to split. A random weight that underflows to
    0 excludes nothing, since it must not close nodes that the prior can split.

    Parameters
    ----------
    split_prior : array, Mapping, TensorVariable or None
        As `Forest` takes it.
    labels : list
        Names of the p columns of X, or their numbers (`Schema.labels`).

    Returns
    -------
    weights : (p,) TensorVariable
        Not necessarily normalised; 0 for excluded columns.
    stamp : array or str
        What enters a forest's fingerprint for them.
    """
    p = len(labels)
    if isinstance(split_prior, Variable):
        if split_prior.ndim != 1:
            raise ValueError("split_prior must be a vector with one weight per column of X.")
        [length] = split_prior.type.shape
        now = present_numbers(split_prior)
        if now is None:
            least: Any = LEAST_WEIGHT
            if length is None:  # new data may change it, which a vector of p does not follow
                length = int(split_prior.shape[0].eval(mode="FAST_COMPILE"))
                least = np.full(p, LEAST_WEIGHT)
            _check_length(length, p)
            return pt.maximum(split_prior, least), "unknown"
        if length is not None:
            _check_length(length, p)
        weights = _normalised(now, p)
        if any(isinstance(v, SharedVariable) for v in graph_inputs([split_prior])):
            return _replaceable(split_prior.astype("float64"), weights > 0)
    else:
        weights = _normalised(_by_column(split_prior, labels), p)
    return pt.constant(weights), weights


def _check_length(length: int, p: int) -> None:
    if length != p:
        raise ValueError(
            f"split_prior has {length} weights, but X has {p} columns: give one weight each."
        )


def excluded_columns(split_prior, labels: list) -> np.ndarray:
    """(p,) whether trees never split on a column; random weights exclude none."""
    return _are_excluded(read_split_prior(split_prior, labels)[1], len(labels))


def _are_excluded(stamp: np.ndarray | str, p: int) -> np.ndarray:
    if isinstance(stamp, str):
        return np.zeros(p, dtype=bool)
    return ~stamp if stamp.dtype == bool else stamp == 0


def _by_column(split_prior, labels):
    if split_prior is None:
        return np.ones(len(labels))
    if isinstance(split_prior, Mapping):
        chosen = by_index("split_prior", split_prior, labels)
        return [chosen.get(j, 1.0) for j in range(len(labels))]
    return split_prior


def _normalised(split_prior, p):
    try:
        weights = real_array(split_prior)
    except (TypeError, ValueError) as error:
        raise ValueError(f"split_prior must hold numbers only ({error}).") from error
    if weights.shape != (p,):
        raise ValueError(
            f"split_prior has shape {weights.shape}, but X has {p} columns: give one weight each."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError(
            "split_prior must hold finite weights of at least 0, not all 0; 0 excludes a column."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        scaled = weights / weights.max()
        total = scaled.sum()
    else:
        scaled = weights
    return np.where(weights > 0, np.maximum(scaled / total, LEAST_WEIGHT), 0.0)


def _replaceable(weights, included):
    unchanged = Assert(
        "split_prior: the weights must be finite, and 0 for the same columns as when the forest "
        "was declared. To exclude others, declare the model again."
    )
    weights = unchanged(
        weights,
        pt.all(pt.eq(weights > 0, included)),
        pt.all(weights >= 0),
        pt.all(weights < np.inf),
    )
    return pt.switch(included, pt.maximum(weights / pt.max(weights), LEAST_WEIGHT), 0.0), included


# ------------------------------------------------------------------------------- Cuts on a grid


def _midpoints(values: np.ndarray) -> np.ndarray:
    """Cuts that separate increasing numbers, each from the next: ``low <= cut < high``."""
    low, high = values[:-1], values[1:]
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)  # between adjacent floats it rounds to either


def make_grid(X: np.ndarray, n_cuts, kinds: np.ndarray | None = None) -> list[np.ndarray] | None:
    """At most ``n_cuts`` cuts per column between its distinct values, at even quantiles.

    A column with levels has none; missing cells are left out.
    """
    if n_cuts is None:
        return None
    n_cuts = check_number("n_cuts", n_cuts, 1, more=", or None for cuts anywhere")
    check_number_of_cuts(n_cuts, f"n_cuts={n_cuts}")
    grid = []
    for j, cells in enumerate(each_column(X)):
        x = cells[cells != MISSING]
        if kinds is not None and len(kinds) and kinds[j] != 0:
            x = x[:0]
        values = np.unique(x)
        cuts = _midpoints(values)
        if len(cuts) > n_cuts:
            at = np.quantile(x, np.arange(1, n_cuts + 1) / (n_cuts + 1), method="lower")
            # a cut at the largest value would leave its right side empty
            cuts = np.unique(at[at < values[-1]])
            if len(cuts) == 0:
                cuts = values[:1]
        grid.append(cuts)
    return grid
