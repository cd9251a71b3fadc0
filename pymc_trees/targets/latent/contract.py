"""Interface of a likelihood that is Gaussian given latent variables, and the list of them."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.conjugate.contract import ObservedTerm


class NotLatentError(Exception):
    """The likelihood is not known to be Gaussian given latent variables; the message says why."""


class Predictor(NamedTuple):
    """Linear predictor, the only part of a likelihood that depends on the forest."""

    eta: Variable
    """(n,) vector."""
    parameters: list[Variable]
    """Expressions whose numbers `LatentLikelihood.numbers` takes."""
    outputs: Variable
    """(n, 1) outputs of the forest that eta is a function of."""


class LatentLikelihood(ABC):
    """Likelihood of the rows that is Gaussian given latent variables.

    `read` is called once, `numbers` for each point.
    """

    of: ClassVar[tuple[type, ...]]
    """Ops of the random variables that it supports."""
    path: ClassVar[type]
    """Type of `core.leaves.latent`."""
    positive: ClassVar[slice] = slice(0)
    """Columns of the numbers that must be positive."""
    sd: ClassVar[int | None] = None
    """Column of the sd where that alone is the precision of a row, whatever is drawn."""

    @abstractmethod
    def read(self, term: ObservedTerm) -> Predictor:
        """The linear predictor, and the other parameters.

        Raises
        ------
        NotLatentError, NotAffineError
            If it is another likelihood.
        """

    @abstractmethod
    def numbers(self, y: np.ndarray, parameters: list[np.ndarray]) -> list[np.ndarray]:
        """Columns of the path's numbers: arrays of one entry or one for each row.

        Raises
        ------
        ValueError
            For observed values outside the support of the likelihood.
        """

    def log_scale(self, numbers: np.ndarray) -> float:
        """Log-likelihood of the rows minus that of the path, given the numbers, (n, columns)."""
        return 0.0


LATENTS: list[type[LatentLikelihood]] = []
"""Likelihoods, tried in this order."""


def register_latent(likelihood: type[LatentLikelihood]) -> type[LatentLikelihood]:
    """Add a likelihood, as a decorator of its class."""
    LATENTS.append(likelihood)
    return likelihood


def read_latent(term: ObservedTerm) -> tuple[LatentLikelihood, Predictor]:
    """The first likelihood that supports a term.

    Raises
    ------
    NotLatentError
        When there is none.
    """
    for kind in LATENTS:
        if isinstance(term.rv.owner.op, kind.of):
            likelihood = kind()
            try:
                return likelihood, likelihood.read(term)
            except (NotLatentError, NotAffineError):
                continue
    raise NotLatentError(term.says)
