"""Tasks distributed by joblib, and again if a process ends before its chain is complete."""

import warnings
from collections.abc import Iterator, Sequence

import joblib

from pymc_trees.core.interrupts import answered_interrupts
from pymc_trees.inference.chains.task import Drawn, Task, run_chain
from pymc_trees.processes import given_out, is_of_lost_process, make_parallel

ONE_BY_ONE = (False, False, True)
"""Attempts at chains: together, together again, and one by one, with all the memory."""


class Tries:
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
