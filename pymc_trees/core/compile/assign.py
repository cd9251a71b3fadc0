"""Copying arrays: numba's own assignment makes a temporary array if the two may overlap."""

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def copy_numbers(source, target):
    """Copy an array to another of the same size."""
    for k in range(source.size):
        target[k] = source[k]
