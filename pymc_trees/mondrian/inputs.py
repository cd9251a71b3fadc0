"""Checks of X, y and settings: those of scikit-learn, and of cases that they miss.

Scikit-learn's checks read text and dates as numbers, and drop the mask of a masked array.
"""

from numbers import Real

import numpy as np
from sklearn.utils.validation import validate_data

_NOT_NUMBERS = {"M": "dates", "m": "time differences", "U": "text", "S": "text"}


class Columns:
    """Receives the attributes that scikit-learn's checks set on a forest that is being fitted.

    So the forest keeps its number of columns until it has new trees.
    """

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(self, forest):
        self._tags = forest.__sklearn_tags__()

    def __sklearn_tags__(self):
        return self._tags

    @property
    def names(self):
        """Names of the columns, if X had any."""
        return getattr(self, "feature_names_in_", None)


def as_kernel_input(X):
    """X as the contiguous, writable float array that kernels are compiled for."""
    return np.require(np.asarray(X), np.float64, ["C", "A", "W"])


def can_skip_checks(ensemble, X, y, kinds):
    """Whether scikit-learn's checks would pass rows for a fitted forest unchanged.

    These checks take longer than learning a row. ``kinds`` are the allowed kinds of y's dtype.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.shape[1] == ensemble.n_columns
        and y.shape == X.shape[:1]
        and len(X) > 0
        and y.dtype.kind in kinds
        and X.flags.c_contiguous
        and ensemble.names is None
        and bool(np.isfinite(X).all())
    )


def refuse_text(name, values):
    """The values, unless they are text or dates; masked ones become NaN."""
    if isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind in "biufO" and np.ma.is_masked(values):
            return np.where(np.ma.getmaskarray(values), np.nan, values.data)
        values = values.data
    if not (hasattr(values, "__array__") or isinstance(values, list | tuple)):
        return values  # scikit-learn raises an error
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


def refuse_masked(name, values):
    """Labels of any type; ValueError if some are masked."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {np.ma.count_masked(values)} masked (missing) entries: leave them out."
        )
    return values.data


def check_X(forest, X):
    """Checked rows to predict, with the forest's number of columns."""
    with np.errstate(invalid="ignore"):  # overflow in sums of the check
        return validate_data(forest, refuse_text("X", X), reset=False, dtype=np.float64, order="C")


def check_rows(forest, X, y, reset, **settings):
    """(columns, X, y) checked by scikit-learn; with ``reset`` new ``columns``."""
    name = type(forest).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    at = Columns(forest) if reset else forest
    with np.errstate(invalid="ignore"):
        X, y = validate_data(
            at,
            refuse_text("X", X),
            y,
            reset=reset,
            dtype=np.float64,
            order="C",
            estimator=name,
            **settings,
        )
    return at, X, y


# -------------------------- Settings, checked when a forest is fitted, is extended, and predicts


MAX_VALUE = 1e280
"""Largest setting or feature, so that products do not overflow."""

MAX_LABEL = 1e140
"""Largest label, so that sums of squares do not overflow."""


def check_above(name, value, instead="", least=0.0):
    """A number above ``least``, maybe infinite."""
    if isinstance(value, bool) or not isinstance(value, Real) or not value > least:
        raise ValueError(f"{name} must be a number above {least:g}{instead}, got {value!r}.")
    return float(value)


def check_finite(name, value, instead="", most=MAX_VALUE):
    """A number of at most ``most`` in absolute value."""
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number{instead}, got {value!r}.")
    if abs(value) > most:
        raise ValueError(f"{name} must lie within {most:g} of 0{instead}, got {value!r}.")
    return float(value)


def check_positive_finite(name, value, instead=""):
    """A finite number above 0."""
    return check_above(name, check_finite(name, value, instead), instead)


def check_lifetime(value):
    """A positive number, maybe infinite, whose inverse does not overflow."""
    value = check_above("lifetime", value, " (numpy.inf for no end)")
    if value < 1.0 / MAX_VALUE:
        raise ValueError(
            f"lifetime must be at least {1.0 / MAX_VALUE:g}, got {value!r}: rescale X."
        )
    return value


def check_probabilities(name, value):
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
