"""Pen-digits (its own split), magic-04 (70 % train), madelon (its validation rows test)."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.peers.data import DATA_VARIABLE, MissingData

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
    folder = os.environ.get(DATA_VARIABLE)
    path = Path(folder or "") / f"{name}.csv.gz"
    if folder is None or not path.exists():
        raise MissingData(
            f"{name}.csv.gz: set {DATA_VARIABLE} to the folder that holds it (UCI 81, 159, 171)"
        )
    frame = pd.read_csv(path)
    X = np.ascontiguousarray(frame.drop(columns="target").to_numpy(float))
    return X, frame.target.to_numpy(int)


def load(name) -> Data:
    if name == "magic04":
        X, y = _read(name)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = np.split(order, [round(0.7 * len(y))])
        return Data(name, X[train], y[train], X[test], y[test])
    return Data(name, *_read(f"{name}_train"), *_read(f"{name}_test"))
