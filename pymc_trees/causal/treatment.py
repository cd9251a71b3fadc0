"""What is let in as treatment, propensity and groups."""

from typing import Any, NamedTuple

import numpy as np

from pymc_trees.distributions.data.numbers import row_numbers


class Treatment(NamedTuple):
    """Of n rows."""

    z: np.ndarray
    """(n,) float64: 0 and 1, or doses."""
    binary: bool
    """Whether it holds 0 and 1 only."""

    @property
    def arm(self) -> np.ndarray:
        """(n,) 0 and 1 as whole numbers."""
        return self.z.astype(np.int64)


def check_treatment(z: Any, n: int | None = None) -> Treatment:
    """A treatment that varies."""
    found = row_numbers("z", z, n)
    values = np.unique(found)
    if values.size < 2:
        raise ValueError(
            f"z is {values[0]:g} in every row: an effect can only be estimated with rows of "
            "another treatment."
            if values.size
            else "z is empty: give the treatment of each row."
        )
    binary = bool(np.isin(values, (0.0, 1.0)).all())
    if values.size == 2 and not binary:
        raise ValueError(
            f"z holds {values[0]:g} and {values[1]:g}: give 0 for untreated and 1 for treated rows."
        )
    return Treatment(found, binary)


def check_propensity(values: Any, treatment: Treatment, n: int) -> np.ndarray:
    """(n,) probabilities of treatment, or expected doses."""
    found = row_numbers("propensity", values, n)
    if treatment.binary and ((found < 0) | (found > 1)).any():
        raise ValueError(
            "propensity must hold probabilities of treatment, between 0 and 1; it holds "
            f"{found[(found < 0) | (found > 1)][0]:g}."
        )
    return found


def check_group(group: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorted names of the groups, and (n,) codes."""
    names = np.asarray(group)
    if names.shape != (n,):
        raise ValueError(f"group has shape {names.shape}: give {n} names, one for each row of X.")
    try:
        found, codes = np.unique(names, return_inverse=True)
    except TypeError as error:
        raise TypeError("group must hold numbers or text, without missing values.") from error
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise ValueError("group holds missing values: leave those rows out.")
    return found, codes.astype(np.int64)
