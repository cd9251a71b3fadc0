"""What is asked of any variable whose value is encoded trees, hard or soft, by its Op."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.core.soft import encode as soft
from pymc_trees.core.soft_forest import encode as soft_sums
from pymc_trees.core.soft_forest.encode import soft_sizes
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import CHECKSUM, is_intact, sizes
from pymc_trees.distributions.forest_inputs import (
    Evaluation,
    declared,
    evaluation,
    fingerprint_of,
    forest_inputs,
)
from pymc_trees.distributions.ops.evaluation import Evaluate
from pymc_trees.distributions.ops.forest_rv import ForestRV, leaf_at
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestEvaluate, SoftForestRV
from pymc_trees.distributions.ops.soft_tree_rv import SoftEvaluate, SoftTreeRV
from pymc_trees.distributions.ops.soft_tree_rv import fingerprint_of as soft_tree_fingerprint

# ------------------------------------------------------------------- Where a graph evaluates trees


OPS = Evaluate | SoftEvaluate | SoftForestEvaluate
"""Those that evaluate trees."""


def evaluations(
    graphs: Iterable[Variable],
    tree: Variable | None = None,
    blockers: Iterable[Variable] | None = None,
) -> list[Evaluation]:
    """Evaluations among the ancestors of some variables: of one tree, its variable or value."""
    found = [
        evaluation(v)
        for v in ancestors(graphs, blockers=blockers)
        if v.owner and isinstance(v.owner.op, OPS)
    ]
    return [one for one in found if tree is None or one.tree is tree]


# --------------------------------------------------------------------------------------------------


class TreeVariable(ABC):
    """A random variable of trees.

    Parameters
    ----------
    rv : TensorVariable
        The variable.
    """

    what: ClassVar[str]
    """Its kind, in words."""
    step: str
    """Public name of the step that `pymc.sample` assigns."""

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

    @abstractmethod
    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of (chain, draw, rows, fields) values."""

    @abstractmethod
    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs of some draws at up to ``most`` evenly spaced rows."""


class ForestVariable(TreeVariable):
    """A forest; it is evaluated at its training rows."""

    what = "forest"
    step = "pymc_trees.Hybrid"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""
        return self.op.layout.shape

    @functools.cached_property
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""
        return declared(self.rv).fingerprint

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
        chosen = evenly_spaced(layout.n_rows, most)
        k, leaf, numbers = layout.n_outputs, leaf_at(self.rv, X[chosen]), sizes(layout)
        out = np.empty((*draws.shape[:2], len(chosen) * k))
        for at in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[at])
            fit = evaluate(value, X[chosen], X, leaf, numbers, self.fingerprint)
            out[at] = fit.reshape(-1)
        return out


class SoftForestVariable(TreeVariable):
    """A forest of soft trees; it is evaluated at its training rows."""

    what = "forest of soft trees"
    step = "pymc_trees.SoftCGM"

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
        return draws[:, :, self.op.layout.max_nodes, CHECKSUM]

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at training rows."""
        known, numbers = forest_inputs(self.rv), soft_sizes(self.op.layout)
        X = known.X.data[evenly_spaced(len(known.X.data), most)]
        given = [v.data for v in (*known.unit_map, known.hard)]
        out = np.empty((*draws.shape[:2], len(X)))
        for at in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[at])
            out[at] = soft_sums.evaluate(value, X, *given, numbers, self.fingerprint)[:, 0]
        return out


class SoftTreeVariable(TreeVariable):
    """A soft tree; it is evaluated at the rows that the model now has."""

    what = "soft tree"

    def __init__(self, rv: Variable):
        super().__init__(rv)
        self.step = "pymc_trees.RJHMC" if self.op.by_index else "pymc_trees.DCCTree"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""
        return self.op.max_nodes, soft.n_fields(self.op.p, self.op.n_values)

    @functools.cached_property
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""
        return soft_tree_fingerprint(self.rv)

    def is_intact(self, value: np.ndarray) -> bool:
        """Whether a value of the right shape is one of this declaration."""
        return soft.is_intact(np.ascontiguousarray(value), self.fingerprint)

    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of values."""
        return draws[:, :, 0, -1]

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at present rows."""
        found = evaluations(model.deterministics, self.rv)[0]
        X, low, span, h = (v.eval() for v in (found.X, *found.rest[:3]))
        X = X[evenly_spaced(len(X), most)]
        n_values, fingerprint = self.op.n_values, self.fingerprint
        out = np.empty((*draws.shape[:2], len(X) * n_values))
        for at in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[at])
            fit = soft.evaluate(value, X, low, span, float(h), n_values, fingerprint)
            out[at] = fit.reshape(-1)
        return out


TREE_VARIABLES: dict[type, type[TreeVariable]] = {
    ForestRV: ForestVariable,
    SoftForestRV: SoftForestVariable,
    SoftTreeRV: SoftTreeVariable,
}
"""By the type of the Op."""


def is_tree_variable(rv: Variable) -> bool:
    """Whether the value of a variable is encoded trees."""
    return bool(rv.owner) and type(rv.owner.op) in TREE_VARIABLES


def tree_variable(rv: Variable) -> TreeVariable:
    """The face of a variable of trees."""
    return TREE_VARIABLES[type(rv.owner.op)](rv)


def tree_variables(model: pm.Model) -> list[TreeVariable]:
    """Free variables of a model that are trees."""
    return [tree_variable(rv) for rv in model.free_RVs if is_tree_variable(rv)]


def evenly_spaced(n: int, most: int) -> np.ndarray:
    """Up to ``most`` of n rows."""
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))
