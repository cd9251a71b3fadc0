"""One chain, in whatever process joblib starts it in."""

from collections.abc import Callable
from typing import Any, NamedTuple

import cloudpickle
import pymc.sampling.mcmc as mcmc
from pymc.util import RandomGeneratorState, random_generator_from_state

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.inference.chains.left import Left, state_of


class Task(NamedTuple):
    """What a process needs to know to run a chain."""

    step: bytes
    """The step methods, pickled once for all chains: they hold the model."""
    chain: int
    start: dict[str, Any]
    rng: RandomGeneratorState
    """Of the generator; pickled itself it would forget the seeds that it spawns from."""
    tune: int
    draws: int
    """Iterations after those that tune."""
    keeps_tune: bool
    goes_on: Left | None = None
    """Where an earlier run of the chain stopped, if it is to go on there."""


class Drawn(NamedTuple):
    """What comes back: points and statistics, of the last iterations or of all."""

    chain: int
    points: list[dict[str, Any]]
    stats: list[list[dict[str, Any]]]
    error: BaseException | None
    """What ended the chain before its time."""
    state: Any = None
    """What `state_of` gives after the last iteration."""


class _Points:
    """Stands where PyMC has a trace, and keeps what it is given."""

    def __init__(self, task: Task):
        self.task = task
        self.points: list[dict[str, Any]] = []
        self.stats: list[list[dict[str, Any]]] = []

    def record(self, point, stats, *, in_warmup):
        """Keep a draw."""
        if in_warmup and not self.task.keeps_tune:
            return
        self.points.append(point)
        self.stats.append(stats)

    def close(self):
        """Nothing to be closed."""


def run_chain(task: Task) -> Drawn:
    """All iterations of a chain, as `pymc.sample` makes them."""
    kept = _Points(task)
    error = state = None
    try:
        with deferred_interrupts() as held:
            step = cloudpickle.loads(task.step)
            if task.goes_on is None:
                _begin(step, task, kept)
            else:
                _go_on(step, task, task.goes_on, kept, held.answer)
            state = state_of(step)
    except Exception as raised:
        raised.add_note(f"It was raised in chain {task.chain}.")
        error = _picklable(raised)
    return Drawn(task.chain, kept.points, kept.stats, error, state)


def _begin(step, task: Task, kept: _Points) -> None:
    """Draw from the starting point on."""
    made = mcmc._iter_sample(
        draws=task.tune + task.draws,
        step=step,
        start=task.start,
        trace=kept,
        chain=task.chain,
        tune=task.tune,
        rng=random_generator_from_state(task.rng),
    )
    for _ in made:
        pass


def _go_on(step, task: Task, left: Left, kept: _Points, answer: Callable[[], None]) -> None:
    """Draw what follows on the state that a chain was left in."""
    step.setup_chain(random_generator_from_state(task.rng), 0, task.draws)
    step.sampling_state = left.state
    for point, stats in left.ahead:
        kept.record({name: point[name] for name in task.start}, stats, in_warmup=False)
    point = {name: left.point[name] for name in task.start}  # PyMC goes by their order
    for _ in range(task.draws - len(left.ahead)):
        answer()
        point, stats = step.step(point)
        kept.record(point, stats, in_warmup=False)


def _picklable(error: Exception) -> Exception:
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
