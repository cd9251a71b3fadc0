"""Work given to joblib's processes, which joblib cannot take back while it starts them."""

from collections.abc import Iterator

import joblib

from pymc_trees.core.interrupts import deferred_interrupts


def given_out(parallel: joblib.Parallel, tasks: Iterator):
    """Results of the tasks; an interrupt waits until all processes have started."""
    with deferred_interrupts() as held:
        try:
            return parallel(tasks)
        except Exception:
            held.answer()  # it may have ended a process, which is then what joblib complains of
            raise
