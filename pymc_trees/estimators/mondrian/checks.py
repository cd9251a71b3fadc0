"""Settings of a forest, checked when it is fitted, extended, and asked to predict."""

from numbers import Real

import numpy as np

MOST = 1e280
"""Settings and features are no larger: products of some of them are still numbers."""

MOST_LABEL = 1e140
"""Numbers to learn are no larger: sums of their squares are still numbers."""


def positive(name, value, instead="", least=0.0):
    """A number above ``least``; infinity is one."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value > least:
        raise ValueError(f"{name} must be a number above {least:g}{instead}, got {value!r}.")
    return float(value)


def finite(name, value, instead="", most=MOST):
    """A number of at most ``most`` in absolute value."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number{instead}, got {value!r}.")
    if abs(value) > most:
        raise ValueError(f"{name} must lie within {most:g} of 0{instead}, got {value!r}.")
    return float(value)


def positive_and_finite(name, value, instead=""):
    """A number above 0 that can be multiplied with others."""
    return positive(name, finite(name, value, instead), instead)


def lifetime_of(value):
    """A positive number, maybe infinite, whose inverse is one too."""
    value = positive("lifetime", value, " (numpy.inf for no end)")
    if value < 1.0 / MOST:
        raise ValueError(f"lifetime must be at least {1.0 / MOST:g}, got {value!r}: rescale X.")
    return value


def levels(name, value):
    """Probabilities strictly between 0 and 1, as an array."""
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers between 0 and 1, got {value!r}.") from error
    if array.ndim != 1 or not ((array > 0) & (array < 1)).all():
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return array


def same(value, other):
    """Whether two values of a setting, numbers, text or pairs of arrays, are equal."""
    if value is other:
        return True
    if isinstance(value, tuple | list) and isinstance(other, tuple | list):
        return len(value) == len(other) and all(map(np.array_equal, value, other))
    return np.array_equal(value, other)
