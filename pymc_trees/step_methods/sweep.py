"""A step of forests under PyMC: the state of each forest goes in, one sweep of kernels, comes out.

`SweepStep` is what PyMC calls. It keeps a `ChainState` for each forest and hands it to `update`,
which reads from top to bottom: evaluate the posterior at the point, unpack the value, run the
kernels in their order, pack the value. Nothing else changes between two steps.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from inspect import cleandoc
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_trees.arguments import check_number
from pymc_trees.core.compile.announce import ANNOUNCER, kinds_of
from pymc_trees.core.compile.threads import available_threads, give_threads, taken_threads
from pymc_trees.core.compile.turns import in_turns
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.contract import log_likelihood_of
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.step_methods.kernels.acceptance import CHANGES_PER_VISIT, changes_per_visit
from pymc_trees.step_methods.kernels.contract import Kernel, SweepData
from pymc_trees.step_methods.kernels.likelihood_parameters import (
    EVALUATIONS,
    LikelihoodParameters,
    Widths,
    without_repeats,
)
from pymc_trees.step_methods.kernels.local_moves import LocalMoves
from pymc_trees.step_methods.ridge_moves import RIDGE_SHIFT, RidgeMoves
from pymc_trees.step_methods.variables import HARD, Kind, forests_of
from pymc_trees.targets.forest_state import ForestState
from pymc_trees.targets.lift import Lift
from pymc_trees.targets.soft_forest_state import SoftForestState

OPTIONS = """\
model : pymc.Model, optional
    Default: the model on the context stack.
rng : numpy.random.Generator or seed, optional
    `pymc.sample` sets its own.
blocked, initial_point, compile_kwargs
    As `pymc.sample` passes them to every step."""
"""Parameters of every step, which stand in its docstring for ``{options}``."""


class ChainState(NamedTuple):
    """State of one forest in a chain."""

    kernels: Mapping[Kernel, Any]
    """What each kernel has adapted."""
    widths: Widths
    """Of the slices in which other parameters of its likelihood are drawn."""
    forest: ForestState | SoftForestState | None = None
    """None before the first step, and after an error."""


@dataclass_state
class SweepStepState(StepMethodState):
    """What a chain needs, besides its point, to continue exactly where it was."""

    tune: bool
    adapted: dict[str, Any] = field(default_factory=dict)


class SweepStep(BlockedStep):
    """Update each forest by a cycle of kernels (Tierney 1994).

    Parameters
    ----------
    vars : list of variables, optional
        The forests.
    *kernels : Kernel
        What a step does with each forest, in this order.
    in_rounds : bool, default False
        Whether the sweeps of the first kernel, a `LocalMoves`, are split into rounds with draws of
        the parameters of the likelihoods in between (`LikelihoodParameters`).
    threads : int, optional
        Threads of a step on a large table; by default the cores that other chains leave.
    model, rng, blocked, initial_point, compile_kwargs
        As in `OPTIONS`.
    """

    default_blocked = True
    finishes_iterations = True
    _state_class = SweepStepState
    kind: Kind = HARD
    suitability = Competence.COMPATIBLE
    """For forests of its kind: `IDEAL` for a step that ``pm.sample()`` assigns."""
    threads_left: int | None = None
    """Threads that other chains leave, where that is known."""

    def __init__(
        self,
        vars,
        *kernels: Kernel,
        in_rounds=False,
        threads=None,
        model=None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        model = pm.modelcontext(model)
        forests = forests_of(model, vars, self.kind)
        plain = without_dims(model)
        self.vars = [model.rvs_to_values[rv] for rv in forests]
        self.forests = [self.kind.data(plain, plain[rv.name]) for rv in forests]
        for forest in self.forests:
            for kernel in kernels:
                kernel.check(forest)
        self.several = sum(is_forest(rv) or is_soft_forest(rv) for rv in model.free_RVs) > 1
        self.threads = None if threads is None else check_number("threads", threads, 1)
        self.rng = get_random_generator(rng)
        self.tune = True
        self.kernels, self.in_rounds = kernels, in_rounds
        parameters = [LikelihoodParameters(plain, one) for one in self.forests if in_rounds]
        without_repeats(parameters)
        self.parameters = {one.forest.name: one for one in parameters if one.conditionals}
        of_ridges = []
        for k, (rv, forest) in enumerate(zip(forests, self.forests, strict=True)):
            others = [plain[other.name] for other in forests[:k]]
            of_ridges.append(RidgeMoves(plain, plain[rv.name], others, forest.target.free_level))
        self.ridges = {one.name: one for one in of_ridges if one.directions}
        self._compiled: set[str] = set()
        self.adapted = {}
        statistics = {
            f"{name}{self._ending(forest)}": what
            for forest in self.forests
            for name, what in self._statistics(forest).items()
        }
        # PyMC's NDArray makes room by the dtypes alone, so that they need the shapes too.
        self.stats_dtypes_shapes = statistics
        self.stats_dtypes = [
            {name: np.dtype((of, tuple(shape))) for name, (of, shape) in statistics.items()}
        ]

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__doc__:
            cls.__doc__ = cleandoc(cls.__doc__).replace("{options}", OPTIONS)

    def _statistics(self, forest) -> dict[str, tuple]:
        """Type and shape of each number per draw."""
        shapes: dict[str, Any] = {}
        for kernel in self.kernels:
            shapes |= kernel.statistics(forest)
        shapes |= dict.fromkeys((CHANGES_PER_VISIT, *forest.statistics, "log_likelihood"), ())
        if forest.target.statistic is not None:
            shapes[forest.target.statistic] = ()
        numbers: dict[str, tuple] = {k: (np.float64, list(shape)) for k, shape in shapes.items()}
        numbers |= {"n_leaves": (np.int64, []), "max_depth": (np.int64, [])}
        numbers["variable_inclusion"] = (np.int64, [forest.n_columns])
        if forest.name in self.parameters:
            numbers[EVALUATIONS] = (np.int64, [])
        if forest.name in self.ridges:
            numbers[RIDGE_SHIFT] = (np.float64, list(self.ridges[forest.name].shape))
        return numbers

    def _ending(self, forest) -> str:
        """What the names of a forest's statistics end in."""
        # By the forests of the model: two steps with a forest each must not share names either.
        return f"_{forest.name}" if self.several else ""

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        give_threads(self.threads or self.threads_left)
        for forest in self.forests:
            forest.check_inputs()
        for moves in self.ridges.values():
            moves.start()
        self.adapted = {}

    def step(self, point):
        """Update every forest once."""
        point = dict(point)
        stats: dict = {}
        wanted = self.threads or self.threads_left or available_threads()
        with deferred_interrupts(), taken_threads(wanted) as n_threads:
            for i, forest in enumerate(self.forests):
                state = self.states[i]
                self.states[i] = self._interrupted(state)  # stands if an error ends the update
                self.states[i], point, one = self.update(self.rng, state, forest, point, n_threads)
                stats |= {f"{name}{self._ending(forest)}": value for name, value in one.items()}
        return point, [stats]

    def update(
        self, rng, state: ChainState, forest, point: dict, n_threads: int
    ) -> tuple[ChainState, dict, dict]:
        """Sweep one forest: its new state, the point with its new value, statistics."""
        settings, numbers = forest.target.at(point)
        current = forest.load(state.forest, point[forest.value_name], settings, point)
        fit, widths = current.fit, state.widths
        states = dict(state.kernels)
        n_temperatures = max(k.n_temperatures(forest, of) for k, of in states.items())
        first, *others = self.kernels
        reports, evaluations = [], 0
        rounds = self._rounds(forest, n_temperatures)
        for n_sweeps in rounds:
            leaf, target = forest.target.leaf_data(settings, numbers, fit, rng)
            problem = forest.problem(settings, current, leaf, n_threads)
            data = SweepData(
                forest, problem, current.work, target, self.tune, states, n_sweeps, n_temperatures
            )
            if forest.name in self.ridges:
                level = self.ridges[forest.name].level(point)
                data = data._replace(level=level + forest.target.level(leaf))
            self._compile(data)
            states[first], report = first.update(rng, states[first], data)
            reports.append(report)
            if len(reports) < len(rounds):
                # the residual is faster, unless rounding would lose the outputs
                fit = forest.add_up(current.trees) if target is None else (target - leaf.r)[:, None]
                parameters = self.parameters[forest.name]
                widths, point, more = parameters.draw(rng, widths, point, fit, self.tune)
                settings, numbers = forest.target.at(point)
                evaluations += more
        for kernel in others:
            states[kernel], report = kernel.update(rng, states[kernel], data)
            reports.append(report)
        changes = changes_per_visit(reports)
        stats: dict[str, Any] = {}
        for report in (_mean_of(reports[: len(rounds)]), *reports[len(rounds) :]):
            stats |= report
        add_up = partial(forest.add_up, current.trees)
        of_all = forest.target.log_likelihood(problem.leaf, numbers, add_up)
        if of_all is None:
            of_all = forest.call(log_likelihood_of, problem.leaf, current.trees)
        stats["log_likelihood"] = of_all + forest.target.log_scale(numbers)
        if forest.name in self.ridges:
            point, stats[RIDGE_SHIFT] = self._along_ridges(rng, forest, current, settings, point)
        current = forest.store(current, settings, n_threads)
        stats |= forest.summary(current) | {CHANGES_PER_VISIT: changes}
        if forest.target.statistic is not None:
            stats[forest.target.statistic] = forest.target.value_of_statistic(leaf)
        if forest.name in self.parameters:
            stats[EVALUATIONS] = evaluations
        point = point | {forest.value_name: current.value}
        return ChainState(states, widths, current), point, stats

    def _along_ridges(self, rng, forest, current, settings, point) -> tuple[dict, np.ndarray]:
        """Move the level of a forest and what it trades places with: the point, the statistic."""
        moves = self.ridges[forest.name]
        number = {one.name: k for k, one in enumerate(self.forests)}
        loaded: dict[str, tuple] = {forest.name: (current, settings)}
        before: dict[str, ChainState] = {}

        def lift_of(name: str, output: int) -> Lift:
            if name not in loaded:
                other, k = self.forests[number[name]], number[name]
                of_other, _ = other.target.at(point)
                kept: Any = self.states[k]
                value = point[other.value_name]
                loaded[name] = other.load(kept.forest, value, of_other, point), of_other
                before[name], self.states[k] = kept, self._interrupted(kept)  # if an error ends it
            state, at = loaded[name]
            return Lift.of(state.trees, at, moves.leaves[name], output)

        point, risen, changed = moves.draw(rng, point, lift_of)
        for name, kept in before.items():
            k, (state, at) = number[name], loaded[name]
            state = self.forests[k].store(state, at) if name in changed else state
            self.states[k] = kept._replace(forest=state)
            point = point | {self.forests[k].value_name: state.value}
        return point, risen

    def _rounds(self, forest, n_temperatures: int) -> list:
        """Numbers of sweeps of the first kernel between draws of other parameters."""
        local = self.kernels[0]
        if forest.name not in self.parameters or not isinstance(local, LocalMoves):
            return [None]
        return self.parameters[forest.name].rounds(local.n_sweeps_of(forest, n_temperatures))

    def _compile(self, data: SweepData) -> None:
        """Compile the kernels of a forest before its first update; chains share this.

        The last kernels come first, since redraws take longer than moves.
        """
        if data.forest.name in self._compiled:
            return
        self._compiled.add(data.forest.name)
        jobs = [job for kernel in self.kernels[::-1] for job in kernel.compilation(self.rng, data)]
        if jobs:
            with ANNOUNCER.together(f"samplers of trees ({kinds_of(data.problem)})"):
                in_turns(jobs)

    # ------------------------------------------------------------------ States, stored and restored

    def _interrupted(self, state: ChainState) -> ChainState:
        """State after an error in an update, which changes the arrays of a forest in place."""
        kernels = {kernel: kernel.interrupted(of) for kernel, of in state.kernels.items()}
        return ChainState(kernels, state.widths)

    @property
    def adapted(self) -> dict[str, dict]:
        """What tuning has found, by forest: stored for resuming; forests follow from the point."""
        states = zip(self.forests, self.states, strict=True)
        return {
            forest.name: {
                "kernels": [kernel.stored(of) for kernel, of in state.kernels.items()],
                "widths": dict(state.widths),
            }
            for forest, state in states
        }

    @adapted.setter
    def adapted(self, stored: dict[str, dict]) -> None:
        self.states = []
        for forest in self.forests:
            state = ChainState(dict.fromkeys(self.kernels), {})
            if forest.name in stored:
                of = stored[forest.name]
                kernels = dict(zip(state.kernels, of["kernels"], strict=True))
                state = ChainState(kernels, of["widths"])
            self.states.append(state)

    def __getstate__(self):
        """State without the arrays of a chain, which the next point rebuilds."""
        return {k: v for k, v in self.__dict__.items() if k != "states"} | {"stored": self.adapted}

    def __setstate__(self, state):
        stored = state.pop("stored")
        self.__dict__.update(state)
        self.adapted = stored

    @classmethod
    def competence(cls, var, has_grad):
        """Forests of its kind only."""
        return cls.suitability if cls.kind.includes(var) else Competence.INCOMPATIBLE


def _mean_of(reports: list[dict]) -> dict:
    """Means of the statistics of some rounds."""
    if len(reports) == 1:
        return reports[0]
    return {name: float(np.mean([one[name] for one in reports])) for name in reports[0]}
