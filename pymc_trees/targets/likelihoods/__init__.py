"""Which likelihoods are recognised in a model's graph? One file for each family, kernels included.

============= ====================================================================== ===============
file          likelihood of row i, e_i affine in f_i                                 how
============= ====================================================================== ===============
`normal`      Normal of mean e, LogNormal of mu = e; sums of several outputs, linear integrated out
              leaves; mean and precision of a leaf
`correlated`  MvNormal of several outputs, each mean affine in f                     as one Normal
`classes`     Categorical with the probabilities of a leaf, or Bernoulli of two      integrated out
              Categorical of which e is one class                                    `PolyaGamma`
`binary`      Bernoulli, or Binomial of few trials, with p = invlogit(e)             `PolyaGamma`
              Bernoulli with p = invprobit(e); OrderedProbit                         `Interval`
`limits`      Censored Normal of mean e; Censored LogNormal of mu = e                `Interval`
              Normal of mean e, truncated                                            kernels
`robust`      StudentT of location e                                                 `ScaleMixture`
              Laplace, AsymmetricLaplace of location e                               `SkewedLaplace`
              Mixture of Normals of means e + something else                         `NormalMixture`
`mixtures`    Mixture of two, in proportions p and 1 - p, p = invlogit(e)            `LogitShare`
              the same with p = invprobit(e)                                         `ProbitShare`
`counts`      Poisson and NegativeBinomial of mean exp(e), Binomial of many trials   kernels
              Poisson and NegativeBinomial without zeros                             kernels
`times`       Gamma, Exponential, Weibull: shape, scale products of powers of exp(e) kernels
`normal`      Normal of sd exp(e), or variance exp(2 e) + c; its mean does not see f kernels
============= ====================================================================== ===============

Of the prior, where no term depends on the forest, leaf values integrate out. Names in the last
column are latent variables of the rows (`core.leaves.latent.augmentations`); hand-written kernels
are faster than those that `targets.rowwise` makes of the graph, need no derivatives by PyTensor,
and are compiled at once; both are exact.

A hurdle falls apart: a forest in psi has a Bernoulli, one in the positive distribution that
distribution, of the rows with ``y != 0``. A forest in one component of a `Mixture`, which may be of
any kind above with an offset for each row, has the likelihood of that component too, with the
others added to its rows; the component is a further latent variable, or kernels sum over both.

Reading order: `observed` (what a forest sees), `contract` (the interfaces, and the tables of
likelihoods), `expressions` (what a parameter is to the forest's outputs); `correlated`, `normal`,
`limits` (censored, truncated), `binary`, `classes`, `counts`, `times`, `robust`, `mixtures`. An
instance belongs to one forest of a model.

May import: `core`, `distributions`, other files of `targets`; PyMC, PyTensor.
"""

# Importing a family registers its likelihoods.
from pymc_trees.targets.likelihoods import (
    binary,
    classes,
    counts,
    limits,
    mixtures,
    normal,
    robust,
    times,
)

__all__ = ["binary", "classes", "counts", "limits", "mixtures", "normal", "robust", "times"]
