"""Mondrian forests as scikit-learn estimators: a wing of its own, kernels included.

Reading order: `kernels` (one tree, in numba), `inputs` (X, y and settings, checked), `trees` (a
fitted forest, and how it takes in rows), `bounded` (the same with bounded memory), `forest` (what
both estimators share), `classifier`, `predictive` (mixtures over a forest), `regressor`.

May import: `core.compile`, `core.interrupts`, `arguments`; scikit-learn and ArviZ.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "The estimators are scikit-learn's and need it: pip install "
        '"pymc_trees[estimators]", or scikit-learn>=1.6 itself.'
    )
