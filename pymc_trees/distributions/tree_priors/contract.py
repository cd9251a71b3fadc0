"""The contract of a tree prior, and the table of registered priors.

A tree prior is a frozen dataclass of settings, decorated with `register_tree_prior`; it need not be
part of this package. Samplers dispatch on the type that ``kernel`` returns
(`core.priors.contract`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from pytensor.graph.basic import Variable


class TreeCounts(NamedTuple):
    """What the log-probability of a forest knows of its trees; D depths."""

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
    """Word that tells its forests from those of a prior with the same layout."""
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
        """What must hold of the parameters, and the same in words."""

    @abstractmethod
    def max_nodes(self, m: int, X: np.ndarray) -> int:
        """Room for a forest of m trees; see `distributions.capacity.default_room`."""

    def check_data(self, X: np.ndarray, kinds: np.ndarray, split_prior, n_cuts) -> None:
        """Refuse columns and settings that the prior cannot do with."""
        return None


PRIORS: dict[str, type[TreePrior]] = {}
"""Tree priors by name."""


def register_tree_prior(prior: type[TreePrior]) -> type[TreePrior]:
    """Add a tree prior, as a decorator of its class."""
    PRIORS[prior.name] = prior
    return prior
