"""Interface of a likelihood with hand-written kernels, and the list of them."""

from abc import ABC, abstractmethod
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise

from pymc_trees.targets.affine import NotAffineError, Slope, is_log_affine, slope_of
from pymc_trees.targets.conjugate.contract import ObservedTerm
from pymc_trees.targets.stacks import stripped


class RowLaw(ABC):
    """Likelihood of the rows with hand-written kernels of its logarithm and slopes.

    `read` is called once, `numbers` for each point.
    """

    of: ClassVar[tuple[type, ...]]
    """Ops of the random variables that it supports."""
    law: ModuleType
    """One of `core.leaves.nonconjugate.laws`."""
    is_exponential = False
    """Whether a Gamma or Weibull is an Exponential, which may be 0."""

    @abstractmethod
    def read(self, term: ObservedTerm) -> tuple[list[Variable], Variable]:
        """Expressions whose numbers `numbers` takes, and the outputs they are functions of.

        Raises
        ------
        NotAffineError
            If it is another likelihood.
        """

    @abstractmethod
    def numbers(self, y: np.ndarray, found: list[np.ndarray]) -> list[np.ndarray]:
        """Columns of the law's numbers: arrays of one entry or one for each row.

        Raises
        ------
        ValueError
            For observed values outside the support of the likelihood.
        """


LEAST = 1e-300
"""Positive number used for 0."""
FARTHEST = 1e4
"""Offset used for infinity: its exponential is 0 or infinite."""
LAWS: list[type[RowLaw]] = []
"""Likelihoods, tried in this order."""


def register_law(likelihood: type[RowLaw]) -> type[RowLaw]:
    """Add a likelihood, as a decorator of its class."""
    LAWS.append(likelihood)
    return likelihood


def affine_pair(e: Variable, outputs: Variable) -> list[Variable]:
    """Slope and offset of an expression of f, the latter where the outputs are 0.

    Raises
    ------
    NotAffineError
        When it is not known to be affine, row by row.
    """
    kind = slope_of(e, outputs)
    if kind is Slope.ONE or kind is Slope.FREE:
        return [pt.constant(float(kind is Slope.ONE)), e]
    slope = pt.grad(e.sum(), outputs, disconnected_inputs="ignore")[:, 0]
    # without the fills of a raw gradient, which run row by row in Python
    return [rewrite_graph(slope, include=("canonicalize",), clone=True), e]


def log_affine_pair(var: Variable, outputs: Variable) -> list[Variable]:
    """The same of the logarithm of a positive expression."""
    var = stripped(var)
    if not is_log_affine(var, outputs):
        raise NotAffineError(str(var.owner.op) if var.owner else str(var))
    op = var.owner.op if var.owner else None
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Exp):
        return affine_pair(var.owner.inputs[0], outputs)
    return affine_pair(pt.log(var), outputs)


def bounded(offset: np.ndarray) -> np.ndarray:
    """Finite offsets, which allow an exposure of 0, or a p of 0 or 1."""
    return np.clip(offset, -FARTHEST, FARTHEST)


def whole_numbers(y: np.ndarray, most=np.inf) -> None:
    """Raise an error for values that are not counts."""
    if not ((y >= 0) & (y <= most) & (y == np.floor(y))).all():
        raise ValueError(
            "The observed values must be whole numbers of at least 0 (up to the number of trials "
            f"of a Binomial), but they range from {y.min()} to {y.max()}, or are not whole."
        )


def log_of_times(y: np.ndarray, with_zero: bool) -> np.ndarray:
    """Logarithms of positive numbers; that of the least number for 0, where its density is 1."""
    if not ((y > 0) | (with_zero & (y == 0))).all():
        raise ValueError(
            f"The observed values must be positive, but the least is {y.min()}: a Gamma or Weibull "
            "has a density of 0 or infinity there."
        )
    return np.log(np.maximum(y, LEAST))
