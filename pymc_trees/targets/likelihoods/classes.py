"""Classes: a softmax over several forests, and trees whose leaves are probabilities."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.scalar.basic import Exp, TrueDiv
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV
from pytensor.tensor.special import Softmax

from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.latent.augmentations import PolyaGamma
from pymc_trees.targets.graph import NotASliceError, dependent_on, place_of, slice_of, stripped
from pymc_trees.targets.likelihoods.contract import (
    ConjugateLikelihood,
    LatentLikelihood,
    NotRecognisedError,
    Predictor,
    refusal,
    register_likelihood,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import is_unchanged, unwrapped_column

# ------ Categorical with a softmax over several outputs, one forest each: a logit given the others


@register_row_likelihood
class SoftmaxLikelihood(LatentLikelihood):
    """``Categorical(logit_p=eta)``, of which the forest enters one class k.

    Given the others, p(y = k) is the logistic function of eta_k - log sum_{j != k} exp eta_j
    (Holmes and Held 2006, section 3; Polson, Scott and Windle 2013, section 3.3).
    """

    of = (CategoricalRV,)
    augmentation = PolyaGamma

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
            raise NotRecognisedError("a softmax along another axis")
        dependent = dependent_on([eta], outputs)
        try:
            axis, self.k = place_of(eta, dependent)
            own = slice_of(eta, axis, self.k, dependent)
        except NotASliceError as error:
            raise NotRecognisedError(str(error)) from None
        if axis != classes:
            raise NotRecognisedError("a forest that enters all classes of a row")
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
            raise NotRecognisedError("a Categorical whose p is not a softmax")
        axes, [eta] = summed.owner.op.axis, weights.owner.inputs
        other = weights.sum(axis=axes, keepdims=True)
        if axes is None or not equal_computations([total], [stripped(other)]):
            raise NotRecognisedError("a Categorical whose p is not a softmax")
    else:
        raise NotRecognisedError("a Categorical whose p is not a softmax")
    axes = tuple(int(a) % 2 for a in np.atleast_1d(axes)) if axes is not None else (0, 1)
    if len(axes) != 1:
        raise NotRecognisedError("a softmax over all entries")
    return stripped(eta), axes[0]


def _fixed(var, outputs):
    """An expression that does not depend on the forest's outputs, with these set to 0."""
    [replaced] = clone_replace([var], {outputs: pt.zeros(outputs.type.shape)}, rebuild_strict=False)
    return replaced


# ------------------------------------------- One class per row, with the probabilities of its leaf


@register_likelihood("dirichlet")
class DirichletLikelihood(ConjugateLikelihood):
    """``y ~ Categorical(p)``, or for two classes ``y ~ Bernoulli(p[:, 1])``."""

    supported = (
        "a DirichletLeaf tree in pm.Categorical(p=p), or for two classes pm.Bernoulli(p=p[:, 1])"
    )

    @property
    def n_stats(self):
        """Rows of each class."""
        return self.layout.n_values

    def read(self, term):
        """Observed classes."""
        op, name = term.rv.owner.op, term.name
        if isinstance(op, CategoricalRV):
            [p], outputs = term.opened()
            if not is_unchanged(p, outputs):
                raise refusal(term.graph, f"the p of {name} is not the output of the tree itself")
        elif isinstance(op, BernoulliRV) and self.layout.n_values == 2:
            [p], outputs = term.opened()
            if unwrapped_column(p, outputs) != 1:
                raise refusal(
                    term.graph, f"the p of {name} is not the tree's second column, p[:, 1]"
                )
        else:
            raise refusal(
                term.graph,
                f"{name} is {term.distribution}; a DirichletLeaf needs pm.Categorical(p=p), or for "
                "two classes pm.Bernoulli(p=p[:, 1])",
            )
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """Observed classes; there is no residual."""
        y = np.empty(0) if seen is None else self._classes(*seen)
        return make_dirichlet(settings.leaf[0], self.layout.n_values, y), None

    def _classes(self, observed):
        y = self.rows(observed)
        k = self.layout.n_values
        if not ((y >= 0) & (y < k) & (y == np.floor(y))).all():
            raise ValueError(
                f"The observed classes must be whole numbers from 0 to {k - 1}, as many as "
                "n_classes of the DirichletLeaf."
            )
        return y.astype(np.int64)
