"""Targets of a forest whose leaf values integrate out: of itself, or given latent variables."""

from typing import Any

import numpy as np

from pymc_trees.core.leaves.latent.mixtures import PARTS
from pymc_trees.core.leaves.latent.rows import latent_rows, redraw_latents
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import ForestGraph
from pymc_trees.targets.leaf_rows import leaf_rows
from pymc_trees.targets.likelihoods.contract import (
    LatentLikelihood,
    NotRecognisedError,
    is_far,
    recognise,
    recognise_rows,
    rows_of,
    with_others,
)
from pymc_trees.targets.likelihoods.expressions import read_affine
from pymc_trees.targets.likelihoods.mixtures import Share
from pymc_trees.targets.likelihoods.observed import Part
from pymc_trees.targets.settings import PointFunction, Settings


class ConjugateTarget(Target):
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model.

    Raises
    ------
    NotConjugateError
        When the leaf values cannot be integrated out.
    """

    kind = "conjugate"

    def __init__(self, graph: ForestGraph):
        self.layout = graph.layout
        self.likelihood, wanted, outputs = recognise(graph)
        self.is_prior = wanted is None
        self._numbers_at = PointFunction(graph.model, graph.rv, wanted or [], outputs, self._check)

    @property
    def others(self) -> list[str]:
        """Names of the values of other variables that it is a function of."""
        return self._numbers_at.names

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        return self.likelihood.n_stats

    def at(self, point: dict) -> tuple[Settings, tuple | None]:
        """Settings, and what the likelihood's `check` returns at a point; None for the prior."""
        return self._numbers_at(point)

    def _check(self, numbers):
        return None if self.is_prior else self.likelihood.check(numbers)

    def leaf_data(self, settings: Settings, seen: tuple | None, fit: np.ndarray, rng=None):
        """Leaf model over the residual of ``fit``, and the target it was subtracted from."""
        return self.likelihood.leaf_data(settings, seen, fit)

    def log_scale(self, seen: tuple | None) -> float:
        """Log density of the observed values less that of the target of `leaf_data`."""
        return 0.0 if seen is None else self.likelihood.log_scale(seen)


# ------------------------------- Target of a forest whose rows are Gaussian given latent variables


class LatentTarget(Target):
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model, of which the likelihood sees one function.

    Raises
    ------
    NotRecognisedError, NotConjugateError
        When the likelihood is not known to be Gaussian given latent variables.
    LeafNotProposedError
        For leaves that do not read Gaussian rows.
    """

    kind = "latent"
    statistic = "latent_precision"

    def __init__(self, graph: ForestGraph):
        self.layout = graph.layout
        term, self.likelihood, predictor = recognise_rows(graph, LatentLikelihood)
        eta, parameters, outputs = predictor
        if eta.ndim != 1:
            raise NotRecognisedError(f"{term.rv.name} has {eta.ndim} dimensions")
        leaves = leaf_rows(graph, outputs)
        if leaves is None:
            raise NotRecognisedError("several outputs")
        self.leaves, self.augmentation = leaves, self.likelihood.augmentation
        others: list = []
        if isinstance(term, Part):
            others = [*term.others, *([] if term.constant is None else [term.constant])]
            if term.others and self.augmentation not in PARTS:
                raise NotRecognisedError(f"{term.distribution} of such a component")
        self.is_of_weights = isinstance(self.likelihood, Share) or (
            isinstance(term, Part) and term.constant is not None
        )
        """Whether the forest is in the weights of a mixture, or a hurdle."""
        self._is_component = len(others) == 2
        if self._is_component:
            self.augmentation = PARTS[self.augmentation]
        affine = read_affine(eta, outputs)
        self._n_others, self._n_affine = len(others), len(affine)
        self._n_parameters = len(parameters)
        wanted = [*others, term.value, *affine, *parameters, *leaves.wanted]
        self._numbers_at = PointFunction(graph.model, graph.rv, wanted, outputs, self._rows)

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        return self.leaves.n_stats

    def at(self, point: dict) -> tuple[Settings, tuple]:
        """Settings; numbers of the rows, slope and offset of the predictor, of the leaves, and c.

        c is the log-likelihood of the model minus that of the leaf model.
        """
        return self._numbers_at(point)

    def _rows(self, values):
        others, (observed, *rest) = values[: self._n_others], values[self._n_others :]
        n = self.layout.n_rows
        offset, *slope = rest[: self._n_affine]
        slope, offset = (_each(v, n) for v in (slope[0] if slope else 1.0, offset))
        end = self._n_affine + self._n_parameters
        parameters, of_leaves = rest[self._n_affine : end], rest[end:]
        numbers = latent_numbers(self.likelihood, observed, parameters, slope + offset)
        constant = _each(self.likelihood.log_scale(numbers), n)
        if not self._is_component:
            c = float(constant.sum() + np.sum(_each(sum(others), n)))
            return numbers, slope, offset, of_leaves, c
        a, b = (_each(v, n) for v in others)
        return with_others(numbers, a, b + constant), slope, offset, of_leaves, 0.0

    def value_of_statistic(self, leaf: Any) -> float:
        """Mean precision of the rows given latent variables."""
        return float(leaf.w.mean())

    def leaf_data(self, settings: Settings, seen: tuple, fit: np.ndarray, rng=None):
        """Leaf model given latent variables, which are drawn, and the target of f given them."""
        numbers, slope, offset, of_leaves, _ = seen
        f = np.ascontiguousarray(self.leaves.function(fit, of_leaves)[:, 0])
        latent = latent_rows(self.augmentation, numbers, slope, offset, f.copy())
        if self._is_component:
            w = np.ones(f.size)
        else:
            w = latent_precisions(self.likelihood, numbers, slope)
        leaf = self.leaves.leaf_data(settings, of_leaves, np.zeros(f.size), w, latent)
        redraw_latents(leaf, rng)
        if self.layout.n_outputs > 1:  # the function does not determine the outputs
            return leaf, None
        far = is_far(latent.target, fit, *settings.leaf[:2])
        return leaf, None if far else latent.target

    def log_scale(self, seen: tuple) -> float:
        """Log-likelihood of the model minus that of the leaf model."""
        return seen[4]


def latent_numbers(
    likelihood: LatentLikelihood, observed, parameters: list, predictor: np.ndarray
) -> np.ndarray:
    """(n, columns) numbers of the rows of a likelihood at a point, or an error.

    Parameters
    ----------
    predictor : (n,) float64
        What else must be finite.
    """
    n = predictor.size
    columns = likelihood.numbers(
        rows_of(observed, n), [np.asarray(v, dtype=np.float64) for v in parameters]
    )
    numbers = np.stack([_each(column, n) for column in columns], axis=1)
    if np.isnan(numbers).any() or not np.isfinite(predictor).all():
        raise ValueError("Parameters of the observed variable are not finite at this point.")
    positive = numbers[:, likelihood.positive]
    if not ((positive > 0) & (positive < np.inf)).all():
        raise ValueError(
            "sigma of the observed variable must be positive and finite, and so must nu or b, but "
            "one of them is not at this point: give it a prior that keeps it away from 0."
        )
    return numbers


def latent_precisions(
    likelihood: LatentLikelihood, numbers: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """A single precision if it is known to be common to all rows, otherwise one for each."""
    if likelihood.sd is not None:
        sd = numbers[:, likelihood.sd]
        if np.ptp(sd) == 0 and np.ptp(slope) == 0:
            return (slope[:1] / sd[:1]) ** 2
    return np.ones(slope.size)


def _each(numbers, n):
    """A scalar, or one number per row, as one per row."""
    return np.broadcast_to(np.asarray(numbers, dtype=np.float64), (n,)).copy()
