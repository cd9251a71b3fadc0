"""Where chains run: in this process, or in those of joblib. The draws are the same."""

import hashlib
from collections.abc import Sequence

import cloudpickle
import joblib
import numpy as np

from pymc_trees.inference.dcc.local import LocalChain, LocalRun, Refit, refit, visit, warm_up
from pymc_trees.inference.dcc.soft_posterior import SoftPosterior
from pymc_trees.processes import given_out, make_parallel

_POSTERIORS: dict[str, SoftPosterior] = {}
"""Of the model a worker process is at; compiled functions cannot be sent."""


def run_task(posterior: SoftPosterior, task: tuple) -> LocalRun:
    """Warm up at a `Start`, adapt a `Refit`, or visit a `LocalChain`: a label, this, a number."""
    label, what, n = task
    if isinstance(what, LocalChain):
        return visit(posterior, label, what, n)
    if isinstance(what, Refit):
        return refit(posterior, label, what, n)
    rng = np.random.default_rng(what.seed)
    return warm_up(posterior, label, rng, n, what.donors, repeats=False)


def _work(pickled: bytes, digest: str, task: tuple) -> LocalRun:
    if digest not in _POSTERIORS:
        _POSTERIORS.clear()
        _POSTERIORS[digest] = SoftPosterior(cloudpickle.loads(pickled))
    return run_task(_POSTERIORS[digest], task)


class Runner:
    """Runs tasks of `run_task`.

    Parameters
    ----------
    posterior : SoftPosterior
        Used in this process.
    cores : int
        Processes; with 1 everything runs here.
    """

    def __init__(self, posterior: SoftPosterior, cores: int = 1):
        self.posterior, self.cores = posterior, cores
        if cores > 1:
            self.pickled = cloudpickle.dumps(posterior.soft.model)
            self.digest = hashlib.sha256(self.pickled).hexdigest()

    def __call__(self, tasks: Sequence[tuple]) -> list:
        """Results in the order of the tasks."""
        if self.cores == 1 or len(tasks) == 1:
            return [run_task(self.posterior, task) for task in tasks]
        work = joblib.delayed(_work)
        given = (work(self.pickled, self.digest, task) for task in tasks)
        return list(given_out(make_parallel(self.cores), given))
