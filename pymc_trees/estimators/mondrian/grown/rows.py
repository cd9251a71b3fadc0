"""The rows a forest has seen, or a sample of them, and the scale they are brought to."""

import numpy as np

from pymc_trees.estimators.mondrian.checks import MOST

_PIECE = 4096
"""Rows that are moved at a time."""


class Rows:
    """Rows and labels, ``n`` of them in the trees, in arrays that double as needed up to a size."""

    def __init__(self, n_columns, label_type, most):
        self.n, self.most = 0, most
        self.X = np.empty((0, n_columns))
        self.y = np.empty(0, dtype=label_type)

    def counted(self):
        """Those that count."""
        return self.X[: self.n], self.y[: self.n]

    def __getstate__(self):
        """Without room for more."""
        X, y = self.counted()
        return self.__dict__ | {"X": X, "y": y}

    def put(self, X, y):
        """Copy some rows behind those that count, without counting them."""
        n = self.n + len(X)
        if n > len(self.X):
            room = max(n, min(2 * len(self.X), self.most))
            self.X, self.y = self._with_room(self.X, room), self._with_room(self.y, room)
        self.X[self.n : n] = X
        self.y[self.n : n] = y

    def keep(self, some):
        """Let go of all rows but some, whose numbers ascend."""
        self.n = len(some)
        for begin in range(0, self.n, _PIECE):  # in pieces: no copy of all of them is made
            rows = some[begin : begin + _PIECE]
            self.X[begin : begin + len(rows)] = self.X[rows]
            self.y[begin : begin + len(rows)] = self.y[rows]

    def _with_room(self, array, room):
        longer = np.empty((room, *array.shape[1:]), dtype=array.dtype)
        longer[: self.n] = array[: self.n]
        return longer


class Sample(Rows):
    """Every row of a stream, and later every second, fourth, ... one, at most an even number."""

    def __init__(self, n_columns, label_type, most):
        super().__init__(n_columns, label_type, most)
        self.every, self.seen = 1, 0

    def count(self, X, y):
        """Go on with some rows of the stream, and keep those whose turn it is."""
        turn = -self.seen % self.every
        self.seen += len(y)
        X, y = X[turn :: self.every], y[turn :: self.every]
        while len(y):
            if self.n == self.most:
                self.keep(np.arange(0, self.n, 2))
                self.every *= 2
                X, y = X[::2], y[::2]  # ``most`` is even, so that it is the next row's turn
            n = min(len(y), self.most - self.n)
            self.put(X[:n], y[:n])
            self.n += n
            X, y = X[n:], y[n:]


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
