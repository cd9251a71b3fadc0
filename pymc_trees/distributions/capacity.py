"""Sizes by default: the number of trees, and of nodes of a forest's encoding.

PyMC stores an array of the same shape for every draw, so the capacity must be fixed in advance. The
size of a forest depends on the rows as well as on the prior, because more rows support finer
splits: a Lipschitz function of d columns is best approximated by the order of ``n**(d / (d + 2))``
pieces (Stone 1982). `benchmarks.capacity` measures how many nodes chains use, starting from stumps.

References
----------
Stone (1982). Optimal global rates of convergence for nonparametric regression. Annals of Statistics
10(4), 1040-1053.
"""

import logging
import os
from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.arguments import check_number
from pymc_trees.core.forest.trees import MAX_UINT16_NODES, label_type
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.prior_draw import mean_nodes
from pymc_trees.core.soft_forest.encode import SoftLayout
from pymc_trees.core.value.fields import Layout

# Child of PyMC's logger: its lines are shown, and silenced, with PyMC's own.
_log = logging.getLogger("pymc.trees")

LARGE_TABLE = 5_000
"""Rows from which on forests have more trees, and deeper ones (`benchmarks.honest.defaults`)."""
TREES, TREES_OF_LARGE = 50, 200
BETA, BETA_OF_LARGE = 2.0, 1.0


def default_size(m, beta, n: int, of: str, tree_prior=None) -> tuple:
    """Number of trees and beta, by the number of rows where they are None.

    On a large table a split is held by all the rows that it separates, so that few trees hardly
    move: 200 trees that may be deep have more splits which the data leave free.
    """
    large = n >= LARGE_TABLE
    if tree_prior is not None and beta is None:
        beta = BETA  # such a prior has settings of its own
    chosen: dict[str, float] = {}
    if m is None:
        m = TREES_OF_LARGE if large else TREES
        chosen["m"] = m
    if beta is None:
        beta = BETA_OF_LARGE if large else BETA
        chosen["beta"] = beta
    if large and chosen:
        said = ", ".join(f"{name}={value:g}" for name, value in chosen.items())
        small = ", ".join(f"{name}={dict(m=TREES, beta=BETA)[name]:g}" for name in chosen)
        _log.info(f"{of}: {said}, the default from {LARGE_TABLE:,} rows on ({small} below).")
    return m, beta


def prior_mean_nodes(alpha: float, beta: float, limit: float) -> float:
    """Mean number of nodes of one tree under the prior with unlimited rows, at most ``limit``.

    A node at depth d has ``1 + 2 p_d E_{d+1}`` nodes below and including itself on average.
    """
    nodes = 1.0
    for depth in range(64, -1, -1):
        nodes = min(1.0 + 2.0 * alpha * (1.0 + depth) ** -beta * nodes, limit)
    return nodes


def nodes_for_rows(n: int) -> int:
    """Nodes that n rows may need: ``3 n**(3/4)``, and no more than n / 2 or 65,536.

    Recording the function at the training rows takes as much space as n / 2 nodes. Up to 65,536
    nodes the leaf of a row takes 16 bits; `tests.step_methods.test_capacity` has what chains use:
    at most 4,710 on 200,000 rows, about twice those of 50,000, so that 65,536 last beyond 10^7.
    """
    return int(min(n // 2, np.ceil(3 * n**0.75), MAX_UINT16_NODES))


def default_room(m: int, n: int, mean: float, n_worth: int | None = None) -> int:
    """Room for a forest whose trees have ``mean`` nodes under the prior.

    The larger of `nodes_for_rows` and three times the prior mean plus 200 nodes, or room for any
    forest when that is less: a tree over n rows has at most ``2n - 1`` nodes. Rows that carry the
    information of fewer independent ones count as those, ``n_worth``.
    """
    for_rows = nodes_for_rows(n if n_worth is None else n_worth)
    return int(min(m * (2 * n - 1), max(for_rows, np.ceil(3 * m * mean) + 200)))


def default_max_nodes(m: int, n: int, alpha, beta, n_worth: int | None = None) -> int:
    """`default_room` under the prior of ``alpha`` and ``beta``."""
    return default_room(m, n, _largest_mean(alpha, beta, 2 * n - 1), n_worth)


SOFT_MOST = 2000
"""Nodes of a soft tree beyond which the prior mean does not count."""


def soft_max_nodes(m: int, n: int, alpha, beta) -> int:
    """`default_max_nodes` of soft trees, whose size is not bounded by the rows."""
    mean = _largest_mean(alpha, beta, SOFT_MOST)
    return int(max(nodes_for_rows(n), np.ceil(3 * m * mean) + 200))


def _largest_mean(alpha, beta, most: int) -> float:
    """Prior mean of the nodes of a tree, at most so many.

    An unknown ``alpha`` or ``beta`` counts with the largest prior mean of 200 draws of its prior.
    """
    drawn = (alpha, beta)
    if isinstance(alpha, Variable) or isinstance(beta, Variable):  # together: they may depend
        drawn = _drawn("alpha or beta", [pt.as_tensor(alpha), pt.as_tensor(beta)], 200)
    alphas, betas = (np.atleast_1d(v) for v in drawn)
    size = max(alphas.size, betas.size)
    alphas, betas = np.broadcast_to(alphas, size), np.broadcast_to(betas, size)
    return max(prior_mean_nodes(a, b, float(most)) for a, b in zip(alphas, betas, strict=True))


def mondrian_max_nodes(m: int, X: np.ndarray, lifetime, n_draws: int = 50) -> int:
    """`default_max_nodes` under a Mondrian process; the prior mean is that of drawn trees."""
    if isinstance(lifetime, Variable):
        lifetimes = np.ravel(_drawn("lifetime", lifetime, n_draws))
    else:
        lifetimes = np.full(n_draws, float(lifetime))
    with deferred_interrupts():
        mean = mean_nodes(np.random.default_rng(1), np.ascontiguousarray(X), lifetimes)
    return default_room(m, len(X), mean)


def _drawn(what: str, settings, n_draws: int):
    try:
        return pm.draw(settings, n_draws, random_seed=1)
    except NotImplementedError as error:
        raise ValueError(
            f"{what} cannot be drawn from its prior ({error}), so the size of the forest is "
            "unknown: give max_nodes."
        ) from error


def check_m(m) -> int:
    """Number of trees."""
    return check_number("m", m, 1, more=", the number of trees")


def with_capacity[L: (Layout, SoftLayout)](
    layout: L, max_nodes: int | None, default: Callable[[], int]
) -> L:
    """Layout with ``max_nodes`` as given, or by default, if it fits into the machine's memory.

    Where users set it, one draw has to fit; otherwise 1,000.
    """
    is_given = max_nodes is not None
    if is_given:
        max_nodes = check_number("max_nodes", max_nodes, layout.m, more=", one node a tree")
    layout = layout._replace(max_nodes=default() if max_nodes is None else max_nodes)
    memory = _memory()
    draw = 8 * layout.shape[0] * layout.fields
    label = np.dtype(label_type(layout.max_nodes)).itemsize
    chain = draw + label * layout.m * layout.n_rows + _NODE * layout.max_nodes
    draws = 0 if is_given else 1000 * 8 * layout.max_nodes * layout.fields
    if chain + draws > memory:
        raise ValueError(
            f"m={layout.m}, max_nodes={layout.max_nodes}: one draw of the forest takes "
            f"{in_bytes(draw)}, 1,000 draws {in_bytes(1000 * draw)} and the working memory of a "
            f"chain {in_bytes(chain)}, but this machine has {in_bytes(memory)} of memory. Use "
            "fewer trees (m), or set a smaller max_nodes."
        )
    return layout


_NODE = 100
"""Bytes of a node in `core.forest.trees.Trees`, and about as many in the arrays of a sweep."""


def _memory() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # this system does not tell
        return np.inf


class ForestTooLargeError(RuntimeError):
    """A forest needs more nodes than its variable has room for.

    Attributes
    ----------
    idata : xarray.DataTree or None
        The draws that `pymc.sample` made before the error, as after an interruption; if it was
        still tuning, its draws are in the group ``warmup_posterior``. None without draws.
    """

    idata = None


def too_small(name: str, layout: Layout) -> str:
    """Message about a forest that needs more room than it has, with a remedy."""
    most = layout.m * (2 * layout.n_rows - 1)
    more = min(2 * layout.max_nodes, most)
    enough = "" if more == most else f"; max_nodes={most} ({_draw(layout, most)}) holds any forest"
    return (
        f"{name} outgrew max_nodes={layout.max_nodes}. Declare it with a larger one, for example "
        f"max_nodes={more} ({_draw(layout, more)}){enough}."
    )


def soft_too_small(name: str, layout: SoftLayout) -> str:
    """`too_small` of soft trees, whose size is not bounded by the rows."""
    more = 2 * layout.max_nodes
    return (
        f"{name} outgrew max_nodes={layout.max_nodes}. Declare it with a larger one, for example "
        f"max_nodes={more} ({_draw(layout, more)})."
    )


def _draw(layout, max_nodes):
    shape = layout._replace(max_nodes=max_nodes).shape
    return f"{in_bytes(8 * shape[0] * shape[1])} a draw"


def in_bytes(n: float) -> str:
    """A number of bytes, with its unit."""
    power = 0
    while n >= 1000 and power < 4:
        n, power = n / 1000, power + 1
    return f"{n:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
