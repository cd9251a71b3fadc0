"""What every leaf model answers, dispatched on the type of its NamedTuple.

Kernels call these generic functions; numba resolves them at compile time by the leaf's type, so
that kernels stay at module level and their compiled code is kept between sessions.

========================================== ========================================================
``n_stats(leaf)``                          entries of a leaf's sufficient statistics
``next_tree(leaf, trees, old, new, nodes,   end tree ``old`` (-1: none), begin tree ``new`` (-1:
n_nodes, stats)``                          none) of a sum of trees: move the working residual, and
                                           write the statistics of the leaves of ``new`` among
                                           ``nodes[:n_nodes]``
``add_rows(leaf, rows, start, stop, out)`` write the statistics of ``rows[start:stop]``
``add_sides(leaf, cells, cut, rows, n,     write the statistics of ``rows[:n]`` on both sides of a
left, right)``                             cut; the number of rows on the left
``add_cells(leaf, rows, start, stop,       add each of those rows to ``counts`` and ``cells`` at
codes, counts, cells)``                    its code
``log_marginal(leaf, stats)``              log p(rows of the leaf), leaf value integrated out
``draw_values(leaf, rng, stats, out)``     leaf value given its rows; the prior when they are 0
``log_likelihood(leaf, trees)``            log p(all rows) given the leaf values, outside any tree
========================================== ========================================================
"""

from collections.abc import Callable

from numba import types
from numba.extending import overload

_MODELS: dict[type, dict[str, Callable]] = {}


def register(model: type, **kernels: Callable) -> None:
    """Give the kernels of a leaf model, by the names of the contract."""
    _MODELS[model] = kernels


def n_stats(leaf):
    """Entries of a leaf's sufficient statistics."""
    return _MODELS[type(leaf)]["n_stats"](leaf)


def next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    """End one tree of a sum and begin another."""
    return _MODELS[type(leaf)]["next_tree"](leaf, trees, old, new, nodes, n_nodes, stats)


def add_rows(leaf, rows, start, stop, out):
    """Statistics of some rows."""
    return _MODELS[type(leaf)]["add_rows"](leaf, rows, start, stop, out)


def add_sides(leaf, cells, cut, rows, n, left, right):
    """Statistics of the rows on both sides of a cut."""
    return _MODELS[type(leaf)]["add_sides"](leaf, cells, cut, rows, n, left, right)


def add_cells(leaf, rows, start, stop, codes, counts, cells):
    """Statistics of some rows, by code."""
    return _MODELS[type(leaf)]["add_cells"](leaf, rows, start, stop, codes, counts, cells)


def log_marginal(leaf, stats):
    """Log marginal likelihood of a leaf's rows."""
    return _MODELS[type(leaf)]["log_marginal"](leaf, stats)


def draw_values(leaf, rng, stats, out):
    """Leaf value from its conditional."""
    return _MODELS[type(leaf)]["draw_values"](leaf, rng, stats, out)


def log_likelihood(leaf, trees):
    """Log likelihood of all rows given the leaf values."""
    return _MODELS[type(leaf)]["log_likelihood"](leaf, trees)


def _kernel(leaf, name):
    if isinstance(leaf, types.NamedTuple) and leaf.instance_class in _MODELS:
        return _MODELS[leaf.instance_class][name]
    return None


@overload(n_stats)
def _n_stats(leaf):
    kernel = _kernel(leaf, "n_stats")
    return kernel and (lambda leaf: kernel(leaf))


@overload(next_tree)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    kernel = _kernel(leaf, "next_tree")
    return kernel and (
        lambda leaf, trees, old, new, nodes, n_nodes, stats: kernel(
            leaf, trees, old, new, nodes, n_nodes, stats
        )
    )


@overload(add_rows)
def _add_rows(leaf, rows, start, stop, out):
    kernel = _kernel(leaf, "add_rows")
    return kernel and (lambda leaf, rows, start, stop, out: kernel(leaf, rows, start, stop, out))


@overload(add_sides)
def _add_sides(leaf, cells, cut, rows, n, left, right):
    kernel = _kernel(leaf, "add_sides")
    return kernel and (
        lambda leaf, cells, cut, rows, n, left, right: kernel(
            leaf, cells, cut, rows, n, left, right
        )
    )


@overload(add_cells)
def _add_cells(leaf, rows, start, stop, codes, counts, cells):
    kernel = _kernel(leaf, "add_cells")
    return kernel and (
        lambda leaf, rows, start, stop, codes, counts, cells: kernel(
            leaf, rows, start, stop, codes, counts, cells
        )
    )


@overload(log_marginal)
def _log_marginal(leaf, stats):
    kernel = _kernel(leaf, "log_marginal")
    return kernel and (lambda leaf, stats: kernel(leaf, stats))


@overload(draw_values)
def _draw_values(leaf, rng, stats, out):
    kernel = _kernel(leaf, "draw_values")
    return kernel and (lambda leaf, rng, stats, out: kernel(leaf, rng, stats, out))


@overload(log_likelihood)
def _log_likelihood(leaf, trees):
    kernel = _kernel(leaf, "log_likelihood")
    return kernel and (lambda leaf, trees: kernel(leaf, trees))
