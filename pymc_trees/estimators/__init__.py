"""How are Mondrian forests used from scikit-learn?

Reading order: `checks` (settings), `rows` (what has been seen, and its scale), `forest` (what both
forests share: growing, leaves, paths), `classifier`, `hyperparameters` (of the hierarchical
Gaussian prior), `predictive` (mixtures over a forest), `regressor`, `draws` (ArviZ data).

May import: `core.mondrian`, scikit-learn and ArviZ; nothing else of the package.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "Mondrian forests are scikit-learn estimators and need it: pip install "
        '"pymc_trees[estimators]", or scikit-learn>=1.6 itself.'
    )
