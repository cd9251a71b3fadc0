"""One interface to all variables whose value is encoded trees, hard or soft, by their Op."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.core.soft_forest import encode as soft_sums
from pymc_trees.core.soft_forest.encode import soft_sizes
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import CHECKSUM, is_intact, sizes
from pymc_trees.distributions.forest_inputs import (
    Evaluation,
    FunctionOfRows,
    declared,
    evaluation,
    fingerprint_of,
    forest_inputs,
)
from pymc_trees.distributions.ops.forest_rv import ForestRV, leaf_at
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV

# ------------------------------------------------------------------- Where a graph evaluates trees


def evaluations(
    graphs: Iterable[Variable],
    tree: Variable | None = None,
    blockers: Iterable[Variable] | None = None,
) -> list[Evaluation]:
    """Evaluations among the ancestors of some variables: of one tree, its variable or value."""
    all_evaluations = (
        evaluation(v)
        for v in ancestors(graphs, blockers=blockers)
        if v.owner and isinstance(v.owner.op, FunctionOfRows)
    )
    return [e for e in all_evaluations if tree is None or e.tree is tree]


# --------------------------------------------------------------------------------------------------


class TreeVariable(ABC):
    """A random variable of trees: what the rest of the package asks of it.

    Parameters
    ----------
    rv : TensorVariable
        The variable.
    """

    what: ClassVar[str]
    """Its kind, in words."""
    declared_by: ClassVar[str]
    """Public name of what declares it."""
    step: str
    """Public name of the step that `pymc.sample` assigns."""
    sampled_by: ClassVar[str] = "pm.sample()"
    """How a model with it is sampled, in words."""
    moves_with_all: ClassVar[bool] = False
    """Whether its step moves every other continuous variable too."""
    is_soft: ClassVar[bool] = False
    """Whether every row is in every leaf."""
    settings: ClassVar[str]
    """Settings other than sizes that the checksum of a value covers."""
    field_settings: ClassVar[str]
    """Settings that determine how many numbers a node has."""

    def __init__(self, rv: Variable):
        self.rv, self.op, self.name = rv, rv.owner.op, rv.name

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""

    @property
    @abstractmethod
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""

    @abstractmethod
    def is_intact(self, value: np.ndarray) -> bool:
        """Whether a value of the right shape is one of this declaration."""

    def why_no_nodes(self, names: list[str]) -> str:
        """For soft trees: an error where the rows of nodes are needed, with a remedy."""
        return ""

    @abstractmethod
    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of (chain, draw, rows, fields) values."""

    @abstractmethod
    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs of some draws at up to ``most`` evenly spaced rows."""


class ForestVariable(TreeVariable):
    """A forest; it is evaluated at its training rows."""

    what = "forest"
    declared_by = "BART or DecisionTree"
    step = "pymc_trees.Hybrid"
    settings = (
        "leaf, tree_prior, split_rules, split_prior, n_cuts or training inputs X (values, order of "
        "rows or columns)"
    )
    field_settings = "leaf or tree_prior"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""
        return self.op.layout.shape

    @functools.cached_property
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""
        return fingerprint_of(self.rv)

    def is_intact(self, value: np.ndarray) -> bool:
        """Whether a value of the right shape is one of this declaration."""
        return is_intact(np.ascontiguousarray(value), self.op.layout.max_nodes, self.fingerprint)

    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of values."""
        layout = self.op.layout
        flat = draws.reshape(*draws.shape[:2], -1)
        return flat[..., layout.max_nodes * layout.fields + CHECKSUM]

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at training rows."""
        layout, X = self.op.layout, declared(self.rv).X
        rows = X[evenly_spaced(layout.n_rows, most)]
        leaf, numbers = leaf_at(self.rv, rows), sizes(layout)
        out = np.empty((*draws.shape[:2], len(rows) * layout.n_outputs))
        for draw in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[draw])
            out[draw] = evaluate(value, rows, X, leaf, numbers, self.fingerprint).reshape(-1)
        return out


class SoftForestVariable(ForestVariable):
    """A forest of soft trees; it is evaluated at its training rows."""

    what = "forest of soft trees"
    declared_by = "SoftBART"
    step = "pymc_trees.SoftCGM"
    settings = "hard columns, split_prior or training inputs X"
    field_settings = "leaf"
    is_soft = True

    def why_no_nodes(self, names: list[str]) -> str:
        """Why nodes are not sets of rows, and what describes the function instead."""
        return (
            f"The trees of {names} are soft: in a SoftBART every row is in every leaf, and a node "
            "is not a set of rows. get_variable_inclusion and get_interaction_inclusion count "
            "their splits; partial_dependence, comparisons, permutation_importance and "
            "shap_values with background= describe the function."
        )

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at training rows."""
        inputs, numbers = forest_inputs(self.rv), soft_sizes(self.op.layout)
        rows = inputs.X.data[evenly_spaced(self.op.layout.n_rows, most)]
        columns = [v.data for v in (*inputs.unit_map, inputs.hard)]
        out = np.empty((*draws.shape[:2], len(rows)))
        for draw in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[draw])
            out[draw] = soft_sums.evaluate(value, rows, *columns, numbers, self.fingerprint)[:, 0]
        return out


TREE_VARIABLES: dict[type, type[TreeVariable]] = {
    ForestRV: ForestVariable,
    SoftForestRV: SoftForestVariable,
}
"""By the type of the Op. A wing with trees of its own adds to it."""


def is_tree_variable(rv: Variable) -> bool:
    """Whether the value of a variable is encoded trees."""
    return bool(rv.owner) and type(rv.owner.op) in TREE_VARIABLES


def tree_variable(rv: Variable) -> TreeVariable:
    """Interface to a variable of trees."""
    return TREE_VARIABLES[type(rv.owner.op)](rv)


def tree_variables(model: pm.Model) -> list[TreeVariable]:
    """Free variables of a model that are trees."""
    return [tree_variable(rv) for rv in model.free_RVs if is_tree_variable(rv)]


def evenly_spaced(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n rows."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))
