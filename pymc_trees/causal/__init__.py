"""What does a treatment do? Bayesian causal forests, as ordinary PyMC models.

Reading order: `treatment` (checks of z, propensity and groups), `propensities` (probability of
treatment), `common_support` (where both treatments occur), `models` (the PyMC models), `effects`
(effects in a fitted forest), `forest` (`BayesianCausalForest`: settings and fit).

May import: `estimators` and what is below it; scikit-learn.
"""

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods
from pymc_trees.causal.common_support import overlap
from pymc_trees.causal.forest import BayesianCausalForest
from pymc_trees.causal.propensities import propensity

__all__ = ["BayesianCausalForest", "overlap", "propensity"]
