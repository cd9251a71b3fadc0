"""Rows that share a stratum: effective draws of trees in conditional logits and Cox models.

    python -m benchmarks.strata --rows 600 5001 --way apart whole

``apart`` is what the package does: rows given one latent number for each sum over rows. ``whole``
evaluates the likelihood of all rows for each proposed tree. Two chains, of which the time is that
of the processor after tuning; ESS (R-hat) are the median and the least (the largest) of 60 rows: of
the log share of a row in its stratum, of which the likelihood speaks, and of f, whose level in a
stratum is left to the prior.
"""

import argparse
import time
import warnings

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from scipy.special import logsumexp

from benchmarks.apart import bart, make
from pymc_trees.targets import choose
from pymc_trees.targets.strata import StrataTarget


def strata(n, size):
    """Columns, the stratum of each row, and which rows are chosen."""
    rng, X, _, score = make(n)
    if size is None:
        stratum = np.sort(rng.integers(0, n // 4, n))
        stratum = np.unique(stratum, return_inverse=True)[1]
    else:
        stratum = np.arange(n) // size
    noisy = score + rng.gumbel(size=n)
    order = np.lexsort((-noisy, stratum))
    chosen = order[np.unique(stratum[order], return_index=True)[1]]
    return X, stratum, chosen


def choice(n, size):
    """One chosen row in each stratum, as a Potential."""
    X, stratum, chosen = strata(n, size)
    f = bart("f", X)
    total = pt.zeros(stratum.max() + 1)[stratum].inc(pt.exp(f))
    pm.Potential("y", f[chosen].sum() - pt.log(total).sum())
    return stratum


def categorical(n, size):
    """The same as a Categorical."""
    X, stratum, chosen = strata(n, size)
    f = bart("f", X)
    pm.Categorical("y", logit_p=f.reshape((-1, size)), observed=chosen % size)
    return stratum


def risks(n, size):
    """The partial likelihood of Cox, a third of the times censored."""
    rng, X, _, score = make(n)
    t = rng.exponential(size=n) * np.exp(-score)
    event = rng.random(n) < 0.67
    order = np.argsort(-t)
    f = bart("f", X)
    ahead = f[order]
    pm.Potential("y", (event[order] * (ahead - pt.log(pt.cumsum(pt.exp(ahead))))).sum())
    return np.zeros(n, dtype=int)


MODELS = {
    "choice of 3": (choice, 3),
    "categorical of 3": (categorical, 3),
    "choice of 10": (choice, 10),
    "matched sets": (choice, None),
    "risks": (risks, None),
}


def run(name, n, draws, seconds):
    """Milliseconds of a draw, and effective draws."""
    declare, size = MODELS[name]
    with pm.Model() as model:
        stratum = declare(n, size)
    clock: list[float] = []

    def note(trace, draw):
        clock.append(time.process_time())
        if clock[-1] - clock[0] > seconds:
            raise KeyboardInterrupt

    chains = []
    for seed in (1, 2):
        clock.clear()
        idata = pm.sample(
            draws,
            tune=draws,
            chains=1,
            cores=1,
            random_seed=seed,
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            callback=note,
            model=model,
        )
        chains.append(
            (idata.posterior["f"].to_numpy()[0], np.diff(clock)[-len(clock) // 2 :].sum(), idata)
        )
    kept = min(len(one[0]) for one in chains)
    f = np.stack([one[0][:kept] for one in chains])
    spent = sum(one[1] for one in chains) * kept / max(len(one[0]) for one in chains)
    total = np.stack(
        [logsumexp(f[..., stratum == s], axis=-1) for s in range(stratum.max() + 1)], -1
    )
    rows = np.linspace(0, n - 1, 60).astype(int)
    print(f"{name}, n={n}: {1e3 * spent / (2 * kept):.1f} ms a draw, {kept} draws", end="")
    for label, value in (("share", f - total[..., stratum]), ("f", f)):
        data = xr.Dataset({"x": (("chain", "draw", "row"), value[..., rows])})
        ess, rhat = az.ess(data)["x"].to_numpy(), az.rhat(data)["x"].to_numpy()
        a, b = np.median(ess), ess.min()
        print(
            f"; {label}: ESS {a:.0f} ({b:.0f}), a second {a / spent:.1f} ({b / spent:.1f}), "
            f"R-hat {rhat.max():.3f}",
            end="",
        )
    taken = chains[0][2].sample_stats.get("accept_delayed")
    print("" if taken is None else f"; visits taken {float(taken.mean()):.2f}", flush=True)


def main():
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strata", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[600])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--way", nargs="+", default=["apart"], choices=["apart", "whole"])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0, help="of a chain, at most")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    targets = list(choose.TARGETS)
    for n in a.rows:
        for name in a.models:
            for way in a.way:
                choose.TARGETS[:] = [t for t in targets if way == "apart" or t is not StrataTarget]
                print(way, end=" ")
                run(name, n, a.draws, a.seconds)


if __name__ == "__main__":
    main()
