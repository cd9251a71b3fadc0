"""A piece of one chain, run in any process started by joblib."""

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import cloudpickle
import joblib
import pymc.sampling.mcmc as mcmc
from pymc.util import RandomGeneratorState, random_generator_from_state

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts
from pymc_trees.inference.chains.states import Left, put_back, state_of
from pymc_trees.processes import given_out, is_of_lost_process, make_parallel


class Task(NamedTuple):
    """Data that a process needs to run a piece of a chain."""

    step: bytes
    """The step methods, pickled once for all chains; they contain the model."""
    chain: int
    start: dict[str, Any]
    rng: RandomGeneratorState
    """State of the generator; a pickled generator would lose the seeds from which it spawns."""
    tune: int
    draws: int
    """Iterations after tuning."""
    keeps_tune: bool
    n: int
    """Iterations of this piece."""
    is_last: bool
    """Whether no pieces follow, of any chain."""
    goes_on: Left | None = None
    """End state of the previous piece, or of an earlier run of the chain."""


class Drawn(NamedTuple):
    """Result: points and statistics of the iterations that are kept."""

    chain: int
    points: list[dict[str, Any]]
    stats: list[list[dict[str, Any]]]
    error: BaseException | None
    """Error that ended the chain early."""
    state: Any = None
    """Result of `state_of` after the last iteration."""
    n_tuned: int = 0
    """Discarded tuning iterations before these."""
    tuned: Any = None
    """Point and statistics of the last of them."""


class _Points:
    """Replacement of PyMC's trace that stores draws."""

    def __init__(self, keeps_tune: bool):
        self.keeps_tune = keeps_tune
        self.points: list[dict[str, Any]] = []
        self.stats: list[list[dict[str, Any]]] = []
        self.n_tuned = 0
        self.tuned: Any = None

    def record(self, point, stats, *, in_warmup):
        """Store a draw."""
        if in_warmup and not self.keeps_tune:
            self.n_tuned, self.tuned = self.n_tuned + 1, (point, stats)
            return
        self.points.append(point)
        self.stats.append(stats)

    def close(self):
        """Nothing to be closed."""


def run_chain(task: Task) -> Drawn:
    """The iterations of a piece, as `pymc.sample` makes them."""
    kept = _Points(task.keeps_tune)
    error = state = None
    try:
        with deferred_interrupts() as held:
            step = _take_step(task)
            made = (
                _begin(step, task, kept)
                if task.goes_on is None
                else _go_on(step, task, task.goes_on, kept, held.answer)
            )
            with closing(made):
                for _ in islice(made, task.n):
                    pass
            state = state_of(step)
            _leave_step(task, step)
    except Exception as raised:
        raised.add_note(f"It was raised in chain {task.chain}.")
        error = _picklable(raised)
    return Drawn(task.chain, kept.points, kept.stats, error, state, kept.n_tuned, kept.tuned)


def _begin(step, task: Task, kept: _Points) -> Generator:
    """Draw from the starting point on."""
    return mcmc._iter_sample(
        draws=task.tune + task.draws,
        step=step,
        start=task.start,
        trace=kept,
        chain=task.chain,
        tune=task.tune,
        rng=random_generator_from_state(task.rng),
    )


def _go_on(step, task: Task, left: Left, kept: _Points, answer: Callable[[], None]) -> Generator:
    """Draw the continuation from the end state of a chain."""
    # As a chain in tuning, which some steps require; its state determines whether it still tunes.
    step.setup_chain(random_generator_from_state(task.rng), max(task.tune, 1), task.draws)
    put_back(step, left.state)
    point = {name: left.point[name] for name in task.start}  # PyMC relies on their order
    for k in range(task.n):
        answer()
        if k == left.tuning:
            step.stop_tuning()
        point, stats = step.step(point)
        kept.record(point, stats, in_warmup=left.tuning is not None and k < left.tuning)
        yield stats


_idle: dict[bytes, list] = {}
"""Compiled steps of a run, by their pickle, for its next pieces."""


def _take_step(task: Task) -> Any:
    """Step methods that no other thread uses at the same time."""
    digest = sha256(task.step).digest()
    if digest not in _idle:
        _idle.clear()  # of a run that was interrupted
    try:
        return _idle[digest].pop()
    except LookupError:
        return cloudpickle.loads(task.step)


def _leave_step(task: Task, step: Any) -> None:
    digest = sha256(task.step).digest()
    if task.is_last:
        _idle.pop(digest, None)
    else:
        _idle.setdefault(digest, []).append(step)


def _picklable(error: Exception) -> Exception:
    try:
        cloudpickle.loads(cloudpickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


# ----------- Tasks distributed by joblib, and again if a process ends before its chain is complete


ONE_BY_ONE = (False, False, True)
"""Attempts at chains: together, together again, and one by one, with all the memory."""


class RetryPool:
    """Context with joblib's processes for a run.

    Parameters
    ----------
    cores : int
        Chains at once, as joblib's ``n_jobs``.
    """

    def __init__(self, cores: int):
        self.cores = cores

    def __enter__(self):
        self.parallel = make_parallel(self.cores, ordered=False).__enter__()
        return self

    def __exit__(self, *error):
        self.parallel.__exit__(*error)

    def drawn(self, tasks: Sequence[Task]) -> Iterator[Drawn]:
        """Results of chains as they are completed; an error for a chain whose processes end."""
        left = {task.chain: task for task in tasks}
        for number, alone in enumerate(ONE_BY_ONE, 1):
            for group in [[task] for task in left.values()] if alone else [list(left.values())]:
                try:
                    for one in self._results(group):
                        del left[one.chain]
                        yield one
                except Exception as error:
                    if not is_of_lost_process(error):
                        raise
                    self.__exit__(None, None, None)
                    self.__enter__()
                    if alone:
                        yield Drawn(group[0].chain, [], [], error)
                        continue
                    then = ", one after the other" if ONE_BY_ONE[number] else ""
                    warnings.warn(
                        "A process ended before its chain was complete (it ran out of memory or "
                        f"was killed): the lost part of chains {sorted(left)} is drawn "
                        f"again{then}, with the same seeds.",
                        stacklevel=2,
                    )
            if not left:
                return

    def _results(self, tasks: list[Task]) -> Iterator[Drawn]:
        work = joblib.delayed(run_chain)
        results = given_out(self.parallel, (work(task) for task in tasks))
        try:
            while True:  # to the end of the results, or joblib would close its processes
                with answered_interrupts():
                    drawn = next(results, None)
                if drawn is None:
                    return
                yield drawn
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of chains that nobody waits for any more
                results.close()
