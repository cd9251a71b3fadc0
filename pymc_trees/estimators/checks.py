"""Settings of a forest, checked when it is fitted."""

from numbers import Integral, Real

import numpy as np


def whole_number(name, value, least, instead=""):
    """An integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}{instead}, got {value!r}.")
    return int(value)


def positive(name, value, instead="", least=0.0):
    """A number above ``least``; infinity is one."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value > least:
        raise ValueError(f"{name} must be a number above {least:g}{instead}, got {value!r}.")
    return float(value)


def finite(name, value, instead=""):
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number{instead}, got {value!r}.")
    return float(value)


def one_of(name, value, choices):
    """One of some strings."""
    if value not in choices:
        names = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {names}, got {value!r}.")
    return value


def levels(name, value):
    """Probabilities strictly between 0 and 1, as an array."""
    array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if array.ndim != 1 or not ((array > 0) & (array < 1)).all():
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return array
