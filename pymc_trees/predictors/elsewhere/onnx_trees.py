"""Trees of a forest as TreeEnsemble operators, in float64.

A leaf of the operator has one number for one target. The targets are draws, or one for the mean of
all draws; a forest of K outputs, or with slopes in q columns, has as many copies of its trees.
Trees without a split become one node, both of whose leaves have their sum.
"""

from typing import Any

import numpy as np

from pymc_trees.core.columns.cells import MAX_CUT, MAX_LEVELS, MISSING
from pymc_trees.predictors.elsewhere.tensors import ROWS, Graph, Tensor, where
from pymc_trees.predictors.elsewhere.trees import Leaves, Splits, leaves_of, levels_in, splits_of
from pymc_trees.predictors.packed import PackedForest

LEQ, MEMBER, SUM = 0, 6, 1
DOMAIN = "ai.onnx.ml"
BYTES_OF_NODE, MOST_BYTES = 50, 2**31
"""Of a split node with its leaves, about; of a message of protobuf."""


def outputs(forest: PackedForest, X: Tensor, averaged: bool) -> Tensor:
    """(draws or 1, n, K) outputs at a (1, n, p) tensor, NaN in missing cells."""
    leaves, x = leaves_of(forest), X.squeezed([0])
    draws, width = 1 if averaged else forest.draws, leaves.values.shape[1]
    _check_size(forest, width)
    cells, settings = _without_new_levels(forest, x), _attributes(forest, averaged, x.graph)
    [name] = x.graph.node("TreeEnsemble", [cells.name], domain=DOMAIN, **settings)
    made = Tensor(x.graph, name, (ROWS, draws * width), np.float64)
    made = made.reshape(ROWS, draws, width).transposed([1, 0, 2])
    if forest.n_outputs == width and not len(leaves.columns):
        return made
    z = np.expand_dims(_standardised(x, leaves), 0)  # (1, n, q)
    slopes = made[(slice(None), slice(None), slice(1, None))] * z
    return made[(slice(None), slice(None), slice(0, 1))] + np.sum(slopes, axis=2, keepdims=True)


def _check_size(forest: PackedForest, copies: int) -> None:
    size = BYTES_OF_NODE * len(forest.links.split) * copies
    if size > MOST_BYTES:
        raise ValueError(
            f"to_onnx: {forest.about['name']} would take some {size / 2**30:.1f} GB, and a model "
            "of ONNX has 2 at the most. Give draws=, fewer of them."
        )


def _without_new_levels(forest: PackedForest, x: Tensor) -> Tensor:
    """Cells with NaN where they are missing, or have a level that no training row had."""
    absent, splits = x == MISSING, splits_of(forest)
    if forest.mixed and splits.is_set.any():
        limit = np.full(forest.p, np.inf)
        columns = np.unique(splits.column[splits.is_set])
        limit[columns] = forest.arrays["levels"][columns]
        absent = absent | (x >= limit)
    return where(absent, np.nan, x)


def _standardised(x: Tensor, leaves: Leaves):
    columns = x.then("Gather", (ROWS, len(leaves.columns)), axis=1,
                     more=[x.graph.constant(leaves.columns)])  # fmt: skip
    mean, sd, low, high = leaves.scale.T
    ends = np.clip(columns, low, high) if leaves.clipped else columns
    absent = np.isnan(columns) | (columns == MISSING)
    return where(absent, 0.0, (ends - mean) / sd)


def _attributes(forest: PackedForest, averaged: bool, graph: Graph) -> dict[str, Any]:
    """Of the operator: nodes of the trees that split, then those of the others."""
    splits, leaves, links = splits_of(forest), leaves_of(forest), forest.links
    n_trees, n_splits = forest.draws * forest.trees, len(links.split)
    n_targets, width = 1 if averaged else forest.draws, leaves.values.shape[1]
    weights = leaves.values / (forest.draws if averaged else 1)
    draw_of = np.arange(n_trees) // forest.trees * (not averaged)
    is_leaf, is_single = forest.arrays["rules"] == 0, np.diff(links.roots) == 1
    copies = [k for k in range(width) if k == 0 or weights[:, k].any()]
    c = len(copies)
    targets = np.repeat(draw_of, np.diff(links.roots))[is_leaf] * width

    sums = np.zeros((n_targets, width))  # of trees without a split
    np.add.at(sums, draw_of[is_single], weights[links.leaf[links.roots[:-1][is_single]]])
    alone = np.flatnonzero(sums.reshape(-1) if n_splits or sums.any() else [1.0])
    own = np.arange(len(alone))

    def children(to):
        """Numbers of child nodes, and those of leaves, of all copies and single nodes."""
        at = [
            np.where(
                is_leaf[to], links.leaf[to] + k * len(weights), links.split_of[to] + k * n_splits
            )
            for k in range(c)
        ]
        return np.concatenate(at)

    roots = [links.split_of[links.roots[:-1][~is_single]] + k * n_splits for k in range(c)]
    first = c * len(weights) + 2 * own
    is_member, cut, sets = _conditions(forest, splits)
    integers = {
        "tree_roots": [*roots, c * n_splits + own],
        "nodes_featureids": [np.tile(splits.column, c), 0 * own],
        "nodes_truenodeids": [children(links.split + 1), first],
        "nodes_falsenodeids": [children(links.right), first + 1],
        "nodes_trueleafs": [np.tile(is_leaf[links.split + 1], c), 0 * own + 1],
        "nodes_falseleafs": [np.tile(is_leaf[links.right], c), 0 * own + 1],
        "nodes_missing_value_tracks_true": [np.tile(splits.missing_left, c), 0 * own],
        "leaf_targetids": [*(targets + k for k in copies), np.repeat(alone, 2)],
    }
    mode = np.tile(np.where(is_member, MEMBER, LEQ), c)
    arrays = {
        "nodes_modes": np.append(mode, 0 * own).astype(np.uint8),
        "nodes_splits": np.append(np.tile(cut, c), 0.0 * own),
        "leaf_weights": np.append(
            weights[:, copies].T.reshape(-1), np.repeat(sums.reshape(-1)[alone], 2)
        ),
    }
    if sets:
        arrays["membership_values"] = np.array(sets * c)
    numbers = {k: np.concatenate(v).astype(np.int64).tolist() for k, v in integers.items()}
    tensors = {k: graph.tensor(v) for k, v in arrays.items()}
    settings = {"n_targets": n_targets * width, "aggregate_function": SUM, "post_transform": 0}
    return {**settings, **numbers, **tensors}


def _conditions(forest: PackedForest, splits: Splits) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Which splits ask for membership, cuts of the others, and members with NaN behind each set.

    A set of no level or of all is a cut: the operator has no empty sets.
    """
    bits = np.where(splits.is_set, splits.cut, -1.0)
    whole = 2.0 ** forest.arrays["levels"][splits.column] - 1.0 if forest.mixed else 0.0 * bits
    cut = np.where(bits == 0.0, -MAX_CUT, splits.cut)
    is_all = splits.is_set & (bits == whole)
    cut = np.where(is_all, MAX_CUT, cut)
    is_member = (bits > 0.0) & ~is_all
    sets = [[*map(float, levels_in(one, MAX_LEVELS)), np.nan] for one in bits[is_member]]
    return is_member, np.where(is_member, 0.0, cut), [level for one in sets for level in one]
