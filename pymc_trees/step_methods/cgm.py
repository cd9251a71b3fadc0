"""`CGM`: grow, prune, change and swap."""

from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.sweep import SweepStep


class CGM(SweepStep):
    """Metropolis-Hastings on trees by grow, prune, change and swap.

    One step is one backfitting sweep: each tree of each forest receives one proposal (or
    ``moves_per_visit``) with its leaf values integrated out, then new leaf values from their
    conditional. Under a likelihood where
    they do not integrate out, a `NormalLeaf` forest is moved by reversible jumps that propose leaf
    values from an approximation to their conditional and correct for it exactly (Linero 2022).

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    moves : dict, optional
        Weights of the moves; default grow 0.25, prune 0.25, change 0.4, swap 0.1 (Chipman 2010). A
        move that a tree does not allow is left out and the others share its weight. ``"perturb"``,
        a small step of one rule, ``"rotate"``, by which a split and its split parent change places
        (both Pratola 2016), and ``"restructure"``, another tree with the same leaves (`WTW`), are
        left out by default. Moves of your own are named once they are registered
        (`pymc_trees.core.moves.contract`).
    moves_per_visit : int, at least 1, default 1
        Moves of a tree, one after the other, before its leaf values are drawn: a further one costs
        less than the visit of a tree, which adds up the residuals of all rows.
    threads : int, optional
        Threads that work on one chain of a table of 200,000 rows or more, where leaf values
        integrate out of one normal observation a row; the draws are the same for any number.
        Default: the cores that other chains leave.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        ``vars``, ``moves`` or ``moves_per_visit`` that are not what they should be.
    UnsupportedModelError
        A forest that is not used through its function at the training inputs, or a leaf other than
        a `NormalLeaf` under a likelihood that it is not conjugate to; with what to use instead.

    Notes
    -----
    Statistics per draw (with several forests, ``_{name}_forest`` is appended): ``accept_grow``,
    ``accept_prune``, ``accept_change``, ``accept_swap`` and that of any other move with a weight
    (accepted share of the sweep's proposals, NaN without any), ``n_leaves`` (over all trees),
    ``max_depth`` (of the deepest leaf), ``variable_inclusion`` (p split counts), ``log_likelihood``
    (of the rows given the forest). Where leaf values do not integrate out of a likelihood of rows,
    forests of one output are moved under Gaussian rows and meet the likelihood once a visit of a
    tree: ``accept_screened`` is the share of visits that are taken. Where rows are Gaussian given
    latent variables, ``latent_precision`` is their mean precision.

    References
    ----------
    Chipman, George and McCulloch (1998). Bayesian CART model search. Journal of the American
    Statistical Association 93, section 5.1.
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), section 3.
    Linero (2022). Generalized Bayesian additive regression trees models: beyond conditional
    conjugacy. arXiv 2202.09924, section 3.
    Pratola (2016). Efficient Metropolis-Hastings proposal mechanisms for Bayesian regression tree
    models. Bayesian Analysis 11(3).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, [0.0, 0.1, 1.1, 1.0], m=2)
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=mu.shape)
    ...     step = pmt.CGM([mu], moves={"grow": 0.5, "prune": 0.5})
    >>> step.name
    'cgm'
    """

    name = "cgm"

    def __init__(self, vars=None, moves=None, moves_per_visit=1, **options):
        super().__init__(vars, LocalMoves(moves, moves_per_visit=moves_per_visit), **options)
