"""Steps of local moves: `CGM`, `GrowPrune` with two of them, `RestructureCGM` with one more."""

from pymc_trees.step_methods.kernels.local_moves import DEFAULT_MOVES, LocalMoves
from pymc_trees.step_methods.sweep import SweepStep

# ------------------------------------------------------------- `CGM`: grow, prune, change and swap


class CGM(SweepStep):
    """Metropolis-Hastings on trees by grow, prune, change and swap.

    One step is one backfitting sweep: each tree of each forest receives one proposal (or
    ``moves_per_visit``) with its leaf values integrated out, then new leaf values drawn from their
    conditional. Where the leaf values do not integrate out, a `NormalLeaf` forest is updated by
    reversible jumps that propose leaf values from an approximation to their conditional and correct
    for it in the acceptance ratio (Linero 2022).

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    moves : dict, optional
        Weights of the moves; default grow 0.25, prune 0.25, change 0.4, swap 0.1 (Chipman 2010).
        Moves that are not listed have weight 0. A move that is impossible for a tree is left out,
        and the others share its weight. Not used by
        default: ``"perturb"``, a small step of one rule, ``"rotate"``, which exchanges a split and
        its parent split (both Pratola 2016), and ``"restructure"``, another tree with the same
        leaves (`RestructureCGM`). Custom moves are given by name once they are registered
        (`pymc_trees.core.moves.contract`).
    moves_per_visit : int, at least 1, default 1
        Consecutive moves of a tree before its leaf values are drawn. A further move costs less than
        a visit of a tree, which computes the residuals of all rows.
    threads : int, optional
        Threads that work on one chain of a table of 200,000 rows or more, where leaf values
        integrate out of one normal observation per row. The draws do not depend on their number.
        Default: the cores that other chains leave free.
    {options}

    Raises
    ------
    ValueError
        For invalid ``vars``, ``moves`` or ``moves_per_visit``.
    UnsupportedModelError
        A forest that is not used through its function at the training inputs, or a leaf other than
        a `NormalLeaf` under a likelihood that it is not conjugate to. The message says what to use
        instead.

    Notes
    -----
    Statistics per draw (with several forests, ``_{name}_forest`` is appended): ``accept_grow``,
    ``accept_prune``, ``accept_change``, ``accept_swap`` and the same for any other move with a
    positive weight (accepted share of the sweep's proposals, NaN without proposals),
    ``changes_per_visit`` (accepted moves but ``"perturb"`` for each visit of a tree; PyMC logs a
    message where they are fewer than 0.05), ``n_leaves`` (over all trees), ``max_depth`` (of the
    deepest leaf), ``variable_inclusion`` (p split counts), ``log_likelihood`` (of the rows given
    the forest). Where leaf values do not integrate out of a likelihood that is a product over rows,
    forests of one output are moved under a Gaussian approximation of the rows, and the exact
    likelihood is evaluated once per visit of a tree: ``accept_delayed`` is the share of accepted
    visits. Where rows are Gaussian given latent variables, ``latent_precision`` is their mean
    precision. Where an intercept, say, trades places with the level of the forest, a step ends with
    a draw of that level from the priors alone, and ``ridge_shift`` is what the forest has risen by.

    References
    ----------
    Chipman, George and McCulloch (1998). Bayesian CART model search. Journal of the American
    Statistical Association 93, section 5.1.
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), section 3.
    Linero (2022). Generalized Bayesian additive regression trees models: beyond conditional
    conjugacy. arXiv 2202.09924, section 3.
    Liu and Sabatti (2000). Generalised Gibbs sampler and multigrid Monte Carlo for Bayesian
    computation. Biometrika 87(2), 353-369 (the draw of the level).
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


class GrowPrune(SweepStep):
    """Metropolis-Hastings on trees by grow and prune, with equal weights.

    The cheapest sweep; `CGM` adds change and swap, which mix better.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    moves_per_visit : int, at least 1, default 1
        As for `CGM`.
    threads : int, optional
        As for `CGM`.
    {options}

    Raises
    ------
    ValueError
        For invalid ``vars`` or ``moves_per_visit``.
    UnsupportedModelError
        As for `CGM`.

    Notes
    -----
    The statistics are those of `CGM`.

    References
    ----------
    Pratola, Chipman, Gattiker, Higdon, McCulloch and Rust (2014). Parallel Bayesian additive
    regression trees. Journal of Computational and Graphical Statistics 23(3), 830-852.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     mu = pmt.BART("mu", X, [0.0, 0.1, 1.1, 1.0], m=2)
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=mu.shape)
    ...     step = pmt.GrowPrune([mu])
    >>> step.name
    'growprune'
    """

    name = "growprune"

    def __init__(self, vars=None, moves_per_visit=1, **options):
        moves = LocalMoves({"grow": 0.5, "prune": 0.5}, moves_per_visit=moves_per_visit)
        super().__init__(vars, moves, **options)


RESTRUCTURED = 0.2
"""Share of the proposals that restructure a tree."""
MIX = {name: (1.0 - RESTRUCTURED) * weight for name, weight in DEFAULT_MOVES.items()}
MIX["restructure"] = RESTRUCTURED


class RestructureCGM(SweepStep):
    """Metropolis-Hastings on trees by grow, prune, change, swap and restructure.

    The fifth move (Wu, Tjelmeland and West 2007) proposes another tree with the leaves of the
    current one: the rules and their order are new, the rows in each leaf stay the same. The
    likelihood is therefore unchanged (but for leaves with slopes in the columns that split above
    them, for which it is part of the ratio), and the chain reaches trees that several small moves
    could reach only through trees with a worse fit. The move is meant for a single tree with a few
    leaves, a `DecisionTree`, especially where several columns separate the same groups of rows; the
    trees of a sum are too small to need it.

    Parameters
    ----------
    vars : list of variables, optional
        Forests, or the functions returned by BART and DecisionTree. Default: every forest.
    moves_per_visit : int, at least 1, default 1
        As for `CGM`.
    threads : int, optional
        As for `CGM`.
    {options}

    Raises
    ------
    ValueError
        For invalid ``vars`` or ``moves_per_visit``.
    UnsupportedModelError
        As for `CGM`.

    Notes
    -----
    One proposal in five restructures a tree; the others are those of `CGM` in its proportions. For
    a mix of your own list every move in ``CGM(moves=...)``. A proposal looks at every column in
    every split, so its time grows with the columns and the leaves.

    The statistics are those of `CGM`, and ``accept_restructure``.

    References
    ----------
    Wu, Tjelmeland and West (2007). Bayesian CART: prior specification and posterior simulation.
    Journal of Computational and Graphical Statistics 16(1), 44-66.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     f = pmt.DecisionTree("f", X, [0.0, 0.1, 1.1, 1.0])
    ...     y = pm.Normal("y", f, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=f.shape)
    ...     step = pmt.RestructureCGM([f])
    >>> step.name
    'restructure_cgm'
    """

    name = "restructure_cgm"

    def __init__(self, vars=None, moves_per_visit=1, **options):
        super().__init__(vars, LocalMoves(MIX, moves_per_visit=moves_per_visit), **options)
