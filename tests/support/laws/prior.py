"""Draws of one tree against the exact law of its prior. Tolerances: see `laws/test_prior`."""

import numpy as np

from support.chains import make_setup, partition_of, weights_of
from support.naive import slow
from support.naive.batches import frequencies, law_gap
from support.naive.laws import EVERY, law

BATCHES = 60
Z = 5.5


def root_law(problem):
    """dict root column -> prior probability; the root of every problem has a valid split."""
    cells = slow.cells_of(make_setup(problem, "normal").design)
    weights = weights_of(problem, problem.X.shape[1])
    able = slow.varying(cells, range(problem.n), weights)
    alpha, total = problem.prior["alpha"], sum(weights[j] for j in able)
    return {-1: 1 - alpha} | {j: alpha * weights[j] / total for j in able}


def check_laws(name, codes, depths, roots):
    p = EVERY[name].X.shape[1]
    problem, exact, draws = EVERY[name], law(name, "flat"), len(codes)
    found, shares = frequencies(codes, BATCHES)
    states = [partition_of(code, problem.n) for code in found]
    partitions = law_gap(states, shares, exact.partitions, draws)
    assert partitions.within(Z, 0.015), partitions
    for record, wanted in ((depths, exact.depths), (roots, root_law(problem))):
        record = np.where(record < 0, record, record % p) if record is roots else record
        keys, shares = frequencies(record, BATCHES)
        distance = law_gap(keys.tolist(), shares, wanted, draws)
        assert distance.within(Z, 0.015), distance


def galton_watson(alpha, beta, depths=12):
    """Mean splits at each depth of one tree."""
    p = alpha * (1.0 + np.arange(depths)) ** -beta
    return 2.0 ** np.arange(depths) * np.cumprod(p)
