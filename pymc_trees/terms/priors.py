"""Gaussian priors of vectors, by the Op of the random variable.

Each is read as expressions of the mean, of the precision, and of the logarithm of whatever the
density is multiplied by, so that for the flattened value v

    log p(v | hyperparameters) = -(v - mean)' P (v - mean) / 2 + log_norm + constant.

``log_norm`` is that of PyMC's density: improper priors, and densities that PyMC does not normalise,
are taken as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ZeroSumTransform
from pytensor.graph.basic import Variable
from pytensor.tensor.random.basic import MvNormalRV, NormalRV


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian density of K numbers."""

    mean: Variable
    """(K,)"""
    precision: Variable
    """(K,) where the numbers are independent, else (K, K)."""
    log_norm: Variable
    """A scalar: log density at the mean, up to what is constant."""


Reader = Callable[[Variable], "Gaussian | None"]
READERS: dict[type, Reader] = {}
"""By the type of the Op."""


def register_gaussian(op: type) -> Callable[[Reader], Reader]:
    """Add the reader of a distribution, as a decorator."""

    def add(reader: Reader) -> Reader:
        READERS[op] = reader
        return reader

    return add


def read_gaussian(model: pm.Model, rv: Variable) -> Gaussian | None:
    """The prior of the value of a free variable given other variables; None if it is no Gaussian.

    Expressions are of random variables.
    """
    reader = READERS.get(type(rv.owner.op)) if rv.owner else None
    transform = model.rvs_to_transforms.get(rv)
    expected = ZeroSumTransform if isinstance(rv.owner.op, pm.ZeroSumNormal.rv_type) else type(None)
    if reader is None or type(transform) is not expected:
        return None
    return reader(rv)


def zero_sum_basis(model: pm.Model, rv: Variable, shape: tuple[int, ...]) -> np.ndarray | None:
    """(K, k) matrix of a variable as a function of its value; None where they are equal.

    The columns are orthonormal (`pymc.distributions.transforms.ZeroSumTransform`).
    """
    transform = model.rvs_to_transforms.get(rv)
    if transform is None:
        return None
    axes = [axis % len(shape) for axis in transform.zerosum_axes]
    free = tuple(size - (k in axes) for k, size in enumerate(shape))
    units = pt.constant(np.eye(int(np.prod(free))).reshape(-1, *free))
    wide = ZeroSumTransform(tuple(axis - len(shape) for axis in axes)).backward(units)
    return wide.eval().reshape(len(units.data), -1).T.copy()


def _independent(mean: Variable, sd: Variable, shape) -> Gaussian:
    mean, sd = (pt.broadcast_to(v, shape).reshape((-1,)) for v in (mean, sd))
    return Gaussian(mean, sd**-2.0, -pt.log(sd).sum())


@register_gaussian(NormalRV)
def _normal(rv):
    mean, sd = rv.owner.op.dist_params(rv.owner)
    return _independent(mean, sd, tuple(rv.shape))


@register_gaussian(pm.Flat.rv_type)
def _flat(rv):
    zero = pt.zeros((rv.size,))
    return Gaussian(zero, zero, pt.constant(0.0))


@register_gaussian(pm.ZeroSumNormal.rv_type)
def _zero_sum(rv):
    """The value has independent entries, since the transform's basis is orthonormal."""
    sd = rv.owner.op.dist_params(rv.owner)[0]
    axes = rv.owner.op.ndim_supp
    # one sd for all entries that sum to zero: it has one entry along their axes
    batch = rv.ndim - axes
    free = (*tuple(rv.shape)[:batch], *(size - 1 for size in tuple(rv.shape)[batch:]))
    return _independent(pt.constant(0.0), sd, free)


@register_gaussian(MvNormalRV)
def _mv_normal(rv):
    mean, cov = rv.owner.op.dist_params(rv.owner)
    k = cov.shape[-1]
    if any(not one for one in cov.type.broadcastable[:-2]):
        return None  # a covariance of its own for each row
    cov = cov.reshape((k, k))
    precision = pt.linalg.inv(cov)
    copies = rv.size // k
    mean = pt.broadcast_to(mean, tuple(rv.shape)).reshape((-1,))
    log_norm = -0.5 * copies * pt.linalg.slogdet(cov)[1]
    return Gaussian(mean, pt.linalg.kron(pt.eye(copies), precision), log_norm)


@register_gaussian(pm.RandomWalk.rv_type)
def _random_walk(rv):
    start, step = rv.owner.inputs[:2]
    if not all(isinstance(v.owner.op, NormalRV) for v in (start, step)) or rv.ndim != 1:
        return None
    (first, first_sd), (drift, sd) = (v.owner.op.dist_params(v.owner) for v in (start, step))
    n = rv.shape[0]

    def joined(one, others):
        others = pt.broadcast_to(others.reshape((-1,)), (n - 1,))
        return pt.concatenate([one.reshape((1,)), others])

    mean, sd = joined(first, drift), joined(first_sd, sd)
    differences = pt.eye(n) - pt.eye(n, k=-1)
    scaled = differences / sd[:, None]
    return Gaussian(pt.cumsum(mean), pt.dot(scaled.T, scaled), -pt.log(sd).sum())


@register_gaussian(pm.ICAR.rv_type)
def _icar(rv):
    W, sd, zero_sum_sd = rv.owner.op.dist_params(rv.owner)
    if rv.ndim != 1:
        return None
    lower = pt.eq(pt.tril(W), 1).astype("float64")
    near = lower + lower.T
    n = near.shape[0]
    laplacian = pt.diag(near.sum(axis=0)) - near
    total = pt.ones((n, n)) / (zero_sum_sd * n) ** 2
    return Gaussian(pt.zeros((n,)), laplacian / sd**2 + total, -pt.log(zero_sum_sd))


@register_gaussian(pm.CAR.rv_type)
def _car(rv):
    mean, W, alpha, tau, _ = rv.owner.op.dist_params(rv.owner)
    if rv.ndim != 1:
        return None
    W = W.toarray() if hasattr(W, "toarray") else W  # sparse
    W = W.toarray() if hasattr(W, "toarray") else W  # sparse
    counts = W.sum(axis=0)
    n = counts.shape[0]
    tau, alpha = tau.reshape(()), alpha.reshape(())
    root = 1 / pt.sqrt(counts)
    eigenvalues = pt.linalg.eigvalsh(root[:, None] * W * root[None, :])
    log_norm = 0.5 * (n * pt.log(tau) + pt.log(1 - alpha * eigenvalues).sum())
    mean = pt.broadcast_to(mean, (n,))
    return Gaussian(mean, tau * (pt.diag(counts) - alpha * W), log_norm)
