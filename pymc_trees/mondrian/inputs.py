"""What is let in as X and y: scikit-learn's checks, and checks of cases that they miss.

Those checks read text and dates as numbers and drop the mask of a masked array.
"""

from numbers import Real

import numpy as np
from sklearn.utils.validation import validate_data

_NOT_NUMBERS = {"M": "dates", "m": "time differences", "U": "text", "S": "text"}


class Columns:
    """Stands in for a forest that is being fitted: what the checks set is set here.

    So that a forest has no new number of columns before it has new trees.
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(self, forest):
        self._tags = forest.__sklearn_tags__()

    def __sklearn_tags__(self):
        return self._tags

    @property
    def names(self):
        """Names of the columns, where X had some."""
        return getattr(self, "feature_names_in_", None)


def plain(X):
    """A base-class, contiguous, writeable float array, as the kernels are compiled for."""
    return np.require(np.asarray(X), np.float64, ["C", "A", "W"])


def need_no_check(grown, X, y, kinds):
    """Whether rows for a fitted forest are such that scikit-learn's checks would pass them as is.

    They take longer than a row does in all trees. ``kinds`` are those of y's dtype.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.shape[1] == grown.n_columns
        and y.shape == X.shape[:1]
        and len(X) > 0
        and y.dtype.kind in kinds
        and X.flags.c_contiguous
        and grown.names is None
        and bool(np.isfinite(X).all())
    )


def numbers(name, values):
    """The values, unless they are text or dates; those that are masked are missing."""
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind in "biufO" and np.ma.is_masked(values):
            return np.where(np.ma.getmaskarray(values), np.nan, values.data)
        values = values.data
    if not (hasattr(values, "__array__") or isinstance(values, list | tuple)):
        return values  # scikit-learn has words for it
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths, likewise
        return values
    kind = array.dtype.kind
    if kind == "O" and any(isinstance(value, str | bytes) for value in array.flat):
        kind = "U"
    if kind in _NOT_NUMBERS:
        raise ValueError(
            f"{name} holds {_NOT_NUMBERS[kind]}, and must hold numbers: convert it, for instance "
            f"by {name}.astype(float)."
        )
    return values


def unmasked(name, values):
    """Labels of any type, none of them masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {np.ma.count_masked(values)} masked (missing) entries: leave them out."
        )
    return values.data


def checked_X(forest, X):
    """Rows to predict, as many columns as the forest's."""
    with np.errstate(invalid="ignore"):  # sums of the check, where X is at the ends of the floats
        return validate_data(forest, numbers("X", X), reset=False, dtype=np.float64, order="C")


def checked_rows(forest, X, y, reset, **settings):
    """(columns, X, y) by scikit-learn's checks; ``columns`` are new where ``reset``."""
    name = type(forest).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    at = Columns(forest) if reset else forest
    with np.errstate(invalid="ignore"):
        X, y = validate_data(
            at,
            numbers("X", X),
            y,
            reset=reset,
            dtype=np.float64,
            order="C",
            estimator=name,
            **settings,
        )
    return at, X, y


# ----------------- Settings of a forest, checked when it is fitted, extended, and asked to predict


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
