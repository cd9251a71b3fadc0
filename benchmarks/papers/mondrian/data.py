"""The data sets, from the folder that PYMC_TREES_DATA names, scaled to [0, 1] as in the thesis."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.peers.data import DATA_VARIABLE, read_table

from . import reported

REGRESSION = (
    "abalone", "bikes_hour", "boston", "california_housing", "concrete", "dutch_boys_bmi",
    "energy", "kin8nm", "marketing", "naval", "ozone_la", "ozone_la_mlbench", "power_plant",
    "protein", "wine_quality_red", "yacht",
)  # fmt: skip
_NOT_FEATURES = {"bikes_hour": ["instant", "dteday", "date", "record", "casual", "registered"]}
MOST_TRAINING, MOST_TEST = 8000, 2000


def read(name):
    """Numeric columns and complete rows of a data set."""
    frame = read_table(name).drop(columns=_NOT_FEATURES.get(name, []), errors="ignore")
    return frame.select_dtypes("number").dropna()


def scaled(X, *others):
    """Arrays brought to the range of the first."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    return [np.ascontiguousarray((x - low) / width) for x in (X, *others)]


def classes(name, seed=0):
    """(X, y, X_test, y_test) of figure 5.3; ``dna60`` has the 60 relevant columns.

    Which rows of satimage and dna the thesis trained on is not known: as many are drawn.
    """
    if name == "letter":
        frame = read("letter")
        train, test = frame.iloc[:15000], frame.iloc[15000:]
    else:
        base = name.removesuffix("60")
        train, test = read(f"{base}_train"), read(f"{base}_test")
    rng = np.random.default_rng(seed)
    n = reported.ROWS[name.removesuffix("60")]
    rows = rng.permutation(len(train))[:n]
    X, y = train.drop(columns="target").to_numpy(float)[rows], train.target.to_numpy()[rows]
    X_test, y_test = test.drop(columns="target").to_numpy(float), test.target.to_numpy()
    if name == "dna60":
        X, X_test = X[:, 60:120] if X.shape[1] == 180 else X, X_test[:, 60:120]
    X, X_test = scaled(X, X_test)
    return X, y, X_test, y_test


def numbers(name, splits=2):
    """[(X, y, X_test, y_test)] of a regression set: its fixed splits, or random tenths.

    At most 8,000 rows to train and 2,000 to test; y has mean 0 and variance 1 on the former.
    """
    frame = read(name)
    X, y = frame.drop(columns="target").to_numpy(float), frame.target.to_numpy(float)
    path = Path(os.environ[DATA_VARIABLE]) / f"{name}_splits.csv.gz"
    rng = np.random.default_rng(0)
    if path.exists():
        table = pd.read_csv(path)
        tests = [table.test_row[table.split == s].to_numpy() for s in table.split.unique()[:splits]]
    else:
        tests = [rng.permutation(len(y))[: len(y) // 10] for _ in range(splits)]
    out = []
    for test in tests:
        train = rng.permutation(np.setdiff1d(np.arange(len(y)), test))[:MOST_TRAINING]
        test = test[:MOST_TEST]
        mean, sd = y[train].mean(), y[train].std()
        A, B = scaled(X[train], X[test])
        out.append((A, (y[train] - mean) / sd, B, (y[test] - mean) / sd))
    return out
