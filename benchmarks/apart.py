"""Models that fall apart: milliseconds a step in one line, and written as two likelihoods.

    python -m benchmarks.apart --rows 600 5000

A hurdle in one line is compared with a Bernoulli on all rows beside a likelihood on the positive
ones, whose forest has those rows alone. Its forests have 50 trees each, or share their trees.
Zero inflation is compared with the hurdle of two likelihoods, a cure fraction with a probit of who
is cured beside a censored LogNormal of the others, whose membership is given to it; the choice of
one alternative in each of the strata, a Potential, with a Categorical, which is sampled alike. The
time is that of the processor for all steps of `pm.sample`, in one process, after as many more to
tune.
"""

import argparse
import time
import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import expit

import pymc_trees as pmt


def bart(name, X, mean=0.0, sd=1.5, m=50, **settings):
    """A forest whose sum has a mean and an sd."""
    return pmt.BART(name, X, m=m, leaf=pmt.NormalLeaf(mean / m, sd / np.sqrt(m)), **settings)


def make(n, seed=1):
    """Columns, whether there is anything, its log."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    some = rng.random(n) < expit(3 * X[:, 0] - 1.5)
    return rng, X, some, np.sin(4 * X[:, 1]) + X[:, 2]


# ------------------------------------------------------------------------------------------ Hurdles


def amounts(n):
    """A positive amount, or none."""
    rng, X, some, log_mean = make(n)
    return X, np.where(some, np.exp(log_mean + 0.4 * rng.normal(size=n)), 0.0)


def counts(n):
    """A positive count, or none."""
    rng, X, some, log_mean = make(n)
    return X, np.where(some, 1 + rng.poisson(np.exp(log_mean)), 0)


def two_likelihoods(X, y, positive):
    """A Bernoulli of all rows, and a likelihood of the positive ones."""
    pm.Bernoulli("some", logit_p=bart("f", X), observed=(y > 0).astype(int))
    positive(bart("g", X[y > 0]), y[y > 0])


def lognormal_hurdle(n):
    X, y = amounts(n)
    psi = pm.math.invlogit(bart("f", X))
    pm.HurdleLogNormal("y", psi, mu=bart("g", X), sigma=pm.HalfNormal("s"), observed=y)


def lognormal_two(n):
    X, y = amounts(n)
    two_likelihoods(X, y, lambda g, y: pm.LogNormal("y", g, pm.HalfNormal("s"), observed=y))


def lognormal_shared(n):
    X, y = amounts(n)
    f = bart("f", X, shape=(2, n), separate_trees=False)
    psi = pm.math.invlogit(f[0])
    pm.HurdleLogNormal("y", psi, mu=f[1], sigma=pm.HalfNormal("s"), observed=y)


def gamma_hurdle(n):
    X, y = amounts(n)
    psi, mu = pm.math.invlogit(bart("f", X)), pm.math.exp(bart("g", X))
    alpha = pm.HalfNormal("a", 5)
    pm.HurdleGamma("y", psi, alpha=alpha, beta=alpha / mu, observed=y)


def gamma_two(n):
    X, y = amounts(n)

    def gamma(g, y):
        alpha = pm.HalfNormal("a", 5)
        pm.Gamma("y", alpha=alpha, beta=alpha / pm.math.exp(g), observed=y)

    two_likelihoods(X, y, gamma)


def poisson_hurdle(n):
    X, y = counts(n)
    psi, mu = pm.math.invlogit(bart("f", X)), pm.math.exp(bart("g", X))
    pm.HurdlePoisson("y", psi, mu, observed=y)


def poisson_two(n):
    X, y = counts(n)

    def poisson(g, y):
        pm.Truncated("y", pm.Poisson.dist(pm.math.exp(g)), lower=1, observed=y)

    two_likelihoods(X, y, poisson)


def poisson_shared(n):
    X, y = counts(n)
    f = bart("f", X, shape=(2, n), separate_trees=False)
    pm.HurdlePoisson("y", pm.math.invlogit(f[0]), pm.math.exp(f[1]), observed=y)


# ------------------------------------------------------------------------------ Zeros of two kinds


def poisson_inflated(n):
    X, y = counts(n)
    psi, mu = pm.math.invlogit(bart("f", X)), pm.math.exp(bart("g", X))
    pm.ZeroInflatedPoisson("y", psi, mu, observed=y)


def poisson_plain_two(n):
    X, y = counts(n)
    two_likelihoods(X, y, lambda g, y: pm.Poisson("y", pm.math.exp(g), observed=y))


# ---------------------------------------------------------------------------------- Cure fractions


def times(n):
    """Times, ends of the observation, and who is not cured."""
    rng, X, some, log_mean = make(n)
    end = rng.uniform(2.0, 8.0, size=n)
    t = np.where(some, np.exp(log_mean + 0.5 * rng.normal(size=n)), np.inf)
    return X, np.minimum(t, end), end, some


def cure_mixture(n):
    X, t, end, _ = times(n)
    p, mu, sigma = pm.math.invprobit(bart("f", X)), bart("g", X), pm.HalfNormal("s")
    law = pm.Censored.dist(pm.LogNormal.dist(mu, sigma), None, end)
    weights = pt.stack([1 - p, p], axis=-1)
    pm.Mixture("y", weights, [pm.DiracDelta.dist(end), law], observed=t)


def cure_potential(n):
    X, t, end, _ = times(n)
    p, mu, sigma = pm.math.invprobit(bart("f", X)), bart("g", X), pm.HalfNormal("s")
    law = pm.LogNormal.dist(mu, sigma)
    died = pt.log(p) + pm.logp(law, t)
    alive = pt.log(1 - p + p * (1 - pt.exp(pm.logcdf(law, t))))
    pm.Potential("y", pt.switch(t < end, died, alive))


def cure_two(n):
    X, t, end, some = times(n)
    pm.Bernoulli("some", p=pm.math.invprobit(bart("f", X)), observed=some.astype(int))
    mu, sigma = bart("g", X[some]), pm.HalfNormal("s")
    law = pm.LogNormal.dist(mu, sigma)
    pm.Censored("y", law, None, end[some], observed=t[some])


# --------------------------------------------------------------------- One choice in each stratum


ALTERNATIVES = 3


def strata(n):
    """Columns of n alternatives or a few less, and which of three is chosen."""
    n -= n % ALTERNATIVES
    rng, X, _, score = make(n)
    return X, (score + rng.gumbel(size=n)).reshape(-1, ALTERNATIVES).argmax(1)


def choice_potential(n):
    X, chosen = strata(n)
    f = bart("f", X).reshape((-1, ALTERNATIVES))
    logs = f[np.arange(len(chosen)), chosen] - pm.math.logsumexp(f, axis=1, keepdims=False)
    pm.Potential("y", logs)


def choice_categorical(n):
    X, chosen = strata(n)
    f = bart("f", X).reshape((-1, ALTERNATIVES))
    pm.Categorical("y", logit_p=f, observed=chosen)


MODELS = {
    "lognormal": (lognormal_two, lognormal_hurdle, lognormal_shared),
    "gamma": (gamma_two, gamma_hurdle),
    "poisson": (poisson_two, poisson_hurdle, poisson_shared),
    "zero-inflated": (poisson_plain_two, poisson_inflated),
    "cure": (cure_two, cure_mixture, cure_potential),
    "strata": (choice_categorical, choice_potential),
}


def ms_a_step(declare, n, steps, seconds):
    """Milliseconds of a step after tuning: of ``steps`` steps, or as many as fit into a time."""
    with pm.Model() as model:
        declare(n)
    clock = []

    def note(trace, draw):
        clock.append(time.process_time())
        if clock[-1] - clock[0] > 2 * seconds:
            raise KeyboardInterrupt

    pm.sample(
        steps,
        tune=steps,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
        callback=note,
        model=model,
    )
    spent = np.diff(clock)
    return 1e3 * float(np.mean(spent[spent.size // 2 :]))


def main():
    """Print a line for each model."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apart", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[600])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8.0, help="at most, after tuning")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in a.rows:
        for name in a.models:
            apart = None
            for declare in MODELS[name]:
                ms = ms_a_step(declare, n, a.steps, a.seconds)
                apart = apart or ms
                print(f"n={n} {declare.__name__}: {ms:.2f} ms, {ms / apart:.1f}", flush=True)


if __name__ == "__main__":
    main()
