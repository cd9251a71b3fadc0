"""`GrowPrune`: grow and prune only."""

from pymc_trees.step_methods.parts.local_moves import LocalMoves
from pymc_trees.step_methods.sweep import SweepStep


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
