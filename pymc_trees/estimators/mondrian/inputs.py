"""What is let in as X and y: scikit-learn's checks, and checks of cases that they miss.

Those checks read text and dates as numbers and drop the mask of a masked array.
"""

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
