"""Encoded draws of a forest as the ragged arrays of `predictors.packed`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import SET
from pymc_trees.core.leaves.coefficients import read_linear
from pymc_trees.core.leaves.contract import constant_leaf
from pymc_trees.core.leaves.vector_lines import read_vector_lines
from pymc_trees.core.soft_forest.encode import BANDWIDTHS
from pymc_trees.core.value.fields import CHECKSUM, UNUSED
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
    layout, X = forest.owner.op.layout, training_rows(forest)
    p = X.shape[1]
    taken = [draws[chain, draw] for chain in range(draws.shape[0]) for draw in which]
    arrays = packed_values(taken, layout.max_nodes, layout.n_values)
    about = {
        "name": str(forest.name),
        "kind": kind,
        "draws": len(taken),
        "trees": layout.m,
        "columns": p,
        "outputs": layout.n_outputs,
        "mixed": kind != SOFT and layout.mixed,
    }
    certificate = np.array(
        [value[layout.max_nodes :].reshape(-1)[: BANDWIDTHS + layout.m] for value in taken]
    )
    if kind == SOFT:
        inputs = forest_inputs(forest)
        for name, one in zip(("knots", "heights", "offsets"), inputs.unit_map, strict=True):
            arrays[name] = np.asarray(one.data)
        arrays["offsets"] = arrays["offsets"].astype(np.int64)
        arrays["hard"] = np.asarray(inputs.hard.data, dtype=bool)
        arrays["bandwidths"] = certificate[:, BANDWIDTHS:].reshape(-1)
        return about, arrays
    if layout.mixed:
        arrays["levels"] = levels_of_rules(X, arrays["rules"])
    else:
        arrays["seeds"] = certificate[:, CHECKSUM].astype(np.uint64)
    if kind == LINEAR:
        arrays["slopes"] = np.asarray(declared(forest).constants, dtype=np.float64)
    return about, arrays


def packed_values(
    values: Sequence[np.ndarray], max_nodes: int, n_values: int
) -> dict[str, np.ndarray]:
    """Trees of encoded forests, one after another."""
    columns, numbers = [], []
    for value in values:
        used = int((value[:max_nodes, 0] > UNUSED).sum())
        columns.append(value[:used, 0].astype(np.int64))
        numbers.append(value[:used, 1 : 1 + n_values])
    column, number = np.concatenate(columns), np.concatenate(numbers)
    is_split = column >= 0
    cuts, places = np.unique(number[is_split, 0], return_inverse=True)
    return {
        "sizes": smallest(_sizes(column)),
        "rules": smallest(column + 1),
        "places": smallest(places.reshape(-1)),
        "cuts": cuts,
        "values": number[~is_split],
    }


def _kind_of(forest: Variable) -> str:
    if is_soft_forest(forest):
        return SOFT
    outputs = forest.owner.op.leaf_type.outputs if is_forest(forest) else None
    if outputs is constant_leaf:
        return CONSTANT
    if outputs in (read_linear, read_vector_lines):
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


def levels_of_rules(X: np.ndarray, rules: np.ndarray) -> np.ndarray:
    """(p,) numbers of levels in training rows, of columns that some rule splits by them."""
    p = X.shape[1]
    split = rules[rules > 0].astype(np.int64) - 1
    levels = np.zeros(p, dtype=np.int64)
    for j in np.unique(split[split // p >= SET] % p):
        levels[j] = int(X[:, j].max()) + 1
    return levels
