"""What do Mondrian trees say of a new row?

Regression: `belief` (Gaussian messages), `leave_one_out`, `components` (the representation of a
mixture, and its moments), `empirical` and `mixture` (components along a path: a file for each kind
of belief), `mixture_distribution` (quantiles and draws).

May import: `core.mondrian`.
"""

# Importing a kind of belief registers its kernel with `components`.
from pymc_trees.core.mondrian.predict import empirical, mixture

__all__ = ["empirical", "mixture"]
