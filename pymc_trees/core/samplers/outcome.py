"""State after a sweep: the log likelihood."""

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import log_likelihood


@njit(cache=True)
def log_likelihood_of(leaf, trees):
    """Log likelihood of all rows given the leaf values, between sweeps."""
    return log_likelihood(leaf, trees)
