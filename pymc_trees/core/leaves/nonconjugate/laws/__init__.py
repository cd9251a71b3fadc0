"""Kernels of common likelihoods of a row: faster than compiled PyTensor graphs.

================ ======================================================================
file             log-likelihood of a row, with e affine in f
================ ======================================================================
`poisson`        y e - exp(e)
`logistic`       a e - t log(1 + exp(e)): NegativeBinomial, Binomial of many trials
`gamma`          of shape exp(e) and scale exp(e'), both affine in f or free of it
`weibull`        of scale exp(e), perhaps censored
`truncated`      of a Normal of mean e, truncated to an interval
`log_sd`         of a Normal whose sd is exp(e)
`added_variance` of a Normal whose variance is exp(2 e) + c
================ ======================================================================

Each file has two kernels, ``value(numbers, f)`` and ``slopes(numbers, f)``, the first and second
derivative by f; ``numbers`` are those of one row. `native_law` turns them into functions as in
`native`. Slopes are used for proposals only.

May import: `core.compile`, `native`.
"""
