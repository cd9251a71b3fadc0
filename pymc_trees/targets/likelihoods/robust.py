"""Robust regression: StudentT, Laplace and AsymmetricLaplace, mixtures of Normals."""

import numpy as np
import pymc as pm
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import LaplaceRV, NormalRV, StudentTRV

from pymc_trees.core.leaves.latent.augmentations import NormalMixture, ScaleMixture, SkewedLaplace
from pymc_trees.targets.graph import dependent_on, named_parameters, stripped
from pymc_trees.targets.likelihoods.contract import (
    LatentLikelihood,
    NotRecognisedError,
    Predictor,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import Slope, require_fixed, slope_of

# ------------------------------------------------------------- StudentT about the linear predictor


@register_row_likelihood
class Student(LatentLikelihood):
    """``StudentT(nu, mu=eta, sigma)``."""

    of = (StudentTRV,)
    augmentation = ScaleMixture
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the other two parameters."""
        (nu, eta, sigma), outputs = term.opened()
        require_fixed([nu, sigma], outputs)
        return Predictor(eta, [nu, sigma], outputs)

    def numbers(self, y, parameters):
        """Numbers of each row, as the augmentation takes them."""
        return [y, *parameters]


# ----------------- Laplace and AsymmetricLaplace about the linear predictor: medians and quantiles


@register_row_likelihood
class Laplace(LatentLikelihood):
    """``Laplace(mu=eta, b)``."""

    of = (LaplaceRV,)
    augmentation = SkewedLaplace
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the scale."""
        (eta, b), outputs = term.opened()
        require_fixed([b], outputs)
        return Predictor(eta, [b], outputs)

    def numbers(self, y, parameters):
        """The rate to both sides."""
        [b] = parameters
        return [y, 1.0 / b, 1.0 / b]


@register_row_likelihood
class AsymmetricLaplace(LatentLikelihood):
    """``AsymmetricLaplace(mu=eta, b, kappa or q)``."""

    of = (pm.AsymmetricLaplace.rv_type,)
    augmentation = SkewedLaplace
    positive = slice(1, 3)

    def read(self, term):
        """Location, and the other two parameters."""
        (b, kappa, eta), outputs = term.opened()
        require_fixed([b, kappa], outputs)
        return Predictor(eta, [b, kappa], outputs)

    def numbers(self, y, parameters):
        """Rates above and below."""
        b, kappa = parameters
        return [y, b * kappa, b / kappa]


# --------------------- Mixtures of Normals about shifts of the linear predictor: robust regression


@register_row_likelihood
class MixtureOfNormals(LatentLikelihood):
    """``Mixture(w, comp_dists)`` and ``NormalMixture(w, mu, sigma)``."""

    of = (pm.Mixture.rv_type,)
    augmentation = NormalMixture
    positive = slice(3, None, 3)

    def read(self, term):
        """Mean of the first Normal; weights, shifts of the others against it, and sds."""
        (weights, *components), outputs = term.opened()
        named = [named_parameters(component, NormalRV) for component in components]
        if any(each is None for each in named):
            raise NotRecognisedError("a mixture of others than Normals")
        means, sds = zip(*named, strict=True)
        require_fixed([weights, *sds], outputs)
        if len(components) == 1:  # with an axis for the Normals
            [mean] = means
            eta = _along_rows(mean, outputs)
            shifts = [mean - eta[:, None]]
        else:
            eta, *others = map(stripped, means)
            if any(mean is not eta for mean in others):
                slopes = [slope_of(mean, outputs) for mean in (eta, *others)]
                if any(slope is not Slope.ONE for slope in slopes):
                    raise NotRecognisedError("means of several slopes")
            shifts = [mean - eta for mean in (eta, *others)]
        # numbers are evaluated where the forest is 0; shifts are the same everywhere
        return Predictor(eta, [weights, *shifts, *sds], outputs)

    def numbers(self, y, parameters):
        """Logarithm of its weight, shift and sd of each Normal."""
        weights, *rest = parameters
        shifts, sds = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        weights = np.atleast_2d(weights)
        k = weights.shape[1]
        with np.errstate(divide="ignore"):
            logs = np.log(weights)
        of_each = zip(logs.T, _columns(shifts, k), _columns(sds, k), strict=True)
        return [y, *(column for one in of_each for column in one)]


def _along_rows(mean, outputs):
    """The vector v if ``mean`` is ``v[:, None]`` plus a term that does not depend on the forest."""
    mean = stripped(mean)
    op = mean.owner.op if mean.owner else None
    if isinstance(op, DimShuffle) and op.new_order == (0, "x"):
        return stripped(mean.owner.inputs[0])
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Add | scalars.Sub):
        dependent = dependent_on([mean], outputs)
        first, *others = sorted(mean.owner.inputs, key=lambda v: v not in dependent)
        if not any(v in dependent for v in others) and (
            isinstance(op.scalar_op, scalars.Add) or first is mean.owner.inputs[0]
        ):
            return _along_rows(first, outputs)
    raise NotRecognisedError("means that are not a vector and shifts of it")


def _columns(arrays, k):
    """Numbers of each of k Normals, from one array with an axis for them or one for each."""
    if len(arrays) == k > 1:
        return [np.atleast_1d(a) for a in arrays]
    [array] = arrays
    array = np.atleast_2d(array)
    return list(np.broadcast_to(array, (len(array), k)).T)
