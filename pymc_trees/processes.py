"""Tasks in processes of joblib, which cannot cancel tasks that are starting.

Its backends differ. loky and Dask return results as they are completed, multiprocessing and Ray all
at the end. A process that ends during a task is an error with loky and Ray; Dask reassigns the task
to another worker, three times by default.
"""

from collections.abc import Generator, Iterator
from typing import Any

import joblib

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts

LOST = {"BrokenProcessPool", "KilledWorker", "RayActorError", "OutOfMemoryError"}
"""Names of the exceptions of loky, Dask and Ray for a process that has ended."""


def is_of_lost_process(error: BaseException) -> bool:
    """Whether an error means that a process ended before its task."""
    return any(kind.__name__ in LOST for kind in type(error).__mro__)


def make_parallel(cores: int, ordered: bool = True) -> joblib.Parallel:
    """Make a Parallel object that hands out single tasks and returns results early.

    Parameters
    ----------
    cores : int
        As joblib's ``n_jobs``.
    ordered : bool
        Whether results come in the order of their tasks.
    """
    # No memory maps: other machines could not read them, and kernels would be recompiled for
    # read-only arrays.
    settings: dict[str, Any] = {"n_jobs": cores, "batch_size": 1, "max_nbytes": None}
    try:
        kind = "generator" if ordered else "generator_unordered"
        parallel = joblib.Parallel(return_as=kind, **settings)
    except ValueError:  # a backend that returns all results at the end
        return joblib.Parallel(**settings)
    if type(parallel._backend).__name__ == "DaskDistributedBackend":
        _patch_dask(parallel._backend)
    return parallel


def shares_cores(cores: int) -> bool:
    """Whether joblib limits the cores of each of a number of processes."""
    return joblib.Parallel(n_jobs=cores)._backend.supports_inner_max_num_threads


def run_tasks(parallel: joblib.Parallel, tasks: Iterator) -> Generator:
    """Yield the results of tasks; an interrupt waits until all processes have started.

    It does not wait with a backend that returns all results at the end.
    """
    if not parallel.return_generator:
        with answered_interrupts():
            return (result for result in parallel(tasks))  # created before the first request
    with deferred_interrupts() as held:
        try:
            return parallel(tasks)
        except Exception:
            held.answer()  # it may have ended a process, which joblib then reports
            raise


def _patch_dask(dask: Any) -> None:
    """Work around three problems of joblib's backend for Dask (1.6.0).

    It does not report a task that Dask gives up to joblib, which then waits forever. If a cluster
    has one worker, or one is left, joblib runs the tasks in the calling process. If none is left,
    it gives up after ten seconds, while others are starting.
    """
    if "submit" in vars(dask):
        return
    submit, count = dask.submit, dask.effective_n_jobs

    def submit_and_report(task, callback=None):
        def report(completed):
            if completed.exception() is not None:
                callback(completed.exception())

        future = submit(task, callback)
        future.add_done_callback(report)
        return future

    def count_workers(n_jobs):
        workers = count(n_jobs)
        dask.wait_for_workers_timeout = 0  # there have been workers: tasks wait for new ones
        return max(2, workers)

    dask.submit, dask.effective_n_jobs = submit_and_report, count_workers
