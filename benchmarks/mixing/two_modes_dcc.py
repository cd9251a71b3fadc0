"""Runs of DCC-Tree for `two_modes`: trees with soft splits, of which one column weighs most."""

from time import process_time

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.papers.dcc_tree.data import SETTINGS, Data
from benchmarks.papers.dcc_tree.runs import soft_tree
from pymc_trees.dcc.kernels.encode import SPLIT

NAME = "DCC-Tree"
H, _ = SETTINGS["WU"]
CHAINS, LOCAL_DRAWS, TUNE = 4, 100, 500
WEIGHTS = 2
"""Field of a node that holds the weight of the first column."""


def dcc_run(X: np.ndarray, y: np.ndarray, seed: int, steps: int) -> tuple[np.ndarray, float]:
    """Heaviest column of the root in independent draws of a run, -1 for a stump; CPU seconds.

    There are as many draws as ``steps``, and as many proposals of local chains at the visits.
    """
    with pm.Model():
        soft_tree(Data(NAME, X, y, X, y, H, TUNE))
        begin = process_time()
        idata = pmt.sample_dcc(
            max(steps // (CHAINS * LOCAL_DRAWS), 2),
            -(-steps // CHAINS),
            CHAINS,
            local_draws=LOCAL_DRAWS,
            tune=TUNE if steps > CHAINS * LOCAL_DRAWS else 20,
            cores=1,
            random_seed=seed,
            progressbar=False,
        )
        seconds = process_time() - begin
    root = np.concatenate(idata["posterior"]["f_forest"].values)[:steps, 0]
    heaviest = root[:, WEIGHTS : WEIGHTS + X.shape[1]].argmax(axis=1)
    return np.where(root[:, 0] == SPLIT, heaviest, -1), seconds
