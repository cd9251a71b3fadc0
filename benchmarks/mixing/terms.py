"""Groups, slopes and splines around a forest: steps for one independent draw, with and without.

    python -m benchmarks.mixing.terms --out terms.jsonl
    python -m benchmarks.mixing.terms --cases groups logit --rows 1000 --groups 10 --trees 50

`mu = f(X) + a[group] + ...` with five columns and a curved f. Each case is sampled twice from the
same seeds: as `pm.sample()` assigns steps (`GaussianTerms`), and with `step=[pmt.Hybrid()]` (soft
trees: `pmt.SoftCGM`), where NUTS has the terms. Integrated autocorrelation times are draws over
bulk ESS (ArviZ), in steps; those of f and its R-hat are over the first 50 rows. `told` marks a
column of X that tells groups apart, as there is in `soft`.
"""

import argparse
import json
import logging
import time
import warnings
from itertools import product
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm

import pymc_trees as pmt

CASES = "groups told small coefficient spline crossed slopes bcf logit soft".split()
ROWS_OF_F = 50


def declare(case: str, n: int, K: int, m: int, rng) -> pm.Model:
    """A model of a case with its simulated data."""
    X = rng.random((n, 5))
    group, other, z = rng.integers(0, K, n), rng.integers(0, 2 * K, n), rng.normal(size=n)
    told = case in ("told", "soft")
    if told:
        X[:, 0] = group
    tau_true = 0.2 if case == "small" else 2.0 if told else 0.5
    y = np.sin(6 * X[:, 1]) + 2 * X[:, 2] * X[:, 3] + tau_true * rng.normal(size=K)[group]
    y = y + 0.3 * z + rng.normal(0, 0.5, n)
    with pm.Model() as model:
        eta = (pmt.SoftBART if case == "soft" else pmt.BART)("f", X, y, m=m)
        tau = pm.HalfNormal("tau", 1.0)
        if case == "slopes":
            chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.HalfNormal.dist(1.0))
            ab = pm.MvNormal("ab", np.zeros(2), chol=chol, shape=(K, 2))
            a = pm.Deterministic("a", ab[:, 0])
            eta = eta + pm.Normal("level", 0, tau) + a[group] + ab[:, 1][group] * z
        else:
            a = pm.Normal("a", 0.0, tau, shape=K)
            eta = eta + a[group]
        if case == "coefficient":
            eta = eta + pm.Normal("b", 0, 1) * X[:, 1]
        if case == "crossed":
            eta = eta + pm.Normal("c", 0, pm.HalfNormal("tau_c", 1.0), shape=2 * K)[other]
        if case == "spline":
            B = np.exp(-0.5 * ((X[:, :1] - np.linspace(0, 1, 20)) / 0.08) ** 2)
            eta = eta + pm.math.dot(B, pm.Normal("w", 0, 1, shape=20))
        if case == "bcf":
            effect = pmt.BART("effect", X, m=m // 2, leaf=pmt.NormalLeaf(0, 0.5 / (m // 2) ** 0.5))
            eta = eta + effect * (z > 0)
        if case == "logit":
            pm.Bernoulli("y", logit_p=eta, observed=(y > np.median(y)).astype(int))
        else:
            pm.Normal("y", eta, pm.HalfNormal("sigma", 1.0), observed=y)
    return model


def measure(model, case: str, joint: bool, options) -> dict:
    """Sample once: steps for one independent draw, R-hats, milliseconds a step."""
    with model:
        step = None if joint else [pmt.SoftCGM() if case == "soft" else pmt.Hybrid()]
        sizes = {"draws": options.draws, "tune": options.tune, "chains": options.chains}
        quiet = {"progressbar": False, "compute_convergence_checks": False}
        pm.sample(2, tune=2, chains=1, cores=1, step=step, random_seed=1, **quiet)  # compiles
        start = time.perf_counter()
        cores = {"cores": options.cores, "random_seed": options.seed}
        draws = pm.sample(**sizes, **cores, step=step, **quiet)
        seconds = time.perf_counter() - start
    posterior = draws["posterior"]
    a = posterior["a"].to_numpy()
    f = posterior["f"].to_numpy()[..., :ROWS_OF_F]
    wanted = {"tau": np.log(posterior["tau"].to_numpy()), "mean": a.mean(-1)}
    wanted["contrast"] = a[..., 1] - a[..., 0]
    if "b" in posterior:
        wanted["coefficient"] = posterior["b"].to_numpy()
    total = options.draws * options.chains
    times = {name: total / float(az.ess(v)) for name, v in wanted.items()}
    rows = [total / float(az.ess(f[..., i])) for i in range(f.shape[-1])]
    worst = [float(az.rhat(v)) for v in wanted.values()]
    worst += [float(az.rhat(f[..., i])) for i in range(f.shape[-1])]
    steps = (options.draws + options.tune) * options.chains / options.cores
    return {
        **{f"IACT {name}": value for name, value in times.items()},
        **{"IACT f": float(np.median(rows)), "R-hat, worst": max(worst)},
        "ms a step": 1e3 * seconds / steps,
    }


def main() -> None:
    """Print a table, and write a line of JSON for each fit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.terms")
    add = parser.add_argument
    add("--cases", nargs="+", default=CASES, choices=CASES)
    add("--rows", nargs="+", type=int, default=[1_000])
    add("--groups", nargs="+", type=int, default=[10])
    add("--trees", nargs="+", type=int, default=[50])
    add("--draws", type=int, default=1_000)
    add("--tune", type=int, default=1_000)
    add("--chains", type=int, default=4)
    add("--steps", nargs="+", default=["joint", "apart"], choices=["joint", "apart"])
    add("--cores", type=int, default=1)
    add("--seed", type=int, default=1)
    add("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for case, n, K, m in product(options.cases, options.rows, options.groups, options.trees):
        for joint in [name == "joint" for name in options.steps]:
            model = declare(case, n, K, m, np.random.default_rng(options.seed))
            found = {"case": case, "rows": n, "groups": K, "trees": m, "joint": joint}
            found |= measure(model, case, joint, options)
            line = " | ".join(
                f"{v:.3g}" if isinstance(v, float) and k != "R-hat, worst" else f"{v}"[:5]
                for k, v in found.items()
            )
            print(f"| {line} |", flush=True)  # noqa: T201
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
