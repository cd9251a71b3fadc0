"""Mean and precision of a leaf: a single tree with its own noise level in every leaf."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.normal_gamma import NormalGammaData
from pymc_trees.distributions.leaves.contract import LeafPrior, check_positive, register_leaf


@njit(cache=True)
def _prior(a, nu, lam):
    return NormalGammaData(a, nu, lam, np.empty(0), 0.0, 1.0)


@register_leaf
@dataclass(frozen=True, eq=False)
class NormalGammaLeaf(LeafPrior):
    """Mean and precision of each leaf of a single tree.

    ``tau ~ Gamma(nu/2, rate=nu*lam/2)``, ``mu | tau ~ Normal(0, sd=1/sqrt(a*tau))``. The likelihood
    is ``pm.Normal(mu=mu, tau=tau)`` with both outputs of the same tree.

    Parameters
    ----------
    a : float or tensor, positive
        Number of prior observations of the mean: small values make the prior of leaf means vague.
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

    name = "normal_gamma"
    signatures = ("()", "()", "()")
    prior = staticmethod(_prior)
    suffixes = ("", "_tau")

    def __post_init__(self):
        check_positive(self, ["a", "nu", "lam"])

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.a, self.nu, self.lam)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 2

    @staticmethod
    def logp(values, a, nu, lam):
        """Log-density of leaf values."""
        mu, tau = values[:, 0], values[:, 1]
        log_tau = pm.logp(pm.Gamma.dist(alpha=nu / 2, beta=nu * lam / 2), tau)
        return log_tau + pm.logp(pm.Normal.dist(0.0, tau=a * tau), mu)

    @staticmethod
    def initial_value(k, a, nu, lam):
        """The prior mean of both."""
        return [0.0, 1.0 / lam]

    @staticmethod
    def functions(outputs):
        """Mean and precision, both (n,)."""
        return outputs[:, 0], outputs[:, 1]

    @staticmethod
    def are_values(values: np.ndarray) -> bool:
        """Whether precisions are positive."""
        return bool((values[:, 1] > 0).all())
