"""Copying numbers: numba's own assignment makes an array in between, where the two may overlap."""

from pymc_trees.core.compile.cache import njit


@njit(cache=True)
def copy_numbers(source, target):
    """Write the numbers of an array to another of as many."""
    for k in range(source.size):
        target[k] = source[k]
