"""Mixing, accuracy and cost of one fit."""

import arviz as az
import numpy as np

N_ROWS = 50
LEVEL = 0.9
MEGABYTE = 1e6


def spaced_rows(n):
    return np.unique(np.linspace(0, n - 1, min(n, N_ROWS)).round().astype(int))


def of_each(function, draws):
    """``function`` of (chains, draws) for every column of (chains, draws, columns)."""
    columns = np.moveaxis(np.asarray(draws, float), 2, 0)
    return np.array([function(column) for column in columns])


def ess(draws):
    return az.ess(draws, method="bulk", chain_axis=0, draw_axis=1)


def rhat(draws, method="rank"):
    """Of ranks and split chains; "identity" is that of Gelman and Rubin (1992), with neither."""
    return az.rhat(draws, method=method, chain_axis=0, draw_axis=1)


def mixing(result):
    """Bulk ESS and R-hat of f at spaced held-out rows, and of sigma."""
    f = result.f[:, :, spaced_rows(result.f.shape[2])]
    sigma = np.asarray(result.sigma, float)
    f_ess, f_rhat = of_each(ess, f), of_each(rhat, f)
    return {
        "ess_f": float(np.median(f_ess)),
        "ess_f_min": float(f_ess.min()),
        "ess_sigma": float(ess(sigma)),
        "rhat_f": float(np.median(f_rhat)),
        "rhat_f_max": float(f_rhat.max()),
        "rhat_sigma": float(rhat(sigma)),
    }


def inside(draws, truth):
    """Share of ``truth`` in the central interval of ``draws`` (samples, rows)."""
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return float(np.mean((low <= truth) & (truth <= high)))


def accuracy(result, case):
    """RMSE against the true f if known, else held-out y; coverage of 90% intervals."""
    f = result.f.reshape(-1, result.f.shape[2])
    sigma = result.sigma.reshape(-1, 1)
    noise = np.random.default_rng(0).normal(size=f.shape)
    truth = case.y_test if case.f_test is None else case.f_test
    known = case.f_test is not None
    return {
        "rmse": float(np.sqrt(np.mean((f.mean(axis=0) - truth) ** 2))),
        "rmse_against": "f" if known else "y",
        "coverage_f": inside(f, case.f_test) if known else None,
        "coverage_y": inside(f + sigma * noise, case.y_test),
    }


def cost(result, problem):
    steps = problem.chains * (problem.n_warmup + problem.n_draws)
    return {
        "steps": problem.n_warmup + problem.n_draws,
        "kept": problem.kept,
        "seconds": result.seconds,
        "seconds_warmup": result.seconds_warmup,
        "seconds_sampling": result.seconds_sampling,
        "seconds_compile": result.seconds_compile,
        "seconds_predict": result.seconds_predict,
        "sweeps_per_second": steps * result.sweeps_per_step / result.seconds,
        "mb_peak": result.bytes_peak / MEGABYTE,
        "mb_before": result.bytes_before / MEGABYTE,
    }


def summarise(result, problem, case):
    row = cost(result, problem) | mixing(result) | accuracy(result, case)
    row["ess_f_per_second"] = row["ess_f"] / row["seconds"]
    row["ess_sigma_per_second"] = row["ess_sigma"] / row["seconds"]
    return row | {"version": result.version}
