"""Memory that questions take: ``python -m benchmarks.memory_of_answers``.

4,000 draws of 200 trees on 10,000 rows, which are a few draws again and again; and, for what has
answers by row and column, draws of one tree on as many rows, ten columns or 57. What is printed is
the growth of the process, with the answer, without the draws; and the size of the answer.
"""

import argparse
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
QUIET = {"progressbar": False}


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


def one_tree(columns: int, draws: int):
    """A model of one tree, and few prior draws again and again."""
    X = np.random.default_rng(0).random((ROWS, columns))
    with pm.Model() as model:
        pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0.0, 1.0))
        prior = pm.sample_prior_predictive(4, random_seed=1, var_names=["f_forest"])
    again = prior["prior"].to_dataset().isel(draw=np.resize(np.arange(4), draws))
    again = again.assign_coords(draw=np.arange(draws))
    return xr.DataTree.from_dict({"posterior": again}), model


def of_many_trees():
    """Questions of a forest."""
    model, idata, X = many_draws()
    asked = (idata, model)
    return {
        "predictions": lambda: pmt.predictions(*asked, X[::-1], **QUIET),
        "summarise_function": lambda: pmt.summarise_function(*asked, **QUIET),
        "comparisons, averaged": lambda: pmt.comparisons(*asked, {0: (0.2, 0.8)}, by=True, **QUIET),
        "partial_dependence, five points": lambda: pmt.partial_dependence(
            *asked, 0, grid=5, **QUIET
        ),
        "accumulated_effects of a pair": lambda: pmt.accumulated_effects(*asked, (0, 1), **QUIET),
        "shap_values, 100 rows": lambda: pmt.shap_values(*asked, X[:100], **QUIET),
        "sobol_indices": lambda: pmt.sobol_indices(*asked, **QUIET),
        "get_interaction_inclusion": lambda: pmt.get_interaction_inclusion(*asked),
    }


def of_one_tree():
    """Questions of a tree, whose answers or work are numbers for each row and column."""
    wide, long = one_tree(57, 4), one_tree(10, 1200)
    pmt.interaction_strength(*wide, [0, 1], **QUIET)  # compiled
    pmt.compute_variable_importance(*long, samples=2, **QUIET)
    strength = "interaction_strength, 57 columns, "
    curves = "partial_dependence, 1,200 draws, "
    return {
        strength + "one thread": lambda: pmt.interaction_strength(*wide, cores=1, **QUIET),
        strength + "two threads": lambda: pmt.interaction_strength(*wide, cores=2, **QUIET),
        "compute_variable_importance, 1,000 draws": lambda: pmt.compute_variable_importance(
            *long, samples=1000, **QUIET
        ),
        curves + "row by row": lambda: pmt.partial_dependence(*long, 0, kind="individual", **QUIET),
        curves + "both": lambda: pmt.partial_dependence(*long, 0, kind="both", **QUIET),
    }


PARTS = {"many": of_many_trees, "one": of_one_tree}


def main():
    parser = argparse.ArgumentParser(description="Memory that questions take.")
    parser.add_argument("--trees", nargs="+", choices=PARTS, default=list(PARTS))
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    print("| question | MB | of it the answer |\n|---|---|---|")
    for part in parser.parse_args().trees:
        for name, ask in PARTS[part]().items():
            with Growth() as growth:
                answer = ask().nbytes
            print(f"| {name} | {growth.most / 1e6:.0f} | {answer / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
