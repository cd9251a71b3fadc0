"""The rows a forest has seen, and the scale they are brought to."""

import numpy as np


def plain(X):
    """A base-class, contiguous, writeable float array, as the kernels are compiled for."""
    return np.require(np.asarray(X), np.float64, ["C", "A", "W"])


def need_no_check(forest, X, y, kinds):
    """Whether rows for a fitted forest are such that scikit-learn's checks would pass them as is.

    They take longer than a row does in all trees. ``kinds`` are those of y's dtype.
    """
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.shape[1] == forest.n_features_in_
        and y.shape == X.shape[:1]
        and len(X) > 0
        and y.dtype.kind in kinds
        and X.flags.c_contiguous
        and not hasattr(forest, "feature_names_in_")
        and bool(np.isfinite(X).all())
    )


class Rows:
    """Rows and labels in arrays that double as needed."""

    def __init__(self, n_columns, label_type):
        self.n = 0
        self.X = np.empty((0, n_columns))
        self.y = np.empty(0, dtype=label_type)

    def append(self, X, y):
        """Copy some rows behind those there are."""
        n = self.n + len(X)
        if n > len(self.X):
            room = max(n, 2 * len(self.X))
            self.X = self._with_room(self.X, room)
            self.y = self._with_room(self.y, room)
        self.X[self.n : n] = X
        self.y[self.n : n] = y
        self.n = n

    def _with_room(self, array, room):
        longer = np.empty((room, *array.shape[1:]), dtype=array.dtype)
        longer[: self.n] = array[: self.n]
        return longer


class Scaling:
    """``(X - low) / (high - low)``, with fixed ends; None leaves X alone."""

    def __init__(self, scaling, X):
        if scaling is None:
            self.low, self.width = None, None
            return
        if isinstance(scaling, str):
            if scaling != "first":
                raise ValueError(
                    f"scaling must be None, 'first' or a pair (low, high), got {scaling!r}."
                )
            low, high = X.min(axis=0), X.max(axis=0)
            high = np.where(high > low, high, low + 1.0)  # a constant column stays constant
        else:
            try:
                low, high = (
                    np.broadcast_to(np.asarray(end, dtype=np.float64), X.shape[1])
                    for end in scaling
                )
            except (TypeError, ValueError) as error:
                raise ValueError(
                    "scaling must be None, 'first' or a pair (low, high) of numbers or of arrays "
                    f"with one entry per feature ({X.shape[1]}), got {scaling!r}."
                ) from error
            if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
                raise ValueError("scaling=(low, high) needs finite ends with low < high.")
        self.low, self.width = low.copy(), high - low

    def __call__(self, X):
        """The scaled rows."""
        if self.low is None:
            return X
        return (X - self.low) / self.width
