"""`Hybrid`: sweeps of local moves, occasional redraws of whole trees, and parallel tempering."""

from pymc.step_methods.compound import Competence

from pymc_trees.arguments import check_number
from pymc_trees.step_methods.kernels.local_moves import LocalMoves
from pymc_trees.step_methods.kernels.replica_exchange import Ladder, ReplicaExchange
from pymc_trees.step_methods.kernels.tree_redraw import TreeRedraw
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.likelihoods.normal import NormalLikelihood

MOVES = {"grow": 0.125, "prune": 0.125, "change": 0.1, "swap": 0.05, "perturb": 0.6}
BATCH = 0.02, 0.02

TEMPERATURES = 3
"""Posteriors, that of the model included, unless given (benchmarks)."""
MIN_INFORMATION = 20_000.0
"""Precision of all rows, times the prior variance of f, from which on flatter posteriors pay."""
LARGEST = 2_000_000
"""Rows times trees beyond which there are none, since each takes as much memory as the forest."""


class Hybrid(SweepStep):
    """A cycle of local and global updates: sweeps of local moves, then redraws of whole trees.

    One step consists of ``local_sweeps`` sweeps of local moves, as in `CGM`, most of them small
    steps of one rule; one sweep of `ParticleGibbs` with the one-step optimal proposal over a share
    of the trees; and exchanges with forests under flatter posteriors (parallel tempering). Local
    moves are cheap and refine the trees; redraws and exchanges leave modes in which local moves get
    stuck. Each part leaves the posterior invariant, and so does the cycle (Tierney 1994).
    ``pm.sample()`` assigns this step to forests. Local moves and redraws support any likelihood of
    a `NormalLeaf` forest.

    Where the likelihood is not a conjugate Normal, continuous variables with up to ten elements
    that enter the likelihood and nothing else are also updated between sweeps, by slice sampling
    given f, because they and f mix slowly together. Their own step method still updates them as
    well. ``nuisance_evaluations`` in ``sample_stats`` counts evaluations of the density.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    local_sweeps : int, at least 1, optional
        Sweeps per step, for each temperature. Default: about 500,000 divided by rows times trees,
        at most five times the ratio of rows to trees, limited to 5 to 20, divided among the
        temperatures; 5 where leaf values do not integrate out. Trees of a small table move nearly
        independently in a few sweeps, so that draws of the noise are worth more than further ones
        (from the benchmarks). On large tables, take fewer draws rather than fewer sweeps.
    moves : dict, optional
        Weights of the local moves, as for `CGM`. Default: they start from grow 0.125, prune 0.125,
        change 0.1, swap 0.05, perturb 0.6 (from the benchmarks), are adapted during tuning, by
        accepted moves per unit of cost, to between a quarter of these values and twice these
        values, and stay fixed afterwards.
    moves_per_visit : int, at least 1, default 4
        Local moves per visit of a tree, as for `CGM`.
    num_particles : int, at least 2, default 2
        Particles per redraw, the current tree included. With two, a redraw is a Metropolis-Hastings
        proposal.
    batch : tuple of two floats in (0, 1], optional
        Share of the trees redrawn by a step while tuning and after, rounded up to whole trees.
        Default: (0.02, 0.02); where fewer than one
        redraw in twenty is accepted during tuning, redraws are made less often, down to a quarter.
    temperatures : int, at least 1, optional
        Number of posteriors among which forests are exchanged, the posterior of the model included;
        1 switches tempering off. The flatter posteriors raise the likelihood to powers below 1,
        which are adapted during tuning so that one exchange in four is accepted, and stay fixed
        afterwards. They move faster along the slow directions of f (benchmarks); each takes as much
        memory as the forest. Tempering needs leaf values that integrate out of one normal
        observation per row, possibly given latent variables; a forest prior without random
        parameters; and at most 2,000,000 rows times trees. Default: 3 where the sum of the rows'
        precisions times the prior variance of f, as estimated during tuning, is at least 20,000,
        and otherwise 1 (from the benchmarks).
    threads : int, optional
        As for `CGM`.
    {options}

    Raises
    ------
    ValueError
        For an invalid argument.
    UnsupportedModelError
        For a likelihood that is not supported; the message says what to use instead.

    Notes
    -----
    Statistics per draw: those of `CGM` and `ParticleGibbs`; unless fixed by ``moves``
    and ``batch``, ``weight_grow``, ``weight_prune``, ... , the weights of the local moves, and
    ``redraw_probability``, the probability that a step redraws trees; with more than one
    temperature, ``accept_exchange``, the mean acceptance probability of the proposed exchanges, and
    ``min_inverse_temperature``, the power of the flattest likelihood. The last two are NaN where a
    forest has no flatter posteriors, and the statistics of `ParticleGibbs` are NaN where a step
    redraws no tree.

    References
    ----------
    Tierney (1994). Markov chains for exploring posterior distributions. Annals of Statistics
    22(4), section 2.4 (cycles of kernels).
    Geyer (1991). Markov chain Monte Carlo maximum likelihood. Computing Science and Statistics 23.
    Earl and Deem (2005). Parallel tempering: theory, applications, and new perspectives. Physical
    Chemistry Chemical Physics 7, eq. 1.

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
    suitability = Competence.IDEAL

    def __init__(
        self,
        vars=None,
        local_sweeps=None,
        moves=None,
        moves_per_visit=4,
        num_particles=2,
        batch=None,
        temperatures=None,
        **options,
    ):
        n_sweeps = None if local_sweeps is None else check_number("local_sweeps", local_sweeps, 1)
        local = LocalMoves(
            MOVES if moves is None else moves, n_sweeps, moves_per_visit, adaptive=moves is None
        )
        redraw = TreeRedraw(
            num_particles,
            "optimal",
            "multinomial",
            BATCH if batch is None else batch,
            adaptive=batch is None,
        )
        tempering = HybridTempering([local], temperatures)
        kernels = (local, redraw, tempering) if tempering.n_replicas else (local, redraw)
        super().__init__(vars, *kernels, in_rounds=True, **options)


class HybridTempering(ReplicaExchange):
    """Parallel tempering where it pays; replicas and the model's forest share the sweeps of a step.

    Slow directions of f mix much faster under flatter likelihoods
    (`benchmarks.mixing.temperatures`). If rows are few or carry little information relative to the
    prior, chains mix well without, and unless a number of temperatures is given there are none.

    Parameters
    ----------
    kernels : sequence of Kernel
        Kernels of the step that update the replicas.
    temperatures : int or None
        Number of posteriors, that of the model included; None for `TEMPERATURES` where they pay.
    """

    shared_gap = True
    widest = 0.0
    integrates_out = False

    def __init__(self, kernels, temperatures):
        self.min_information = MIN_INFORMATION if temperatures is None else 0.0
        number = TEMPERATURES if temperatures is None else temperatures
        super().__init__(kernels, check_number("temperatures", number, 1))

    def statistics(self, forest):
        """Of the exchanges."""
        return dict.fromkeys(("accept_exchange", "min_inverse_temperature"), ())

    def is_able(self, data):
        """Whether rows are normal, possibly given latent variables, and the prior is fixed."""
        return data.target is not None and allowed_temperatures(data.forest, 2) > 1

    def n_temperatures(self, forest, state: Ladder | None):
        """Number of posteriors that share the sweeps of a step."""
        is_informative = state is None or state.information >= self.min_information
        return allowed_temperatures(forest, self.n_replicas + 1) if is_informative else 1

    def update(self, rng, state, data):
        """Update the replicas and exchange forests with them."""
        state, stats = super().update(rng, state, data)
        return state, {name: stats[name] for name in self.statistics(data.forest)}

    def _averaged(self, ladder, data):
        ladder, layout = super()._averaged(ladder, data), data.forest.layout
        sd = data.problem.leaf.sd
        information = float(layout.n_rows * ladder.w.mean() * sd**2 * layout.m)
        return ladder._replace(information=information)


def allowed_temperatures(forest, temperatures: int) -> int:
    """A number of posteriors, or 1 where there can be no flatter ones."""
    target, layout = forest.target, forest.layout
    is_normal = isinstance(target, LatentTarget) or (
        isinstance(target, ConjugateTarget)
        and isinstance(target.likelihood, NormalLikelihood)
        and not target.is_prior
    )
    fits = layout.n_rows * layout.m <= LARGEST
    # rows that move with a random column would be stale in replicas
    stays = forest.has_fixed_prior and not forest.has_random_columns
    return temperatures if is_normal and fits and stays else 1
