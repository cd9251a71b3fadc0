"""How is BART used from scikit-learn?

Reading order: `inputs` (what is let in as X, y and weights), `models` (the PyMC models that are
built), `storage` (files), `base` (what both estimators share: fitting, draws, warnings), `mixture`
(the predictive distribution over draws), `regressor`, `classifier`.

May import: everything but `plots`, `mondrian`; scikit-learn.
"""

import pymc_trees.hooks  # noqa: F401, models that are built here need the step methods
