"""`Hybrid`: sweeps of local moves, and now and then a whole tree."""

from pymc.step_methods.compound import Competence

from pymc_trees.arguments import check_number
from pymc_trees.step_methods.parts.learnt import AdaptiveMoves, AdaptiveRedraw
from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.parts.tempering import Tempering
from pymc_trees.step_methods.parts.tree_redraw import TreeRedraw
from pymc_trees.step_methods.sweep import SweepStep

MOVES = {"grow": 0.125, "prune": 0.125, "change": 0.1, "swap": 0.05, "perturb": 0.6}
BATCH = 0.02, 0.02


class Hybrid(SweepStep):
    """A cycle of local and global updates: sweeps of small moves, then a tree redrawn.

    One step is ``local_sweeps`` sweeps of local moves, as in `CGM`, most of them small steps of one
    rule, one sweep of `ParticleGibbs` with the one-step optimal proposal over a share of the
    trees, and exchanges with forests of flatter posteriors (parallel tempering). Local moves are
    cheap and refine the trees; redrawn and exchanged forests leave the modes that local moves do
    not. Each part leaves the posterior invariant, and so does the cycle (Tierney 1994). This is the
    step that ``pm.sample()`` assigns to a forest (benchmarks). Local moves and redrawn trees serve
    any likelihood of a `NormalLeaf` forest.

    Where the likelihood is not a conjugate Normal, continuous variables of up to ten numbers that
    enter it and nothing else are drawn between sweeps as well, by slice sampling given f: they and
    f forget slowly together. Whatever else samples them goes on doing so.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    local_sweeps : int, at least 1, optional
        Sweeps of a step, for each temperature. Default: about 500,000 divided by rows times trees,
        but 5 to 20, shared out among the temperatures, and above 2,000,000 rows times trees
        fewer than 5, down to 1; 5 where leaf values do not integrate out. What else PyMC does in a
        step then takes at most about a quarter of its time (from the benchmarks).
    moves : dict, optional
        Weights of the local moves, as for `CGM`. Default: in tuning they go from grow 0.125, prune
        0.125, change 0.1, swap 0.05, perturb 0.6 (from the benchmarks) to between a quarter of
        these and twice these, as more or fewer moves are accepted for what they cost, and stay as
        they are afterwards.
    moves_per_visit : int, at least 1, default 4
        Local moves of a tree each time a sweep visits it, as for `CGM`.
    num_particles : int, at least 2, default 2
        Particles of a redrawn tree, the present tree included. With two, a redrawn tree is a
        Metropolis-Hastings proposal.
    batch : tuple of two floats in (0, 1], optional
        Share of the trees redrawn by a step while tuning and after, rounded up to whole trees. A
        step on a large table, which makes fewer than 5 sweeps, does so with the probability that
        keeps the number of redrawn trees per sweep. Default: (0.02, 0.02), and where tuning finds
        that fewer than one redrawn tree in twenty is taken, less often, down to a quarter.
    temperatures : int, at least 1, default 3
        Posteriors among which forests are exchanged, that of the model included; 1 for no other.
        The flatter ones have likelihoods raised to powers below 1, which are found in tuning so
        that an exchange is accepted one time in four, and stay fixed afterwards. They move faster
        along the directions of f that are slow otherwise (benchmarks), and each takes as much
        memory as the forest. Only where leaf values integrate out of one normal observation a row,
        given latent variables or without, the prior of the forest is not drawn, rows times trees
        are at most 2,000,000, and rows tell enough: their mean precision times the prior variance
        of f, as tuning finds it, is at least 5 (from the benchmarks).
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
        Arguments that are not what they should be.
    UnsupportedModelError
        A likelihood that cannot be treated, with what to use instead.

    Notes
    -----
    Statistics per draw: those of `CGM` and of `ParticleGibbs`; unless fixed by ``moves`` and
    ``batch``, ``weight_grow``, ``weight_prune``, ... , the weights of the local moves, and
    ``chance_of_redraw``, how often a step redraws trees; with more than one temperature
    ``accept_exchange``, the mean probability of the exchanges tried, and ``least_power``, the power
    of the flattest likelihood. Both are NaN where a forest has no flatter posteriors, and those of
    `ParticleGibbs` where a step redrew no tree.

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
        temperatures=3,
        **options,
    ):
        n_sweeps = None if local_sweeps is None else check_number("local_sweeps", local_sweeps, 1)
        Local, weights = (AdaptiveMoves, MOVES) if moves is None else (LocalMoves, moves)
        local = Local(weights, n_sweeps, moves_per_visit)
        tempering = Tempering(temperatures, local)
        local.places = tempering.places
        Redraw, shares = (AdaptiveRedraw, BATCH) if batch is None else (TreeRedraw, batch)
        redraw = Redraw(num_particles, "optimal", "multinomial", shares, local.share_of_sweeps)
        super().__init__(vars, local, redraw, tempering, in_rounds=local, **options)

    @staticmethod
    def competence(var, has_grad):
        """Best for a forest."""
        able = SweepStep.competence(var, has_grad)
        return Competence.IDEAL if able is Competence.COMPATIBLE else able
