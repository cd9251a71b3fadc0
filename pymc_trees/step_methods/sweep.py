"""A sweep over a forest as a PyMC step: what every sampler of this package shares."""

from copy import deepcopy

import numpy as np
import pymc as pm

from pymc_trees.arguments import check_number
from pymc_trees.core.compile.announce import ANNOUNCER, kinds_of
from pymc_trees.core.compile.threads import available_threads, give_threads, taken_threads
from pymc_trees.core.compile.turns import in_turns
from pymc_trees.core.forest.trees import count_forest
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.outputs import log_likelihood_of
from pymc_trees.core.leaves.threaded import in_threads
from pymc_trees.core.moves.problem import Problem
from pymc_trees.distributions.capacity import ForestTooLargeError, too_small
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.step_methods.base import ForestStep
from pymc_trees.step_methods.parts.contract import Part
from pymc_trees.step_methods.parts.local_moves import (
    CHANGES_PER_VISIT,
    LocalMoves,
    changes_per_visit,
)
from pymc_trees.step_methods.parts.nuisances import Nuisances
from pymc_trees.targets.latent_target import LatentTarget


class SweepStep(ForestStep):
    """Unpack a forest, update it in compiled code, pack it again.

    Parameters
    ----------
    vars : list of variables, optional
        The forests.
    *parts : Part
        What a step does with each forest, in this order (Tierney 1994: a cycle of kernels).
    in_rounds : LocalMoves, optional
        The first part, if its sweeps are to be split into rounds with draws of the likelihoods'
        parameters in between (`Nuisances`).
    threads : int, optional
        Threads of a step on a large table; by default the cores that other chains leave.
    **options
        As for every step.
    """

    threads_left: int | None = None
    """Threads that other chains leave, where that is known."""

    def __init__(
        self, vars, *parts: Part, in_rounds: LocalMoves | None = None, threads=None, **options
    ):
        super().__init__(vars, **options)
        self.threads = None if threads is None else check_number("threads", threads, 1)
        self.parts = parts
        self._compiled: set[str] = set()
        model = without_dims(pm.modelcontext(options.get("model")))
        self.nuisances = Nuisances(model, self.forests, in_rounds)
        for forest in self.forests:
            for part in parts:
                part.prepare(forest)
        self.name_statistics(self._statistics)

    def _statistics(self, forest) -> dict[str, tuple]:
        p = forest.design.columns.shape[0]
        found: dict[str, tuple] = {
            name: (np.float64, part.shapes.get(name, []))
            for part in self.parts
            for name in part.statistics
        }
        found[CHANGES_PER_VISIT] = (np.float64, [])
        found |= {"n_leaves": (np.int64, []), "max_depth": (np.int64, [])}
        found |= {"variable_inclusion": (np.int64, [p]), "log_likelihood": (np.float64, [])}
        if isinstance(forest.target, LatentTarget):
            found["latent_precision"] = (np.float64, [])
        if forest.name in self.nuisances.laws:
            found[Nuisances.statistic] = (np.int64, [])
        return found

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before."""
        super().setup_chain(rng, tune, draws)
        give_threads(self.threads or self.threads_left)
        for part in self.parts:
            part.kept = {}
        self.nuisances.kept = {}

    @property
    def kept(self) -> dict:
        """Of the forests, and of the parts by their place among them."""
        parts = {f"part {k}": part.kept for k, part in enumerate(self.parts) if part.kept}
        if self.nuisances.kept:
            parts["nuisances"] = self.nuisances.kept
        return super().kept | parts

    @kept.setter
    def kept(self, kept):
        self.forget_forests()
        for k, part in enumerate(self.parts):
            part.kept = kept.get(f"part {k}", {})
        self.nuisances.kept = deepcopy(kept.get("nuisances", {}))

    def step(self, point):
        """Update every forest once."""
        point = dict(point)
        stats: dict = {}
        wanted = self.threads or self.threads_left or available_threads()
        with deferred_interrupts(), taken_threads(wanted) as n_threads:
            for forest in self.forests:
                point, one = self._update(forest, point, n_threads)
                stats |= {f"{key}{self.ending(forest)}": value for key, value in one.items()}
        return point, [stats]

    def _update(self, forest, point, n_threads):
        settings, seen = forest.target.at(point)
        arrays = forest.load(point[forest.value_name], settings.weights)
        forest.arrays = None  # stand for no value before the sweep is over
        fit, found, evaluations = arrays.fit, [], 0
        rounds = self.nuisances.rounds(forest)
        for n_sweeps in rounds:
            leaf, target = forest.target.leaf_data(settings, seen, fit, self.rng)
            if forest.directions is None:
                leaf = in_threads(leaf, n_threads)
            forest.aim = target
            problem = Problem(arrays.trees, forest.design, forest.prior(settings), leaf)
            self._compile(forest, problem)
            found.append(self._run(self.parts[0], forest, problem, *n_sweeps))
            if len(found) < len(rounds):
                fit = forest.fitted(leaf, arrays.trees)
                point, more = self.nuisances.draw(self.rng, forest, point, fit, self.tune)
                settings, seen = forest.target.at(point)
                evaluations += more
        others = [self._run(part, forest, problem) for part in self.parts[1:]]
        changes = changes_per_visit([*found, *others])
        stats: dict = {key: float(np.mean([one[key] for one in found])) for key in found[0]}
        for one in others:
            stats |= one
        stats[CHANGES_PER_VISIT] = changes
        value = forest.store(arrays.trees, settings.weights, n_threads)
        inclusion = np.zeros(forest.design.columns.shape[0], dtype=np.int64)
        stats["n_leaves"], stats["max_depth"] = forest.call(
            count_forest, arrays.trees, forest.work.nodes, inclusion
        )
        stats["variable_inclusion"] = inclusion
        stats["log_likelihood"] = forest.call(log_likelihood_of, leaf, arrays.trees)
        stats["log_likelihood"] += forest.target.log_scale(seen)
        if isinstance(forest.target, LatentTarget):
            stats["latent_precision"] = float(leaf.w.mean())
        if forest.name in self.nuisances.laws:
            stats[Nuisances.statistic] = evaluations
        return point | {forest.value_name: value}, stats

    def _compile(self, forest, problem):
        """Compile the kernels of a forest before its first update; chains share this.

        The last parts come first, since redraws take longer than moves.
        """
        if forest.name not in self._compiled:
            self._compiled.add(forest.name)
            with ANNOUNCER.together(f"samplers of trees ({kinds_of(problem)})"):
                parts = [part.compilation(self.rng, forest, problem) for part in self.parts[::-1]]
                in_turns([job for jobs in parts for job in jobs])

    def _run(self, part, forest, problem, *given):
        """Statistics of a part's update, or an error where the forest outgrew its pool."""
        found = part.update(self.rng, forest, problem, self.tune, *given)
        if found is None:
            raise ForestTooLargeError(too_small(forest.name, forest.layout))
        return found
