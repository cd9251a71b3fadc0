"""Split weights with a Dirichlet prior, drawn given the columns of the splits.

A split node chooses column j among the columns V that vary in it with probability s_j / s(V), where
s(V) sums over V. The conditional of s is therefore not a Dirichlet. It becomes one given the
rejected draws: if the node had drawn from s until the column varied, the number of rejections would
be geometric (Linero 2018 assumes columns that always vary). An exponential waiting time does the
same with a single number, however small s(V) is. With s = g / sum(g) and independent g_j ~
Gamma(a_j, 1),

    1 / g(V) = integral of exp(-e g(V)) de,      e | g ~ Exp(rate g(V)),
    g_j | all e ~ Gamma(a_j + splits on j, rate 1 + sum of the e of nodes in which j varies)

and sum(g) ~ Gamma(sum a) is independent of s and of the trees, so it is redrawn at each step. All
weights are logs: in a sparse Dirichlet most underflow.
"""

import numpy as np

from pymc_trees.core.compile.cache import njit

LOG_MIN_WEIGHT = np.log(1e-300)
"""Log of the smallest weight that the forest's prior distinguishes."""


@njit(cache=True)
def draw_log_gamma(rng, shape):
    """Log of a Gamma(shape, 1) draw: Gamma(a) = Gamma(a + 1) U**(1/a) in law."""
    return np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random()) / shape


@njit(cache=True)
def log_sum(terms, chosen):
    """Log of the sum of ``exp(terms)`` where ``chosen`` is not 0."""
    largest = -np.inf
    for j in range(terms.size):
        if chosen[j] != 0.0:
            largest = max(largest, terms[j])
    total = 0.0
    for j in range(terms.size):
        if chosen[j] != 0.0:
            total += np.exp(terms[j] - largest)
    return largest + np.log(total)


@njit(cache=True)
def draw_log_weights(rng, log_weights, concentration, splits, sets, counts):
    """Log weights after one step that leaves their conditional invariant.

    Parameters
    ----------
    log_weights : (p,) float64
        Current ones.
    concentration : (p,) float64
        Of the Dirichlet prior.
    splits : (p,) float64
        Split nodes that chose each column.
    sets, counts : (s, p), (s,) float64
        Sets of columns that vary in a split node, 1 or 0 for each column, and how many nodes
        have each set.
    """
    p = log_weights.size
    log_g = log_weights + draw_log_gamma(rng, concentration.sum())
    log_rate = np.zeros(p)
    for s in range(counts.size):
        if counts[s] > 0.0:
            log_wait = np.log(rng.standard_gamma(counts[s])) - log_sum(log_g, sets[s])
            for j in range(p):
                if sets[s, j] != 0.0:
                    log_rate[j] = np.logaddexp(log_rate[j], log_wait)
    for j in range(p):
        log_g[j] = draw_log_gamma(rng, concentration[j] + splits[j]) - log_rate[j]
    proposed = log_g - log_sum(log_g, np.ones(p))
    # The forest's prior floors weights at LOG_MIN_WEIGHT: a Metropolis-Hastings step corrects for
    # it.
    ratio = _floored(proposed, splits, sets, counts) - _floored(log_weights, splits, sets, counts)
    if np.log(rng.random()) < ratio:
        return proposed
    return log_weights.copy()


@njit(cache=True)
def _floored(log_weights, splits, sets, counts):
    """Log probability of the choices under floored weights, less that under the weights."""
    if log_weights.min() >= LOG_MIN_WEIGHT:
        return 0.0
    floored = np.maximum(log_weights, LOG_MIN_WEIGHT)
    total = np.sum(splits * (floored - log_weights))
    for s in range(counts.size):
        if counts[s] > 0.0:
            total -= counts[s] * (log_sum(floored, sets[s]) - log_sum(log_weights, sets[s]))
    return total
