"""Simulation-based calibration in short; the long run is `benchmarks.sbc`.

Ranks of 60 replicates in 10 places: the chi-squared test of uniformity at p = 1e-4 for each of some
25 quantities fails by chance in one of 400 fresh runs; the seeds are fixed. A likelihood read
wrongly draws ranks to the ends (the test at the bottom).
"""

from pathlib import Path

import numpy as np
import pytest
from support.tiers import tiers

pytestmark = pytest.mark.usefixtures("quick_compile")
LENGTH = 10


@pytest.fixture(scope="module")
def sbc(quick_compile):
    """Cases and functions of the benchmark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2])
        from benchmarks.sbc import cases, run

        yield cases, run


@pytest.mark.parametrize(
    "name",
    tiers(
        ["poisson", "dart", "quantile", "coefficients", "monotone_and_soft", "groups_logit"],
        quick=["quantile"],
    ),
)
def test_ranks_are_uniform(sbc, name):
    cases, run = sbc
    found = run.ranks(cases.CASES[name](n=16, m=3), 60, length=LENGTH, thin=4, seed=7)
    for quantity, rank in found.items():
        assert run.uniformity(rank, LENGTH) > 1e-4, quantity


@pytest.mark.full
def test_ranks_of_a_random_column(sbc):
    """300 replicates: shares of ten places have standard errors of 0.017."""
    cases, run = sbc
    found = run.ranks(cases.random_column(), 300, length=LENGTH, thin=4, seed=7)
    for quantity, rank in found.items():
        assert run.uniformity(rank, LENGTH) > 1e-4, quantity


@pytest.mark.full
def test_ranks_reject_another_response(sbc):
    """The response of each replicate is that of the one before: uniform ranks, as above, are not
    found everywhere."""
    cases, run = sbc
    case, simulate = cases.poisson(n=16, m=3), run.simulate

    def shifted(model, replicates, seed):
        truth = simulate(model, replicates, seed)
        return truth | {"y": np.roll(truth["y"], 1, axis=0)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "simulate", shifted)
        found = run.ranks(case, 60, length=LENGTH, thin=4, seed=7)
    assert min(run.uniformity(rank, LENGTH) for rank in found.values()) < 1e-4
