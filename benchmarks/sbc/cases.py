"""Models whose posterior is to be calibrated against their own prior.

Each is declared once: the response is model data, set anew for each replicate, so that everything
is compiled once. ``Y=None`` throughout: a leaf prior read off the response would not be the prior
that the response was drawn from.
"""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt


class Case(NamedTuple):
    model: pm.Model
    functions: list[str]
    """Deterministics of which some rows are ranked."""
    settings: list[str]
    """Other variables that are ranked."""


def inputs(n, p=2, seed=5):
    return np.random.default_rng(seed).random((n, p))


def response(n, whole=False):
    return pm.Data("response", np.zeros(n, dtype="int64" if whole else "float64"))


def poisson(n=20, m=5):
    with pm.Model() as model:
        y = response(n, whole=True)
        sd = pm.Gamma("sd", 6, 15)
        mu = pmt.BART("mu", inputs(n), m=m, leaf=pmt.NormalLeaf(0.1, sd), max_nodes=m * (2 * n - 1))
        pm.Poisson("y", pm.math.exp(mu), observed=y)
    return Case(model, ["mu"], ["sd"])


def logit(n=30, m=5):
    with pm.Model() as model:
        y = response(n, whole=True)
        alpha = pm.Beta("alpha", 4, 2)
        shift = pm.Normal("shift", 0, 1)
        mu = pmt.BART(
            "mu",
            inputs(n),
            m=m,
            alpha=alpha,
            leaf=pmt.NormalLeaf(0.0, 0.8),
            max_nodes=m * (2 * n - 1),
        )
        pm.Bernoulli("y", logit_p=mu + shift, observed=y)
    return Case(model, ["mu"], ["alpha", "shift"])


def groups(n=30, m=4, logit=False):
    """Group effects around a forest, drawn with its leaf values."""
    group, z = np.arange(n) % 5, np.linspace(-1.0, 1.0, n)
    with pm.Model() as model:
        y = response(n, whole=logit)
        room = m * (2 * n - 1)
        mu = pmt.BART("mu", inputs(n), m=m, leaf=pmt.NormalLeaf(0.1, 0.4), max_nodes=room)
        tau, level = pm.Gamma("tau", 4, 5), pm.Normal("level", 0, 1)
        a, b = pm.Normal("a", level, tau, shape=5), pm.Normal("b", 0.2, 0.5)
        eta = mu + a[group] + b * z
        if logit:
            pm.Bernoulli("y", logit_p=eta, observed=y)
        else:
            pm.Normal("y", eta, pm.Gamma("sigma", 8, 16), observed=y)
    return Case(model, ["mu"], ["tau", "level", "a", "b", *([] if logit else ["sigma"])])


def groups_logit(n=30, m=4):
    """The same, of two classes."""
    return groups(n, m, logit=True)


def two_forests(n=25, m=4):
    with pm.Model() as model:
        y = response(n)
        X, room = inputs(n), m * (2 * n - 1)
        mu = pmt.BART("mu", X, m=m, leaf=pmt.NormalLeaf(0.0, 0.7), max_nodes=room)
        log_sd = pmt.BART("log_sd", X[:, 1:], m=m, leaf=pmt.NormalLeaf(-0.2, 0.3), max_nodes=room)
        pm.Normal("y", mu, pm.math.exp(log_sd), observed=y)
    return Case(model, ["mu", "log_sd"], [])


def coefficients(n=25, m=3):
    """Two forests of different kinds: lines, and a basis whose coefficients vary."""
    with pm.Model() as model:
        y = response(n)
        X, room = inputs(n), m * (2 * n - 1)
        slope_sd = pm.Gamma("slope_sd", 6, 12)
        lines = pmt.LinearLeaf(0.1, 0.5, slope_sd, columns="path", p_constant=0.4)
        line = pmt.BART("line", X, m=m, leaf=lines, max_nodes=room)
        wave = np.column_stack([np.ones(n), np.sin(6.0 * X[:, 0])])
        held = pmt.BasisLeaf(wave, sd=[[0.3, 0.1], [0.1, 0.4]])
        varying = pmt.BART("varying", X[:, 1:], m=m, leaf=held, max_nodes=room)
        sigma = pm.Gamma("sigma", 8, 16)
        pm.Normal("y", line + varying, sigma, observed=y)
    return Case(model, ["line", "varying"], ["slope_sd", "sigma"])


def monotone_and_soft(n=25, m=3):
    """Two forests of different kinds: one that rises in a column, and soft trees."""
    with pm.Model() as model:
        y = response(n)
        X, sd = inputs(n), pm.Gamma("sd", 6, 12)
        rising = pmt.NormalLeaf(0.1, sd)
        room = m * (2 * n - 1)
        up = pmt.BART("up", X, m=m, leaf=rising, monotone={0: 1}, max_nodes=room)
        weights = pm.Dirichlet("weights", np.full(2, 1.5))
        leaf_sd = pm.Gamma("leaf_sd", 6, 12)
        soft = {"split_prior": weights, "leaf": pmt.NormalLeaf(0.0, leaf_sd), "max_nodes": room}
        smooth = pmt.SoftBART("smooth", X, m=m, **soft)
        sigma = pm.Gamma("sigma", 8, 16)
        pm.Normal("y", up + smooth, sigma, observed=y)
    return Case(model, ["up", "smooth"], ["sd", "weights", "leaf_sd", "sigma"])


def random_column(n=16, m=3):
    """A column that is measured with error, whose mean is not known."""
    with pm.Model() as model:
        y, w = response(n), pm.Data("w_response", np.zeros(n))
        z = pm.Normal("z", pm.Normal("mean", 0, 1), 0.8, shape=n)
        pm.Normal("w", z, 0.5, observed=w)
        columns = pmt.with_columns(inputs(n, 1), z=z, cuts={"z": np.linspace(-2, 2, 9)})
        room = m * (2 * n - 1)
        mu = pmt.BART("mu", columns, m=m, leaf=pmt.NormalLeaf(0.1, 0.6), max_nodes=room)
        pm.Normal("y", mu, pm.Gamma("sigma", 8, 16), observed=y)
    return Case(model, ["mu"], ["z", "mean", "sigma"])


def dart(n=25, m=4, p=6):
    with pm.Model() as model:
        y = response(n)
        X = inputs(n, p)
        X[:, 3:] = X[:, 3:] > 0.5  # columns that stop varying after a split or two
        # away from 0: a Dirichlet of tiny concentration draws weights that underflow to 0
        theta = pm.Gamma("theta", 12, 4)
        weights = pm.Dirichlet("weights", np.ones(p) * theta / p)
        sigma = pm.Gamma("sigma", 8, 16)
        mu = pmt.BART(
            "mu",
            X,
            m=m,
            split_prior=weights,
            leaf=pmt.NormalLeaf(0.0, 0.6),
            max_nodes=m * (2 * n - 1),
        )
        pm.Normal("y", mu, sigma, observed=y)
    return Case(model, ["mu"], ["theta", "sigma", "weights"])


def forest(n, m, sd=0.7, **settings):
    """A forest with room for any trees of n rows."""
    leaf, room = pmt.NormalLeaf(0.0, sd), m * (2 * n - 1)
    return pmt.BART("mu", inputs(n), m=m, leaf=leaf, max_nodes=room, **settings)


def probit(n=30, m=5):
    with pm.Model() as model:
        y, shift = response(n, whole=True), pm.Normal("shift", 0, 1)
        pm.Bernoulli("y", p=pm.math.invprobit(forest(n, m) + shift), observed=y)
    return Case(model, ["mu"], ["shift"])


def negative_binomial(n=20, m=5):
    with pm.Model() as model:
        y, alpha = response(n, whole=True), pm.Gamma("alpha", 6, 2)
        pm.NegativeBinomial("y", mu=pm.math.exp(forest(n, m, 0.5)), alpha=alpha, observed=y)
    return Case(model, ["mu"], ["alpha"])


def quantile(n=25, m=4):
    with pm.Model() as model:
        y, b = response(n), pm.Gamma("b", 6, 3)
        pm.AsymmetricLaplace("y", mu=forest(n, m), b=b, q=0.8, observed=y)
    return Case(model, ["mu"], ["b"])


def student(n=25, m=4):
    with pm.Model() as model:
        y, nu, sigma = response(n), pm.Gamma("nu", 8, 2), pm.Gamma("sigma", 8, 16)
        pm.StudentT("y", nu=nu, mu=forest(n, m), sigma=sigma, observed=y)
    return Case(model, ["mu"], ["nu", "sigma"])


def softmax(n=25, m=3, k=3):
    with pm.Model() as model:
        y, mu = response(n, whole=True), forest(n, m, shape=(k, n))
        shift = pm.Normal("shift", 0, 1, shape=k - 1)
        zero = pt.zeros(1)
        pm.Categorical("y", logit_p=mu.T + pt.concatenate([zero, shift]), observed=y)
        names = [pm.Deterministic(f"mu_{c}", mu[c]).name for c in range(k)]
    return Case(model, names, ["shift"])


CASES = {
    one.__name__: one
    for one in (
        poisson,
        logit,
        groups,
        groups_logit,
        two_forests,
        coefficients,
        monotone_and_soft,
        random_column,
        dart,
        probit,
        negative_binomial,
        quantile,
        student,
        softmax,
    )
}
