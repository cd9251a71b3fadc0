"""How do Mondrian forests learn and predict? Scikit-learn estimators, a wing of its own.

Reading order: `kernels` (one tree, in numba), `inputs` (checks of X, y and settings), `trees` (a
fitted forest, and how it learns rows), `forest` (the same with bounded memory, and for the latest
rows; what both estimators share), `classifier`, `predictive` (mixtures over a forest), `regressor`,
`exporting` (predictors of forests).

May import: `predictors`, `core.compile`, `core.interrupts`, `arguments`; scikit-learn and ArviZ.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "The estimators are scikit-learn's and need it: pip install "
        '"pymc_trees[estimators]", or scikit-learn>=1.6 itself.'
    )
