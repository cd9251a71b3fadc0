"""What a leaf prior says of itself, and the table of those there are.

A leaf prior is a frozen dataclass of settings, numbers or tensors, decorated with `register_leaf`;
it need not be part of this package. Nothing else decides by the name of a leaf: what the samplers
do with it follows from the type of what ``prior`` makes (`core.leaves.contract`), and from the
likelihood registered for it (`targets.conjugate.contract`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.numbers import is_number


class LeafPrior(ABC):
    """Prior of the values of a leaf.

    Classes give the attributes below and the methods; instances are settings.
    """

    name: ClassVar[str]
    """Key of `LEAVES`; also part of the fingerprint that every encoded value carries."""
    signatures: ClassVar[tuple[str, ...]]
    """Of each parameter: ``"()"`` for a number, ``"(k)"`` for one of each output."""
    prior: ClassVar[Callable]
    """Compiled: parameters to the leaf model of `core.leaves`, without rows."""
    suffixes: ClassVar[tuple[str, ...]] = ("",)
    """Of the names of the functions that a front-end registers, see `functions`."""
    in_sums: ClassVar[bool] = False
    """Whether a forest of several trees may have it."""
    any_likelihood: ClassVar[bool] = False
    """Whether its values can be proposed where they do not integrate out."""
    several_outputs: ClassVar[bool] = False
    """Whether `of_output` and `of_outputs` make priors for several outputs of it."""
    in_soft_trees: ClassVar[bool] = False
    """Whether soft trees may have it."""
    sampled_in_soft_trees: ClassVar[bool] = False
    """Whether its values are parameters there; else they are integrated out, as classes are."""

    @property
    @abstractmethod
    def parameters(self) -> tuple:
        """Inputs of the random variable."""

    @property
    @abstractmethod
    def n_values(self) -> int:
        """Values per leaf."""

    @staticmethod
    @abstractmethod
    def logp(values: Variable, *parameters: Variable) -> Variable:
        """Log-density of (L, K) leaf values, to be added up."""

    @staticmethod
    @abstractmethod
    def initial_value(k: int, *parameters: Variable) -> list:
        """K numbers or scalars: the leaf value where chains start."""

    @staticmethod
    def functions(outputs: Variable):
        """What a user gets of (n, K) outputs: a variable, or as many as there are suffixes."""
        return outputs

    @staticmethod
    def are_values(values: np.ndarray) -> bool:
        """Whether finite (L, K) numbers can be leaf values."""
        return True

    def of_output(self, k: int) -> "LeafPrior":
        """Prior of output k alone."""
        raise NotImplementedError

    def of_outputs(self, n_outputs: int) -> "LeafPrior":
        """Prior of a leaf that holds all outputs."""
        raise NotImplementedError


LEAVES: dict[str, type[LeafPrior]] = {}
"""Leaf priors by name."""


def register_leaf(leaf: type[LeafPrior]) -> type[LeafPrior]:
    """Add a leaf prior, as a decorator of its class."""
    LEAVES[leaf.name] = leaf
    return leaf


def check_positive(leaf: LeafPrior, names: list[str]) -> None:
    """Settings that must be positive numbers or tensors."""
    for name in names:
        value = getattr(leaf, name)
        if not isinstance(value, Variable) and not (is_number(value) and value > 0):
            raise ValueError(
                f"{type(leaf).__name__}({name}={value!r}): {name} must be a positive number, or a "
                "random variable."
            )
