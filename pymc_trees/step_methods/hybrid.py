"""`Hybrid`: sweeps of local moves, and now and then whole trees."""

import numpy as np
from pymc.step_methods.compound import Competence

from pymc_trees.step_methods.cgm import DEFAULT_MOVES
from pymc_trees.step_methods.metropolis import MetropolisStep, check_moves
from pymc_trees.step_methods.tree_redraw import (
    TreeRedraw,
    check_batch,
    check_num_particles,
)


class Hybrid(MetropolisStep):
    """A cycle of local and global updates: sweeps of CGM moves, then whole trees redrawn.

    One step is ``local_sweeps`` sweeps of `CGM` and one sweep of `ParticleGibbs` with the one-step
    optimal proposal over a share of the trees. Local moves are cheap and refine the trees; redrawn
    trees leave the modes that local moves do not. Each part leaves the posterior invariant, and so
    does the cycle (Tierney 1994). This is the step that ``pm.sample()`` assigns to a forest: at
    equal time its effective samples of f were several times those of either part alone
    (benchmarks). Both parts serve any likelihood of a `NormalLeaf` forest.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    local_sweeps : int, at least 1, default 5
        CGM sweeps of a step (from the benchmarks).
    moves : dict, optional
        Weights of the local moves, as for `CGM`.
    num_particles : int, at least 2, default 2
        Particles of a redrawn tree, the present tree included. With two, a redrawn tree is a
        Metropolis-Hastings proposal.
    batch : tuple of two floats in (0, 1], default (1.0, 1.0)
        Share of the trees redrawn by a step while tuning and after.
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
    UnsupportedModelError
        A likelihood that cannot be treated, with what to use instead.

    Notes
    -----
    Statistics per draw: those of `CGM` and of `ParticleGibbs`.

    References
    ----------
    Tierney (1994). Markov chains for exploring posterior distributions. Annals of Statistics
    22(4), section 2.4 (cycles of kernels).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, [0.0, 0.1, 1.1, 1.0], m=2)
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=mu.shape)
    ...     step = pmt.Hybrid([mu], local_sweeps=2)
    >>> step.name
    'hybrid'
    """

    name = "hybrid"
    sweep_stats = (*MetropolisStep.sweep_stats, "particle_ess", "trees_changed")

    def __init__(
        self,
        vars=None,
        local_sweeps=5,
        moves=None,
        num_particles=2,
        batch=(1.0, 1.0),
        **options,
    ):
        super().__init__(vars, **options)
        if (
            isinstance(local_sweeps, bool)
            or not isinstance(local_sweeps, int | np.integer)
            or local_sweeps < 1
        ):
            raise ValueError(
                f"local_sweeps={local_sweeps!r}: must be a whole number of at least 1."
            )
        self.local_sweeps = int(local_sweeps)
        self.move_weights = check_moves(DEFAULT_MOVES if moves is None else moves)
        num_particles = check_num_particles(num_particles)
        self.batch = check_batch(batch)
        self.whole_trees = {
            forest.name: TreeRedraw(forest, num_particles, "optimal", "multinomial")
            for forest in self.forests
        }

    def sweep(self, forest, trees, prior, leaf):
        """Local sweeps, then a batch of whole trees."""
        stats = self.local_moves(forest, trees, prior, leaf, self.local_sweeps)
        if stats is None:
            return None
        whole_trees, share = self.whole_trees[forest.name], self.batch[0 if self.tune else 1]
        outcome = whole_trees.redraw(self.rng, trees, prior, leaf, share, self.tune)
        if outcome is None:
            return None
        return stats | {"trees_changed": outcome[0], "particle_ess": outcome[1]}

    @staticmethod
    def competence(var, has_grad):
        """Best for a forest."""
        able = MetropolisStep.competence(var, has_grad)
        return Competence.IDEAL if able is Competence.COMPATIBLE else able
