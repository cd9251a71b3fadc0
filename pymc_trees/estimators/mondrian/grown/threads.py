"""A function on many tuples of arguments, in threads where that pays."""

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from pymc_trees.core.interrupts import deferred_interrupts, run_apart

WORTH_A_THREAD = 2000
"""Rows times trees below which starting threads takes longer than the work."""
LONG = 50_000
"""Rows times trees beyond which an interrupt cannot wait for the work: some tenths of a second."""


def jobs_for(n_jobs, work):
    """How many threads some work is worth; raises ValueError for a number joblib does not take.

    To be asked in the thread of the caller, whose settings of joblib count.
    """
    return 1 if work < WORTH_A_THREAD else effective_n_jobs(n_jobs)


def run_all(function, tasks, jobs):
    """Results of a function on each tuple of arguments; an interrupt waits for all of them."""
    with deferred_interrupts():
        return _results(function, tasks, jobs)


def run(function, tasks, work, jobs, cease=None):
    """Results of a function on each tuple of arguments; an interrupt waits for tasks begun.

    ``cease``, an array of one entry, is set for these tasks to see: they may end sooner. Nothing
    runs any more when the interrupt comes.
    """
    if jobs == 1 and work <= LONG:
        return run_all(function, tasks, jobs)
    cease = np.zeros(1, dtype=np.bool_) if cease is None else cease

    def one(*task):
        return None if cease[0] else function(*task)

    return run_apart(lambda: _results(one, tasks, jobs), cease)


def _results(function, tasks, jobs):
    if jobs == 1:
        return [function(*task) for task in tasks]
    return Parallel(n_jobs=jobs, require="sharedmem")(delayed(function)(*task) for task in tasks)
