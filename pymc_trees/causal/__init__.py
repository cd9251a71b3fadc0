"""What does a treatment do? Bayesian causal forests, as ordinary PyMC models.

Reading order: `models` (checks of z, propensity and groups, and the PyMC models), `propensities`
(probability of treatment, and where both treatments occur), `forest`
(`BayesianCausalForest`: settings, fit, effects).

May import: `estimators` and what is below it; scikit-learn.
"""

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods
from pymc_trees.causal.forest import BayesianCausalForest
from pymc_trees.causal.propensities import overlap, propensity

__all__ = ["BayesianCausalForest", "overlap", "propensity"]
