"""A predictor as a model of ONNX: inputs, the program as operators, summaries over the draws."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_trees._version import __version__
from pymc_trees.core.columns.cells import MAX_CUT, MAX_LEVELS, MISSING
from pymc_trees.predictors import program
from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.elsewhere import tensors
from pymc_trees.predictors.elsewhere.asked import (
    Asked,
    Leaves,
    Splits,
    check_hard,
    commutes_with_mean,
    leaves_of,
    levels_in,
    splits_of,
)
from pymc_trees.predictors.elsewhere.tensors import ROWS, Graph, NotCarriedError, Tensor, where
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.laws import KINDS_OF_DRAWS
from pymc_trees.predictors.packed import PackedForest
from pymc_trees.predictors.rows import Data

# ------------------------------------------ Trees of a forest as TreeEnsemble operators, in float64
#
# A leaf of the operator has one number for one target. The targets are draws, or one for the mean
# of all draws; a forest of K outputs, or with slopes in q columns, has as many copies of its
# trees. Trees without a split become one node, both of whose leaves have their sum.


LEQ, MEMBER, SUM = 0, 6, 1
TREES_DOMAIN = "ai.onnx.ml"
BYTES_OF_NODE, MOST_BYTES = 50, 2**31
"""Of a split node with its leaves, about; of a message of protobuf."""


def tree_outputs(forest: PackedForest, X: Tensor, averaged: bool) -> Tensor:
    """(draws or 1, n, K) outputs at a (1, n, p) tensor, NaN in missing cells."""
    leaves, x = leaves_of(forest), X.squeezed([0])
    draws, width = 1 if averaged else forest.draws, leaves.values.shape[1]
    _check_size(forest, width)
    cells, settings = _without_new_levels(forest, x), _attributes(forest, averaged, x.graph)
    [name] = x.graph.node("TreeEnsemble", [cells.name], domain=TREES_DOMAIN, **settings)
    made = Tensor(x.graph, name, (ROWS, draws * width), np.float64)
    if not len(leaves.columns):
        return made.reshape(ROWS, draws, width).transposed([1, 0, 2])
    k = forest.n_outputs
    made = made.reshape(ROWS, draws, width // k, k).transposed([1, 0, 2, 3])
    z = _standardised(x, leaves).expanded([0, 3])  # (1, n, q, 1)
    slopes = made[(slice(None), slice(None), slice(1, None))] * z
    return made[(slice(None), slice(None), 0)] + np.sum(slopes, axis=2)


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


def _standardised(x: Tensor, leaves: Leaves) -> Tensor:
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


# -------------------------------------------------------------------------------------------------


OPERATORS, TREES, IR = 17, 5, 10
"""Versions of the operators, of those for trees, and of the format."""


def model_of(
    onnx,
    evaluator: Evaluator,
    arrays: dict[str, np.ndarray],
    asked: Asked,
    kinds: Sequence[str],
    probabilities: Sequence[float],
):
    """The `onnx.ModelProto` of summaries of a function."""
    graph = Graph(onnx)
    values = Inputs(graph, evaluator)
    averaged = tuple(kinds) == ("mean",) and commutes_with_mean(asked.program, asked.of)
    drawn = _Run(evaluator, arrays | asked.constants, asked, values, averaged).value()
    results = [summary(drawn, kind, probabilities, asked.axis) for kind in kinds]
    outputs = []
    for kind, one in zip(kinds, results, strict=True):
        graph.nodes.append(onnx.helper.make_node("Identity", [one.name], [kind]))
        outputs.append(onnx.helper.make_tensor_value_info(kind, 11, _named(one.shape)))
    made = onnx.helper.make_graph(
        graph.nodes, asked.name, values.described, outputs, initializer=graph.constants
    )
    versions = [
        onnx.helper.make_opsetid("", OPERATORS),
        onnx.helper.make_opsetid("ai.onnx.ml", TREES),
    ]
    return onnx.helper.make_model(
        made,
        opset_imports=versions,
        ir_version=IR,
        producer_name="pymc_trees",
        producer_version=__version__,
    )


def _named(shape) -> list:
    return ["rows" if n == ROWS else n for n in shape]


class Inputs:
    """Tables and data beside them, as inputs of a graph.

    A table of numbers is one input, (rows, columns); one with levels has an input for each column,
    (rows, 1): float64, or text where levels are text. A column that is called as an output is has
    the name of its table before it.

    Parameters
    ----------
    graph : Graph
        The graph.
    evaluator : Evaluator
        With the tables and data.
    """

    def __init__(self, graph: Graph, evaluator: Evaluator):
        self.graph, self._evaluator = graph, evaluator
        self.described: list[Any] = []
        self._several = len(evaluator.tables) > 1
        self._made: dict[tuple[str, int], Tensor] = {}

    def table(self, k: int) -> Tensor:
        """(1, n, p) cells: numbers and codes of levels, NaN where they are missing."""
        if ("table", k) not in self._made:
            name, schema, _ = self._evaluator.tables[k]
            p = len(schema.rules)
            if any(levels is not None for levels in schema.levels):
                columns = [self._column(name, schema, j) for j in range(p)]
                whole = tensors.joined(columns, 1) if p > 1 else columns[0]
            else:
                whole = self._input(name, (ROWS, p), np.float64)
            self._made["table", k] = whole.expanded(0)
        return self._made["table", k]

    def data(self, k: int) -> Tensor:
        """Data beside the tables, with an axis for the draws."""
        if ("data", k) not in self._made:
            one = self._evaluator.data[k]
            self._made["data", k] = self._beside(one).expanded(0)
        return self._made["data", k]

    def _input(self, name: str, shape, dtype, text=False) -> Tensor:
        kind = 8 if text else tensors.TYPES[str(np.dtype(dtype))]
        made = self.graph.onnx.helper.make_tensor_value_info(name, kind, _named(shape))
        if name in [one.name for one in self.described]:
            raise NotCarriedError(f"two inputs of the name {name}")
        self.described.append(made)
        return Tensor(self.graph, name, shape, dtype)

    def _column(self, table: str, schema: Schema, j: int) -> Tensor:
        name = str(j) if schema.names is None else schema.names[j]
        if self._several or schema.names is None or name in KINDS_OF_DRAWS:
            name = f"{table}.{name}"
        levels = schema.levels[j]
        if levels is None:
            return self._input(name, (ROWS, 1), np.float64)
        return self._coded(name, levels, (ROWS, 1), np.float64, np.nan)

    def _beside(self, data: Data) -> Tensor:
        kind = np.dtype(data.dtype).kind
        dtype = np.dtype(bool if kind == "b" else np.int64 if kind in "iu" else np.float64)
        shape = tuple(ROWS if n < 0 else n for n in data.shape)
        name = f"data.{data.name}" if data.name in KINDS_OF_DRAWS else data.name
        if data.levels is not None and data.is_named:
            found = self._coded(name, data.levels, shape, np.int64, 2**31)
            return found.astype(dtype)
        return self._input(name, shape, dtype)

    def _coded(self, name, levels, shape, dtype, default) -> Tensor:
        """Codes of levels."""
        is_text = [isinstance(one, str) for one in levels]
        if any(is_text) and not all(is_text):
            raise NotCarriedError(f"levels of {name} that are text and numbers")
        if not all(is_text) and any(float(one) != one for one in levels):
            raise NotCarriedError(f"levels of {name} that are no numbers of float64")
        given = self._input(name, shape, np.float64, text=all(is_text))
        keys = np.array(levels, dtype=object if all(is_text) else np.float64)
        [coded] = self.graph.node(
            "LabelEncoder",
            [given.name],
            domain=TREES_DOMAIN,
            keys_tensor=self.graph.tensor(keys),
            values_tensor=self.graph.tensor(np.arange(len(levels), dtype=dtype)),
            default_tensor=self.graph.tensor(np.array([default], dtype=dtype)),
        )
        return Tensor(self.graph, coded, shape, dtype)


class _Run:
    """The program, written down.

    Parameters
    ----------
    evaluator : Evaluator
        With the forests.
    arrays : dict of str and array
        Draws and constants.
    asked : Asked
        What is wanted.
    inputs : Inputs
        Of the graph.
    averaged : bool
        Whether trees and parameters are averaged over the draws.
    """

    def __init__(self, evaluator: Evaluator, arrays, asked: Asked, inputs: Inputs, averaged: bool):
        self._evaluator, self._arrays = evaluator, arrays
        self._asked, self._inputs, self._averaged = asked, inputs, averaged

    def value(self) -> Tensor:
        """Of what is asked, (draws or 1, ...)."""
        steps = self._asked.program
        values: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            for k in program.needed(steps, [self._asked.of]):
                values[k] = self._step(steps[k], [values[i] for i in steps[k].get("of", ())])
        found = values[self._asked.of]
        if not isinstance(found, Tensor) or ROWS not in found.shape:
            raise NotCarriedError("no row")
        return found.astype(np.float64)

    def _step(self, step, of):
        op = step["op"]
        if op == "rows":
            return self._inputs.table(step["table"])
        if op == "data":
            return self._inputs.data(step["data"])
        if op == "constant":
            return self._arrays[f"constant/{step['number']}"]
        if op == "draws":
            drawn = self._arrays[f"draws/{step['name']}"]
            return drawn.mean(axis=0, keepdims=True) if self._averaged else drawn
        if op == "forest":
            forest = self._evaluator.forests[step["forest"]]
            check_hard(forest, "to_onnx")
            if not isinstance(of[0], Tensor) or of[0].shape[0] != 1:
                raise NotCarriedError("trees at rows that are drawn")
            return tree_outputs(forest, of[0], self._averaged)
        if not any(isinstance(one, Tensor) for one in of):
            return program.ELEMENTWISE[op](*of) if op in program.ELEMENTWISE else \
                program._shaped(op, step, of)  # fmt: skip
        return self._of_rows(op, step, of)

    def _of_rows(self, op: str, step, of):
        if op == "clip":
            return np.minimum(np.maximum(of[0], of[1]), of[2])
        if op == "second":
            return tensors.like(of[1], of[0])
        if op in program.ELEMENTWISE:
            return program.ELEMENTWISE[op](*of)
        if op == "cast":
            down = of[0].astype(step["dtype"])
            return (
                down.astype(np.float64) if down.dtype.itemsize < 8 and down.dtype != bool else down
            )
        if op == "join":
            return tensors.joined(of, step["axes"][0] + 1)
        if op == "take":
            if not isinstance(of[1], Tensor):
                raise NotCarriedError("fixed entries")
            return tensors.taken(of[0], of[1], step["axes"][0])
        if op == "set":
            index = [one if isinstance(one, int) else slice(*one) for one in step["index"]]
            return tensors.changed(of[0], of[1], index)
        return program._shaped(op, step, of)


def summary(values: Tensor, kind: str, probabilities: Sequence[float], axis: int) -> Tensor:
    """Over the draws, rows first."""
    if kind == "mean":
        return _rows_first(values.mean(axis=0), axis - 1)
    if kind == "sd":
        off = values - values.mean(axis=0, keepdims=True)
        variance = (off * off).mean(axis=0)
        return _rows_first(variance.then("Sqrt"), axis - 1)
    n, graph = values.shape[0], values.graph
    many = graph.constant(np.array([n]))
    ordered, _ = graph.node("TopK", [values.name, many], 2, axis=0, largest=0, sorted=1)
    ordered = Tensor(graph, ordered, values.shape, np.float64)
    found: list[Any] = []
    for q in probabilities:
        place = q * (n - 1)
        low = int(np.floor(place))
        below, above = ordered[low], ordered[min(low + 1, n - 1)]
        between = below + (above - below) * (place - low)
        found.append(np.expand_dims(between, (values.ndim - 1,)))
    whole = tensors.joined(found, values.ndim - 1) if len(found) > 1 else found[0]
    return _rows_first(whole, axis - 1)


def _rows_first(x: Tensor, axis: int) -> Tensor:
    return x.transposed([axis, *(k for k in range(x.ndim) if k != axis)])
