"""Which common likelihoods of a row have hand-written kernels? Recognised in the graph.

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

`rowwise` supports all of them, equally exactly; these kernels need no derivatives by PyTensor, are
faster, and are compiled at once. ¶ Reading order: `contract` (the interface, and `LAWS`, the list
of them), one file each, `target`. Laws are those of `core.leaves.nonconjugate.laws`.
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
