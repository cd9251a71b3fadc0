"""Pen-digits (its own split), magic-04 (70 % train), madelon (its validation rows test)."""

from typing import NamedTuple

import numpy as np

from benchmarks.peers.data import read_table

NAMES = ("pendigits", "magic04", "madelon")


class Data(NamedTuple):
    """Training and test rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def n_classes(self):
        return int(self.y.max()) + 1


def _read(name):
    frame = read_table(name, "UCI 81, 159, 171")
    X = np.ascontiguousarray(frame.drop(columns="target").to_numpy(float))
    return X, frame.target.to_numpy(int)


def load(name) -> Data:
    if name == "magic04":
        X, y = _read(name)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = np.split(order, [round(0.7 * len(y))])
        return Data(name, X[train], y[train], X[test], y[test])
    return Data(name, *_read(f"{name}_train"), *_read(f"{name}_test"))
