"""Orders by what makes them of a declaration; with this module come the steps under them."""

from pymc_trees.core.order import drawn, monotone
from pymc_trees.core.order.directions import monotone_in

__all__ = ["drawn", "monotone", "monotone_in"]
