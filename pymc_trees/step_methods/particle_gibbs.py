"""`ParticleGibbs`: whole trees by conditional sequential Monte Carlo."""

import numpy as np

from pymc_trees.core.samplers.bins import make_bins
from pymc_trees.core.samplers.optimal import make_look_ahead
from pymc_trees.core.samplers.particle_sweep import particle_sweep
from pymc_trees.core.samplers.particles import make_particles
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.resampling import SCHEMES
from pymc_trees.step_methods.sweep import SweepStep

BINS = 100
"""Edges per column at which the optimal proposal looks; as many as most peers have cuts."""

COLUMNS = 10
"""Columns it looks at, drawn anew at each node when there are more."""


class ParticleGibbs(SweepStep):
    """Particle Gibbs: every tree redrawn from the root by conditional sequential Monte Carlo.

    One step visits each tree of each forest: particles grow from the root beside the present tree,
    which replays its own growth, and one of them becomes the tree; then new leaf values are drawn.
    The posterior does not depend on the number of particles, the proposal or the resampling scheme.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    num_particles : int, at least 2, default 10
        Particles, the present tree included (Lakshminarayanan 2015).
    proposal : {"prior", "empirical", "optimal"}, default "prior"
        How particles grow: by the tree prior; with cuts uniform in a random gap between adjacent
        distinct values; or in proportion to prior times likelihood one split ahead, which moves
        most per sweep and costs most.
    resampling : {"multinomial", "systematic", "stratified"}, default "multinomial"
        Scheme, in its conditional form; particles are resampled when their effective number falls
        below half.
    batch : tuple of two floats in (0, 1], default (1.0, 1.0)
        Share of the trees visited by a step while tuning and after.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        Arguments that are not what they should be.
    NotConjugateError
        A likelihood whose leaf values cannot be integrated out, with what to use instead.

    Notes
    -----
    Statistics per draw (in a model with several forests, ``_{name}_forest`` is appended):
    ``particle_ess`` (mean effective number of particles at the end), ``trees_changed`` (share of
    the visited trees for which a particle other than the present tree was drawn), and ``n_leaves``,
    ``max_depth``, ``variable_inclusion`` and ``log_likelihood`` as for `CGM`.

    References
    ----------
    Lakshminarayanan, Roy and Teh (2015). Particle Gibbs for Bayesian additive regression trees.
    AISTATS, algorithm 2.
    Lakshminarayanan, Roy and Teh (2013). Top-down particle filtering for Bayesian decision trees.
    ICML, section 3.
    Chopin and Singh (2015). On particle Gibbs sampling. Bernoulli 21(3), section 4.

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
    sweep_stats = ("particle_ess", "trees_changed")

    def __init__(
        self,
        vars=None,
        num_particles=10,
        proposal="prior",
        resampling="multinomial",
        batch=(1.0, 1.0),
        **options,
    ):
        super().__init__(vars, **options)
        if (
            isinstance(num_particles, bool)
            or not isinstance(num_particles, int | np.integer)
            or num_particles < 2
        ):
            raise ValueError(
                f"num_particles={num_particles!r}: must be a whole number of at least 2, the "
                "present tree and one more."
            )
        self.proposal = _place("proposal", proposal, PROPOSALS)
        self.scheme = _place("resampling", resampling, SCHEMES)
        self.batch = _check_batch(batch)
        self.particles, self.look, self.bins = {}, {}, {}
        for forest in self.forests:
            p, n = forest.design.columns.shape
            n_stats = forest.work.stats.shape[1]
            room = min(2 * n - 1, forest.layout.max_nodes - forest.layout.m + 1)
            self.particles[forest.name] = make_particles(int(num_particles), room, n, n_stats)
            self.look[forest.name] = make_look_ahead(p, min(p, COLUMNS), n_stats)
            self.bins[forest.name] = make_bins(forest.design.columns, BINS)

    def sweep(self, forest, trees, prior, leaf):
        """Redraw a batch of trees."""
        m = forest.layout.m
        n_updated = int(np.ceil(self.batch[0 if self.tune else 1] * m))
        first = 0 if n_updated == m else int(self.rng.integers(m))
        outcome = np.zeros(2)
        if not particle_sweep(
            self.rng,
            trees,
            forest.design,
            self.bins[forest.name],
            prior,
            leaf,
            self.proposal,
            self.scheme,
            self.particles[forest.name],
            self.look[forest.name],
            forest.work,
            first,
            n_updated,
            outcome,
        ):
            return None
        changed, ess = outcome / n_updated
        return {"particle_ess": ess, "trees_changed": changed}


PGBART = ParticleGibbs


def _place(argument, value, choices):
    if value not in choices:
        raise ValueError(f"{argument}={value!r}: choose from {list(choices)}.")
    return choices.index(value)


def _check_batch(batch) -> tuple[float, float]:
    try:
        tuning, after = (float(share) for share in batch)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"batch={batch!r}: must be two shares of the trees, while tuning and after."
        ) from error
    if not (0 < tuning <= 1 and 0 < after <= 1):
        raise ValueError(f"batch={batch!r}: both shares must be in (0, 1].")
    return tuning, after
