"""`Hybrid`: sweeps of local moves, occasional redraws of whole trees, and parallel tempering."""

from pymc.step_methods.compound import Competence

from pymc_trees.arguments import check_number
from pymc_trees.step_methods.parts.flatter import FlatterForests
from pymc_trees.step_methods.parts.learnt import AdaptiveMoves, AdaptiveRedraw
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.parts.tree_redraw import TreeRedraw
from pymc_trees.step_methods.sweep import SweepStep

MOVES = {"grow": 0.125, "prune": 0.125, "change": 0.1, "swap": 0.05, "perturb": 0.6}
BATCH = 0.02, 0.02


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
    well.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    local_sweeps : int, at least 1, optional
        Sweeps per step, for each temperature. Default: about 500,000 divided by rows times trees,
        limited to 5 to 20, divided among the temperatures; above 2,000,000 rows times trees fewer
        than 5, down to 1; 5 where leaf values do not integrate out. PyMC's overhead is then at most
        about a quarter of the time of a step (from the benchmarks).
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
        Share of the trees redrawn by a step while tuning and after, rounded up to whole trees. A
        step on a large table, which makes fewer than 5 sweeps, redraws trees with the probability
        that keeps the number of redraws per sweep. Default: (0.02, 0.02); where fewer than one
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
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

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
        Local, weights = (AdaptiveMoves, MOVES) if moves is None else (LocalMoves, moves)
        local = Local(weights, n_sweeps, moves_per_visit)
        tempering = FlatterForests(temperatures, local)
        local.places = tempering.places
        Redraw, shares = (AdaptiveRedraw, BATCH) if batch is None else (TreeRedraw, batch)
        redraw = Redraw(num_particles, "optimal", "multinomial", shares, local.share_of_sweeps)
        super().__init__(vars, local, redraw, tempering, in_rounds=local, **options)

    @staticmethod
    def competence(var, has_grad):
        """Best for a forest."""
        able = SweepStep.competence(var, has_grad)
        return Competence.IDEAL if able is Competence.COMPATIBLE else able
