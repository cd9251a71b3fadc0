"""Whole predictive distributions: a density beside noise forests and quantile boosting.

    PYMC_TREES_DATA=<folder> python -m benchmarks.density --out density.jsonl

The rows of each set are in a random order; 1,500 of them train, or three quarters of fewer than
2,000, and up to 2,000 others are scored. The settings of a density were chosen on the first 3,500
rows of protein and California in that order, and on another simulation; these rows are left out.
"mixture" and "skewed" are simulated, and have a true distribution beside.

Reported are the pinball loss at the levels .02, .04, ... .98, the share of y within the 90%
interval, the negative log density at y, and CPU seconds of fit and predictions. Boosting is
scikit-learn's histogram gradient boosting of each quantile by itself with its defaults; its
quantiles cross, and "sorted" sorts those of each row. drbart is R's, with its defaults but for
the lengths in `DRBART`; its distribution functions are taken at a grid of y.

    python -m benchmarks.density --mixing --data mixture --draws 400 --tune 200

adds how quantiles move in chains of that length. What is in the file is not run again.
"""

import argparse
import os
import resource
import shutil
import subprocess
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import arviz as az
import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning

import pymc_trees as pmt
from benchmarks.tables.lines import add_line

LEVELS = np.round(np.arange(0.02, 0.99, 0.02), 2)
ENDS = (0.05, 0.95)
SEEN = 3_500
"""Rows of a large set on which settings were chosen."""
TRAIN, TEST = 1_500, 2_000
FILES = {
    "protein": "protein",
    "california": "california_housing",
    "abalone": "abalone",
    "wine": "wine_quality_red",
    "concrete": "concrete",
    "energy": "energy",
    "boston": "boston",
    "kin8nm": "kin8nm",
    "power_plant": "power_plant",
    "yacht": "yacht",
}
SIMULATED = ("mixture", "skewed")
DATA = ("mixture", "skewed", *FILES)
BAYES = ("density", "forest", "constant")
METHODS = (*BAYES, "drbart", "boosting", "sorted", "truth")
RUN = ("forest", "density", "constant", "boosting", "drbart", "truth")
DRBART = (1_000, 40)
"""Sweeps before the draws of drbart, and draws, one of 25 sweeps."""
DRBART_ROWS = 400
"""Most rows that drbart predicts, which takes it half a second a row."""


def simulated(name, n, rng):
    """Rows and the law of y at them, as a function of y and of the weights and Normals of it."""
    X = rng.random((n, 6))
    if name == "mixture":
        p = 1 / (1 + np.exp(-6 * (X[:, 1] - 0.5)))
        weight = np.stack([p, 1 - p])
        mean = np.stack([1.5 * np.sin(3 * X[:, 0]) + 0.8, -1.5 * X[:, 0] ** 2 - 0.3])
        sd = np.stack([0.12 + 0.35 * X[:, 2]] * 2)
    else:  # the logarithm of a gamma law, by a mixture that has its shape
        shape = np.exp(2 * X[:, 1] - 0.5)
        at = np.log(stats.gamma.ppf((np.arange(60)[:, None] + 0.5) / 60, shape))
        mean = 2 * np.sin(3 * X[:, 0]) + (0.3 + X[:, 2]) * at
        weight, sd = np.full(at.shape, 1 / 60), np.full(at.shape, 0.15)
    return X, (weight, mean, sd)


class Truth:
    """A mixture of Normals at each row."""

    def __init__(self, weight, mean, sd):
        self.weight, self.mean, self.sd = weight, mean, sd

    def rvs(self, rng):
        """A value of each row."""
        which = (rng.random(self.weight.shape[1]) > np.cumsum(self.weight, axis=0)).sum(axis=0)
        rows = np.arange(self.weight.shape[1])
        which = np.minimum(which, len(self.weight) - 1)
        return rng.normal(self.mean[which, rows], self.sd[which, rows])

    def logpdf(self, y):
        """Log density of each row."""
        return np.log((self.weight * stats.norm.pdf(y, self.mean, self.sd)).sum(axis=0))

    def ppf(self, levels):
        """(n, Q) quantiles."""
        found = []
        for q in levels:
            low, high = (np.full(self.mean.shape[1], end) for end in (-30.0, 30.0))
            for _ in range(50):
                x = (low + high) / 2
                under = (self.weight * stats.norm.cdf(x, self.mean, self.sd)).sum(axis=0) < q
                low, high = np.where(under, x, low), np.where(under, high, x)
            found.append(x)
        return np.stack(found, axis=-1)


def load(name):
    """Rows to learn from and to score, and the true law at the latter, if it is known."""
    if name in SIMULATED:
        rng = np.random.default_rng(11)
        laws = [simulated(name, n, rng) for n in (TRAIN, TEST)]
        (X, y), (new, y_new) = ((X, Truth(*law).rvs(rng)) for X, law in laws)
        return X, y, new, y_new, Truth(*laws[1][1])
    table = pd.read_csv(Path(os.environ["PYMC_TREES_DATA"]) / f"{FILES[name]}.csv.gz")
    if "sex" in table:
        table["sex"] = (table["sex"] == "I").astype(float)
    rows = table.to_numpy(float)
    rows = rows[np.random.default_rng(77).permutation(len(rows))]
    if len(rows) > SEEN + TRAIN + TEST:
        rows = rows[SEEN:]
    n = TRAIN if len(rows) >= 2000 else 3 * len(rows) // 4
    train, test = rows[:n], rows[n : n + TEST]
    return train[:, :-1], train[:, -1], test[:, :-1], test[:, -1], None


def answers(method, data, options):
    """Quantiles at the levels and the ends of the interval, and log densities."""
    X, y, new, y_new, truth = data
    levels = [*LEVELS, *ENDS]
    if method == "truth":
        return truth.ppf(levels), truth.logpdf(y_new)
    if method == "boosting":
        fits = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0).fit(X, y)
            for q in levels
        ]
        return np.stack([one.predict(new) for one in fits], axis=-1), None
    if method == "drbart":
        return from_drbart(data, levels)
    fitted = pmt.BARTRegressor(
        noise=method,
        draws=options.draws,
        tune=options.tune,
        chains=options.chains,
        cores=1,
        random_state=1,
        progressbar=False,
    ).fit(X, y)
    _, quantiles = fitted.predict(new, quantiles=levels, draws=options.used)
    return quantiles, fitted.log_density(new, y_new, draws=options.used)


def from_drbart(data, levels):
    """Quantiles and log densities by R's drbart with its defaults, y of mean 0 and sd 1."""
    X, y, new, y_new, _ = data
    new, y_new = new[:DRBART_ROWS], y_new[:DRBART_ROWS]
    rscript, mean, sd = shutil.which("Rscript"), y.mean(), y.std()
    if rscript is None:
        raise ModuleNotFoundError("No module named 'drbart': Rscript is not on the path")
    every = np.concatenate([y, y_new])
    grid = (np.linspace(*np.quantile(every, [0, 1]), 300) - mean) / sd
    grid = np.concatenate([grid[0] - [1, 0.5], grid, grid[-1] + [0.5, 1]])
    grid.sort()
    with TemporaryDirectory() as folder:
        at = Path(folder)
        for name, table in (("train", np.column_stack([X, (y - mean) / sd])), ("new", new)):
            np.savetxt(at / f"{name}.csv", table, delimiter=",")
        np.savetxt(at / "grid.csv", grid)
        script = Path(__file__).with_suffix(".R")
        command = [rscript, str(script), folder, *map(str, DRBART)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-1000:])
        cdf, pdf = (
            pd.read_csv(at / f"{name}.csv", header=None).to_numpy()
            for name in ("distribution", "density")
        )
    at = (y_new - mean) / sd
    log_density = [np.log(np.interp(z, grid, row) / sd) for z, row in zip(at, pdf, strict=True)]
    quantiles = [np.interp(levels, row, grid) for row in np.maximum.accumulate(cdf, axis=1)]
    return mean + sd * np.array(quantiles), np.array(log_density)


def cpu_seconds():
    """Of this process, and of those that it waited for."""
    return process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def pinball(quantiles, y):
    """Mean over the levels, of each row."""
    off = y[:, None] - quantiles
    return np.maximum(LEVELS * off, (LEVELS - 1) * off).mean(axis=1)


def scores(quantiles, log_density, y) -> tuple[dict, np.ndarray]:
    """Of a method, and its pinball loss at each row."""
    lost, (low, high) = pinball(quantiles[:, : len(LEVELS)], y), quantiles[:, len(LEVELS) :].T
    found = {"pinball": lost.mean(), "covered": np.mean((low <= y) & (y <= high))}
    if log_density is not None:
        found["log score"] = -np.mean(log_density)
    return {name: float(value) for name, value in found.items()}, lost


def one(name, options, methods):
    """Lines of a data set."""
    data, lost = load(name), {}
    y = data[3]
    about = {"data": name, "train": len(data[1]), "test": len(y)}
    about |= {"chains": options.chains, "draws": options.draws, "tune": options.tune}
    for method in methods:
        if method == "truth" and data[4] is None:
            continue
        start = cpu_seconds()
        quantiles, log_density = answers(method, data, options)
        seconds = cpu_seconds() - start
        several = {method: quantiles}
        if method == "boosting":
            inner = np.sort(quantiles[:, : len(LEVELS)], axis=1)
            ends = np.sort(quantiles[:, len(LEVELS) :], axis=1)
            several["sorted"] = np.concatenate([inner, ends], axis=1)
        for label, values in several.items():
            found, lost[label] = scores(values, log_density, y[: len(values)])
            if "forest" in lost and len(values) == len(y):
                apart = lost[label] - lost["forest"]
                error = float(apart.std() / np.sqrt(len(apart)))
                found |= {"less than forest": float(-apart.mean()), "error": error}
            yield about | {"method": label, **found, "seconds": seconds}


def mixing(name, options):
    """A line on how quantiles of f given x move in chains of some length, of a density."""
    X, y, *_ = load(name)
    lengths = {"chains": options.chains, "draws": options.draws, "tune": options.tune}
    start = process_time()
    given = {"cores": 1, "random_state": 1, "progressbar": False}
    fitted = pmt.BARTRegressor(noise="density", **lengths, **given).fit(X, y)
    seconds, drawn = process_time() - start, fitted.idata_.posterior["f_quantiles"]
    ess, r_hat = (np.ravel(f(drawn)) for f in (az.ess, az.rhat))
    found = {"ess": np.median(ess), "least ess": np.min(ess), "seconds": seconds}
    found |= {"r_hat": np.median(r_hat), "worst r_hat": np.max(r_hat)}
    line = {"data": name, "train": len(y), **lengths, "method": "mixing"}
    return line | {key: float(value) for key, value in found.items()}


def report_mixing(results: pd.DataFrame) -> None:
    """ESS of quantiles by length of the chains."""
    print("\n| quantiles of f given x | chains | ESS, median | least | a second | R-hat | worst |")
    print("|---" * 7 + "|")
    for line in results.to_dict("records"):
        chains = f"{line['chains']:.0f} x ({line['tune']:.0f} + {line['draws']:.0f})"
        print(
            f"| {line['data']} | {chains} | {line['ess']:.0f} | {line['least ess']:.0f} | "
            f"{line['ess'] / line['seconds']:.2f} | {line['r_hat']:.2f} | "
            f"{line['worst r_hat']:.2f} |"
        )


def report_scores(results: pd.DataFrame) -> None:
    """Tables by score."""
    names = [name for name in DATA if name in set(results.data)]
    of = results.set_index(["data", "method"])

    def cell(name, method, column, form):
        if (name, method) not in of.index or np.isnan(of.loc[(name, method), column]):
            return ""
        return form.format(of.loc[(name, method), column])

    methods = [method for method in METHODS if method in set(results.method)]
    for column, form in (
        ("pinball", "{:.4g}"),
        ("covered", "{:.3f}"),
        ("log score", "{:.3f}"),
        ("seconds", "{:.0f}"),
    ):
        shown = [m for m in methods if results[results.method == m][column].notna().any()]
        shown = [m for m in shown if column != "seconds" or m not in ("sorted", "truth")]
        print(f"| {column} | rows | {' | '.join(shown)} |")
        print("|---" * (2 + len(shown)) + "|")
        for name in names:
            rows = int(results[results.data == name].train.iloc[0])
            values = [cell(name, method, column, form) for method in shown]
            print(f"| {name} | {rows} | {' | '.join(values)} |")
        print()
    print("| pinball of a density, less than that of a forest by | relative | standard errors |")
    print("|---|---|---|")
    for name in names:
        if (name, "density") not in of.index:
            continue
        line, forest = of.loc[(name, "density")], of.loc[(name, "forest")]
        gain = line["less than forest"]
        print(f"| {name} | {gain / forest['pinball']:+.1%} | {gain / line['error']:+.1f} |")


def report(results: pd.DataFrame) -> None:
    """All tables."""
    is_mixing = results.method == "mixing"
    report_scores(results[~is_mixing])
    if is_mixing.any():
        report_mixing(results[is_mixing])


def main() -> None:
    """Run, or print the tables of a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--tune", type=int, default=60)
    parser.add_argument("--used", type=int, help="draws that predict; default: all")
    parser.add_argument("--out", type=Path, default=Path("density.jsonl"))
    parser.add_argument("--methods", nargs="+", default=list(RUN), choices=RUN)
    parser.add_argument("--mixing", action="store_true", help="how quantiles move, instead")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    there = set()
    if options.out.exists():
        there = {
            (line.data, line.method) for line in pd.read_json(options.out, lines=True).itertuples()
        }
    for name in () if options.report else options.data:
        if options.mixing:
            add_line(mixing(name, options), options.out)
            continue
        methods = [method for method in options.methods if (name, method) not in there]
        for line in one(name, options, methods):
            add_line(line, options.out)
    report(pd.read_json(options.out, lines=True))


if __name__ == "__main__":
    main()
