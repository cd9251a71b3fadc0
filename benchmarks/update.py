"""What does `pmt.update` save against a fresh fit, when rows are added?

    python -m benchmarks.update

fits Friedman's function, adds rows, and samples the new model anew and by `update`, with several
lengths of tuning. For each run: CPU seconds of four chains; RMSE of the posterior mean of f at new
inputs; R-hat of f there among its chains, and of its chains together with those of another fresh
fit, which says whether they have the same law. In "changed" the added rows, a fifth, follow another
function.
"""

import argparse
from time import process_time

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt

SAMPLE = {"chains": 4, "cores": 1, "progressbar": False, "compute_convergence_checks": False}


def f(X: np.ndarray) -> np.ndarray:
    """Friedman's function."""
    smooth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return smooth + 10 * X[:, 3] + 5 * X[:, 4]


def rows(n: int, added: int, change: float, seed: int = 1):
    """Inputs and responses of n rows, and of those that are added, where f may be another."""
    rng = np.random.default_rng(seed)
    X = rng.random((n + added, 10))
    shift = change * (X[:, 0] > 0.5) * (np.arange(n + added) >= n)
    return X, f(X) + shift + rng.normal(size=n + added)


def model_of(X, y, m: int) -> pm.Model:
    """A forest with Normal noise."""
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=m)
        sigma = pm.HalfNormal("sigma", 5)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def at_test_rows(idata, model, X_test) -> xr.DataArray:
    """(chain, draw, row) function at test rows."""
    rows_of = pmt.predictions(idata, model, X_test, progressbar=False)
    return rows_of["prediction"].transpose("chain", "draw", ...)


def r_hat(*fits: xr.DataArray) -> float:
    """Largest R-hat of f over the test rows, of the chains of some fits together."""
    length = min(fit.sizes["draw"] for fit in fits)
    chains = np.concatenate([fit.values[:, -length:] for fit in fits])
    return float(np.nanmax(az.rhat(az.convert_to_datatree({"f": chains}))["f"].values))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.update")
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--tunes", type=int, nargs="+", default=[0, 100, 200])
    options = parser.parse_args()
    n, m, draws = options.rows, options.trees, options.draws
    X_test = np.random.default_rng(9).random((100, 10))
    old = None
    print("| rows added | start | tune | seconds | RMSE | R-hat | R-hat beside a fresh fit |")
    print("|" + "---|" * 7)
    for added, change in ((n // 100, 0.0), (n // 5, 0.0), (n // 5, 5.0)):
        X, y = rows(n, added, change)
        if old is None:
            warm = model_of(X, y, m)  # compiles
            pm.sample(5, tune=5, model=warm, random_seed=0, **SAMPLE)
            old = pm.sample(
                draws, tune=1000, model=model_of(X[:n], y[:n], m), random_seed=1, **SAMPLE
            )
        truth = f(X_test) + change * (X_test[:, 0] > 0.5) * added / (n + added)
        model = model_of(X, y, m)
        reference = at_test_rows(
            pm.sample(draws, tune=1000, model=model, random_seed=2, **SAMPLE), model, X_test
        )
        runs = [("anew", tune) for tune in (*options.tunes[1:], 1000)]
        runs += [("update", tune) for tune in options.tunes]
        what = f"{added:,}" + (", changed" if change else "")
        for start, tune in runs:
            begin = process_time()
            given = {"tune": tune, "random_seed": 3} | SAMPLE
            if start == "anew":
                idata = pm.sample(draws, model=model, **given)
            else:
                given.pop("chains")
                idata = pmt.update(old, model, draws, **given)
            seconds = process_time() - begin
            found = at_test_rows(idata, model, X_test)
            error = found.mean(("chain", "draw")).values - truth
            print(
                f"| {what} | {start} | {tune} | {seconds:.0f} | {np.sqrt((error**2).mean()):.3f} "
                f"| {r_hat(found):.3f} | {r_hat(found, reference):.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
