"""How the draws of several islands become chains."""

import numpy as np

COMBINATIONS = ("average", "evidence")


def choose_draws(rng, combine: str, log_z: np.ndarray, n_draws: int):
    """Island and number of each draw of the result.

    By ``"average"`` chain i holds the draws of island i. By ``"evidence"`` the draws of all islands
    are one pool, in which those of island i weigh ``Z_i``: the whole is again an unbiased estimate
    of the unnormalised posterior. Islands are then shared out by systematic resampling, and draws
    of one island are used again only when all of them have been.

    Returns
    -------
    island, number : (islands, n_draws) int64
    """
    n = len(log_z)
    if combine == "average":
        return np.divmod(np.arange(n * n_draws).reshape(n, n_draws), n_draws)
    weights = np.exp(log_z - log_z.max())
    cumulative = np.cumsum(weights / weights.sum())
    points = (np.arange(n * n_draws) + rng.random()) / (n * n_draws)
    islands = np.minimum(np.searchsorted(cumulative, points, side="right"), n - 1)
    numbers = np.empty_like(islands)
    for i in range(n):
        [mine] = np.nonzero(islands == i)
        rounds = [rng.permutation(n_draws) for _ in range(-(-len(mine) // n_draws))]
        if rounds:
            numbers[mine] = np.concatenate(rounds)[: len(mine)]
    order = rng.permutation(n * n_draws)
    shape = (n, n_draws)
    return islands[order].reshape(shape), numbers[order].reshape(shape)
