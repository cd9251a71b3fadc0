"""The rows a forest has seen, and the scale they are brought to."""

import numpy as np

from pymc_trees.estimators.mondrian.checks import MOST


class Rows:
    """Rows and labels in arrays that double as needed; ``n`` of them are in the trees."""

    def __init__(self, n_columns, label_type):
        self.n = 0
        self.X = np.empty((0, n_columns))
        self.y = np.empty(0, dtype=label_type)

    def put(self, X, y):
        """Copy some rows behind those that count, without counting them."""
        n = self.n + len(X)
        if n > len(self.X):
            room = max(n, 2 * len(self.X))
            self.X, self.y = self._with_room(self.X, room), self._with_room(self.y, room)
        self.X[self.n : n] = X
        self.y[self.n : n] = y

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
        with np.errstate(over="ignore"):
            width = np.where(high > low, high - low, 1.0)  # a constant column stays constant
        if not np.isfinite(width).all():
            raise ValueError(f"scaling={scaling!r}: high - low overflows; rescale X.")
        self.low, self.width = low.copy(), width

    def __call__(self, X):
        """The scaled rows; what overflows becomes infinite, further than any other point."""
        if self.low is None:
            return X
        with np.errstate(over="ignore"):
            return (X - self.low) / self.width

    def of_new(self, X):
        """The scaled rows, refused where sums of their distances would overflow."""
        X = self(X)
        if not max(X.max(), -X.min()) <= MOST:
            scaled = "" if self.low is None else " once it is scaled"
            raise ValueError(
                f"X has values beyond {MOST:g}{scaled}: with them every distance and every later "
                "prediction would be infinite or NaN. Leave these rows out, or rescale X."
            )
        return X
