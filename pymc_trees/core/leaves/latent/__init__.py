"""Which likelihoods become Gaussian given a latent variable for each row?

=============== ================================================= =============
augmentation    p(y | eta)                                        drawn
=============== ================================================= =============
`PolyaGamma`    Binomial with a logistic link                     PG(trials, eta)
`Interval`      y says between which bounds a Normal lies:        that Normal
                probit, ordered probit, censored Normals
`ScaleMixture`  StudentT                                          its precision
`SkewedLaplace` Laplace, asymmetric Laplace                       its variance
`NormalMixture` a mixture of Normals about shifted means          the component
`LogitShare`,   a mixture of two, in proportions p and 1 - p;     the component,
`ProbitShare`   p is a logistic or probit function                then as above
`IntervalPart`  a mixture, a component of which is an `Interval`; the component,
and others      the others see no eta                             then as above
=============== ================================================= =============

Reading order: `rows` (the interface of an augmentation, and rows with latent variables),
`augmentations`, `mixtures` (made of these).

Given its latent variable, a row is a Gaussian observation of f, so leaf values integrate out.
Latent variables are drawn given the forest and y, and the forest is updated given them. Each step
leaves p(f, latent | y) invariant, so f has its posterior (Tanner and Wong 1987).

May import: `core.compile`.
"""
