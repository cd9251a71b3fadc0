"""Shapley values by their definition: sums over all subsets of the columns."""

import math
from itertools import combinations

import numpy as np


def interventional(f, x, background):
    """(2**p,) game: columns of the subset, bit j for column j, from x, the rest from the rows."""
    p, blocks = x.size, []
    for subset in range(2**p):
        rows = background.copy()
        taken = [j for j in range(p) if subset >> j & 1]
        rows[:, taken] = x[taken]
        blocks.append(rows)
    size = max(1, 200_000 // len(background))
    means = []
    for k in range(0, len(blocks), size):
        part = blocks[k : k + size]
        values = f(np.concatenate(part))
        means.append(values.reshape(values.shape[0], len(part), -1).mean(axis=-1))
    return np.concatenate(means, axis=1)


def shapley_of(game, p):
    """Shapley values and interaction values of a game, (..., 2**p)."""
    values, pairs = np.zeros((*game.shape[:-1], p)), np.zeros((*game.shape[:-1], p, p))
    for j in range(p):
        others = [k for k in range(p) if k != j]
        for size in range(p):
            weight = math.factorial(size) * math.factorial(p - size - 1) / math.factorial(p)
            for chosen in combinations(others, size):
                s = sum(1 << k for k in chosen)
                values[..., j] += weight * (game[..., s | 1 << j] - game[..., s])
        for i in range(j):
            rest = [k for k in others if k != i]
            for size in range(p - 1):
                weight = math.factorial(size) * math.factorial(p - size - 2)
                weight /= math.factorial(p - 1)
                for chosen in combinations(rest, size):
                    s = sum(1 << k for k in chosen)
                    a, b = 1 << i, 1 << j
                    both = game[..., s | a | b] - game[..., s | a] - game[..., s | b] + game[..., s]
                    pairs[..., i, j] += 0.5 * weight * both
    pairs += np.swapaxes(pairs, -1, -2)
    every = np.arange(p)
    pairs[..., every, every] = values - pairs.sum(axis=-1)
    return values, pairs
