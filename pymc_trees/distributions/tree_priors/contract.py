"""The contract of a tree prior, the table of registered priors, and the default one.

A tree prior is a frozen dataclass of settings, decorated with `register_tree_prior`; it need not be
part of this package. Samplers dispatch on the type that ``kernel`` returns
(`core.priors.contract`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.distributions.capacity import default_max_nodes
from pymc_trees.distributions.data.numbers import is_number


class TreeCounts(NamedTuple):
    """Counts of a forest from which its log-probability follows; D depths."""

    splits: Variable
    """(D,) split nodes at each depth."""
    splittable_leaves: Variable
    """(D,) leaves that could have split."""
    times: Variable
    """(3,) `core.value.fields.TIME_TERMS`; 0 unless `timed`."""


class TreePrior(ABC):
    """Prior of the trees of a forest over some rows: which nodes split, and when.

    Classes give the attributes below and the methods; instances are settings. The columns of the
    splits, their cuts and the values of the leaves have densities of their own.
    """

    name: ClassVar[str]
    """Key of `PRIORS`."""
    kernel: ClassVar[Callable]
    """Compiled: both parameters and the (p,) split weights to a prior of `core.priors`."""
    stamp: ClassVar[str] = ""
    """Enters the fingerprint, for a prior that has the same layout as another."""
    timed: ClassVar[bool] = False
    """Whether splits have times."""
    weighs_columns: ClassVar[bool] = True
    """Whether columns are drawn by ``split_prior``."""

    @property
    @abstractmethod
    def parameters(self) -> tuple:
        """Two numbers or scalar tensors, inputs of the random variable; 0 where one is enough."""

    @staticmethod
    @abstractmethod
    def logp(counts: TreeCounts, first: Variable, second: Variable) -> Variable:
        """Log-probability of the splits and their times."""

    @staticmethod
    @abstractmethod
    def conditions(first: Variable, second: Variable) -> tuple[list[Variable], str]:
        """Conditions on the parameters, and a message that states them."""

    @abstractmethod
    def max_nodes(self, m: int, X: np.ndarray) -> int:
        """Room for a forest of m trees; see `distributions.capacity.default_room`."""

    def check_data(self, X: np.ndarray, kinds: np.ndarray, split_prior, n_cuts) -> None:
        """Raise an error for columns and settings that the prior does not support."""
        return None


PRIORS: dict[str, type[TreePrior]] = {}
"""Tree priors by name."""


def register_tree_prior(prior: type[TreePrior]) -> type[TreePrior]:
    """Add a tree prior, as a decorator of its class."""
    PRIORS[prior.name] = prior
    return prior


# ------------------- The default prior: split probabilities that fall with depth (Chipman 1998)


@register_tree_prior
@dataclass(frozen=True, eq=False)
class DepthPrior(TreePrior):
    """A node at depth d that has a valid split splits with probability ``alpha (1 + d)**-beta``."""

    alpha: Any
    beta: Any

    name = "depth"
    kernel = staticmethod(make_prior)

    @property
    def parameters(self):
        """Alpha and beta."""
        return self.alpha, self.beta

    @staticmethod
    def logp(counts, first, second):
        """``sum_d S_d log p_d + sum_d O_d log(1 - p_d)`` (Lakshminarayanan 2015, eq. 4)."""
        depth = pt.arange(counts.splits.shape[0]).astype("float64")
        log_p = pt.log(first) - second * pt.log1p(depth)
        stops = pt.sum(counts.splittable_leaves * pt.log1p(-pt.exp(log_p)))
        return pt.sum(counts.splits * log_p) + stops

    @staticmethod
    def conditions(first, second):
        """Probabilities that do not grow with depth."""
        return [first > 0, first < 1, second >= 0], "0 < alpha < 1, beta >= 0"

    def max_nodes(self, m, X):
        """Three times the prior mean, or `capacity.nodes_for_rows`."""
        return default_max_nodes(m, len(X), self.alpha, self.beta)


def check_depth_prior(alpha, beta):
    """Alpha and beta, numbers or tensors, if a prior can have them."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if isinstance(value, Variable):
            if value.ndim != 0:
                raise ValueError(f"{name} must be a scalar, but has {value.ndim} dimensions.")
        elif not is_number(value):
            raise TypeError(f"{name}={value!r} must be a number or a scalar random variable.")
    if not isinstance(alpha, Variable) and not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha}: the split probability of the root must be in (0, 1).")
    if not isinstance(beta, Variable) and beta < 0:
        raise ValueError(f"beta={beta}: must be at least 0; larger values give smaller trees.")
    return alpha, beta
