"""The covariance that chains of one topology share, as far as they are in one mode."""

from collections.abc import Sequence

import numpy as np

from pymc_trees.core.soft.covariance import chain_covariance

APART = 4.0
"""Standard deviations between the means of chains in different modes, in some coordinate."""


def pooled_covariances(draws: Sequence[np.ndarray], is_full: bool = True) -> list[np.ndarray]:
    """(d, d) covariance for each chain, of its own draws and those of chains in the same mode.

    One chain of a short warm-up has too few draws for a covariance; all of them together have
    enough. Chains in another mode are left out, where other correlations hold.

    Parameters
    ----------
    draws : sequence of (n, d) arrays
        Last draws of each chain's warm-up.
    is_full : bool
        If not, covariances are diagonal.
    """
    if draws[0].shape[1] == 0:  # no parameters
        return [np.empty((0, 0))] * len(draws)
    means = np.array([chain.mean(axis=0) for chain in draws])
    variances = np.array([chain.var(axis=0) for chain in draws])
    distance = (means[:, None] - means) ** 2
    near = (distance <= APART**2 * (variances[:, None] + variances)).all(axis=2)
    together = [[own for own, is_near in zip(draws, row, strict=True) if is_near] for row in near]
    found = [chain_covariance(np.concatenate(own)) for own in together]
    return found if is_full else [np.diag(np.diag(covariance)) for covariance in found]
