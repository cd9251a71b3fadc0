"""Chains distributed by joblib, piece by piece, and handling of failures."""

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import cloudpickle
import pymc as pm
from pymc.util import get_state_from_generator
from rich.progress import Progress

from pymc_trees.inference.chains.checkpoint import Checkpoint
from pymc_trees.inference.chains.states import POINT, STATE, Left, tuning_left
from pymc_trees.inference.chains.task import Drawn, RetryPool, Task

RUNNER: ContextVar["Runner | None"] = ContextVar("runner of chains", default=None)
"""Runner to which `pymc.sample` passes its chains, if any."""

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
        File written between pieces of the chains; without it each is drawn in one piece.
    goes_on : callable, optional
        Function from the step methods to the end states of the chains, for a resumed run.
    """

    def __init__(
        self,
        cores: int,
        progressbar: bool,
        checkpoint: Checkpoint | None = None,
        goes_on: Callable[[Any], list[Left]] | None = None,
    ):
        self.cores, self.progressbar = cores, progressbar
        self.checkpoint, self.goes_on = checkpoint, goes_on
        self.is_complete = False

    def sample(self, **options):
        """`pymc.sample` with these options, its chains run here."""
        token = RUNNER.set(self)
        _log.addFilter(_by_joblib)
        try:
            return pm.sample(cores=1, progressbar=False, **options)
        finally:
            _log.removeFilter(_by_joblib)
            RUNNER.reset(token)

    def finish(self, result):
        """The result, written to the checkpoint too unless an interrupt left the run unfinished."""
        if self.checkpoint is not None and self.is_complete:
            self.checkpoint.write(result)
        return result

    def __call__(self, *, draws, chains, traces, start, rngs, step, tune, **settings):
        """Chains as `pymc.sampling.mcmc._sample_many` would make them, recorded in the traces."""
        waiting: dict[int, Left | None] = dict.fromkeys(range(chains))
        for k, one in enumerate(self.goes_on(step) if self.goes_on else []):
            _record_left(traces[k], start[k], one, tune)
            waiting[k] = one
            if len(traces[k]) == draws:
                del waiting[k]
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
                RetryPool(self.cores) as tries,
                self._bar(sum(draws - len(traces[k]) for k in waiting)) as advance,
            ):
                while waiting:
                    n = {k: min(every, draws - len(traces[k])) for k in waiting}
                    is_last = all(len(traces[k]) + n[k] == draws for k in waiting)
                    tasks = [
                        Task(
                            chain=k,
                            start=start[k],
                            rng=get_state_from_generator(rngs[k]),
                            n=n[k],
                            is_last=is_last,
                            goes_on=one,
                            **common,
                        )
                        for k, one in waiting.items()
                    ]
                    for drawn in tries.drawn(tasks):
                        k = drawn.chain
                        advance(n[k])
                        if drawn.error is not None:
                            errors[k] = drawn.error
                            del waiting[k]
                            traces[k].draw_idx = 0  # of pieces before
                            continue
                        waiting[k] = _record(traces[k], drawn, tune)
                        if len(traces[k]) == draws:
                            del waiting[k]
                    if waiting and self.checkpoint is not None:
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
        with Progress(transient=True, disable=not self.progressbar) as progress:
            bar = progress.add_task("Chains", total=iterations)
            yield lambda n: progress.advance(bar, n)


def _by_joblib(record: logging.LogRecord) -> bool:
    """Log who runs the chains, instead of PyMC's message on sequential sampling."""
    record.msg = re.sub(
        r"^Sequential sampling \((\d+ chains?) .*", r"Chains by joblib (\1)", record.msg
    )
    return True


def _record(trace, drawn: Drawn, tune: int) -> Left:
    """Record a piece of a chain as if it had been drawn here, and its end state.

    Of discarded tuning iterations only the last is recorded.
    """
    for _ in range(drawn.n_tuned):
        trace.record(*drawn.tuned, in_warmup=True)
    for point, stats in zip(drawn.points, drawn.stats, strict=True):
        trace.record(point, stats, in_warmup=len(trace) < tune)
    last = drawn.points[-1] if drawn.points else drawn.tuned[0]
    setattr(trace, STATE, drawn.state)
    setattr(trace, POINT, last)
    return Left(drawn.state, last, tuning_left(len(trace), tune))


def _record_left(trace, start: dict[str, Any], left: Left, tune: int) -> None:
    """Record draws or tuning iterations by which a chain is ahead of the slowest one."""
    rows = [({name: point[name] for name in start}, stats) for point, stats in left.ahead]
    if left.tuning is not None and not rows:
        nothing: list[dict[str, Any]] = [{} for _ in trace.sampler_vars]
        rows = [({name: left.point[name] for name in start}, nothing)] * (tune - left.tuning)
    for point, stats in rows:
        trace.record(point, stats, in_warmup=len(trace) < tune)
    setattr(trace, STATE, left.state)
    setattr(trace, POINT, left.point)
