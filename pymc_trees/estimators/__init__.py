"""How is BART used from scikit-learn?

Reading order: `inputs` (checks of X, y and weights), `models` (the PyMC models that are built),
`base` (what both estimators share: fitting, draws, warnings), `files` (fitted estimators in netCDF
files), `mixture` (the predictive law over draws), `density` (that over draws and intervals of a
latent column), `regressor`, `classifier`. Mondrian forests have a wing of their own.

May import: everything but `plots`, `mondrian`; scikit-learn.
"""

from importlib.util import find_spec

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods

if find_spec("sklearn") is None:
    raise ImportError(
        "The estimators are scikit-learn's and need it: pip install "
        '"pymc_trees[estimators]", or scikit-learn>=1.6 itself.'
    )
