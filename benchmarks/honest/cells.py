"""The cells: training rows, held-out rows, and the true function at these where it is known.

A cell is named ``<function>-<rows>``, with settings after further dashes, as in
``trig-10000-loud``, ``max-50000-levels`` or ``linear-10000-t``; a table is named alone, or with the
rows that are trained on, as in ``california_housing-2000``.
"""

import numpy as np

from benchmarks.peers.data import Case, friedman_function, numbers, read_table

N_TEST = 1_000
N_COLUMNS = 30
FACTORS = 10
"""Columns, the last ones, that have levels in a cell with ``levels``."""


def linear(X):
    """He and Hahn (2023), section 4.1."""
    return X @ (-2 + 4 * np.arange(N_COLUMNS) / (N_COLUMNS - 1))


def index(X):
    centre = -1.5 + np.arange(10) / 3
    a = ((X[:, :10] - centre) ** 2).sum(axis=1)
    return 10 * np.sqrt(a) + np.sin(5 * a)


def trig(X):
    return 5 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] ** 2 + 3 * X[:, 2] * X[:, 3]


def largest(X):
    return X[:, :3].max(axis=1)


FACTORIAL = {"linear": linear, "index": index, "trig": trig, "max": largest}


def checkerboard(X):
    """Products of signs: no column explains anything alone."""
    return 2.0 * np.sign(X[:, 0] - 0.5) * np.sign(X[:, 1] - 0.5) + np.sign(X[:, 2] - 0.5)


def piecewise(X):
    """Tan et al. (2024), a tree of few leaves with steps far larger than the noise."""
    steps = np.where(X[:, 0] < 0.5, np.where(X[:, 1] < 0.5, 0.0, 8.0), 8.0)
    return steps - np.where((X[:, 0] >= 0.5) & (X[:, 2] < 0.5), 10.0, 0.0)


def shelf(X):
    """Flat but for a ledge; the rows are where the first column is large (targeted selection)."""
    return 3.0 * (X[:, 0] > 0.7) * (X[:, 1] > 0.3) + X[:, 2]


UNIFORM = {"checkerboard": checkerboard, "piecewise": piecewise, "shelf": shelf}


def factorial(name, n, settings):
    """30 standard normal columns; noise with the variance of f, ten times that, or t errors."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(n + N_TEST, N_COLUMNS))
    if "levels" in settings:
        X[:, -FACTORS:] = np.clip(np.round(X[:, -FACTORS:]), -2, 2)
    f = FACTORIAL[name](X)
    sd = f.std() * (np.sqrt(10.0) if "loud" in settings else 1.0)
    errors = rng.standard_t(5, n + N_TEST) / np.sqrt(5 / 3) if "t" in settings else None
    return X, f, sd * (rng.normal(size=n + N_TEST) if errors is None else errors)


def uniform(function, n, settings):
    """Ten uniform columns."""
    rng = np.random.default_rng(12)
    X = rng.uniform(size=(n + N_TEST, 10))
    if function is shelf:  # rows are picked by what is to be explained
        X[:, 0] = rng.beta(2, 1, n + N_TEST)
    f = function(X)
    sd = np.sqrt(0.1) if "quiet" in settings else 1.0
    return X, f, sd * rng.normal(size=n + N_TEST)


def cell(name: str) -> Case:
    """The rows of a cell."""
    head, *rest = name.split("-")
    if head in FACTORIAL:
        X, f, errors = factorial(head, int(rest[0]), rest[1:])
    elif head == "friedman" or head in UNIFORM:
        X, f, errors = uniform(UNIFORM.get(head, friedman_function), int(rest[0]), rest[1:])
    else:
        return table(head, int(rest[0]) if rest else None)
    n, y = len(f) - N_TEST, f + errors
    return Case(name, 0, X[:n], y[:n], X[n:], y[n:], f[n:])


def table(name: str, n: int | None) -> Case:
    """A table of the folder of data sets, at most ``N_TEST`` rows or a fifth of it held out."""
    data = read_table(name)
    X, y = numbers(data)
    rows = np.random.default_rng(13).permutation(len(y))
    held = min(N_TEST, len(y) // 5)
    test, train = rows[:held], rows[held:][:n]
    return Case(name, 0, X[train], y[train], X[test], y[test], None)
