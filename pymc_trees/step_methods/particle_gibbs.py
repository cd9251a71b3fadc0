"""`ParticleGibbs`: whole trees by conditional sequential Monte Carlo."""

from pymc_trees.step_methods.kernels.tree_redraw import TreeRedraw
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.targets.graph import UnsupportedModelError


class ParticleGibbs(SweepStep):
    """Particle Gibbs: every tree redrawn from the root by conditional sequential Monte Carlo.

    One step visits each tree of each forest: particles grow from the root together with the current
    tree, which replays its own growth; one of them becomes the new tree, and new leaf values are
    drawn. The posterior does not depend on the number of particles, the proposal or the resampling
    scheme. Where leaf values do not integrate out, particles of a `NormalLeaf` forest grow under a
    Gaussian approximation of the likelihood, then draw leaf values from an approximation to their
    conditional; their final weights correct for both exactly. A likelihood that mixes rows is
    evaluated over all rows for each particle.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    num_particles : int, at least 2, default 10
        Number of particles, the current tree included (Lakshminarayanan 2015).
    proposal : {"prior", "empirical", "optimal"}, default "prior"
        How particles grow: from the tree prior; with cuts uniform in a random gap between adjacent
        distinct values; or in proportion to prior times likelihood one split ahead, which moves
        most per sweep and costs most. Rules on columns with levels or missing cells always come
        from the prior. This is exact, but with many such columns `Hybrid` or `CGM` mixes better.
    resampling : {"multinomial", "systematic", "stratified"}, default "multinomial"
        Resampling scheme, in its conditional form; particles are resampled when their effective
        number falls below half the number of particles.
    batch : tuple of two floats in (0, 1], default (1.0, 1.0)
        Share of the trees visited by a step while tuning and after.
    threads : int, optional
        As for `CGM`.
    {options}

    Raises
    ------
    ValueError
        For an invalid argument.
    UnsupportedModelError
        A forest that is not used through its function at the training inputs, or a leaf other than
        a `NormalLeaf` under a likelihood that it is not conjugate to. The message says what to use
        instead.

    Notes
    -----
    Statistics per draw (in a model with several forests, ``_{name}_forest`` is appended):
    ``particle_ess`` (mean effective number of particles at the end), ``trees_changed`` (share of
    the visited trees for which a particle other than the current tree is drawn), and ``n_leaves``,
    ``max_depth``, ``variable_inclusion`` and ``log_likelihood`` as for `CGM`.

    References
    ----------
    Lakshminarayanan, Roy and Teh (2015). Particle Gibbs for Bayesian additive regression trees.
    AISTATS, algorithm 2.
    Lakshminarayanan, Roy and Teh (2013). Top-down particle filtering for Bayesian decision trees.
    ICML, section 3.
    Chopin and Singh (2015). On particle Gibbs sampling. Bernoulli 21(3), section 4.
    Andrieu, Doucet and Holenstein (2010). Particle Markov chain Monte Carlo methods. Journal of the
    Royal Statistical Society B 72(3), theorem 5.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, [0.0, 0.1, 1.1, 1.0], m=2)
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=mu.shape)
    ...     step = pmt.ParticleGibbs([mu], num_particles=5, proposal="optimal")
    >>> step.name
    'pgbart'
    """

    name = "pgbart"

    def __init__(
        self,
        vars=None,
        num_particles=10,
        proposal="prior",
        resampling="multinomial",
        batch=(1.0, 1.0),
        **options,
    ):
        super().__init__(vars, TreeRedraw(num_particles, proposal, resampling, batch), **options)
        for forest in self.forests:
            if forest.has_random_columns:
                raise UnsupportedModelError(
                    f"ParticleGibbs: {forest.name} has random columns (with_columns), whose rows "
                    "move. Leave it to pm.sample(), or use CGM."
                )


PGBART = ParticleGibbs
