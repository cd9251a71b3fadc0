"""Accuracy on tables with categories and missing cells, beside other packages.

    PYMC_TREES_DATA=<folder> python -m benchmarks.mixed_tables

Tables: abalone (sex), hourly bike rentals (season, month, weekday, weather; 1,500 rows), Los
Angeles ozone (month, weekday; missing cells). Half of the rows, drawn anew for each split, train;
RMSE of the posterior mean on the rest, and there the coverage of 90% predictive intervals.

pymc_trees takes the frames as they are. pymc_bart gets one 0/1 column per level, stochtree handles
the categories of frames itself; both get the column's mean for missing cells. Histogram gradient
boosting has categories and missing cells of its own, with early stopping, and no posterior.
"""

import argparse
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.peers.data import read_table

TREES, TUNE, DRAWS = 50, 300, 500
BIKES = ["season", "yr", "mnth", "hour", "workingday", "weekday", "weathersit"]
BIKES += ["temperature", "humidity", "windspeed"]
TABLES = {
    "abalone": ("abalone", ["sex"], None),
    "bikes": ("bikes_hour", ["season", "mnth", "weekday", "weathersit"], 1500),
    "ozone": ("ozone_la_mlbench", ["month", "day_of_week"], None),
}


def load(name):
    file, categories, rows = TABLES[name]
    table = read_table(file)
    table = table[table["target"].notna()].reset_index(drop=True)
    if rows is not None:
        table = table.sample(rows, random_state=0).reset_index(drop=True)
    y = table["target"].to_numpy(dtype=float)
    if name == "bikes":
        table, y = table[[*BIKES, "target"]], np.sqrt(y)
    X = table.drop(columns="target")
    for column in categories:
        X[column] = X[column].astype(str).astype("category")
    numbers = [c for c in X.columns if c not in categories]
    X[numbers] = X[numbers].astype(float)
    return X, y, categories


def splits_of(n, n_splits):
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(n)
        yield seed, order[: n // 2], order[n // 2 :]


def as_numbers(X, train):
    """One 0/1 column per level, and the training mean for missing cells."""
    X = pd.get_dummies(X, dtype=float)
    return X.fillna(X.iloc[train].mean()).to_numpy()


def scores(draws, sigma, y, seed):
    """RMSE of the mean of (draws, rows) functions; coverage of 90% intervals."""
    rng = np.random.default_rng(seed)
    low, high = np.quantile(draws + sigma[:, None] * rng.normal(size=draws.shape), [0.05, 0.95], 0)
    rmse = np.sqrt(np.mean((draws.mean(axis=0) - y) ** 2))
    return rmse, float(np.mean((low <= y) & (y <= high)))


def run_pymc_trees(X, y, categories, train, test, seed):
    import pymc as pm

    import pymc_trees as pmt

    with pm.Model():
        mu = pmt.BART("mu", X.iloc[train], y[train], m=TREES)
        sigma = pm.HalfNormal("sigma", y[train].std())
        pm.Normal("y", mu, sigma, observed=y[train], shape=mu.shape)
        idata = sample(pm, seed)
        pmt.set_data({"mu_X": X.iloc[test]})
        pred = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["mu"], progressbar=False, random_seed=seed
        )
    draws = pred.predictions["mu"].values.reshape(-1, len(test))
    return scores(draws, idata.posterior["sigma"].values.reshape(-1), y[test], seed)


def sample(pm, seed):
    return pm.sample(
        DRAWS,
        tune=TUNE,
        chains=1,
        cores=1,
        random_seed=seed,
        progressbar=False,
        compute_convergence_checks=False,
    )


def run_pymc_bart(X, y, categories, train, test, seed):
    import pymc as pm
    import pymc_bart as pmb
    from pymc_bart.utils import _get_posterior_sampler

    values = as_numbers(X, train)
    with pm.Model():
        mu = pmb.BART("mu", values[train], y[train], m=TREES)
        sigma = pm.HalfNormal("sigma", y[train].std())
        pm.Normal("y", mu, sigma, observed=y[train], shape=mu.shape)
        idata = sample(pm, seed)
    forests = _get_posterior_sampler(mu.owner.op)
    draws = forests.sample_posterior(np.ascontiguousarray(values[test]), list(range(DRAWS)), None)
    draws = np.asarray(draws).reshape(DRAWS, len(test))
    return scores(draws, idata.posterior["sigma"].values.reshape(-1), y[test], seed)


def run_stochtree(X, y, categories, train, test, seed):
    from stochtree import BARTModel

    X = X.fillna(X.iloc[train].mean(numeric_only=True))
    model = BARTModel()
    model.sample(
        X_train=X.iloc[train],
        y_train=y[train],
        X_test=X.iloc[test],
        num_gfr=0,
        num_burnin=TUNE,
        num_mcmc=DRAWS,
        general_params={"random_seed": seed, "num_threads": 1},
        mean_forest_params={"num_trees": TREES},
    )
    sigma = np.sqrt(np.asarray(model.global_var_samples))
    return scores(np.asarray(model.y_hat_test).T, sigma, y[test], seed)


def run_boosting(X, y, categories, train, test, seed):
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(
        categorical_features=categories, early_stopping=True, random_state=seed
    )
    model.fit(X.iloc[train], y[train])
    return np.sqrt(np.mean((model.predict(X.iloc[test]) - y[test]) ** 2)), np.nan


RUNNERS = {
    "pymc_trees": run_pymc_trees,
    "pymc_bart": run_pymc_bart,
    "stochtree": run_stochtree,
    "boosting": run_boosting,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--packages", nargs="+", default=list(RUNNERS), choices=RUNNERS)
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    for name in args.tables:
        X, y, categories = load(name)
        missing = int(X.isna().sum().sum())
        print(f"{name}: {len(y)} rows, {X.shape[1]} columns, {missing} missing cells", flush=True)
        for package in args.packages:
            found, start = [], perf_counter()
            for seed, train, test in splits_of(len(y), args.splits):
                found.append(RUNNERS[package](X, y, categories, train, test, seed))
            rmse, coverage = np.array(found).T
            error = rmse.std(ddof=1) / np.sqrt(len(rmse)) if len(rmse) > 1 else np.nan
            print(
                f"  {package:11s} RMSE {rmse.mean():7.4f} (se over splits {error:.4f})"
                f"   coverage of 90% {np.mean(coverage):5.3f}"
                f"   {(perf_counter() - start) / len(found):6.1f} s a fit",
                flush=True,
            )


if __name__ == "__main__":
    main()
