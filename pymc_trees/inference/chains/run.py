"""Chains distributed by joblib, piece by piece; pieces lost with their process are run again."""

import logging
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import cloudpickle
import joblib
import pymc as pm
import pymc.sampling.mcmc as mcmc
from pymc.util import RandomGeneratorState, get_state_from_generator, random_generator_from_state

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts
from pymc_trees.inference.chains.states import (
    POINT,
    STATE,
    Checkpoint,
    StoppedChain,
    remaining_tuning,
    restore_state,
    state_of,
)
from pymc_trees.processes import is_of_lost_process, make_parallel, run_tasks
from pymc_trees.progress import reporting


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
    resume_from: StoppedChain | None = None
    """End state of the previous piece, or of an earlier run of the chain."""


class ChainPiece(NamedTuple):
    """Points and statistics of the iterations of a piece that are kept."""

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


class _Recorder:
    """Stands in for PyMC's trace and stores draws."""

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
        """Do nothing: there is no file."""


def run_chain(task: Task) -> ChainPiece:
    """Run the iterations of a piece as `pymc.sample` does."""
    recorder = _Recorder(task.keeps_tune)
    error = state = None
    try:
        with deferred_interrupts() as held:
            step = _borrow_step(task)
            iterations = (
                _start(step, task, recorder)
                if task.resume_from is None
                else _continue(step, task, task.resume_from, recorder, held.answer)
            )
            with closing(iterations):
                for _ in islice(iterations, task.n):
                    pass
            state = state_of(step)
            _return_step(task, step)
    except Exception as exception:
        exception.add_note(f"Raised in chain {task.chain}.")
        error = _picklable(exception)
    return ChainPiece(
        task.chain, recorder.points, recorder.stats, error, state, recorder.n_tuned, recorder.tuned
    )


def _start(step, task: Task, recorder: _Recorder) -> Generator:
    """Iterate from the starting point."""
    return mcmc._iter_sample(
        draws=task.tune + task.draws,
        step=step,
        start=task.start,
        trace=recorder,
        chain=task.chain,
        tune=task.tune,
        rng=random_generator_from_state(task.rng),
    )


def _continue(
    step, task: Task, stopped: StoppedChain, recorder: _Recorder, answer: Callable[[], None]
) -> Generator:
    """Iterate from the end state of a chain."""
    # As a chain in tuning, which some steps require; its state determines whether it still tunes.
    step.setup_chain(random_generator_from_state(task.rng), max(task.tune, 1), task.draws)
    restore_state(step, stopped.state)
    point = {name: stopped.point[name] for name in task.start}  # PyMC relies on their order
    for k in range(task.n):
        answer()
        if k == stopped.tuning:
            step.stop_tuning()
        point, stats = step.step(point)
        recorder.record(point, stats, in_warmup=stopped.tuning is not None and k < stopped.tuning)
        yield stats


_idle: dict[bytes, list] = {}
"""Compiled steps of a run, by their pickle, for its next pieces."""


def _borrow_step(task: Task) -> Any:
    """Step methods that no other thread uses at the same time."""
    digest = sha256(task.step).digest()
    if digest not in _idle:
        _idle.clear()  # of a run that was interrupted
    try:
        return _idle[digest].pop()
    except LookupError:
        return cloudpickle.loads(task.step)


def _return_step(task: Task, step: Any) -> None:
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


# ----------------------------------------------------------- Pieces in processes, with new attempts


ONE_BY_ONE = (False, False, True)
"""Attempts: all chains together, twice, and then one by one, each with all the memory."""


class RetryPool:
    """Context manager of joblib's processes for a run; it replaces processes that end.

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

    def run(self, tasks: Sequence[Task]) -> Iterator[ChainPiece]:
        """Yield pieces as they are completed; one with an error where every attempt failed."""
        remaining = {task.chain: task for task in tasks}
        for attempt, one_by_one in enumerate(ONE_BY_ONE, 1):
            for group in (
                [[task] for task in remaining.values()]
                if one_by_one
                else [list(remaining.values())]
            ):
                try:
                    for piece in self._results(group):
                        del remaining[piece.chain]
                        yield piece
                except Exception as error:
                    if not is_of_lost_process(error):
                        raise
                    self.__exit__(None, None, None)
                    self.__enter__()
                    if one_by_one:
                        yield ChainPiece(group[0].chain, [], [], error)
                        continue
                    how = ", one after the other" if ONE_BY_ONE[attempt] else ""
                    warnings.warn(
                        "A process ended before its chain was complete (it ran out of memory or "
                        f"was killed): the lost part of chains {sorted(remaining)} is drawn "
                        f"again{how}, with the same seeds.",
                        stacklevel=2,
                    )
            if not remaining:
                return

    def _results(self, tasks: list[Task]) -> Iterator[ChainPiece]:
        run = joblib.delayed(run_chain)
        results = run_tasks(self.parallel, (run(task) for task in tasks))
        try:
            while True:  # to the end of the results, or joblib would close its processes
                with answered_interrupts():
                    piece = next(results, None)
                if piece is None:
                    return
                yield piece
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of chains that were given up
                results.close()


# ---------------------------------------------------------------------------- All chains of one run


RUNNER: ContextVar["Runner | None"] = ContextVar("runner of chains", default=None)
"""Runner that `pymc.sample` hands its chains to, if any."""

_log = logging.getLogger("pymc.sampling.mcmc")


class Runner:
    """Runs the chains of a `pymc.sample` with joblib.

    Parameters
    ----------
    cores : int
        Chains at once, as joblib's ``n_jobs``.
    progressbar : bool
        Whether to show how much of the chains has been drawn.
    checkpoint : Checkpoint, optional
        File written between pieces of the chains; without it each chain is one piece.
    read_stopped : callable, optional
        Function from the step methods to the end states of the chains, for a resumed run.
    """

    def __init__(
        self,
        cores: int,
        progressbar: bool,
        checkpoint: Checkpoint | None = None,
        read_stopped: Callable[[Any], list[StoppedChain]] | None = None,
    ):
        self.cores, self.progressbar = cores, progressbar
        self.checkpoint, self.read_stopped = checkpoint, read_stopped
        self.is_complete = False

    def sample(self, **options):
        """Call `pymc.sample` with these options and run its chains here."""
        token = RUNNER.set(self)
        _log.addFilter(_by_joblib)
        try:
            return pm.sample(cores=1, progressbar=False, **options)
        finally:
            _log.removeFilter(_by_joblib)
            RUNNER.reset(token)

    def finish(self, result):
        """Write the result to the checkpoint, unless the run was interrupted; return it."""
        if self.checkpoint is not None and self.is_complete:
            self.checkpoint.write(result)
        return result

    def __call__(self, *, draws, chains, traces, start, rngs, step, tune, **settings):
        """Run and record chains in place of `pymc.sampling.mcmc._sample_many`."""
        unfinished: dict[int, StoppedChain | None] = dict.fromkeys(range(chains))
        for k, stopped in enumerate(self.read_stopped(step) if self.read_stopped else []):
            _record_stopped(traces[k], start[k], stopped, tune)
            unfinished[k] = stopped
            if len(traces[k]) == draws:
                del unfinished[k]
        common = {
            "step": cloudpickle.dumps(step),
            "tune": tune,
            "draws": draws - tune,
            "keeps_tune": not settings.get("discard_tuned_samples", True),
        }
        every = draws if self.checkpoint is None else self.checkpoint.every
        errors: dict[int, BaseException] = {}
        try:
            with (
                RetryPool(self.cores) as pool,
                self._bar(sum(draws - len(traces[k]) for k in unfinished)) as advance,
            ):
                while unfinished:
                    n = {k: min(every, draws - len(traces[k])) for k in unfinished}
                    is_last = all(len(traces[k]) + n[k] == draws for k in unfinished)
                    tasks = [
                        Task(
                            chain=k,
                            start=start[k],
                            rng=get_state_from_generator(rngs[k]),
                            n=n[k],
                            is_last=is_last,
                            resume_from=stopped,
                            **common,
                        )
                        for k, stopped in unfinished.items()
                    ]
                    for piece in pool.run(tasks):
                        k = piece.chain
                        advance(n[k])
                        if piece.error is not None:
                            errors[k] = piece.error
                            del unfinished[k]
                            traces[k].draw_idx = 0  # of pieces before
                            continue
                        unfinished[k] = _record(traces[k], piece, tune)
                        if len(traces[k]) == draws:
                            del unfinished[k]
                    if unfinished and self.checkpoint is not None:
                        self.checkpoint.write_traces(traces, tune, settings)
        except KeyboardInterrupt:
            if not any(len(trace) for trace in traces):
                raise
            ended = sum(len(trace) == draws for trace in traces)
            warnings.warn(
                f"Interrupted: the result holds the {ended} of {chains} chains that were complete."
                if self.checkpoint is None
                else "Interrupted: the result holds each chain up to its last checkpoint; resume "
                "continues from there.",
                stacklevel=2,
            )
            return
        finally:
            for trace in traces:
                trace.close()
        recorded = chains - len(errors)
        if errors and not recorded:
            raise next(iter(errors.values()))
        self.is_complete = True
        for chain, error in sorted(errors.items()):
            warnings.warn(
                f"A chain failed and is left out: chain {chain}, {type(error).__name__}: "
                f"{error}\nThe result holds {recorded} of {chains} chains.",
                stacklevel=2,
            )

    @contextmanager
    def _bar(self, iterations: int) -> Iterator[Callable[[int], None]]:
        """Function that reports further iterations of any chain."""
        done = 0

        def further(n):
            nonlocal done
            done += n
            report(done)

        with reporting("Iterations", iterations, self.progressbar) as report:
            yield further


def _by_joblib(record: logging.LogRecord) -> bool:
    """Name joblib in PyMC's message on sequential sampling."""
    record.msg = re.sub(
        r"^Sequential sampling \((\d+ chains?) .*", r"Chains by joblib (\1)", record.msg
    )
    return True


def _record(trace, piece: ChainPiece, tune: int) -> StoppedChain:
    """Record a piece of a chain and its end state, as if it had been drawn here.

    Of discarded tuning iterations only the last is recorded.
    """
    for _ in range(piece.n_tuned):
        trace.record(*piece.tuned, in_warmup=True)
    for point, stats in zip(piece.points, piece.stats, strict=True):
        trace.record(point, stats, in_warmup=len(trace) < tune)
    last = piece.points[-1] if piece.points else piece.tuned[0]
    setattr(trace, STATE, piece.state)
    setattr(trace, POINT, last)
    return StoppedChain(piece.state, last, remaining_tuning(len(trace), tune))


def _record_stopped(trace, start: dict[str, Any], stopped: StoppedChain, tune: int) -> None:
    """Record draws or tuning iterations by which a chain is ahead of the slowest one."""
    iterations = [({name: point[name] for name in start}, stats) for point, stats in stopped.ahead]
    if stopped.tuning is not None and not iterations:
        no_stats: list[dict[str, Any]] = [{} for _ in trace.sampler_vars]
        iterations = [({name: stopped.point[name] for name in start}, no_stats)] * (
            tune - stopped.tuning
        )
    for point, stats in iterations:
        trace.record(point, stats, in_warmup=len(trace) < tune)
    setattr(trace, STATE, stopped.state)
    setattr(trace, POINT, stopped.point)
