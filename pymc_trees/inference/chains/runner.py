"""Chains given out through joblib, and what becomes of those that do not come back."""

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

from pymc_trees.inference.chains.left import STATE, Left
from pymc_trees.inference.chains.task import Drawn, Task
from pymc_trees.inference.chains.tries import Tries

RUNNER: ContextVar["Runner | None"] = ContextVar("runner of chains", default=None)
"""What `pymc.sample` is to give its chains to, if anything."""

_log = logging.getLogger("pymc.sampling.mcmc")


class Runner:
    """Runs the chains of a `pymc.sample` with joblib.

    Parameters
    ----------
    cores : int
        Chains at once, as joblib's ``n_jobs``.
    progressbar : bool
        Whether to show how many chains there are.
    goes_on : callable, optional
        From the step methods to where each chain stopped, in their order, for a run that goes on.
    """

    def __init__(
        self,
        cores: int,
        progressbar: bool,
        goes_on: Callable[[Any], list[Left]] | None = None,
    ):
        self.cores, self.progressbar, self.goes_on = cores, progressbar, goes_on

    def sample(self, **options):
        """`pymc.sample` with these options, its chains run here."""
        token = RUNNER.set(self)
        _log.addFilter(_by_joblib)
        try:
            return pm.sample(cores=1, progressbar=False, **options)
        finally:
            _log.removeFilter(_by_joblib)
            RUNNER.reset(token)

    def __call__(self, *, draws, chains, traces, start, rngs, step, tune, **settings):
        """Chains as `pymc.sampling.mcmc._sample_many` would make them, recorded in the traces."""
        left = [None] * chains if self.goes_on is None else self.goes_on(step)
        pickled = cloudpickle.dumps(step)
        keeps_tune = not settings.get("discard_tuned_samples", True)
        tasks = [
            Task(
                pickled,
                k,
                start[k],
                get_state_from_generator(rngs[k]),
                tune,
                draws - tune,
                keeps_tune,
                left[k],
            )
            for k in range(chains)
        ]
        errors: dict[int, BaseException] = {}
        recorded = 0
        try:
            with Tries(self.cores) as tries, self._bar(chains) as advance:
                for drawn in tries.drawn(tasks):
                    advance()
                    if drawn.error is not None:
                        errors[drawn.chain] = drawn.error
                        continue
                    _record(traces[drawn.chain], drawn, tasks[drawn.chain])
                    recorded += 1
        except KeyboardInterrupt:
            if not recorded:
                raise
            warnings.warn(
                f"Interrupted: the result holds the {recorded} of {chains} chains that had ended.",
                stacklevel=2,
            )
            return
        if errors and not recorded:
            raise next(iter(errors.values()))
        for chain, error in sorted(errors.items()):
            warnings.warn(
                "A chain ended in an error and is left out: "
                f"chain {chain}, {type(error).__name__}: {error}\n"
                f"The result holds {recorded} of {chains} chains.",
                stacklevel=2,
            )

    @contextmanager
    def _bar(self, chains: int) -> Iterator[Callable[[], None]]:
        """What shows that one more chain has ended."""
        with Progress(transient=True, disable=not self.progressbar) as progress:
            bar = progress.add_task("Chains", total=chains)
            yield lambda: progress.advance(bar)


def _by_joblib(record: logging.LogRecord) -> bool:
    """Say who runs the chains, where PyMC says that it does, one after the other."""
    record.msg = re.sub(
        r"^Sequential sampling \((\d+ chains?) .*", r"Chains by joblib (\1)", record.msg
    )
    return True


def _record(trace, drawn: Drawn, task: Task) -> None:
    """Record a chain as if it had been drawn here; tuning that is thrown away is its start."""
    if not task.keeps_tune:
        for _ in range(task.tune):
            trace.record(task.start, drawn.stats[0], in_warmup=True)
    first = 0 if task.keeps_tune else task.tune
    for number, (point, stats) in enumerate(zip(drawn.points, drawn.stats, strict=True), first):
        trace.record(point, stats, in_warmup=number < task.tune)
    trace.close()
    setattr(trace, STATE, drawn.state)
