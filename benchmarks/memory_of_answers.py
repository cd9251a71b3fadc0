"""Memory that questions take: ``python -m benchmarks.memory_of_answers``.

4,000 draws of 200 trees on 10,000 rows, which are a few draws again and again. What is printed is
the growth of the process: with the answer, without the draws.
"""

import logging
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from benchmarks.peers.data import friedman

ROWS, TREES, FEW, TIMES = 10_000, 200, 10, 200
PAGE = 4096


def resident() -> int:
    """Bytes of the process (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


class Growth:
    """The most that the process grows within."""

    def __enter__(self):
        self.before, self.most, self.inside = resident(), 0, True
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.inside = False
        self.thread.join()

    def _watch(self):
        while self.inside:
            self.most = max(self.most, resident() - self.before)
            time.sleep(0.01)


def many_draws():
    """A model, and draws of it."""
    case = friedman("friedman", ROWS, TREES)
    quiet = {"progressbar": False, "compute_convergence_checks": False}
    with pm.Model() as model:
        mu = pmt.BART("mu", case.X, case.y, m=TREES)
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=case.y, shape=mu.shape)
        idata = pm.sample(FEW, tune=150, chains=2, random_seed=1, **quiet)
    few = idata["posterior"].to_dataset().drop_vars("mu")
    again = few.isel(draw=np.tile(np.arange(FEW), TIMES))
    again = again.assign_coords(draw=np.arange(FEW * TIMES))
    return model, xr.DataTree.from_dict({"posterior": again}), case.X


def main():
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    model, idata, X = many_draws()
    quiet = {"progressbar": False}
    questions = {
        "predictions": lambda: pmt.predictions(idata, model, X[::-1], **quiet),
        "summary_of_function": lambda: pmt.summary_of_function(idata, model),
        "comparisons, averaged": lambda: pmt.comparisons(
            idata, model, {0: (0.2, 0.8)}, by=True, **quiet
        ),
        "partial_dependence, five points": lambda: pmt.partial_dependence(
            idata, model, 0, grid=5, **quiet
        ),
        "shap_values, 100 rows": lambda: pmt.shap_values(idata, model, X[:100], **quiet),
        "sobol_indices": lambda: pmt.sobol_indices(idata, model, **quiet),
        "get_interaction_inclusion": lambda: pmt.get_interaction_inclusion(idata, model),
    }
    print("| question | MB |\n|---|---|")
    for name, ask in questions.items():
        with Growth() as growth:
            ask()
        print(f"| {name} | {growth.most / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
