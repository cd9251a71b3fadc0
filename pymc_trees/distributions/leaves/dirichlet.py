"""Class probabilities of a leaf: a single tree that classifies."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.dirichlet import DirichletData
from pymc_trees.distributions.leaves.contract import LeafPrior, check_positive, register_leaf


@njit(cache=True)
def _prior(alpha, n_classes):
    # no rows: only the first entry of the tables of log rising factorials, 0, is read
    return DirichletData(
        alpha, int(n_classes), np.empty(0, dtype=np.int64), np.zeros(1), np.zeros(1)
    )


@register_leaf
@dataclass(frozen=True, eq=False)
class DirichletLeaf(LeafPrior):
    """Class probabilities of each leaf of a single tree.

    ``theta ~ Dirichlet(alpha / n_classes, ...)``; the likelihood is ``pm.Categorical(p=...)``, or
    ``pm.Bernoulli(p=...[:, 1])`` for two classes.

    Parameters
    ----------
    alpha : float or tensor, positive
        Total concentration: each class has ``alpha / n_classes``. ``alpha = n_classes`` is the
        uniform prior.
    n_classes : int, at least 2
        Number of classes.

    References
    ----------
    Lakshminarayanan (2016). Decision trees and forests: a probabilistic perspective (thesis),
    section 3.2.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> pmt.DirichletLeaf(alpha=3.0, n_classes=3)
    DirichletLeaf(alpha=3.0, n_classes=3)
    """

    alpha: Any
    n_classes: int

    name = "dirichlet"
    signatures = ("()", "()")
    prior = staticmethod(_prior)
    rows_first = in_soft_trees = True

    def __post_init__(self):
        check_positive(self, ["alpha"])
        if not isinstance(self.n_classes, int | np.integer) or self.n_classes < 2:
            raise ValueError(
                f"DirichletLeaf(n_classes={self.n_classes!r}): n_classes must be a whole number of "
                "at least 2."
            )

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.alpha, float(self.n_classes))

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return int(self.n_classes)

    @staticmethod
    def logp(values, alpha, n_classes):
        """Log-density of leaf values."""
        return pm.logp(pm.Dirichlet.dist(pt.ones(values.shape[1]) * alpha / n_classes), values)

    @staticmethod
    def initial_value(k, alpha, n_classes):
        """Equal probabilities."""
        return [1.0 / k] * k

    @staticmethod
    def are_values(values: np.ndarray) -> bool:
        """Whether they are probabilities."""
        return bool((values >= 0).all() and np.allclose(values.sum(axis=1), 1.0))
