"""How many nodes to make room for."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.forest.fields import Layout
from pymc_trees.core.samplers.prior_draw import mean_nodes

LARGEST_DRAW = 2**27
"""Bytes of one draw above which the default room for nodes is refused: 1,000 draws are 128 GiB."""


def check_draw_size(layout: Layout) -> None:
    """Refuse a default that no run could hold."""
    size = 8 * int(np.prod(layout.shape))
    if size > LARGEST_DRAW:
        raise ValueError(
            f"m={layout.m}: with room for {layout.max_nodes:,} nodes, the default here, each draw "
            f"of the forest takes {size:,} bytes. Take fewer trees, or give max_nodes yourself."
        )


def prior_mean_nodes(alpha: float, beta: float, limit: float) -> float:
    """Mean number of nodes of one tree under the prior with unlimited rows, at most ``limit``.

    A node at depth d has ``1 + 2 p_d E_{d+1}`` nodes below and including itself on average.
    """
    nodes = 1.0
    for depth in range(64, -1, -1):
        nodes = min(1.0 + 2.0 * alpha * (1.0 + depth) ** -beta * nodes, limit)
    return nodes


def default_max_nodes(m: int, n: int, alpha, beta) -> int:
    """Room for three times the prior mean and 200 nodes more, or for any forest when that is less.

    A tree over n rows has at most ``2n - 1`` nodes. An unknown ``alpha`` or ``beta`` counts with
    the largest prior mean of 200 draws of its prior.
    """
    most = 2 * n - 1
    drawn = (alpha, beta)
    try:
        if isinstance(alpha, Variable) or isinstance(beta, Variable):  # together: they may depend
            drawn = pm.draw([pt.as_tensor(alpha), pt.as_tensor(beta)], 200, random_seed=1)
    except NotImplementedError as error:
        raise ValueError(
            f"alpha or beta cannot be drawn from its prior ({error}), so that there is no telling "
            "how large the forest may get: give max_nodes."
        ) from error
    alphas, betas = (np.atleast_1d(v) for v in drawn)
    size = max(alphas.size, betas.size)
    alphas, betas = np.broadcast_to(alphas, size), np.broadcast_to(betas, size)
    mean = max(prior_mean_nodes(a, b, float(most)) for a, b in zip(alphas, betas, strict=True))
    return int(min(m * most, np.ceil(3 * m * mean) + 200))


def mondrian_max_nodes(m: int, X: np.ndarray, lifetime, n_draws: int = 50) -> int:
    """The same for a Mondrian process, whose mean is that of some trees drawn from the prior."""
    most = 2 * len(X) - 1
    try:
        lifetimes = (
            np.ravel(pm.draw(lifetime, n_draws, random_seed=1))
            if isinstance(lifetime, Variable)
            else np.full(n_draws, float(lifetime))
        )
    except NotImplementedError as error:
        raise ValueError(
            f"lifetime cannot be drawn from its prior ({error}), so that there is no telling how "
            "large the forest may get: give max_nodes."
        ) from error
    mean = mean_nodes(np.random.default_rng(1), np.ascontiguousarray(X), lifetimes)
    return int(min(m * most, np.ceil(3 * m * mean) + 200))
