"""Which estimate of class probabilities, with rows that repeat and without?

    PYMC_TREES_DATA=<folder> python -m benchmarks.class_smoothing --out class_smoothing.jsonl

Half of the rows of a data set, drawn anew for each split, train a `MondrianForestClassifier` of 50
trees, at most 1,500; as many others are predicted by each estimate, with the same trees. "Rounded"
sets have the first three columns, brought to [0, 1] and rounded to quarters; in sets "beside" the
rows to predict are not rounded. Log loss is that of
scikit-learn: probabilities below 2.2e-16 count as that. Each estimate is compared with the
interpolated Kneser-Ney of the thesis split by split.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

import pymc_trees as pmt
from benchmarks.papers.mondrian.data import read, scaled
from benchmarks.tables.lines import kept_lines

TREES, MOST = 50, 1500
LEAST = np.finfo(np.float64).eps
BUNDLED = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
FILES = {
    "raisin": "raisin",
    "magic04": "magic04",
    "pendigits": "pendigits_train",
    "letter": "letter",
    "satimage": "satimage_train",
    "dna60": "dna_train",
    "hawks": "hawks",
    "breast_cancer_wisconsin": "breast_cancer_wisconsin",
    "wine_quality_red": "wine_quality_red",
    "space_influenza": "space_influenza",
    "bikes_calendar": "bikes_hour",
}
CALENDAR = ["season", "hour", "weekday", "weathersit"]
ROUNDED = ("iris", "breast_cancer", "raisin", "magic04", "pendigits", "hawks", "wine_quality_red")
DATA = (
    *BUNDLED,
    *FILES,
    *(f"{name}, rounded" for name in ROUNDED),
    *(f"{name}, beside" for name in ROUNDED),
)
ESTIMATES = {
    "kneser-ney": ("kneser-ney", 0.0),
    "kneser-ney, 0.3": ("kneser-ney", 0.3),
    **{f"shares, {c:g}": ("shares", c) for c in (0.0, 0.1, 0.3, 0.5, 1.0)},
}


def load(name):
    """Rows with columns in [0, 1] to learn from and to predict, and classes."""
    base, *changed = name.split(", ")
    if base in BUNDLED:
        X, y = BUNDLED[base](return_X_y=True)
    else:
        frame = read(FILES[base])
        X, y = frame.drop(columns="target"), frame["target"].to_numpy()
        if base == "dna60":
            X = X.iloc[:, 60:120]
        elif base == "bikes_calendar":
            X = X[CALENDAR]
            y = np.searchsorted(np.quantile(y, [0.25, 0.5, 0.75]), y)
        X = X.to_numpy(float)
    (X,) = scaled(X)
    if not changed:
        return X, X, y
    rounded = np.round(4 * X[:, :3]) / 4
    return rounded, X[:, :3] if changed == ["beside"] else rounded, y


def one(name, split):
    """Log loss, Brier score and how many probabilities are 0, by estimate."""
    X, new, y = load(name)
    rng = np.random.default_rng(split)
    rows = rng.permutation(len(X))
    half = min(len(X) // 2, MOST)
    train, test = rows[:half], rows[half : 2 * half]
    test = test[np.isin(y[test], y[train])]
    forest = pmt.MondrianForestClassifier(TREES, random_state=split).fit(X[train], y[train])
    codes = np.searchsorted(forest.classes_, y[test])
    result = {
        "rows": half,
        "places": len(np.unique(X[train], axis=0)),
        "known": float(np.mean(rows_valid(X[train], new[test]))),
    }
    for estimate, (smoothing, concentration) in ESTIMATES.items():
        forest.set_params(smoothing=smoothing, concentration=concentration)
        p = forest.predict_proba(new[test])
        right = p[np.arange(len(test)), codes]
        result[f"log loss of {estimate}"] = float(-np.log(np.maximum(right, LEAST)).mean())
        result[f"Brier of {estimate}"] = float((p**2).sum(axis=1).mean() - 2 * right.mean() + 1)
        result[f"zeros of {estimate}"] = int((right < LEAST).sum())
    return result


def rows_valid(X, new):
    """Whether each row is one of X."""
    seen = {x.tobytes() for x in X + 0.0}
    return [x.tobytes() in seen for x in new + 0.0]


def differences(rows, score, estimate):
    """Mean paired difference from Kneser-Ney, and its standard error over the splits."""
    apart = rows[f"{score} of {estimate}"] - rows[f"{score} of kneser-ney"]
    return apart.mean(), apart.std() / np.sqrt(len(apart))


def report(results: pd.DataFrame) -> None:
    """Tables by set, and how often each estimate is the better one."""
    groups = [results[results.data == name] for name in DATA]
    groups = [rows for rows in groups if len(rows)]
    for score in ("log loss", "Brier"):
        print(f"| data | rows | places | known | {score}, kneser-ney | {' | '.join(ESTIMATES)} |")
        print("|---" * (5 + len(ESTIMATES)) + "|")
        for rows in groups:
            parts = [
                rows.data.iloc[0],
                f"{rows.rows.iloc[0]}",
                f"{rows.places.mean():.0f}",
                f"{rows.known.mean():.2f}",
                f"{rows[f'{score} of kneser-ney'].mean():.4f}",
                "",
            ]
            for estimate in list(ESTIMATES)[1:]:
                mean, error = differences(rows, score, estimate)
                parts.append(f"{mean:+.4f} ± {error:.4f}")
            print(f"| {' | '.join(parts)} |".replace(" |  | ", " | 0 | "))
        print()
    print("| estimate | better by 2 errors | worse | mean log loss | rows given no probability |")
    print("|---|---|---|---|---|")
    for estimate in ESTIMATES:
        found = [differences(rows, "log loss", estimate) for rows in groups]
        better = sum(mean < -2 * error for mean, error in found)
        worse = sum(mean > 2 * error for mean, error in found)
        mean = np.mean([rows[f"log loss of {estimate}"].mean() for rows in groups])
        zeros = int(results[f"zeros of {estimate}"].sum())
        print(f"| {estimate} | {better} | {worse} | {mean:.4f} | {zeros} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("class_smoothing.jsonl"))
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    jobs = [(name, split) for split in range(given.splits) for name in given.data]
    report(kept_lines(given.out, ("data", "split"), () if given.report else jobs, one))


if __name__ == "__main__":
    main()
