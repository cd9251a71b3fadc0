"""Normal leaf values: sums of trees, regression, and any likelihood."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.rows import no_latents
from pymc_trees.core.leaves.normal import NormalData, NormalVectorPrior
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.leaves.contract import LeafPrior, register_leaf

# ------------------------------------------ K normal values a leaf: outputs that share their trees


@njit(cache=True)
def _vector_prior(mean, sd):
    return NormalVectorPrior(np.ascontiguousarray(mean), np.ascontiguousarray(sd))


@register_leaf
@dataclass(frozen=True, eq=False)
class NormalVectorLeaf(LeafPrior):
    """`NormalLeaf` of K outputs that share their trees, as the random variable takes it."""

    mean: Variable
    sd: Variable
    k: int

    name = "normal_vector"
    signatures = ("(k)", "(k)")
    prior = staticmethod(_vector_prior)
    in_sums = any_likelihood = True

    @classmethod
    def of(cls, mean, sd, n_outputs: int) -> "NormalVectorLeaf":
        """For all outputs, from one setting for all of them or one for each."""
        return cls(for_each(mean, n_outputs), for_each(sd, n_outputs), n_outputs)

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return self.k

    @staticmethod
    def logp(values, mean, sd):
        """Log-density of leaf values."""
        return pm.logp(pm.Normal.dist(mean, sd), values)

    @staticmethod
    def initial_value(k, mean, sd):
        """Their means."""
        return [mean[j] for j in range(k)]

    @staticmethod
    def initial_spread(k, mean, sd):
        """Their sds."""
        return [sd[j] for j in range(k)]

    @staticmethod
    def functions(outputs):
        """One function, (K, n)."""
        return outputs.T


def for_each(value, n_values):
    """A setting as a vector: one for all, or one for each."""
    if isinstance(value, Variable):
        return value if value.ndim else pt.full((n_values,), value)
    return pt.constant(np.full(n_values, value, dtype=np.float64))


# --------------------------------------------------------------------------------------------------


SMALLEST_SD = 1e-150


@njit(cache=True)
def _prior(mean, sd):
    return NormalData(mean, sd, np.empty(0), np.zeros(1), np.zeros(8), no_latents())


@register_leaf
@dataclass(frozen=True, eq=False)
class NormalLeaf(LeafPrior):
    """Normal prior for the leaf values of every tree.

    With a Gaussian likelihood the leaf values are integrated out of every move.

    Parameters
    ----------
    mean : float, tensor or (K,) array
        Mean of one leaf of one tree, in the units of y. A sum of m trees has prior mean
        ``m * mean``. With ``shape=(K, n)``, one number for each output or one for all.
    sd : float, tensor or (K,) array, positive
        Standard deviation of one leaf of one tree. A sum of m trees has prior standard deviation
        ``sqrt(m) * sd``. As for ``mean``, one for each output or one for all.

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

    name = "normal"
    signatures = ("()", "()")
    prior = staticmethod(_prior)
    in_sums = any_likelihood = several_outputs = True
    in_soft_trees = sampled_in_soft_trees = True

    def __post_init__(self):
        for name, sort in (("mean", "finite"), ("sd", "positive")):
            setting = getattr(self, name)
            if isinstance(setting, Variable):
                continue
            value = numbers_of(setting)
            if value is None or (name == "sd" and np.any(value <= 0)):
                raise ValueError(
                    f"NormalLeaf({name}={setting!r}): {name} must be a {sort} number, or a random "
                    "variable; one for each output when there are several."
                )
            if name == "sd":
                check_square(self, name, value)
            object.__setattr__(self, name, value)

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd)

    @property
    def n_values(self) -> int:
        """Values per leaf."""
        return 1

    @staticmethod
    def logp(values, mean, sd):
        """Log-density of leaf values."""
        return pm.logp(pm.Normal.dist(mean, sd), values[:, 0])

    @staticmethod
    def initial_value(k, mean, sd):
        """Its mean."""
        return [mean]

    @staticmethod
    def initial_spread(k, mean, sd):
        """Its sd."""
        return [sd]

    @staticmethod
    def functions(outputs):
        """One function, (n,)."""
        return outputs[:, 0]

    def of_output(self, k: int) -> "NormalLeaf":
        """Prior of output k alone."""
        return NormalLeaf(*(v[k] if np.ndim(v) else v for v in self.parameters))

    def of_outputs(self, n_outputs: int) -> NormalVectorLeaf:
        """Prior of a leaf that holds all outputs."""
        return NormalVectorLeaf.of(self.mean, self.sd, n_outputs)


def check_square(leaf: LeafPrior, name: str, value) -> None:
    """Raise an error for sds whose squares, or the inverse of these, are 0 or infinite."""
    if not np.all((SMALLEST_SD < value) & (value < 1 / SMALLEST_SD)):
        raise ValueError(
            f"{type(leaf).__name__}({name}={getattr(leaf, name)!r}): the square of sd overflows "
            "or underflows: rescale the response, and sd with it."
        )


def numbers_of(value):
    """A number, or several as an array; None for anything else."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_number(value):
        return value
    is_list = isinstance(value, list | tuple | np.ndarray) and len(value) > 0
    return np.array(value, dtype=float) if is_list and all(map(is_number, value)) else None
