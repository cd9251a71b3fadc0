"""Normal whose variance is a product with exp(2 e) plus one that, as the mean, is free of f."""

import numpy as np
import pytensor.tensor as pt
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.leaves.nonconjugate.laws import added_variance
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.laws.contract import RowLaw, log_affine_pair, register_law
from pymc_trees.targets.stacks import stripped


@register_law
class AddedVarianceLaw(RowLaw):
    """``Normal(mean, sqrt(exp(2 e) + c))``."""

    of = (NormalRV,)
    law = added_variance

    def read(self, term):
        """Mean, c, logarithm of the sd without it."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotAffineError("a mean that sees the forest too")
        seen, other = _summands(sd, outputs)
        return [mean, other, *log_affine_pair(pt.sqrt(seen), outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        mean, least, *pair = found
        if not (np.asarray(least) >= 0).all():
            raise ValueError(
                "The variance added to that of the observed variable must not be negative."
            )
        return [y - mean, least, *pair]


def _summands(sd, outputs):
    """Variances of which one sees the forest."""
    variance = _inputs(sd, scalars.Sqrt)
    summands = _inputs(variance[0], scalars.Add) if variance else []
    if len(summands) == 2:
        first, second = (one in dependent_on([one], outputs) for one in summands)
        if first != second:
            return tuple(summands if first else summands[::-1])
    raise NotAffineError("an sd that is no root of two variances")


def _inputs(var, kind):
    var = stripped(var)
    op = var.owner.op if var.owner else None
    return var.owner.inputs if isinstance(op, Elemwise) and isinstance(op.scalar_op, kind) else []
