"""`WTW`: the moves of `CGM`, and a move to other trees with the same leaves."""

from pymc_trees.step_methods.parts.local_moves import DEFAULT_MOVES, LocalMoves
from pymc_trees.step_methods.sweep import SweepStep

RESTRUCTURED = 0.2
"""Share of the proposals that restructure a tree."""
MIX = {name: (1.0 - RESTRUCTURED) * weight for name, weight in DEFAULT_MOVES.items()}
MIX["restructure"] = RESTRUCTURED


class WTW(SweepStep):
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
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

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
    ...     step = pmt.WTW([f])
    >>> step.name
    'wtw'
    """

    name = "wtw"

    def __init__(self, vars=None, moves_per_visit=1, **options):
        super().__init__(vars, LocalMoves(MIX, moves_per_visit=moves_per_visit), **options)
