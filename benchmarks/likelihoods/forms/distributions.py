"""Every distribution of PyMC with a density, with what a forest can be in it.

A parameter is a function of a forest's function f, (N,), with the range that it needs, or numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

N = 6
"""Rows of the forests."""
MATRIX = np.eye(N) + 0.3 * (np.arange(N)[:, None] != np.arange(N))
"""A covariance of the rows."""
PAIR = np.array([[1.0, 0.3], [0.3, 2.0]])
NEIGHBOURS = (np.abs(np.arange(N)[:, None] - np.arange(N)) == 1).astype(float)


def real(f):
    return f


def positive(f):
    return pt.exp(f)


def share(f):
    return pt.sigmoid(f)


def whole(f):
    """A whole number from 8 on."""
    return 8 + pt.floor(pt.exp(pt.minimum(f, 2.0))).astype("int64")


def columns(f):
    """(N, 3) numbers."""
    return pt.stack([f, 0.5 * f, 0 * f], axis=1)


def column(f):
    return f[:, None]


def shares(f):
    return pt.special.softmax(columns(f), axis=1)


def total(f):
    """A positive number of all rows."""
    return pt.exp(0.1 * f.sum())


class Law(NamedTuple):
    """How a forest enters a distribution, and what is observed."""

    parameters: dict[str, Any]
    """Functions of f, or numbers; first the function that a forest is in unless another is named.
    """
    observed: Any
    by_row: bool = True
    """Whether there is a number for each row, which enters no other's density."""
    declare: Callable | None = None
    """The distribution, unless it is PyMC's of that name."""

    @property
    def seeing(self) -> list[str]:
        """Parameters that a forest can enter."""
        return [name for name, of in self.parameters.items() if callable(of)]

    def at(self, n: int = N, /, **functions) -> dict:
        """Parameters where those named are of these functions of n rows, the others of numbers."""
        others = np.resize(np.linspace(-0.2, 0.3, N), n)
        return {
            name: of(functions.get(name, pt.as_tensor(others))) if callable(of) else of
            for name, of in self.parameters.items()
        }


REALS = np.array([-0.4, 0.3, 1.3, 0.1, 2.1, -1.0])
TIMES = np.array([0.4, 1.3, 2.2, 0.7, 0.2, 1.0])
SHARES = np.array([0.4, 0.2, 0.7, 0.55, 0.1, 0.9])
COUNTS = np.array([2, 0, 1, 4, 0, 3])
NUMBERED = np.array([2, 1, 1, 4, 3, 1])
BITS = np.array([0, 1, 1, 0, 1, 0])
CLASSES = np.array([0, 2, 1, 1, 0, 2])
SIMPLEX = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]] * 2)
TABLE = np.array([[1, 2, 2], [0, 1, 4], [3, 1, 1]] * 2)
LIMITS = {id(REALS): (-0.5, 2.0), id(TIMES): (0.3, 2.0), id(SHARES): (0.15, 0.8)}
LIMITS |= {id(COUNTS): (1, 3), id(NUMBERED): (1, 3), id(BITS): (0, 1), id(CLASSES): (0, 1)}
"""Where observed numbers are censored and truncated, by their identity."""

DISTRIBUTIONS = {
    "AR": Law(
        {"rho": lambda f: 0.5 * share(f)[:, None], "sigma": positive},
        np.tile(REALS[:4], (N, 1)),
        declare=lambda rho, sigma: (
            pm.AR,
            {"rho": rho, "sigma": sigma, "init_dist": pm.Normal.dist(0.0, 1.0, shape=(N, 1))},
        ),
    ),
    "AsymmetricLaplace": Law({"mu": real, "kappa": positive, "b": positive}, REALS),
    "Bernoulli": Law({"p": share}, BITS),
    "Beta": Law({"alpha": positive, "beta": positive}, SHARES),
    "BetaBinomial": Law({"alpha": positive, "beta": positive, "n": 5}, COUNTS),
    "Binomial": Law({"n": 5, "p": share}, COUNTS),
    "CAR": Law({"mu": real, "W": NEIGHBOURS, "alpha": 0.5, "tau": total}, REALS, by_row=False),
    "Categorical": Law({"p": shares}, CLASSES),
    "Cauchy": Law({"alpha": real, "beta": positive}, REALS),
    "ChiSquared": Law({"nu": positive}, TIMES),
    "Dirichlet": Law({"a": lambda f: pt.exp(columns(f))}, SIMPLEX),
    "DirichletMultinomial": Law({"n": 5, "a": lambda f: pt.exp(columns(f))}, TABLE),
    "DiscreteUniform": Law({"lower": lambda f: -whole(f), "upper": whole}, COUNTS),
    "DiscreteWeibull": Law({"q": share, "beta": lambda f: 0.5 + share(f)}, COUNTS),
    "ExGaussian": Law({"mu": real, "sigma": positive, "nu": positive}, REALS),
    "EulerMaruyama": Law(
        {"sde_pars": lambda f: [share(f)]},
        np.tile(REALS[:4], (N, 1)),
        declare=lambda sde_pars: (
            pm.EulerMaruyama,
            {
                "dt": 0.1,
                "sde_fn": lambda x, a: (-a * x, 0.5),
                "sde_pars": sde_pars,
                "init_dist": pm.Normal.dist(0.0, 1.0, shape=(N,)),
            },
        ),
    ),
    "Exponential": Law({"lam": positive}, TIMES),
    "GARCH11": Law(
        {"omega": positive, "alpha_1": lambda f: 0.4 * share(f), "beta_1": 0.3, "initial_vol": 1.0},
        np.tile(REALS[:4], (N, 1)),
    ),
    "Gamma": Law({"alpha": positive, "beta": positive}, TIMES),
    "GaussianRandomWalk": Law(
        {"mu": real, "sigma": positive},
        np.append(REALS, 0.7),
        by_row=False,
        declare=lambda mu, sigma: (
            pm.GaussianRandomWalk,
            {"mu": mu, "sigma": sigma, "init_dist": pm.Normal.dist(0.0, 1.0)},
        ),
    ),
    "Geometric": Law({"p": share}, NUMBERED),
    "Gumbel": Law({"mu": real, "beta": positive}, REALS),
    "HalfCauchy": Law({"beta": positive}, TIMES),
    "HalfNormal": Law({"sigma": positive}, TIMES),
    "HalfStudentT": Law({"sigma": positive, "nu": positive}, TIMES),
    "HurdleGamma": Law({"alpha": positive, "beta": positive, "psi": share}, TIMES),
    "HurdleLogNormal": Law({"mu": real, "sigma": positive, "psi": share}, TIMES),
    "HurdleNegativeBinomial": Law({"mu": positive, "alpha": positive, "psi": share}, COUNTS),
    "HurdlePoisson": Law({"mu": positive, "psi": share}, COUNTS),
    "HyperGeometric": Law({"N": 40, "k": whole, "n": whole}, COUNTS),
    "ICAR": Law({"W": NEIGHBOURS, "sigma": total}, REALS, by_row=False),
    "InverseGamma": Law({"alpha": positive, "beta": positive}, TIMES),
    "KroneckerNormal": Law(
        {"mu": real, "covs": [PAIR, np.eye(3)], "sigma": 0.5}, REALS, by_row=False
    ),
    "Kumaraswamy": Law({"a": positive, "b": positive}, SHARES),
    "LKJCorr": Law({"n": 2, "eta": total}, np.linalg.cholesky([[1, 0.3], [0.3, 1]]), by_row=False),
    "Laplace": Law({"mu": real, "b": positive}, REALS),
    "LogNormal": Law({"mu": real, "sigma": positive}, TIMES),
    "Logistic": Law({"mu": real, "s": positive}, REALS),
    "LogitNormal": Law({"mu": real, "sigma": positive}, SHARES),
    "MatrixNormal": Law(
        {"mu": lambda f: pt.stack([f, 0.5 * f], axis=1), "rowcov": MATRIX, "colcov": PAIR},
        np.stack([REALS, TIMES], axis=1),
        by_row=False,
    ),
    "Moyal": Law({"mu": real, "sigma": positive}, REALS),
    "Multinomial": Law({"n": 5, "p": shares}, TABLE),
    "MvGaussianRandomWalk": Law(
        {"mu": lambda f: f[:2]},
        np.tile(REALS[:2], (3, 1)),
        by_row=False,
        declare=lambda mu: (
            pm.MvGaussianRandomWalk,
            {
                "mu": mu,
                "cov": PAIR,
                "init_dist": pm.MvNormal.dist(np.zeros(2), np.eye(2)),
                "shape": (3, 2),
            },
        ),
    ),
    "MvNormal": Law({"mu": real, "cov": lambda f: pt.exp(f[0]) * MATRIX}, REALS, by_row=False),
    "MvStudentT": Law({"mu": real, "nu": total, "scale": MATRIX}, REALS, by_row=False),
    "MvStudentTRandomWalk": Law(
        {"mu": lambda f: f[:2]},
        np.tile(REALS[:2], (3, 1)),
        by_row=False,
        declare=lambda mu: (
            pm.MvStudentTRandomWalk,
            {
                "nu": 4.0,
                "mu": mu,
                "scale": PAIR,
                "init_dist": pm.MvNormal.dist(np.zeros(2), np.eye(2)),
                "shape": (3, 2),
            },
        ),
    ),
    "NegativeBinomial": Law({"mu": positive, "alpha": positive}, COUNTS),
    "Normal": Law({"mu": real, "sigma": positive}, REALS),
    "NormalMixture": Law(
        {
            "mu": lambda f: pt.stack([f, f + 1], axis=-1),
            "w": lambda f: pt.stack([share(f), 1 - share(f)], axis=-1),
            "sigma": lambda f: pt.exp(f)[:, None],
        },
        REALS,
    ),
    "OrderedLogistic": Law({"eta": real, "cutpoints": np.array([-1.0, 1.0])}, CLASSES),
    "OrderedMultinomial": Law(
        {"eta": real, "cutpoints": np.array([-1.0, 1.0]), "n": 5, "compute_p": False}, TABLE
    ),
    "OrderedProbit": Law({"eta": real, "cutpoints": np.array([-1.0, 1.0])}, CLASSES),
    "Pareto": Law({"alpha": positive, "m": lambda f: 0.1 * share(f)}, TIMES),
    "Poisson": Law({"mu": positive}, COUNTS),
    "RandomWalk": Law(
        {"mu": real},
        np.append(TIMES, 5.0).cumsum(),
        by_row=False,
        declare=lambda mu: (
            pm.RandomWalk,
            {"init_dist": pm.Normal.dist(0.0, 1.0), "innovation_dist": pm.Laplace.dist(mu, 1.0)},
        ),
    ),
    "Rice": Law({"nu": positive, "sigma": lambda f: 0.5 + pt.exp(f)}, TIMES),
    "SkewNormal": Law({"mu": real, "sigma": positive, "alpha": real}, REALS),
    "SkewStudentT": Law({"mu": real, "sigma": positive, "a": positive, "b": positive}, REALS),
    "StickBreakingWeights": Law({"alpha": positive, "K": 2}, SIMPLEX),
    "StudentT": Law({"mu": real, "nu": positive, "sigma": positive}, REALS),
    "Triangular": Law({"lower": -2.0, "c": share, "upper": 3.0}, REALS),
    "TruncatedNormal": Law(
        {
            "mu": real,
            "sigma": positive,
            "lower": lambda f: -2.0 - pt.exp(f),
            "upper": lambda f: 3.0 + pt.exp(f),
        },
        REALS,
    ),
    "Uniform": Law(
        {"lower": lambda f: -2.0 - pt.exp(f), "upper": lambda f: 3.0 + pt.exp(f)}, REALS
    ),
    "VonMises": Law({"mu": real, "kappa": positive}, REALS),
    "Wald": Law({"mu": positive, "lam": positive}, TIMES),
    "Weibull": Law({"beta": positive, "alpha": positive}, TIMES),
    "Wishart": Law({"nu": 4, "V": lambda f: pt.exp(f[0]) * PAIR}, PAIR + np.eye(2), by_row=False),
    "ZeroInflatedBinomial": Law({"p": share, "n": 5, "psi": share}, COUNTS),
    "ZeroInflatedNegativeBinomial": Law({"mu": positive, "alpha": positive, "psi": share}, COUNTS),
    "ZeroInflatedPoisson": Law({"mu": positive, "psi": share}, COUNTS),
    "ZeroSumNormal": Law(
        {"sigma": column},
        np.array([[1.0, -0.5, -0.5], [0.2, 0.4, -0.6]] * 3),
        declare=lambda sigma: (pm.ZeroSumNormal, {"sigma": pt.exp(sigma)}),
    ),
}
"""By name in `pymc.distributions`."""

EXCLUDED = {
    "Censored": "a form",
    "Continuous": "a base class",
    "CustomDist": "a form",
    "DensityDist": "another name of CustomDist",
    "DiracDelta": "no density; a part of the zero-inflated form",
    "Discrete": "a base class",
    "Distribution": "a base class",
    "Flat": "no parameter",
    "HalfFlat": "no parameter",
    "Interpolated": "its parameters are numbers, of which PyMC makes a spline",
    "LKJCholeskyCov": "several variables, none of which can be observed",
    "Lognormal": "another name of LogNormal",
    "Mixture": "a form",
    "PolyaGamma": "its density needs a package that PyMC does not install",
    "Simulator": "no density",
    "SymbolicRandomVariable": "a base class",
    "Truncated": "a form",
    "WishartBartlett": "a function that declares variables",
}
"""Other names in `pymc.distributions`, and why they have no rows of their own."""


def kind_of(name: str) -> tuple[Callable, Law]:
    """A function of parameters that gives the class and what it takes, and the table's entry."""
    law = DISTRIBUTIONS[name]
    return law.declare or (lambda **given: (getattr(pm, name), given)), law
