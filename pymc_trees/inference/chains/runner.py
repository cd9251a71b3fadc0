"""Chains given out through joblib, and what becomes of those that do not come back."""

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from typing import Any

import cloudpickle
import joblib
import pymc as pm
from pymc.util import get_state_from_generator
from rich.progress import track

from pymc_trees.core.interrupts import answered_interrupts
from pymc_trees.inference.chains.left import STATE, Left
from pymc_trees.inference.chains.task import Drawn, Task, run_chain
from pymc_trees.inference.processes import given_out

RUNNER: ContextVar["Runner | None"] = ContextVar("runner of chains", default=None)
"""What `pymc.sample` is to give its chains to, if anything."""

_log = logging.getLogger("pymc.sampling.mcmc")

TRIES = 2
"""How often a chain is begun whose process ends."""


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
        tasks = {
            k: Task(
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
        }
        errors: dict[int, BaseException] = {}
        recorded = 0
        try:
            for drawn in self._each(tasks):
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

    def _each(self, tasks: dict[int, Task]) -> Iterator[Drawn]:
        """Chains as they end; those that a process took with it are begun again."""
        left, tries = dict(tasks), 0
        while left:
            tries += 1
            try:
                for drawn in self._given_out(list(left.values()), len(tasks)):
                    del left[drawn.chain]
                    yield drawn
            except BrokenProcessPool as error:
                if tries == TRIES:
                    yield from (Drawn(chain, [], [], error) for chain in left)
                    return
                warnings.warn(
                    "A process ended before its chain had (memory ran out, or it was killed): "
                    f"chains {sorted(left)} are begun again, with the same seeds.",
                    stacklevel=2,
                )

    def _given_out(self, tasks: list[Task], total: int) -> Iterator[Drawn]:
        # No memory maps of pickled steps: a machine of its own could not read them.
        parallel = joblib.Parallel(
            n_jobs=self.cores, batch_size=1, return_as="generator_unordered", max_nbytes=None
        )
        work = joblib.delayed(run_chain)
        results = given_out(parallel, (work(task) for task in tasks))
        shown = track(
            range(total - len(tasks), total),
            "Chains",
            total=total,
            completed=total - len(tasks),
            transient=True,
            disable=not self.progressbar,
        )
        try:
            for _ in shown:
                with answered_interrupts():
                    drawn = next(results)
                yield drawn
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of chains that nobody waits for any more
                results.close()


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
