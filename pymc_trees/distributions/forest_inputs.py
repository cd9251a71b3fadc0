"""The inputs of the Ops of trees: the only file that knows their positions.

Inputs of a `ForestRV` after the generator and the size:

======================== ============================================================
``X``                    (n, p) training inputs, a constant
``grid``, ``offsets``    grid cuts of `core.columns.design`; empty for continuous cuts
``fingerprint``          of the design, the split weights and the layout
``kinds``                (p,) kinds of the columns (`core.columns.mixed`); empty unless mixed
``alpha``, ``beta``      depth prior; for a layout with times the lifetime of a Mondrian
                         process, and 0
``weights``              (p,) split weights
``constants``            (c,) of the leaf's outputs, a constant; empty for most
leaf parameters          those of the leaf's prior
======================== ============================================================

Those of a `SoftForestRV`, of `SoftBART`:

============================== ======================================================
``X``                          (n, p) training inputs, a constant
``knots, heights, offsets``    map of the columns to [0, 1], `core.soft_forest.unit`
``hard``                       (p,) whether the gates of a column are indicators
``fingerprint``                of the inputs, the hard columns, split weights and layout
``bandwidth``                  prior mean of the bandwidths, a constant
``alpha``, ``beta``            depth prior
``weights``                    (p,) split weights
leaf parameters                mean and sd of the leaf values
============================== ======================================================
"""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op


class ForestInputs(NamedTuple):
    """Parameters of a forest."""

    X: Variable
    grid: Variable
    offsets: Variable
    fingerprint: Variable
    kinds: Variable
    alpha: Variable
    beta: Variable
    weights: Variable
    constants: Variable
    leaf: tuple[Variable, ...]

    @classmethod
    def of(cls, parameters) -> "ForestInputs":
        """From the inputs after the generator and the size."""
        n = len(cls._fields) - 1
        return cls._make([*parameters[:n], tuple(parameters[n:])])

    @property
    def design(self) -> tuple[Variable, ...]:
        """Constants of the graph: with the weights they make the design."""
        return self[:5]

    @property
    def settings(self) -> list[Variable]:
        """Alpha, beta, weights and the parameters of the leaf's prior."""
        return [self.alpha, self.beta, self.weights, *self.leaf]


class SoftForestInputs(NamedTuple):
    """Parameters of a forest of soft trees."""

    X: Variable
    knots: Variable
    heights: Variable
    offsets: Variable
    hard: Variable
    fingerprint: Variable
    bandwidth: Variable
    alpha: Variable
    beta: Variable
    weights: Variable
    leaf: tuple[Variable, ...]

    @classmethod
    def of(cls, parameters) -> "SoftForestInputs":
        """From the inputs after the generator and the size."""
        n = len(cls._fields) - 1
        return cls._make([*parameters[:n], tuple(parameters[n:])])

    @property
    def unit_map(self) -> tuple[Variable, ...]:
        """Map of the columns to [0, 1]."""
        return self[1:4]

    @property
    def settings(self) -> list[Variable]:
        """Alpha, beta, weights and the parameters of the leaf's prior."""
        return [self.alpha, self.beta, self.weights, *self.leaf]


def forest_inputs(forest: Variable):
    """Parameters of a forest variable: `ForestInputs`, or `SoftForestInputs` of soft trees."""
    return forest.owner.op.inputs_type.of(forest.owner.inputs[2:])


def training_rows(forest: Variable) -> np.ndarray:
    """(n, p) inputs that a forest variable was declared with, hard or soft."""
    return forest_inputs(forest).X.data


def fingerprint_of(forest: Variable) -> float:
    """Fingerprint of the declaration of a forest variable, hard or soft."""
    return float(forest_inputs(forest).fingerprint.data)


class Declared(NamedTuple):
    """Numbers that a forest was declared with."""

    X: np.ndarray
    grid: np.ndarray
    offsets: np.ndarray
    fingerprint: float
    kinds: np.ndarray
    constants: np.ndarray

    @property
    def cuts(self) -> list[np.ndarray] | None:
        """Grid cuts of each column; None for continuous cuts."""
        return None if self.offsets.size == 0 else np.split(self.grid, self.offsets[1:-1])


def declared(forest: Variable) -> Declared:
    """Numbers that a forest variable was declared with."""
    inputs = forest_inputs(forest)
    X, grid, offsets, fingerprint, kinds = (v.data for v in inputs.design)
    return Declared(X, grid, offsets, float(fingerprint), kinds, inputs.constants.data)


class FunctionOfRows(Op):
    """Outputs of an encoded value, the first input, at the rows of X, the second.

    Shape (rows of X, ``n_outputs``).
    """

    n_outputs: int

    def make_node(self, value, X, *others):
        """Apply to an encoded value, inputs, and what the kernel takes beside them."""
        X = pt.as_tensor(X)
        if X.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional (rows, columns), but has {X.ndim} dimensions. For a "
                "single column use X.reshape((-1, 1)), for a single row X.reshape((1, -1))."
            )
        X = X.astype("float64")
        output = pt.tensor(dtype="float64", shape=(X.type.shape[0], self.n_outputs))
        return Apply(self, [pt.as_tensor(v) for v in (value, X, *others)], [output])

    def infer_shape(self, node, input_shapes):
        """One row per row of X."""
        return [(input_shapes[1][0], pt.constant(self.n_outputs, dtype="int64"))]


class Evaluation(NamedTuple):
    """Inputs of an Op that evaluates trees, and what it computes."""

    outputs: Variable
    tree: Variable
    """The variable, or its value."""
    X: Variable
    rest: tuple[Variable, ...]
    """Its other inputs."""


def evaluation(outputs: Variable) -> Evaluation:
    """Inputs of the Op that evaluates a tree."""
    tree, X, *rest = outputs.owner.inputs
    return Evaluation(outputs, tree, X, tuple(rest))
