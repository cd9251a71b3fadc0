"""Normal whose sd is a product with exp(e), about a mean that does not see the forest."""

from pytensor.tensor.random.basic import NormalRV

from pymc_trees.core.leaves.nonconjugate.laws import log_sd
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.laws.contract import RowLaw, log_affine_pair, register_law


@register_law
class LogSdLaw(RowLaw):
    """``Normal(mean, exp(e))``."""

    of = (NormalRV,)
    law = log_sd

    def read(self, term):
        """Mean, logarithm of the sd."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotAffineError("a mean that sees the forest too")
        return [mean, *log_affine_pair(sd, outputs)], outputs

    def numbers(self, y, found):
        """As the law takes them."""
        mean, *pair = found
        return [y - mean, *pair]
