"""The data sets of the comparison: Friedman's first function and two real sets."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

DATA_VARIABLE = "PYMC_TREES_DATA"
DEFAULT_CASES = (
    "friedman-1000-50",
    "friedman-1000-200",
    "friedman-10000-50",
    "friedman-10000-200",
    "california_houses6-200",
    "concrete-200",
)
N_TEST = 1_000
N_COLUMNS = 10
TRAINING_ROWS = {"california_houses6": 2_000}
TRAINING_SHARE = 0.8


class MissingData(Exception):
    """A real data set is not where it is looked for."""


@dataclass(frozen=True)
class Case:
    """Training rows, held-out rows, and the true function there where it is known."""

    name: str
    m: int
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    f_test: np.ndarray | None


def friedman_function(X):
    """Friedman (1991): five columns matter, the others are noise."""
    return (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1])
        + 20 * (X[:, 2] - 0.5) ** 2
        + 10 * X[:, 3]
        + 5 * X[:, 4]
    )


def friedman(name, n, m):
    """Friedman 1 with noise sd 1; the held-out rows are the same for every ``n``."""
    test_rng, rng = np.random.default_rng(2), np.random.default_rng(1)
    X_test = test_rng.uniform(size=(N_TEST, N_COLUMNS))
    f_test = friedman_function(X_test)
    y_test = f_test + test_rng.normal(size=N_TEST)
    X = rng.uniform(size=(n, N_COLUMNS))
    y = friedman_function(X) + rng.normal(size=n)
    return Case(name, m, X, y, X_test, y_test, f_test)


def read_table(name, source="", explained="target"):
    """A table of the folder of data sets with the column that is explained.

    ``source`` tells where it comes from.
    """
    folder, file = os.environ.get(DATA_VARIABLE), f"{name}.csv.gz"
    source = source and f" (from {source})"
    if not folder:
        raise MissingData(f"{file}: set {DATA_VARIABLE} to the folder that holds it{source}")
    path = Path(folder) / file
    if not path.exists():
        raise MissingData(f"{file} is not in the folder named by {DATA_VARIABLE}{source}")
    table = pd.read_csv(path)
    if explained not in table.columns:
        raise MissingData(f"{file}: the column that is explained must be called {explained}")
    return table


def numbers(table):
    """Inputs, one 0/1 column for each level of a column of text, and the target."""
    X = pd.get_dummies(table.drop(columns="target"), dtype=float)
    return X.to_numpy(float), table["target"].to_numpy(float)


def real(name, dataset, m):
    """A table with the column ``target`` last, split at random with a fixed seed."""
    table = read_table(dataset)
    if table.columns[-1] != "target":
        raise MissingData(f"{name}: the last column of {dataset}.csv.gz must be called target")
    rows = np.random.default_rng(1).permutation(len(table))
    n = TRAINING_ROWS.get(dataset, int(TRAINING_SHARE * len(table)))
    train, test = rows[:n], rows[n : n + N_TEST]
    X, y = numbers(table)
    return Case(name, m, X[train], y[train], X[test], y[test], None)


def load(name):
    """``friedman-<rows>-<trees>`` or ``<data set>-<trees>``."""
    *head, m = name.split("-")
    if head[:1] == ["friedman"] and len(head) == 2:
        return friedman(name, int(head[1]), int(m))
    if len(head) != 1 or not m.isdigit():
        raise ValueError(f"case {name!r}: use friedman-<rows>-<trees> or <data set>-<trees>")
    return real(name, head[0], int(m))
