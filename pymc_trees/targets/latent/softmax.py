"""Categorical with a softmax over several outputs, one forest each: a logit given the others."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.scalar.basic import Exp, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import CategoricalRV
from pytensor.tensor.special import Softmax

from pymc_trees.core.leaves.latent.polya_gamma import PolyaGamma
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.latent.contract import (
    LatentLikelihood,
    NotLatentError,
    Predictor,
    register_latent,
)
from pymc_trees.targets.stacks import NotASliceError, place_of, slice_of, stripped


@register_latent
class SoftmaxLikelihood(LatentLikelihood):
    """``Categorical(logit_p=eta)``, of which the forest enters one class k.

    Given the others, p(y = k) is the logistic function of eta_k - log sum_{j != k} exp eta_j
    (Holmes and Held 2006, section 3; Polson, Scott and Windle 2013, section 3.3).
    """

    of = (CategoricalRV,)
    path = PolyaGamma

    def __init__(self):
        self.k = 0

    def read(self, term):
        """The difference of eta of the class and what the others add up to."""
        [p], outputs = term.opened()
        p, transposed = stripped(p), False
        if p.owner and isinstance(p.owner.op, DimShuffle) and p.owner.op.new_order == (1, 0):
            p, transposed = stripped(p.owner.inputs[0]), True
        eta, along = _softmax_of(p)
        classes = 0 if transposed else 1
        if along != classes:
            raise NotLatentError("a softmax along another axis")
        seeing = dependent_on([eta], outputs)
        try:
            axis, self.k = place_of(eta, seeing)
            own = slice_of(eta, axis, self.k, seeing)
        except NotASliceError as error:
            raise NotLatentError(str(error)) from None
        if axis != classes:
            raise NotLatentError("a forest that enters all classes of a row")
        number = pt.arange(eta.shape[axis])
        apart = pt.eq(number, self.k)
        without = pt.switch(apart[:, None] if axis == 0 else apart, -np.inf, eta)
        return Predictor(own - _fixed(pt.logsumexp(without, axis=axis), outputs), [], outputs)

    def numbers(self, y, parameters):
        """One trial a row: whether it is of the class."""
        return [(y == self.k).astype(np.float64), np.ones(1), np.zeros(1)]


def _softmax_of(p):
    """Matrix eta and axis of ``p = softmax(eta)``, or of ``exp(eta) / exp(eta).sum(axis)``."""
    op = p.owner.op if p.owner and p.ndim == 2 else None
    if isinstance(op, Softmax):
        axes, eta = op.axis, p.owner.inputs[0]
    elif isinstance(op, Elemwise) and isinstance(op.scalar_op, TrueDiv):
        weights, total = map(stripped, p.owner.inputs)
        spread = total.owner and isinstance(total.owner.op, DimShuffle)
        summed = stripped(total.owner.inputs[0]) if spread else total
        is_sum = summed.owner and isinstance(summed.owner.op, Sum)
        is_exp = weights.owner and isinstance(weights.owner.op, Elemwise)
        if not (is_sum and is_exp and isinstance(weights.owner.op.scalar_op, Exp)):
            raise NotLatentError("a Categorical whose p is no softmax")
        axes, [eta] = summed.owner.op.axis, weights.owner.inputs
        other = weights.sum(axis=axes, keepdims=True)
        if axes is None or not equal_computations([total], [stripped(other)]):
            raise NotLatentError("a Categorical whose p is no softmax")
    else:
        raise NotLatentError("a Categorical whose p is no softmax")
    axes = tuple(int(a) % 2 for a in np.atleast_1d(axes)) if axes is not None else (0, 1)
    if len(axes) != 1:
        raise NotLatentError("a softmax over all entries")
    return stripped(eta), axes[0]


def _fixed(var, outputs):
    """An expression where the forest, of which it is no function, is 0."""
    [found] = clone_replace([var], {outputs: pt.zeros(outputs.type.shape)}, rebuild_strict=False)
    return found
