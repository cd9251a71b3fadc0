"""Checks of arguments: each returns the value or raises an error that names the argument."""

import re
from collections.abc import Callable

import numpy as np

UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
"""Of times, in seconds."""


def check_number(name: str, value, least: int, more: str = "") -> int:
    """Check a whole number of at least ``least``; ``more`` ends the sentence of the error."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: must be a whole number of at least {least}{more}.")
    return int(value)


def check_positive(name: str, value) -> float:
    """Check a positive, finite number."""
    if not (isinstance(value, int | float | np.number) and 0 < value < np.inf):
        raise ValueError(f"{name}={value!r}: must be a positive number.")
    return float(value)


def seconds_of(max_time) -> float:
    """Seconds of a time such as "20min"."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(s|sec|min|h)\s*", str(max_time))
    text = isinstance(max_time, str)
    try:
        if text and found:
            return check_positive("max_time", float(found[1]) * UNITS[found[2]])
        if not text:
            return check_positive("max_time", max_time)
    except ValueError:
        pass
    raise ValueError(
        f"max_time={max_time!r}: give seconds, or a text such as '90s', '20min', '2h'."
    )


def check_share(name: str, value) -> float:
    """Check a number from 0 to 1."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}: must be a number from 0 to 1.")
    return float(value)


def check_choice(name: str, value, choices) -> str:
    """Check that a word is among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r}: choose from {list(choices)}.")
    return value


def check_elementwise(name: str, function) -> Callable:
    """Wrap a function of arrays to raise an error unless it keeps their shape."""
    if not callable(function):
        raise ValueError(f"{name}={function!r}: must be a function of arrays, such as numpy.exp.")

    def checked(*arrays):
        result = np.asarray(function(*arrays))
        if result.shape != arrays[0].shape:
            raise ValueError(
                f"{name} returned the shape {result.shape} for values of the shape "
                f"{arrays[0].shape}: must return one number for each, elementwise."
            )
        return result

    return checked


def plain_labels(name: str, labels):
    """Labels as they are; pandas' nullable booleans and whole numbers as those of NumPy."""
    plain = getattr(getattr(labels, "dtype", None), "numpy_dtype", None)
    if plain is None or plain.kind not in "biu":
        return labels
    if labels.isna().any():
        raise ValueError(f"{name} has missing labels: leave these rows out.")
    return labels.to_numpy(dtype=plain)


def check_seed(random_seed, name: str = "random_seed") -> np.random.Generator:
    """Make a generator from a seed."""
    try:
        return np.random.default_rng(random_seed)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name}={random_seed!r}: must be None, a whole number of at least 0, a sequence of "
            "these, or a numpy.random.Generator."
        ) from error
