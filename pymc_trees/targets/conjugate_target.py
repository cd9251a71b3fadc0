"""Target of a forest whose leaf values integrate out."""

from typing import Self

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.targets.contract import Refusal
from pymc_trees.targets.errors import NotConjugateError
from pymc_trees.targets.likelihoods.contract import recognise
from pymc_trees.targets.settings import PointFunction, Settings


class ConjugateTarget:
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : TensorVariable
        A forest of it.

    Raises
    ------
    NotConjugateError
        When the leaf values cannot be integrated out.
    """

    kind = "conjugate"
    needs_surrogate = False
    is_joint = False

    def __init__(self, model: pm.Model, forest: Variable):
        self.layout = forest.owner.op.layout
        self.likelihood, wanted, outputs = recognise(model, forest)
        self.is_prior = wanted is None
        self._numbers_at = PointFunction(model, forest, wanted or [], outputs, self._check)

    @classmethod
    def read(cls, model: pm.Model, forest: Variable) -> Self | Refusal:
        """Target of a forest, unless its leaf values do not integrate out."""
        try:
            return cls(model, forest)
        except NotConjugateError as error:
            return Refusal(error)

    @property
    def others(self) -> list[str]:
        """Names of the values of other variables that it is a function of."""
        return self._numbers_at.names

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        return self.likelihood.n_stats

    def at(self, point: dict) -> tuple[Settings, tuple | None]:
        """Settings, and what the likelihood's `check` returns at a point; None for the prior."""
        return self._numbers_at(point)

    def _check(self, numbers):
        return None if self.is_prior else self.likelihood.check(numbers)

    def leaf_data(self, settings: Settings, seen: tuple | None, fit: np.ndarray, rng=None):
        """Leaf model over the residual of ``fit``, and the target it was subtracted from."""
        return self.likelihood.leaf_data(settings, seen, fit)

    def log_scale(self, seen: tuple | None) -> float:
        """Log density of the observed values less that of the target of `leaf_data`."""
        return 0.0 if seen is None else self.likelihood.log_scale(seen)
