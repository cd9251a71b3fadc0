"""What the rest of the package asks of a soft tree, and where it looks for the answers."""

import functools

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.dcc.kernels.encode import evaluate, is_intact, n_fields
from pymc_trees.dcc.soft_tree_rv import SoftTreeRV, fingerprint_of
from pymc_trees.distributions.tree_variable import (
    TREE_VARIABLES,
    TreeVariable,
    evaluations,
    evenly_spaced,
)


class SoftTreeVariable(TreeVariable):
    """A soft tree; it is evaluated at the current rows of the model."""

    what = "soft tree"
    declared_by = "SoftDecisionTree"
    sampled_by = "pymc_trees.sample_dcc"
    moves_with_all = True
    is_soft = True
    settings = "training inputs X, h or leaf"
    field_settings = "columns of X or leaf"

    def __init__(self, rv: Variable):
        super().__init__(rv)
        self.step = "pymc_trees.RJHMC" if self.op.by_index else "pymc_trees.DCCTree"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a value."""
        return self.op.max_nodes, n_fields(self.op.p, self.op.n_values)

    @functools.cached_property
    def fingerprint(self) -> float:
        """Fingerprint of the declaration."""
        return fingerprint_of(self.rv)

    def is_intact(self, value: np.ndarray) -> bool:
        """Whether a value of the right shape is one of this declaration."""
        return is_intact(np.ascontiguousarray(value), self.fingerprint)

    def why_no_nodes(self, names: list[str]) -> str:
        """Why nodes are not sets of rows, and what describes the tree instead."""
        return (
            f"The trees of {names} are soft: a SoftDecisionTree uses all columns at every split, "
            "and every row is in every leaf. Draw it with plot_soft_tree; partial_dependence and "
            "permutation_importance show which columns matter."
        )

    def checksums(self, draws: np.ndarray) -> np.ndarray:
        """(chain, draw) checksums of values."""
        return draws[:, :, 0, -1]

    def function_values(self, model: pm.Model, draws: np.ndarray, most: int) -> np.ndarray:
        """(chain, draw, numbers) outputs at the current rows."""
        first = evaluations(model.deterministics, self.rv)[0]
        X, low, span, h = (v.eval() for v in (first.X, *first.rest[:3]))
        X = X[evenly_spaced(len(X), most)]
        n_values, fingerprint = self.op.n_values, self.fingerprint
        out = np.empty((*draws.shape[:2], len(X) * n_values))
        for at in np.ndindex(*draws.shape[:2]):
            value = np.ascontiguousarray(draws[at])
            fit = evaluate(value, X, low, span, float(h), n_values, fingerprint)
            out[at] = fit.reshape(-1)
        return out


def register() -> None:
    """Let the rest of the package know soft trees."""
    TREE_VARIABLES[SoftTreeRV] = SoftTreeVariable
