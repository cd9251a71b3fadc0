"""Do intervals of survival curves cover? ``python -m benchmarks.survival_coverage``.

Forests, other parameters and times are drawn from the prior, times are censored, the model is
sampled with default steps, and equal-tailed intervals of S(t | x) are held against that of the
parameters drawn. If all is right they cover as often as they say.

The prior of trees depends on the distinct rows there are. Of discrete times these are those of the
long form: columns take few values, each combination of which many subjects have, so that all of
them are at risk at all times in nearly every replicate; the table says in how many.
"""

import argparse
import logging

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees import survival

TREES = 20
PROBABILITIES = (0.5, 0.9)
GRID = np.arange(1.0, 6.0)
LEAF = 1.0 / np.sqrt(TREES)
QUIET = {"progressbar": False}


class LogTimes:
    """Log-normal or Weibull times of 100 rows, of which a third is censored."""

    times = (0.5, 1.0, 2.0)

    def __init__(self, law):
        rng = np.random.default_rng(5)
        self.X, self.new = rng.random((100, 3)), rng.random((20, 3))
        n = len(self.X)
        with pm.Model() as self.model:
            seen = pm.Data("seen", np.ones(n))
            limit = pm.Data("limit", np.full(n, np.inf))
            f = pmt.BART("f", self.X, m=TREES, leaf=pmt.NormalLeaf(0.0, LEAF))
            sigma = pm.Gamma("sigma", 8, 16)
            laws = {
                "lognormal": lambda: pm.LogNormal.dist(f, sigma),
                "weibull": lambda: pm.Weibull.dist(1 / sigma, pm.math.exp(f)),
            }
            pm.Censored("time", laws[law](), lower=None, upper=limit, observed=seen)

    def prior(self, replicates, seed):
        self.drawn = pm.sample_prior_predictive(replicates, model=self.model, random_seed=seed)
        return self.curves(self.drawn, self.model, "prior")[0]

    def curves(self, idata, model, group):
        given = {"times": self.times, "group": group} | QUIET
        found = survival.survival_function(idata, model, self.new, **given)
        return found["survival"].to_numpy()

    def observed(self, r, rng):
        """The model, with the data of a replicate."""
        time = self.drawn["prior_predictive"]["time"].to_numpy()[0, r]
        censored = rng.exponential(3.0, time.size)
        limit = np.where(time <= censored, np.inf, censored)
        with self.model:
            pm.set_data({"seen": np.minimum(time, censored), "limit": limit})
        return self.model, True


class Grid:
    """Probit hazards of 120 subjects, 10 of each kind, at five times."""

    times = tuple(GRID)

    def __init__(self):
        kinds = np.array([[a, b] for a in range(4) for b in range(3)], dtype=float)
        self.X, self.new = np.repeat(kinds, 10, axis=0), kinds
        n = len(self.X)
        self.rows = np.column_stack([np.tile(GRID, n), np.repeat(self.X, GRID.size, axis=0)])
        self.model = self.declare(self.rows, np.zeros(len(self.rows), dtype=int))

    def declare(self, rows, y):
        with pm.Model() as model:
            leaf = pmt.NormalLeaf(-1.3 / TREES, 0.5 * LEAF)
            data = pm.Data("X", rows)
            f = pmt.BART("f", data, m=TREES, leaf=leaf)
            pm.Bernoulli("event", p=pm.math.invprobit(f), observed=y, shape=f.shape)
        return model

    def prior(self, replicates, seed):
        self.drawn = pm.sample_prior_predictive(replicates, model=self.model, random_seed=seed)
        return self.curves(self.drawn, self.model, "prior")[0]

    def curves(self, idata, model, group):
        given = {"group": group} | QUIET
        return survival.survival_function(idata, model, self.new, **given)["survival"].to_numpy()

    def observed(self, r, rng):
        """A model on the long form of a replicate, and whether it has all distinct rows."""
        n = len(self.X)
        y = self.drawn["prior_predictive"]["event"].to_numpy()[0, r].reshape(n, GRID.size)
        at = np.where(y.any(axis=1), y.argmax(axis=1), GRID.size)
        left = rng.geometric(0.05, n)  # seen up to that many times of the grid
        event = at < np.minimum(left, GRID.size)
        time = np.where(event, GRID[np.minimum(at, GRID.size - 1)], np.minimum(left, GRID.size))
        long = survival.long_form(self.X, time, event, times=GRID)
        whole = len(np.unique(long.X, axis=0)) == len(np.unique(self.rows, axis=0))
        return self.declare(long.X, long.y), whole


CASES = {
    "lognormal": lambda: LogTimes("lognormal"),
    "weibull": lambda: LogTimes("weibull"),
    "discrete": Grid,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    arguments = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    print("| model | intervals | replicates | cover | standard error | with all rows |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in arguments.cases:
        case, rng = CASES[name](), np.random.default_rng(arguments.seed)
        truth = case.prior(arguments.replicates, arguments.seed)
        inside, wholes = {p: [] for p in PROBABILITIES}, []
        for r in range(arguments.replicates):
            model, whole = case.observed(r, rng)
            wholes.append(whole)
            idata = pm.sample(
                draws=arguments.draws,
                tune=arguments.draws,
                chains=2,
                cores=1,
                model=model,
                random_seed=arguments.seed + r,
                progressbar=False,
                compute_convergence_checks=False,
            )
            found = case.curves(idata, model, "posterior")
            for p in PROBABILITIES:
                low, high = np.quantile(found, [0.5 - p / 2, 0.5 + p / 2], axis=(0, 1))
                inside[p].append(np.mean((truth[r] >= low) & (truth[r] <= high)))
        for p, shares in inside.items():
            error = np.std(shares, ddof=1) / np.sqrt(len(shares))
            row = f"| {name} | {p:.0%} | {len(shares)} | {np.mean(shares):.3f} | {error:.3f} |"
            print(f"{row} {np.mean(wholes):.0%} |", flush=True)


if __name__ == "__main__":
    main()
