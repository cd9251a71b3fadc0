"""NegativeBinomial whose mean is a product with exp(e), Binomial with a logit."""

from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV
from scipy.special import gammaln

from pymc_trees.core.leaves.nonconjugate.laws import logistic
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.latent.contract import NotLatentError
from pymc_trees.targets.latent.logit import argument_of_link
from pymc_trees.targets.latent.templates import refuse_if_seen
from pymc_trees.targets.laws.contract import (
    RowLaw,
    affine_pair,
    bounded,
    register_law,
    whole_numbers,
)


class LogisticLaw(RowLaw):
    """A whole number of which p is the logistic function of e."""

    law = logistic

    def read(self, term):
        """Number of successes or of trials, and logit of p."""
        (n, p), outputs = term.opened()
        try:
            refuse_if_seen([n], outputs)
            logit = argument_of_link(p, outputs)
        except NotLatentError as error:
            raise NotAffineError(str(error)) from None
        return [n, *affine_pair(logit, outputs)], outputs


@register_law
class NegativeBinomialLaw(LogisticLaw):
    """``NegativeBinomial(mu, alpha)``, p = alpha / (alpha + mu)."""

    of = (NegBinomialRV,)

    def numbers(self, y, found):
        """As the law takes them."""
        whole_numbers(y)
        alpha, slope, offset = found
        pair = slope, bounded(offset)
        return [alpha, alpha + y, *pair, gammaln(y + alpha) - gammaln(alpha) - gammaln(y + 1)]


@register_law
class BinomialLaw(LogisticLaw):
    """``Binomial(trials, p)``."""

    of = (BinomialRV,)

    def numbers(self, y, found):
        """As the law takes them."""
        trials, slope, offset = found
        whole_numbers(y, trials)
        ways = gammaln(trials + 1) - gammaln(y + 1) - gammaln(trials - y + 1)
        return [y, trials, slope, bounded(offset), ways]
