"""Settings that soft trees alone have, checked before anything is built."""

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.data.schema import Schema, given_columns, known_columns, place_of


def check_bandwidth(bandwidth) -> float:
    """Prior mean of the bandwidths."""
    if isinstance(bandwidth, Variable):
        raise TypeError(
            "bandwidth must be a number, the prior mean of the bandwidths of the trees: each tree "
            "has a random bandwidth of its own."
        )
    if not is_number(bandwidth) or not 1e-6 <= bandwidth <= 1e6:
        raise ValueError(
            f"bandwidth={bandwidth!r}: must be a number from 1e-6 to 1e6, the prior mean of the "
            "bandwidths in units of columns mapped to [0, 1]; 0.1 by default."
        )
    return float(bandwidth)


def check_hard(hard, p: int, schema: Schema | None) -> np.ndarray:
    """(p,) bool: columns whose gates are steps."""
    found = np.zeros(p, dtype=np.bool_)
    if hard is None:
        return found
    known = known_columns(schema, p)
    for column in given_columns(hard):
        place = place_of(column, known)
        if place is None:
            raise ValueError(
                f"hard holds {column!r}, which is not a column of X: choose from {known}."
            )
        found[place] = True
    return found
