"""Which likelihoods of a row are common enough to be written out? Read in the graph.

================ ================================================================== ================
file             likelihood, e affine in f                                          law
================ ================================================================== ================
`poisson`        Poisson of mean exp(e), and products with other variables          `poisson`
`logistic`       NegativeBinomial of mean exp(e), Binomial with p = invlogit(e)     `logistic`
`gamma`          Gamma and Exponential whose shape and scale are products of powers `gamma`
                 of exp(e) and of other variables
`weibull`        Weibull of scale exp(e), and such a Weibull or Exponential censored `weibull`
                 from above
`truncated`      Normal of mean e, truncated                                        `truncated`
`log_sd`         Normal of sd exp(e) whose mean does not see the forest             `log_sd`
`added_variance` Normal of variance exp(2 e) + c; its mean and c do not see f       `added_variance`
================ ================================================================== ================

They are what `rowwise` treats, and nothing is exact here that is not there: without derivatives by
PyTensor, in a tenth of the time, and compiled at once. Reading order: `contract` (what is asked of
one, and `LAWS`, those there are), one file each, `target`. Laws are those of
`core.leaves.nonconjugate.laws`.
"""

from pymc_trees.targets.laws import (
    added_variance,
    gamma,
    log_sd,
    logistic,
    poisson,
    truncated,
    weibull,
)

__all__ = ["added_variance", "gamma", "log_sd", "logistic", "poisson", "truncated", "weibull"]
