"""Which likelihoods of a row become Gaussian given a latent variable of the row?

=============== ================================================= =============
augmentation    p(y | eta)                                        drawn
=============== ================================================= =============
`PolyaGamma`    Binomial with a logistic link                     PG(trials, eta)
`Interval`      y says between which bounds a Normal lies:        that Normal
                probit, ordered probit, censored Normals
`ScaleMixture`  StudentT                                          its precision
`SkewedLaplace` Laplace, asymmetric Laplace                       its variance
`NormalMixture` a mixture of Normals about shifted means          the component
=============== ================================================= =============

Reading order: `rows` (the interface of an augmentation, and the rows of a forest, whose latent
variables are redrawn between two sweeps), `augmentations`.

With the latent variables drawn, row i is a Gaussian observation of f, and leaf values integrate
out. They are drawn given the forest and y, the forest is updated given them, and they are
discarded: each step leaves p(f, latent | y) invariant, so f has its posterior (Tanner and Wong
1987).

May import: `core.compile`.
"""
