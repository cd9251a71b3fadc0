"""X, y and sample weights: scikit-learn's checks, and frames as they are."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    column_or_1d,
    validate_data,
)

from pymc_trees.posterior.exporting.facts import table_facts
from pymc_trees.posterior.reading.table import Source
from pymc_trees.predictors.columns import Schema, column_names, real_array


def checked_X(estimator, X: Any, *, reset: bool):
    """A frame as it is, levels and missing cells and all, or an array of numbers with NaN."""
    if column_names(X) is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(
        estimator, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan"
    ).astype(np.float64, copy=False)


def check_levels(schema: Schema) -> None:
    """Raise an error for levels that predictors cannot hold, before chains run for nothing."""
    names = tuple(map(str, schema.labels))
    table_facts(Source("X", [], np.empty((0, len(names))), schema, names, schema.levels))


def weights_of(sample_weight: Any, n: int) -> np.ndarray | None:
    """(n,) weights that are not negative and not all zero; None where all are one.

    Whole numbers are taken as counts of equal rows; other weights are expected to have a mean near
    1, since they multiply log-likelihoods.
    """
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64)
    if weights.min() < 0:
        raise ValueError("sample_weight has negative entries: weights must be 0 or more.")
    if not weights.any():
        raise ValueError("sample_weight is zero everywhere: it must contain a non-zero number.")
    used = weights[weights > 0]
    if not 0.5 <= used.mean() <= 2.0 and np.any(used != np.round(used)):
        warnings.warn(
            f"sample_weight sums to {used.sum():.3g} over {used.size} rows: the posterior is as "
            f"certain as with {used.sum():.3g} rows. Give sample_weight / sample_weight.mean() "
            "where weights are relative.",
            UserWarning,
            stacklevel=4,
        )
    return None if np.all(weights == 1.0) else weights


def taken(rows: Any, which: np.ndarray):
    """Some rows of an array or frame."""
    if hasattr(rows, "iloc"):
        return rows.iloc[np.flatnonzero(which)]
    if hasattr(rows, "filter") and hasattr(rows, "columns"):
        return rows.filter(which.tolist())
    return rows[which]


def checked_y(y: Any) -> np.ndarray:
    """(n,) finite numbers."""
    try:
        y = real_array(column_or_1d(y, warn=True))  # no dates, nor text that reads as a number
    except TypeError as error:
        raise TypeError(f"y must hold numbers only: {error}.") from error
    return check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
