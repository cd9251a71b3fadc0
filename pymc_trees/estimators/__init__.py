"""How are trees used from scikit-learn?

`bart` (BART with PyMC inside), `mondrian` (forests that learn row by row, beside PyMC).

May import: what its folders may; scikit-learn.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "The estimators are scikit-learn's and need it: pip install "
        '"pymc_trees[estimators]", or scikit-learn>=1.6 itself.'
    )
