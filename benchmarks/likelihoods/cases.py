"""Models, written once for every package whose `BART` takes a name, X, Y, m and a shape.

Real data where a gallery has them, else simulated: 1,000 rows of ten columns. ``f`` is what is
followed: the function of the forest, or of all forests one below the other.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm

from benchmarks.peers import data

N_ROWS, N_COLUMNS = 1_000, 10
QUANTILES = np.array([0.1, 0.5, 0.9])
N_CHILDREN = 365
"""Of the 7,294 of the table, evenly spaced by age, as in the gallery of pymc-bart."""


class Case(NamedTuple):
    rows: int
    trees: int
    """Of all outputs together."""
    declare: Callable
    """``(bart)``: the model inside of its context; the names of the functions."""


def simulated(seed=0):
    """Inputs and a smooth function of three of them."""
    rng = np.random.default_rng(seed)
    X = rng.random((N_ROWS, N_COLUMNS))
    return rng, X, np.sin(6 * X[:, 0]) + 2 * (X[:, 1] - 0.5) ** 2 + 0.5 * X[:, 2] - 0.5


def on_simulated(observe, m=50):
    """A case of one forest on simulated rows."""
    rng, X, f = simulated()
    y, declare = observe(rng, f)

    def model(bart):
        declare(bart("f", X, f, m=m), y)
        return ["f"]

    return Case(N_ROWS, m, model)


def normal():
    return on_simulated(
        lambda rng, f: (
            f + 0.5 * rng.normal(size=f.size),
            lambda mu, y: pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=y),
        )
    )


def student():
    return on_simulated(
        lambda rng, f: (
            f + 0.4 * rng.standard_t(4, f.size),
            lambda mu, y: pm.StudentT("y", 4, mu, sigma=pm.HalfNormal("sigma", 1), observed=y),
        )
    )


def poisson():
    return on_simulated(
        lambda rng, f: (
            rng.poisson(np.exp(f + 1)),
            lambda mu, y: pm.Poisson("y", pm.math.exp(mu + 1), observed=y),
        )
    )


def logit():
    return on_simulated(
        lambda rng, f: (
            (rng.random(f.size) < 1 / (1 + np.exp(-2 * f))).astype(int),
            lambda mu, y: pm.Bernoulli("y", logit_p=2 * mu, observed=y),
        )
    )


def probit():
    return on_simulated(
        lambda rng, f: (
            (f + rng.normal(size=f.size) > 0).astype(int),
            lambda mu, y: pm.Bernoulli("y", p=pm.math.invprobit(mu), observed=y),
        )
    )


def weibull():
    def observe(rng, f):
        time, end = rng.weibull(1.5, f.size) * np.exp(f), 2.0

        def declare(mu, y):
            law = pm.Weibull.dist(alpha=pm.HalfNormal("alpha", 2), beta=pm.math.exp(mu))
            pm.Censored("y", law, lower=None, upper=end, observed=y)

        return np.minimum(time, end), declare

    return on_simulated(observe)


def coal():
    """Disasters by year."""
    dates = data.read_table("coal_mining", explained="date")["date"].to_numpy(float)
    years = np.arange(1851, 1963)
    counts = np.array([np.sum(np.floor(dates) == year) for year in years])

    def model(bart):
        f = bart("f", years[:, None].astype(float), np.log(counts + 0.5), m=20)
        pm.Poisson("y", pm.math.exp(f), observed=counts)
        return ["f"]

    return Case(years.size, 20, model)


def bikes():
    X, y = data.numbers(data.read_table("bikes"))

    def model(bart):
        f = bart("f", X, np.log(y + 0.5), m=50)
        alpha = pm.Exponential("alpha", 1)
        pm.NegativeBinomial("y", mu=pm.math.exp(f), alpha=alpha, observed=y.astype(int))
        return ["f"]

    return Case(len(y), 50, model)


def hawks():
    X, y = data.numbers(data.read_table("hawks"))
    X, y = X[::3], y[::3].astype(int)

    def model(bart):
        f = bart("f", X, 0.75 * np.sqrt(20) * (y - 1.0), m=20, shape=(3, len(y)))
        pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=y)
        return ["f"]

    return Case(len(y), 60, model)


def bmi():
    X, y = data.numbers(data.read_table("dutch_boys_bmi"))
    rows = np.argsort(X[:, 0])[np.linspace(0, len(y) - 1, N_CHILDREN).round().astype(int)]
    X, y = X[rows], y[rows]

    def model(bart):
        f = bart("f", X, y, m=50, shape=(3, len(y)))
        b = pm.HalfNormal("b", 5)
        law = {"mu": f, "b": b, "q": QUANTILES[:, None]}
        pm.AsymmetricLaplace("y", **law, observed=np.broadcast_to(y, (3, len(y))))
        return ["f"]

    return Case(len(y), 150, model)


def marketing():
    X, y = data.numbers(data.read_table("marketing"))
    X = X[:, :1]

    def model(bart):
        f = bart("f", X, np.log(y), m=50)
        g = bart("g", X, np.linspace(-1.0, 1.0, len(y)), m=20)
        mean = pm.math.exp(f)
        pm.Gamma("y", mu=mean, sigma=mean * pm.math.exp(g - 1), observed=y)
        return ["f", "g"]

    return Case(len(y), 70, model)


CASES = {
    one.__name__: one
    for one in (
        normal,
        student,
        poisson,
        logit,
        probit,
        weibull,
        coal,
        bikes,
        hawks,
        bmi,
        marketing,
    )
}
