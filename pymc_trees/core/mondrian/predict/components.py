"""Components of a mixture of normals as rows of an array, and their moments."""

from pymc_trees.core.compile.cache import njit

WEIGHT, MEAN, VAR = range(3)


@njit(cache=True)
def add_components(out, n, centre, first, second, i):
    """Add mean and mean square (6.4) of ``out[:n]`` to those of row i, both about ``centre``."""
    for k in range(n):
        mean = out[k, MEAN] - centre
        first[i] += out[k, WEIGHT] * mean
        second[i] += out[k, WEIGHT] * (out[k, VAR] + mean * mean)
