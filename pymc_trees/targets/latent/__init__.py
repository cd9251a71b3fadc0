"""Which likelihoods are Gaussian given latent variables? Read in the graph, one file for each link.

========== ======================================================================= ===============
file       likelihood of row i, eta_i affine in f_i                                path
========== ======================================================================= ===============
`logit`    Bernoulli, or Binomial of few trials, with p = invlogit(eta)            `PolyaGamma`
`softmax`  Categorical of which eta is one class                                   `PolyaGamma`
`probit`   Bernoulli with p = invprobit(eta); OrderedProbit                        `Interval`
`censored` Censored Normal of mean eta; Censored LogNormal of mu = eta             `Interval`
`student`  StudentT of location eta                                                `ScaleMixture`
`laplace`  Laplace, AsymmetricLaplace of location eta                              `SkewedLaplace`
`mixture`  Mixture of Normals of means eta + something else                        `NormalMixture`
========== ======================================================================= ===============

Nothing else in the likelihood depends on the forest. ¶ Reading order: `contract` (the interface of
such a likelihood, and `LATENTS`, the list of them), `templates` (recognition of graphs), one file
each, `target` (its numbers at a point). Paths are those of `core.leaves.latent`.
"""

from pymc_trees.targets.latent import censored, laplace, logit, mixture, probit, softmax, student

__all__ = ["censored", "laplace", "logit", "mixture", "probit", "softmax", "student"]
