"""States of a tree whose leaves depend on the columns of the splits above them."""

from itertools import product

import numpy as np


def below(columns, path, column):
    """Columns with slopes in the children of a split."""
    if columns == "parent":
        return frozenset([column])
    return (path or frozenset()) | {column}


def with_choices(prior, p_constant):
    """Each leaf below a split is constant or not."""
    found = {}
    for state, probability in prior.items():
        ways = []
        for rows, path in state:
            if path is None:
                ways.append([((rows, None), 1.0)])
            else:
                ways.append([((rows, None), p_constant), ((rows, path), 1.0 - p_constant)])
        for leaves in product(*ways):
            key = frozenset(leaf for leaf, _ in leaves)
            share = np.prod([p for _, p in leaves])
            found[key] = found.get(key, 0.0) + probability * share
    return found


def partition_in(state):
    return frozenset(rows for rows, _ in state)
