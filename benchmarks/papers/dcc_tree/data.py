"""The six data sets, each with one fixed split into training and test rows.

The rows of iris, BCW, wine and raisin are split as by the programs the authors published with the
paper and with RJHMC-Tree (Cochrane et al. 2023): a shuffle by Python's own generator. CGM follows
the description beside its file there: both inputs are whole numbers from 1 to 10. WU follows
appendix C, with N(0, 0.25) read as a standard deviation, as their program has it. Both are drawn
here, so that noise and rows are not theirs.
"""

import random
from typing import NamedTuple

import numpy as np

from benchmarks.peers.data import read_table

SPLITS = {
    "BCW": (123456789, 0.7),
    "Iris": (123456789, 0.7),
    "Wine": (123456789, 0.8),
    "Raisin": (1, 0.7),
}
"""Seed of the shuffle and share of the rows that train, as in the authors' programs."""


class Data(NamedTuple):
    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    h: tuple[float, float]
    """Table 5."""
    tune: int
    """N_INIT: section 4.1, and the default of the authors' program."""
    floor: float | None = None
    """MSE of the true function at the test rows: what no method is expected to beat."""

    @property
    def classes(self):
        """Number of classes; 0 for regression."""
        return 0 if self.y.dtype.kind == "f" else int(self.y.max()) + 1


SETTINGS = {
    "CGM": ((0.01, 0.001), 5000),
    "WU": ((0.5, 0.025), 2000),
    "BCW": ((0.1, 0.025), 1000),
    "Iris": ((0.01, 0.01), 1000),
    "Wine": ((0.025, 0.025), 1000),
    "Raisin": ((0.05, 0.001), 1000),
}


def load(name: str) -> Data:
    """A data set by the paper's name."""
    h, tune = SETTINGS[name]
    if name in ("CGM", "WU"):
        rng = np.random.default_rng(20240)
        make = cgm if name == "CGM" else wu
        (X, f, noise), (X_test, f_test, noise_test) = make(rng), make(rng)
        floor = float(np.mean(noise_test**2))
        return Data(name, X, f + noise, X_test, f_test + noise_test, h, tune, floor)
    X, y = {"BCW": from_file, "Raisin": from_file}.get(name, from_sklearn)(name)
    seed, share = SPLITS[name]
    order = list(range(len(y)))
    random.Random(seed).shuffle(order)
    train, test = np.split(order, [int(share * len(y))])
    return Data(name, X[train], y[train], X[test], y[test], h, tune)


def wu(rng):
    """Appendix C: two trees explain it equally well. Rows, function, noise."""

    def u(low, high):
        return rng.uniform(low, high, 100)

    X = np.concatenate(
        [
            np.column_stack([u(0.1, 0.4), u(0.1, 0.4), u(0.6, 0.9)]),
            np.column_stack([u(0.1, 0.4), u(0.6, 0.9), u(0.6, 0.9)]),
            np.column_stack([u(0.6, 0.9), u(0.1, 0.9), u(0.1, 0.4)]),
        ]
    )
    f = np.where(X[:, 0] > 0.5, 5.0, np.where(X[:, 1] > 0.5, 3.0, 1.0))
    return X, f, rng.normal(0, 0.25, 300)


def cgm(rng, n=800):
    """Chipman et al. (1998), section 6.1, with numbers for its categorical input; as `wu`."""
    X = rng.integers(1, 11, (n, 2)).astype(float)
    left = np.where(X[:, 0] <= 3, 1.0, np.where(X[:, 0] <= 7, 5.0, 8.0))
    right = np.where(X[:, 0] <= 5, 8.0, 2.0)
    return X, np.where(X[:, 1] <= 4, left, right), rng.normal(0, 0.2, n)


def from_file(name):
    """Rows without missing entries of a file of the data folder."""
    stem = {"BCW": "breast_cancer_wisconsin", "Raisin": "raisin"}[name]
    table = read_table(stem, "UCI 15 and 850").dropna()
    return table.drop(columns="target").to_numpy(float), table["target"].to_numpy(int)


def from_sklearn(name):
    """Iris and wine."""
    from sklearn import datasets

    found = {"Iris": datasets.load_iris, "Wine": datasets.load_wine}[name]()
    return found.data, found.target
