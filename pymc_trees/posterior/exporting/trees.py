"""Encoded draws of a forest as the ragged arrays of `predictors.packed`."""

from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import SET
from pymc_trees.core.leaves.coefficients import read_linear
from pymc_trees.core.leaves.contract import constant_leaf
from pymc_trees.core.soft_forest.encode import BANDWIDTHS
from pymc_trees.core.value.fields import CHECKSUM
from pymc_trees.distributions.forest_inputs import declared, forest_inputs, training_rows
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.posterior.draws import StoredDraws
from pymc_trees.predictors.packed import CONSTANT, LINEAR, SOFT, smallest


def packed_forest(
    forest: Variable, draws: StoredDraws, which: np.ndarray
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `PackedForest` takes: facts, and arrays.

    Parameters
    ----------
    forest : Variable
        The random variable.
    draws : StoredDraws
        Checked draws of it.
    which : (each,) int
        Draws of each chain that are taken.

    Raises
    ------
    ValueError
        For trees of another kind.
    """
    kind = _kind_of(forest)
    layout, p = forest.owner.op.layout, training_rows(forest).shape[1]
    n_values, max_nodes = layout.n_values, layout.max_nodes
    taken = [draws[chain, draw] for chain in range(draws.shape[0]) for draw in which]
    columns, numbers, certificates = [], [], []
    for value in taken:
        used = int((value[:max_nodes, 0] > -2).sum())
        columns.append(value[:used, 0].astype(np.int64))
        numbers.append(value[:used, 1 : 1 + n_values])
        certificates.append(value[max_nodes:].reshape(-1))
    column, number = np.concatenate(columns), np.concatenate(numbers)
    is_split = column >= 0
    cuts, places = np.unique(number[is_split, 0], return_inverse=True)
    arrays = {
        "sizes": smallest(_sizes(column)),
        "rules": smallest(column + 1),
        "places": smallest(places.reshape(-1)),
        "cuts": cuts,
        "values": number[~is_split],
    }
    about = {
        "name": str(forest.name),
        "kind": kind,
        "draws": len(taken),
        "trees": layout.m,
        "columns": p,
        "outputs": layout.n_outputs,
        "mixed": kind != SOFT and layout.mixed,
    }
    certificate = np.array([one[: BANDWIDTHS + layout.m] for one in certificates])
    if kind == SOFT:
        inputs = forest_inputs(forest)
        for name, one in zip(("knots", "heights", "offsets"), inputs.unit_map, strict=True):
            arrays[name] = np.asarray(one.data)
        arrays["offsets"] = arrays["offsets"].astype(np.int64)
        arrays["hard"] = np.asarray(inputs.hard.data, dtype=bool)
        arrays["bandwidths"] = certificate[:, BANDWIDTHS:].reshape(-1)
        return about, arrays
    if layout.mixed:
        arrays["levels"] = _levels(training_rows(forest), column[is_split], p)
    else:
        arrays["seeds"] = certificate[:, CHECKSUM].astype(np.uint64)
    if kind == LINEAR:
        arrays["slopes"] = np.asarray(declared(forest).constants, dtype=np.float64)
    return about, arrays


def _kind_of(forest: Variable) -> str:
    if is_soft_forest(forest):
        return SOFT
    outputs = forest.owner.op.leaf_type.outputs if is_forest(forest) else None
    if outputs is constant_leaf:
        return CONSTANT
    if outputs is read_linear:
        return LINEAR
    raise ValueError(
        f"{forest.name} has trees or leaves that a predictor cannot hold: it takes BART, "
        "DecisionTree and SoftBART with the leaves of the package. Use predictions(idata, model)."
    )


def _sizes(column: np.ndarray) -> np.ndarray:
    """Nodes of each tree, of trees in preorder one after another."""
    below = np.cumsum(np.where(column >= 0, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(below, 0))
    ends = np.flatnonzero(np.diff(lowest, prepend=0) < 0)
    return np.diff(ends, prepend=-1)


def _levels(X: np.ndarray, rules: np.ndarray, p: int) -> np.ndarray:
    """(p,) numbers of levels in training rows, of columns that some rule splits by them."""
    levels = np.zeros(p, dtype=np.int64)
    for j in np.unique(rules[rules // p >= SET] % p):
        levels[j] = int(X[:, j].max()) + 1
    return levels
