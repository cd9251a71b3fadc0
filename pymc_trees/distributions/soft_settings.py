"""Settings that soft trees alone have, checked before anything is built."""

from collections.abc import Sequence

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.data.schema import Schema


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
    names = None if schema is None else schema.names
    if isinstance(hard, str) or not isinstance(hard, Sequence | np.ndarray | set):
        raise TypeError(
            f"hard={hard!r}: must be a list of columns, by index or by the name of a frame's "
            "column."
        )
    for column in hard:
        if isinstance(column, str):
            if column not in (names or ()):
                raise ValueError(
                    f"hard names the column {column!r}, which X does not have"
                    + (
                        f": they are {list(names)}."
                        if names
                        else ": give indices, since X is not a frame."
                    )
                )
            found[list(names or ()).index(column)] = True
            continue
        whole = isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_)
        if not whole or not 0 <= column < p:
            raise ValueError(
                f"hard holds {column!r}: give whole numbers from 0 to {p - 1}, or names of columns."
            )
        found[column] = True
    return found
