"""A hierarchy of normalized stable processes (Pitman-Yor processes), exactly, on a few rows.

Table counts of all restaurants are summed out: generalized Stirling numbers (Teh 2006).
"""

from __future__ import annotations

import itertools
from functools import cache
from math import comb

import numpy as np


@cache
def stirling(c, t, d):
    """Weight of all seatings of c customers at t tables, with the discount d."""
    if c == 0 or t == 0:
        return float(c == t)
    return stirling(c - 1, t - 1, d) + (c - 1 - t * d) * stirling(c - 1, t, d)


def seatings(counts, d, theta):
    """(tables by dish, weight) of a restaurant."""
    n = sum(counts)
    if n == 0:
        yield tuple(counts), 1.0
        return
    below = np.prod([theta + i for i in range(1, n)])
    for tables in itertools.product(*[range(min(c, 1), c + 1) for c in counts]):
        weight = np.prod([theta + i * d for i in range(1, sum(tables))]) / below
        for c, t in zip(counts, tables):
            weight *= stirling(c, t, d)
        yield tables, weight


def passed_up(node):
    """{tables by dish: weight} of a node ``(discount, theta, counts of its own rows, children)``.

    Its own rows are draws from its distribution.
    """
    d, theta, own, children = node
    customers = {tuple(own): 1.0}
    for child in children:
        found: dict[tuple, float] = {}
        for tables, weight in passed_up(child).items():
            for counts, before in customers.items():
                both = tuple(np.add(counts, tables).tolist())
                found[both] = found.get(both, 0.0) + before * weight
        customers = found
    out: dict[tuple, float] = {}
    for counts, before in customers.items():
        for tables, weight in seatings(counts, d, theta):
            out[tables] = out.get(tables, 0.0) + before * weight
    return out


def probability(node, base):
    """Of the labels, in one order, below and at a root."""
    return sum(w * np.prod(np.power(base, t)) for t, w in passed_up(node).items())


def with_row(node, path, k):
    """The node with one more row of label k, at the end of a path of children."""
    d, theta, own, children = node
    if not path:
        return d, theta, tuple(c + (i == k) for i, c in enumerate(own)), children
    below = list(children)
    below[path[0]] = with_row(children[path[0]], path[1:], k)
    return d, theta, own, tuple(below)


def posterior_mean(node, path, base):
    """Of the distribution at a node."""
    chance = [probability(with_row(node, path, k), base) for k in range(len(base))]
    return np.array(chance) / probability(node, base)


def count_vectors(n, n_classes):
    """(counts, number of orders) of n labels."""
    for counts in itertools.product(range(n + 1), repeat=n_classes):
        if sum(counts) == n:
            left, orders = n, 1
            for c in counts:
                orders *= comb(left, c)
                left -= c
            yield counts, orders
