"""`SoftCGM`: Metropolis-Hastings on sums of soft trees."""

from functools import partial

import numpy as np
from pymc.step_methods.compound import Competence

from pymc_trees.arguments import check_number
from pymc_trees.core.soft_forest.moves import GROW, MOVES, PRUNE
from pymc_trees.core.soft_forest.sweep import screened_soft_sweeps, soft_sweeps
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.step_methods.kernels.acceptance import accepted_shares, n_changes, read_weights
from pymc_trees.step_methods.kernels.contract import CHANGES, VISITS, Kernel
from pymc_trees.step_methods.kernels.delayed_acceptance import DelayedAcceptance, is_screened
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.step_methods.variables import SOFT

DEFAULT_MOVES = dict.fromkeys(MOVES, 0.2)

ROWS = 100_000
"""Rows times trees that a step visits unless its sweeps are given, in at most `MOST` sweeps."""
MOST = 10

LONG = 50_000
"""Rows times trees times moves beyond which interrupts are handled during the call."""


class SoftCGM(SweepStep):
    """Metropolis-Hastings on the trees of `SoftBART`.

    One sweep visits each tree once: several moves with its leaf values integrated out, then a draw
    of all its leaf values from their joint conditional. Where they do not integrate out, a visit
    under a Gaussian approximation of the rows is a proposal that is accepted or rejected by the
    exact likelihood. ``pm.sample()`` assigns this step automatically.

    Parameters
    ----------
    vars : list of variables, optional
        Forests of `SoftBART`, or the functions it returned. Default: all of them.
    moves : dict, optional
        Weights of the moves, 0.2 each by default: ``"grow"`` and ``"prune"``, ``"change"`` (a new
        rule of any split, from the prior), ``"perturb"`` (a step of a cut) and ``"bandwidth"`` (a
        step of the log bandwidth of the tree). A move that is impossible for a tree is left out,
        and the others share its weight.
    moves_per_visit : int, at least 1, default 3
        Consecutive moves of a tree before its leaf values are drawn. A further move costs less than
        a visit of a tree.
    n_sweeps : int, optional
        Sweeps per step. Default: 100,000 divided by rows times trees, limited to 1 to 10.
    {options}

    Raises
    ------
    ValueError, TypeError
        For invalid ``vars``, ``moves``, ``moves_per_visit`` or ``n_sweeps``.
    UnsupportedModelError
        A forest that is not used through its function at the training inputs, or a likelihood that
        is not a product over rows. The message says what to use instead.

    Notes
    -----
    Statistics per draw (with several forests, ``_{name}_forest`` is appended): ``accept_grow`` and
    so on for each move (accepted share of the step's proposals, NaN without any),
    ``changes_per_visit`` (accepted moves but ``"perturb"`` and ``"bandwidth"`` for each visit of a
    tree), ``n_leaves`` (over all trees), ``max_depth`` (of the deepest leaf), ``mean_bandwidth``
    (of the trees that are split, in units of columns mapped to [0, 1]; NaN without any),
    ``variable_inclusion`` (p split counts), ``log_likelihood`` (of the rows given the forest);
    ``accept_delayed``, the share of accepted visits where leaf values do not integrate out, and
    ``latent_precision``, the mean precision of rows that are Gaussian given latent variables.

    A sweep takes 9 to 12 times as long as one of `CGM` with as many moves per visit (n = 1,000, p =
    10, m = 50, 2.3 ms by default on one core): every row is in every leaf of a tree, and a proposal
    computes the weights of its new leaves at all rows.

    References
    ----------
    Linero and Yang (2018). Bayesian regression tree ensembles that adapt to smoothness and
    sparsity. Journal of the Royal Statistical Society B 80(5), section 3.2.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> with pm.Model():
    ...     mu = pmt.SoftBART("mu", X, [0.0, 0.1, 1.1, 1.0], m=2)
    ...     y = pm.Normal("y", mu, 0.5, observed=[0.0, 0.1, 1.1, 1.0], shape=mu.shape)
    ...     step = pmt.SoftCGM([mu])
    >>> step.name
    'softcgm'
    """

    name = "softcgm"
    kind = SOFT
    suitability = Competence.IDEAL

    def __init__(self, vars=None, moves=None, moves_per_visit=3, n_sweeps=None, **options):
        super().__init__(vars, SoftMoves(moves, moves_per_visit, n_sweeps), **options)


class SoftMoves(Kernel):
    """Sweeps: for each tree some moves, then new leaf values.

    Parameters
    ----------
    moves : dict or None
        Weights by name, as for `SoftCGM`.
    moves_per_visit : int
        Moves of a tree before its leaf values are drawn.
    n_sweeps : int or None
        Sweeps per step.
    """

    def __init__(self, moves, moves_per_visit, n_sweeps):
        self.weights = check_weights(DEFAULT_MOVES if moves is None else moves)
        self.per_visit = check_number("moves_per_visit", moves_per_visit, 1)
        self.n_sweeps = None if n_sweeps is None else check_number("n_sweeps", n_sweeps, 1)

    def statistics(self, forest):
        """Accepted shares."""
        more = ["accept_delayed"] if is_screened(forest) else []
        return dict.fromkeys([*(f"accept_{name}" for name in MOVES), *more], ())

    def update(self, rng, state: DelayedAcceptance | None, data):
        """Sweep the trees; adapt what delayed acceptance rests on."""
        forest, (problem, leaf) = data.forest, data.problem
        n, m = forest.layout.n_rows, forest.layout.m
        n_sweeps = self.n_sweeps or int(np.clip(ROWS // (n * m), 1, MOST))
        stop_flag = np.zeros(1, dtype=np.bool_)
        arguments: tuple = (self.weights, self.per_visit, n_sweeps, stop_flag)
        kernel = soft_sweeps
        if is_screened(forest):
            state = state or DelayedAcceptance.start(forest, leaf, data.level)
            if data.tuning:
                state = state.averaged(leaf.offset - data.level)
            screen = state.screen(leaf, forest.layout.max_nodes, data.level)
            undo = make_soft_trees(1, problem.trees.column.shape[1])
            kernel, arguments = screened_soft_sweeps, (screen, undo, *arguments)
        names = list(self.statistics(forest))
        run = partial(forest.call, kernel, rng, problem, leaf, *arguments)
        long = n * m * n_sweeps * self.per_visit > LONG
        accepted = accepted_shares(run, stop_flag, long, len(names))
        if accepted is None:
            raise forest.too_large()
        if state is not None and data.tuning:
            state = state.with_share(accepted.shares[-1])
        counts = {VISITS: m * n_sweeps, CHANGES: n_changes(MOVES, accepted.numbers[: len(MOVES)])}
        return state, dict(zip(names, accepted.shares, strict=True)) | counts


def check_weights(moves) -> np.ndarray:
    """Weights of the moves, in their order."""
    weights = read_weights(moves, list(MOVES))
    weights = weights / (weights.max() or 1.0)
    if (weights[[GROW, PRUNE, MOVES.index("bandwidth")]] == 0).any():
        raise ValueError(
            f"moves={dict(moves)}: grow, prune and bandwidth need positive weights, or the sampler "
            "could not reach every forest."
        )
    return weights / weights.sum()
