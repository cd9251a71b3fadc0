"""The check of all chains together, by hand, in closed form and on chains of known law."""

import numpy as np
import pytest
from scipy import stats

from pymc_trees.posterior import pool
from pymc_trees.posterior.pool import (
    coverage_of_chain,
    coverage_of_pool,
    judge_pool,
    width_of_chain,
)


def test_numbers_by_hand():
    rng = np.random.default_rng(1)
    f = rng.normal(size=(3, 8, 2)) + rng.normal(size=(3, 1, 2))
    within = sum(f[c, :, i].var(ddof=1) for c in range(3) for i in range(2)) / 3
    between = sum(f[:, :, i].mean(axis=1).var(ddof=1) for i in range(2))
    assert width_of_chain(f) == pytest.approx(np.sqrt(within / (within + between)))
    first, second = f[:, :4], f[:, 4:]
    shares = [
        sum((h[..., i] - h[..., i].mean()) ** 2 / f[..., i].var() for i in range(2)).mean(axis=1)
        for h in (first, second)
    ]
    found = pool.change_of_spread(f)
    assert found.size == pytest.approx(np.sqrt(shares[1].sum() / shares[0].sum()) - 1)
    assert found.p == pytest.approx(stats.ttest_1samp(shares[1] - shares[0], 0).pvalue)
    sigma = f[..., 0]
    change = second[..., 0].mean(axis=1) - first[..., 0].mean(axis=1)
    assert pool.trend(sigma).size == pytest.approx(change.mean() / sigma.std())
    assert pool.trend(sigma).p == pytest.approx(stats.ttest_1samp(change, 0).pvalue)


@pytest.mark.parametrize(("chains", "exact"), [(2, 1 / 3), (4, 3 / 5), (9, 4 / 5)])
def test_chains_that_are_points_cover_between_the_outermost(chains, exact):
    """Of chains + 1 exchangeable numbers the last is between two others."""
    # standard error: of 2,000 repeats of a share with sd below 0.3
    assert coverage_of_pool(1.0, chains) == pytest.approx(exact, abs=3 * 0.3 / np.sqrt(2000))


def test_coverage_of_chains_that_agree_is_nominal():
    assert coverage_of_chain(0.0) == pytest.approx(0.95)
    assert coverage_of_pool(0.0, 4) == pytest.approx(0.95, abs=1e-6)
    assert coverage_of_pool(0.3, 400) == pytest.approx(0.95, abs=2e-3)


def test_coverage_of_one_chain_by_simulation():
    rng = np.random.default_rng(1)
    share, n = 0.6, 200_000
    off = rng.normal(size=n) - np.sqrt(share) * rng.normal(size=n)
    covered = np.abs(off) < 1.959964 * np.sqrt(1 - share)
    assert coverage_of_chain(share) == pytest.approx(covered.mean(), abs=4 * 0.5 / np.sqrt(n))
    # nearly the same for a pool of one, whose quantiles are those of its chain
    assert coverage_of_pool(share, 1) == pytest.approx(coverage_of_chain(share), abs=0.02)


def test_constants_and_few_draws_are_judged_too():
    assert judge_pool(np.ones((4, 100, 3))).verdict == "agree"
    assert judge_pool(np.random.default_rng(1).normal(size=(1, 100, 3))).verdict == "short"
    assert judge_pool(np.random.default_rng(1).normal(size=(4, 2, 3))).verdict == "short"
    found = judge_pool(
        np.random.default_rng(1).normal(size=(2, 100, 3)) + np.arange(2)[:, None, None]
    )
    assert found.verdict == "short" and "takes 4 of 40" in str(found)


def test_words_name_what_changed_and_what_differs():
    rng = np.random.default_rng(1)
    f, sigma = rng.normal(size=(4, 200, 20)), rng.normal(size=(4, 200))
    drifting = judge_pool(f, {"sigma": sigma - np.linspace(0, 6, 200)})
    assert drifting.verdict == "warm-up" and "changes, sigma -1." in str(drifting)
    narrowing = judge_pool(f * np.linspace(2, 1, 200)[:, None])
    assert narrowing.verdict == "warm-up" and "the pooled sd of f -" in str(narrowing)
    differing = judge_pool(f, {"sigma": sigma + 4 * np.arange(4)[:, None], "tau": sigma})
    assert differing.verdict == "apart" and "agree on sigma:" in str(differing)
    apart = judge_pool(f + 1.3 * rng.normal(size=(4, 1, 20)))
    assert apart.verdict == "pool" and "is 0.6" in str(apart) and apart.usable
    far = judge_pool(0.1 * f + rng.normal(size=(4, 1, 20)))
    assert far.verdict == "few" and not far.usable


def test_rates_of_errors():
    """Of `benchmarks/notes/pools.md`; 200 repeats have a standard error of at most 0.02 at 0.07."""
    from benchmarks.pools import Case, rates

    well = rates(Case(4, 250, 0.9), 200)
    assert well["agree"] > 0.85 and well["warm-up"] < 0.13
    apart = rates(Case(4, 250, 0.9, between=0.5), 200)
    assert apart["pool"] > 0.8 and apart["warm-up"] < 0.13
    assert rates(Case(4, 250, 0.9, 0.3, start=4.0, forgets=0.3), 200)["warm-up"] > 0.9
    assert rates(Case(8, 250, 0.9, 0.3, start=2.0, forgets=1.0), 200)["warm-up"] > 0.9
    modes = rates(Case(8, 250, modes=3.0), 200)
    assert modes["agree"] + modes["pool"] < 0.05
