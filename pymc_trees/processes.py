"""Work distributed by joblib, which cannot recall tasks that are starting.

What its backends do differs. loky and Dask hand results over as they come, multiprocessing and Ray
all at the end. A process that ends in the middle of a task is an error with loky and with Ray; Dask
gives the task to another worker, three times by default.
"""

from collections.abc import Generator, Iterator
from typing import Any

import joblib

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts

LOST = {"BrokenProcessPool", "KilledWorker", "RayActorError", "OutOfMemoryError"}
"""Names of what loky, Dask and Ray raise for a process that has ended."""


def is_of_lost_process(error: BaseException) -> bool:
    """Whether an error says that a process ended before its task had."""
    return any(kind.__name__ in LOST for kind in type(error).__mro__)


def make_parallel(cores: int, ordered: bool = True) -> joblib.Parallel:
    """What gives out tasks, one at a time, and whose results come as early as they can.

    Parameters
    ----------
    cores : int
        As joblib's ``n_jobs``.
    ordered : bool
        Whether results come in the order of their tasks.
    """
    # No memory maps: another machine could not read them, and kernels would be compiled again for
    # arrays that cannot be written.
    settings: dict[str, Any] = {"n_jobs": cores, "batch_size": 1, "max_nbytes": None}
    try:
        kind = "generator" if ordered else "generator_unordered"
        parallel = joblib.Parallel(return_as=kind, **settings)
    except ValueError:  # a backend that gives all results at the end
        return joblib.Parallel(**settings)
    if type(parallel._backend).__name__ == "DaskDistributedBackend":
        _mend(parallel._backend)
    return parallel


def shares_cores(cores: int) -> bool:
    """Whether joblib tells its processes, so many at once, which share of the cores they have."""
    return joblib.Parallel(n_jobs=cores)._backend.supports_inner_max_num_threads


def given_out(parallel: joblib.Parallel, tasks: Iterator) -> Generator:
    """Results of the tasks; an interrupt waits until all processes have started.

    Where all results come at the end it does not wait.
    """
    if not parallel.return_generator:
        with answered_interrupts():
            return (result for result in parallel(tasks))  # made here, before the first is asked
    with deferred_interrupts() as held:
        try:
            return parallel(tasks)
        except Exception:
            held.answer()  # it may have ended a process, which is then what joblib complains of
            raise


def _mend(dask: Any) -> None:
    """Mend three things of joblib's backend for Dask (1.6.0).

    It does not tell joblib of a task that Dask gives up, for which joblib then waits for ever.
    Where a cluster has one worker, or one is left, joblib runs the tasks in this process. And where
    none is left, it gives up after ten seconds, while others are starting.
    """
    if "submit" in vars(dask):
        return
    submit, count = dask.submit, dask.effective_n_jobs

    def submit_and_tell(task, callback=None):
        def tell(done):
            if done.exception() is not None:
                callback(done.exception())

        future = submit(task, callback)
        future.add_done_callback(tell)
        return future

    def count_some(n_jobs):
        found = count(n_jobs)
        dask.wait_for_workers_timeout = 0  # there have been workers: tasks wait for others
        return max(2, found)

    dask.submit, dask.effective_n_jobs = submit_and_tell, count_some
