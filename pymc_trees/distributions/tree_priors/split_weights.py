"""Split weights as a forest takes them: numbers, model data, or random variables."""

from collections.abc import Mapping

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import graph_inputs
from pytensor.raise_op import Assert

from pymc_trees.distributions.data.numbers import present_numbers, real_array
from pymc_trees.distributions.data.schema import by_place

LEAST = 1e-300
"""Weight below which a column that is not excluded does not fall."""


def read_split_prior(split_prior, p: int, names=None) -> tuple[Variable, np.ndarray | str]:
    """Split weights of the p columns, checked as far as they are known.

    Numbers and model data say by a 0 which columns are excluded. Which ones cannot change with the
    data: a forest is encoded with the leaves that they leave nothing to split. A random weight that
    underflows to 0 excludes nothing, since it must not close nodes that the prior can split.

    Parameters
    ----------
    split_prior : array, Mapping, TensorVariable or None
        As `Forest` takes it.
    p : int
        Columns of X.
    names : sequence of str, optional
        Their names.

    Returns
    -------
    weights : (p,) TensorVariable
        Not necessarily normalised; 0 for excluded columns.
    stamp : array or str
        What a forest's fingerprint is to know of them.
    """
    if isinstance(split_prior, Variable):
        if split_prior.ndim != 1:
            raise ValueError("split_prior must be a vector with one weight per column of X.")
        if split_prior.type.shape[0] not in (None, p):
            raise ValueError(
                f"split_prior has {split_prior.type.shape[0]} weights, but X has {p} columns: give "
                "one weight each."
            )
        now = present_numbers(split_prior)
        if now is None:
            return pt.maximum(split_prior, LEAST), "unknown"
        weights = _normalised(now, p)
        if any(isinstance(v, SharedVariable) for v in graph_inputs([split_prior])):
            return _replaceable(split_prior.astype("float64"), weights > 0)
    else:
        weights = _normalised(_by_column(split_prior, p, names), p)
    return pt.constant(weights), weights


def excluded_columns(split_prior, p: int, names=None) -> np.ndarray:
    """(p,) whether trees never split on a column; random weights exclude none."""
    _, known = read_split_prior(split_prior, p, names)
    if isinstance(known, str):
        return np.zeros(p, dtype=bool)
    return ~known if known.dtype == bool else known == 0


def _by_column(split_prior, p, names):
    if split_prior is None:
        return np.ones(p)
    if isinstance(split_prior, Mapping):
        chosen = by_place("split_prior", split_prior, list(range(p) if names is None else names))
        return [chosen.get(j, 1.0) for j in range(p)]
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
    return np.where(weights > 0, np.maximum(scaled / total, LEAST), 0.0)


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
    return pt.switch(included, pt.maximum(weights / pt.max(weights), LEAST), 0.0), included
