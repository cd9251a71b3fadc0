"""Averages of a chain against exact numbers, in units of their Monte Carlo error.

The error is that of batch means: with B batches much longer than the chain remembers, the batch
averages are nearly independent, and their spread over sqrt(B) is the standard error of the whole
average. It is never taken below the error of independent draws, so that a state that hardly
varies over batches cannot raise a false alarm. States that a chain of this length is expected to
visit less than `RARE` times are pooled into one: their counts are too skewed for a z-score.
"""

from typing import NamedTuple

import numpy as np

RARE = 1000


class Gap(NamedTuple):
    """How far averages are from exact numbers."""

    z: float
    """Largest distance in standard errors."""
    absolute: float
    """Largest distance."""

    def within(self, z, absolute):
        """Whether both distances are small; printed by pytest when they are not."""
        return self.z < z and self.absolute < absolute


def gap(batches, exact, least_se=0.0):
    """`Gap` of (batches, q) batch averages from q exact numbers."""
    batches, exact = np.asarray(batches, dtype=float), np.asarray(exact, dtype=float)
    away = np.abs(batches.mean(axis=0) - exact)
    se = np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(len(batches)), least_se)
    z = away / np.maximum(se, 1e-9)  # what is certain has error 0, but for rounding
    return Gap(float(z.max()), float(away.max()))


def batch_means(values, n_batches):
    """(n_batches, ...) averages of consecutive draws."""
    values = np.asarray(values, dtype=float)
    length = len(values) // n_batches
    kept = values[: n_batches * length]
    return kept.reshape(n_batches, length, *values.shape[1:]).mean(axis=1)


def frequencies(keys, n_batches):
    """Distinct keys of a chain, and their (n_batches, keys) shares of each batch."""
    keys = np.asarray(keys)
    length = len(keys) // n_batches
    keys = keys[: n_batches * length]
    distinct, place = np.unique(keys, return_inverse=True)
    batch = np.repeat(np.arange(n_batches), length)
    counts = np.bincount(batch * len(distinct) + place, minlength=n_batches * len(distinct))
    return distinct, counts.reshape(n_batches, len(distinct)) / length


def law_gap(states, shares, law, draws):
    """`Gap` between visited states and a law, rare states pooled.

    Parameters
    ----------
    states : list of q keys
    shares : (batches, q) shares of the batches
    law : dict key -> probability
        A visited state that is not in it is infinitely far.
    draws : length of the chain
    """
    if any(state not in law for state in states):
        return Gap(np.inf, np.inf)
    place = {state: k for k, state in enumerate(states)}
    common = [state for state in law if law[state] * draws >= RARE]
    columns = [
        shares[:, place[state]] if state in place else np.zeros(len(shares)) for state in common
    ]
    exact = [law[state] for state in common]
    rest = 1.0 - sum(exact)
    if rest * draws >= RARE:
        columns.append(1.0 - np.sum(columns, axis=0))
        exact.append(rest)
    exact = np.array(exact)
    return gap(np.array(columns).T, exact, independent_se(exact, draws))


def independent_se(probabilities, draws):
    """Standard error of frequencies in independent draws."""
    p = np.clip(probabilities, 0.0, 1.0)
    return np.sqrt(p * (1.0 - p) / draws)
