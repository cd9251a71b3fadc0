"""Leaf priors as users name them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.dirichlet import DirichletData
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.core.leaves.normal_gamma import NormalGammaData
from pymc_trees.core.leaves.normal_vector import NormalVectorPrior
from pymc_trees.distributions.data.numbers import is_number

SMALLEST_SD = 1e-150


@njit(cache=True)
def _normal_prior(mean, sd):
    return NormalData(mean, sd, np.empty(0), np.zeros(1), np.zeros(8))


@njit(cache=True)
def _normal_vector_prior(mean, sd):
    return NormalVectorPrior(np.ascontiguousarray(mean), np.ascontiguousarray(sd))


@njit(cache=True)
def _normal_gamma_prior(a, nu, lam):
    return NormalGammaData(a, nu, lam, np.empty(0), 0.0)


@njit(cache=True)
def _dirichlet_prior(alpha, n_classes):
    # no rows: only the first entry of the tables of log rising factorials, 0, is read
    return DirichletData(
        alpha, int(n_classes), np.empty(0, dtype=np.int64), np.zeros(1), np.zeros(1)
    )


def _numbers(value):
    """A number, or several as an array; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_number(value):
        return value
    several = isinstance(value, list | tuple | np.ndarray) and len(value) > 0
    return np.array(value, dtype=float) if several and all(map(is_number, value)) else None


def _for_each(value, n_values):
    if isinstance(value, Variable):
        return value if value.ndim else pt.full((n_values,), value)
    return pt.constant(np.full(n_values, value, dtype=np.float64))


def _check_positive(leaf, names):
    for name in names:
        value = getattr(leaf, name)
        if not isinstance(value, Variable) and not (is_number(value) and value > 0):
            raise ValueError(
                f"{type(leaf).__name__}({name}={value!r}): {name} must be a positive number, or a "
                "random variable."
            )


@dataclass(frozen=True, eq=False)
class NormalLeaf:
    """Normal prior for the leaf values of every tree.

    With a Gaussian likelihood the leaf values are integrated out of every change of a tree.

    Parameters
    ----------
    mean : float, tensor or (K,) array
        Mean of one leaf of one tree, in the units of y. A sum of m trees has prior mean
        ``m * mean``. With ``shape=(K, n)`` one number for each output, or one for all.
    sd : float, tensor or (K,) array, positive
        Standard deviation of one leaf of one tree. A sum of m trees has prior standard deviation
        ``sqrt(m) * sd``. As many as of ``mean``.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4, section 2.2.3.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> pmt.NormalLeaf(mean=0.0, sd=0.3)
    NormalLeaf(mean=0.0, sd=0.3)
    """

    mean: Any = 0.0
    sd: Any = 1.0
    kind: ClassVar[str] = "normal"

    def __post_init__(self):
        for name, asked in (("mean", "finite"), ("sd", "positive")):
            given = getattr(self, name)
            if isinstance(given, Variable):
                continue
            value = _numbers(given)
            if value is None or (name == "sd" and np.any(value <= 0)):
                raise ValueError(
                    f"NormalLeaf({name}={given!r}): {name} must be a {asked} number, or a random "
                    "variable; one for each output when there are several."
                )
            if name == "sd" and not np.all((SMALLEST_SD < value) & (value < 1 / SMALLEST_SD)):
                raise ValueError(
                    f"NormalLeaf(sd={given!r}): the square of sd and its inverse must be "
                    "floating-point numbers: rescale the response, and sd with it."
                )
            object.__setattr__(self, name, value)

    def output(self, k: int) -> "NormalLeaf":
        """Prior of output k alone."""
        return NormalLeaf(*(v[k] if np.ndim(v) else v for v in self.parameters))

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 1


@dataclass(frozen=True, eq=False)
class NormalVectorLeaf:
    """`NormalLeaf` of K outputs that share their trees, as the random variable takes it."""

    mean: Variable
    sd: Variable
    n_values: int
    kind: ClassVar[str] = "normal_vector"

    @classmethod
    def of(cls, leaf: NormalLeaf, n_values: int) -> "NormalVectorLeaf":
        """For all K outputs."""
        return cls(_for_each(leaf.mean, n_values), _for_each(leaf.sd, n_values), n_values)

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd)


@dataclass(frozen=True, eq=False)
class NormalGammaLeaf:
    """Mean and precision of each leaf of a single tree.

    ``tau ~ Gamma(nu/2, rate=nu*lam/2)``, ``mu | tau ~ Normal(0, sd=1/sqrt(a*tau))``. The likelihood
    is ``pm.Normal(mu=mu, tau=tau)`` with both outputs of the same tree.

    Parameters
    ----------
    a : float or tensor, positive
        Prior rows behind the mean: small values leave the leaf means free.
    nu : float or tensor, positive
        Prior degrees of freedom of the precision.
    lam : float or tensor, positive
        Prior guess of the variance within a leaf, in squared units of y.

    References
    ----------
    Chipman, George and McCulloch (1998). Bayesian CART model search. Journal of the American
    Statistical Association 93, section 4.1.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> pmt.NormalGammaLeaf(a=0.1, nu=3.0, lam=0.5)
    NormalGammaLeaf(a=0.1, nu=3.0, lam=0.5)
    """

    a: Any = 1.0 / 3.0
    nu: Any = 3.0
    lam: Any = 1.0
    kind: ClassVar[str] = "normal_gamma"

    def __post_init__(self):
        _check_positive(self, ["a", "nu", "lam"])

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.a, self.nu, self.lam)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 2


@dataclass(frozen=True, eq=False)
class DirichletLeaf:
    """Class probabilities of each leaf of a single tree.

    ``theta ~ Dirichlet(alpha / n_classes, ...)``; the likelihood is ``pm.Categorical(p=...)``, or
    ``pm.Bernoulli(p=...[:, 1])`` for two classes.

    Parameters
    ----------
    alpha : float or tensor, positive
        Total concentration: each class has ``alpha / n_classes``. ``alpha = n_classes`` is the
        uniform prior.
    n_classes : int, at least 2
        Number of classes.

    References
    ----------
    Lakshminarayanan (2016). Decision trees and forests: a probabilistic perspective (thesis),
    section 3.2.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> pmt.DirichletLeaf(alpha=3.0, n_classes=3)
    DirichletLeaf(alpha=3.0, n_classes=3)
    """

    alpha: Any
    n_classes: int
    kind: ClassVar[str] = "dirichlet"

    def __post_init__(self):
        _check_positive(self, ["alpha"])
        if not isinstance(self.n_classes, int | np.integer) or self.n_classes < 2:
            raise ValueError(
                f"DirichletLeaf(n_classes={self.n_classes!r}): n_classes must be a whole number of "
                "at least 2."
            )

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.alpha, float(self.n_classes))

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return int(self.n_classes)


def _normal_logp(values, mean, sd):
    return pm.logp(pm.Normal.dist(mean, sd), values[:, 0])


def _normal_vector_logp(values, mean, sd):
    return pm.logp(pm.Normal.dist(mean, sd), values)


def _normal_gamma_logp(values, a, nu, lam):
    mu, tau = values[:, 0], values[:, 1]
    log_tau = pm.logp(pm.Gamma.dist(alpha=nu / 2, beta=nu * lam / 2), tau)
    return log_tau + pm.logp(pm.Normal.dist(0.0, tau=a * tau), mu)


def _dirichlet_logp(values, alpha, n_classes):
    return pm.logp(pm.Dirichlet.dist(pt.ones(values.shape[1]) * alpha / n_classes), values)


@dataclass(frozen=True)
class LeafKind:
    """What the random variable does with one kind of leaf."""

    n_parameters: int
    prior: Callable
    """Compiled: parameters to the leaf model without data."""
    logp: Callable
    """Symbolic: log-density of each of the (L, K) leaf values."""
    centre: Callable
    """Symbolic: leaf value of the initial point, as a list of K scalars."""
    signature: str = "()"
    """Core dimensions of each parameter."""


LEAF_KINDS = {
    "normal": LeafKind(2, _normal_prior, _normal_logp, lambda k, mean, sd: [mean]),
    "normal_vector": LeafKind(
        2,
        _normal_vector_prior,
        _normal_vector_logp,
        lambda k, mean, sd: [mean[j] for j in range(k)],
        "(k)",
    ),
    "normal_gamma": LeafKind(
        3, _normal_gamma_prior, _normal_gamma_logp, lambda k, a, nu, lam: [0.0, 1.0 / lam]
    ),
    "dirichlet": LeafKind(
        2, _dirichlet_prior, _dirichlet_logp, lambda k, alpha, n_classes: [1.0 / k] * k
    ),
}
