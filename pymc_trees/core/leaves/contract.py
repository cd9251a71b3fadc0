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
``join_sides(leaf, leaf_of, left, right,   write the statistics of the rows of two leaves
stats, out)``
``log_marginal(leaf, stats)``              log p(rows of the leaf), leaf value integrated out
``draw_values(leaf, rng, stats, out)``     leaf value given its rows; the prior when they are 0
``draw_leaves(leaf, rng, column, values,    new values of all leaves of a tree, the leaves among
leaf_of, nodes, n_nodes, stats)``          ``nodes[:n_nodes]``; ``leaf_of`` is the tree's own
``log_likelihood(leaf, trees)``            log p(all rows) given the leaf values, outside any tree
``log_constant(leaf)``                     what the marginals of the leaves of any tree lack of
                                           log p(all rows); called from Python only
========================================== ========================================================

Where leaf values integrate out, statistics are sums over rows, and ``join_sides`` and
``draw_leaves`` follow from the others. A model whose values do not integrate out (`laplace`) keeps
drawn values among its statistics, and answers ``log_marginal`` with the log weight of the draw.
"""

from collections.abc import Callable

from numba import types
from numba.extending import overload

from pymc_trees.core.compile.cache import njit

_MODELS: dict[type, dict[str, Callable]] = {}


def register(model: type, **kernels: Callable) -> None:
    """Give kernels of a leaf model: names and arguments of the contract here or in `cells`."""
    defaults = {
        "join_sides": _add_statistics,
        "draw_leaves": _draw_each,
        "log_constant": lambda leaf: 0.0,
    }
    _MODELS.setdefault(model, defaults).update(kernels)


def kernel_of(model: type, name: str) -> Callable:
    """Kernel of a leaf model."""
    return _MODELS[model][name]


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


def join_sides(leaf, leaf_of, left, right, stats, out):
    """Statistics of the rows of two leaves."""
    return _MODELS[type(leaf)]["join_sides"](leaf, leaf_of, left, right, stats, out)


def log_marginal(leaf, stats):
    """Log marginal likelihood of a leaf's rows."""
    return _MODELS[type(leaf)]["log_marginal"](leaf, stats)


def draw_values(leaf, rng, stats, out):
    """Leaf value from its conditional."""
    return _MODELS[type(leaf)]["draw_values"](leaf, rng, stats, out)


def draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """Values of all leaves of a tree from their conditional."""
    kernel = _MODELS[type(leaf)]["draw_leaves"]
    return kernel(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats)


def log_likelihood(leaf, trees):
    """Log likelihood of all rows given the leaf values."""
    return _MODELS[type(leaf)]["log_likelihood"](leaf, trees)


def log_constant(leaf):
    """Log of the factor of p(all rows) that does not depend on the tree."""
    return _MODELS[type(leaf)]["log_constant"](leaf)


def typed_kernel(leaf, name):
    """What a kernel is for a numba type, None when that is no leaf model.

    The Python function, since a call of the compiled one from an overload would count references
    to every array of its arguments once more.
    """
    if isinstance(leaf, types.BaseNamedTuple) and leaf.instance_class in _MODELS:
        return _MODELS[leaf.instance_class][name].py_func
    return None


@overload(n_stats)
def _n_stats(leaf):
    return typed_kernel(leaf, "n_stats")


@overload(next_tree)
def _next_tree(leaf, trees, old, new, nodes, n_nodes, stats):
    return typed_kernel(leaf, "next_tree")


@overload(add_rows)
def _add_rows(leaf, rows, start, stop, out):
    return typed_kernel(leaf, "add_rows")


@overload(add_sides)
def _add_sides(leaf, cells, cut, rows, n, left, right):
    return typed_kernel(leaf, "add_sides")


# Never inlined: numba 0.68 loses assignments around an inlined overload (`test_detailed_balance`).
@overload(join_sides)
def _join_sides(leaf, leaf_of, left, right, stats, out):
    return typed_kernel(leaf, "join_sides")


@overload(log_marginal)
def _log_marginal(leaf, stats):
    return typed_kernel(leaf, "log_marginal")


@overload(draw_values)
def _draw_values(leaf, rng, stats, out):
    return typed_kernel(leaf, "draw_values")


@overload(draw_leaves)
def _draw_leaves(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    return typed_kernel(leaf, "draw_leaves")


@overload(log_likelihood)
def _log_likelihood(leaf, trees):
    return typed_kernel(leaf, "log_likelihood")


@njit(cache=True)
def _add_statistics(leaf, leaf_of, left, right, stats, out):
    """`join_sides` of sums over rows."""
    for d in range(stats.shape[1]):
        out[d] = stats[left, d] + stats[right, d]


@njit(cache=True)
def _draw_each(leaf, rng, column, values, leaf_of, nodes, n_nodes, stats):
    """`draw_leaves` where leaves are independent given their statistics."""
    for k in range(n_nodes):
        node = nodes[k]
        if column[node] < 0:
            draw_values(leaf, rng, stats[node], values[node])
