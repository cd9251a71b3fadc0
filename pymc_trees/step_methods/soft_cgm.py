"""`SoftCGM`: Metropolis-Hastings on sums of soft trees."""

import numpy as np
from pymc.step_methods.compound import Competence

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.outputs import log_likelihood_of
from pymc_trees.core.soft_forest.sweep import count_trees
from pymc_trees.distributions.capacity import ForestTooLargeError, soft_too_small
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.step_methods.base import SOFT, ForestStep
from pymc_trees.step_methods.parts.local_moves import CHANGES_PER_VISIT, changes_per_visit
from pymc_trees.step_methods.parts.soft_moves import SoftMoves
from pymc_trees.targets.latent_target import LatentTarget
from pymc_trees.targets.soft_forest_state import WorkingSoftForest


class SoftCGM(ForestStep):
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
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

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
    working = WorkingSoftForest

    def __init__(self, vars=None, moves=None, moves_per_visit=3, n_sweeps=None, **options):
        super().__init__(vars, **options)
        self.moves = SoftMoves(moves, moves_per_visit, n_sweeps)
        self.name_statistics(self._statistics)

    def _statistics(self, forest) -> dict[str, tuple]:
        numbers = [*self.moves.statistics(forest), "mean_bandwidth", "log_likelihood"]
        numbers.append(CHANGES_PER_VISIT)
        if isinstance(forest.target, LatentTarget):
            numbers.append("latent_precision")
        found: dict[str, tuple] = dict.fromkeys(numbers, (np.float64, []))
        found |= {"n_leaves": (np.int64, []), "max_depth": (np.int64, [])}
        return found | {"variable_inclusion": (np.int64, [len(forest.hard)])}

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before."""
        super().setup_chain(rng, tune, draws)
        self.moves.kept = {}

    @property
    def kept(self) -> dict:
        """Of the forests, and what tuning has learnt."""
        return super().kept | ({"moves": self.moves.kept} if self.moves.kept else {})

    @kept.setter
    def kept(self, kept):
        self.forget_forests()
        self.moves.kept = kept.get("moves", {})

    def step(self, point):
        """Update every forest."""
        point = dict(point)
        stats: dict = {}
        with deferred_interrupts():
            for forest in self.forests:
                value, one = self._update(forest, point)
                point[forest.value_name] = value
                stats |= {f"{key}{self.ending(forest)}": number for key, number in one.items()}
        return point, [stats]

    def _update(self, forest, point):
        """New value of a forest, and the statistics."""
        settings, seen = forest.target.at(point)
        arrays = forest.load(point[forest.value_name])
        forest.arrays = None  # stand for no value before the sweeps are over
        trees = arrays.trees
        leaf, _ = forest.target.leaf_data(settings, seen, arrays.fit, self.rng)
        problem = forest.problem(settings, trees)
        stats = self.moves.update(self.rng, forest, problem, leaf, self.tune)
        if stats is None:
            raise ForestTooLargeError(soft_too_small(forest.name, forest.layout))
        stats[CHANGES_PER_VISIT] = changes_per_visit([stats])
        value = forest.store(trees)
        inclusion = np.zeros(len(forest.hard), dtype=np.int64)
        stats["n_leaves"], stats["max_depth"] = forest.call(count_trees, trees, inclusion)
        stats["variable_inclusion"] = inclusion
        split = trees.bandwidth[trees.size > 1]
        stats["mean_bandwidth"] = float(split.mean()) if split.size else np.nan
        stats["log_likelihood"] = forest.call(log_likelihood_of, leaf, trees)
        stats["log_likelihood"] += forest.target.log_scale(seen)
        if isinstance(forest.target, LatentTarget):
            stats["latent_precision"] = float(leaf.w.mean())
        return value, stats

    @staticmethod
    def competence(var, has_grad):
        """Best for sums of soft trees."""
        return Competence.IDEAL if is_soft_forest(var) else Competence.INCOMPATIBLE
