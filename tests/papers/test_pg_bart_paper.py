"""What the tables of `benchmarks/papers/pg_bart` rest on: data, priors, draws, judgement."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks.papers.pg_bart import (  # noqa: E402
    __main__,
    chain,
    houses,
    hypercube,
    judge,
    model,
    reported,
    tables,
)
from benchmarks.papers.pg_bart.samplers import SAMPLERS  # noqa: E402
from benchmarks.peers.data import MissingData  # noqa: E402

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.mark.parametrize("D", [2, 5])
def test_hypercube_has_ten_points_at_each_vertex(D):
    data = hypercube.hypercube(D, 3)
    assert data.X.shape == data.X_test.shape == (10 * 2**D, D)
    _, counts = np.unique(data.X > 0, axis=0, return_counts=True)
    assert (counts == 10).all() and len(counts) == 2**D
    of_vertex = [np.unique(data.f[(data.X > 0) @ 2 ** np.arange(D) == k]) for k in range(2**D)]
    assert all(len(values) == 1 for values in of_vertex)
    assert np.abs(data.y - data.f).max() < 0.05 and np.abs(data.y_test - data.f).max() < 0.05
    assert not np.array_equal(data.y, hypercube.hypercube(D, 4).y)


def test_noise_prior_has_its_quantile_at_the_sd_of_y(rng):
    y = rng.normal(0, 3, 50)
    shape, scale = model.noise_prior(y)
    assert abs(stats.invgamma.cdf(y.var(), shape, scale=scale) - 0.9) < 1e-9


def test_the_noise_variance_is_drawn_from_its_conditional(rng):
    """The density of prior times likelihood, normalised on a grid, at 4,000 draws."""
    residual, shape, scale = rng.normal(0, 0.7, 8), 1.5, 0.4
    draws = [chain.draw_variance(rng, residual, shape, scale) for _ in range(4_000)]
    grid = np.geomspace(1e-3, 100, 200_001)
    log_density = stats.invgamma.logpdf(grid, shape, scale=scale)
    log_density += stats.norm.logpdf(residual[:, None], 0, np.sqrt(grid)).sum(axis=0)
    mass = np.exp(log_density - log_density.max()) * np.gradient(grid)
    distribution = np.cumsum(mass) / mass.sum()
    found = stats.kstest(draws, lambda x: np.interp(x, grid, distribution))
    assert found.pvalue > 1e-4


def test_a_chain_on_a_wrong_tree_does_not_count():
    data = hypercube.hypercube(3, 1)
    assert judge.error_of(data.f, data) == 0
    merged = data.f.copy()
    far = np.argsort(data.f)[[0, -1]]
    merged[np.isin(data.f, data.f[far])] = data.f[far].mean()
    assert judge.error_of(merged, data) > 2 * judge.ERROR
    assert judge.is_right(8.3, 0.1, 3) and judge.is_right(7.0, 0.1, 3)
    assert not judge.is_right(8.0, judge.error_of(merged, data), 3)
    assert not judge.is_right(10.5, 0.1, 3)


def test_a_constant_has_no_rhat_and_an_ess_of_one():
    flat = np.ones((2, 50))
    assert judge.ess(flat) == 1 and np.isnan(judge.rhat(flat))
    assert judge.rhat(flat * [[1], [2]]) == np.inf


def test_six_inputs_follow_from_averages_per_household():
    """One block of 200 people in 80 households with 400 rooms and 100 bedrooms."""
    frame = pd.DataFrame(
        {"MedInc": [3.0], "HouseAge": [20.0], "AveRooms": [5.0], "AveBedrms": [1.25],
         "Population": [200.0], "AveOccup": [2.5], "MedHouseVal": [1.5]}
    )  # fmt: skip
    row = houses.six_inputs(frame).iloc[0]
    np.testing.assert_allclose(row, [3, 20, 2, 0.5, 2.5, 80, np.log(150_000)])


def test_missing_houses_are_said_to_be_missing(monkeypatch):
    import sklearn.datasets

    def offline(**_):
        raise OSError("no network")

    monkeypatch.delenv("PYMC_TREES_DATA", raising=False)
    monkeypatch.setattr(sklearn.datasets, "fetch_california_housing", offline)
    with pytest.raises(MissingData, match="PYMC_TREES_DATA.*no network"):
        houses.table()


def test_a_task_gives_the_same_chain_again_and_chains_differ():
    task = chain.Task("hypercube", 2, 0, 0, "PG", 4, 4, 2)
    one, two, other = (chain.run(t) for t in (task, task, task._replace(chain=1)))
    np.testing.assert_array_equal(one.log_likelihood, two.log_likelihood)
    assert (one.log_likelihood != other.log_likelihood).any()
    assert one.leaves.shape == (8,) and one.test_mse.shape == (4,) and (one.seconds > 0).all()


def test_the_command_writes_tables_beside_the_papers_numbers(tmp_path):
    arguments = ["--only", "hypercube", "--D", "4", "--samplers", "CGM", "PG", "--seeds", "1"]
    arguments += ["--chains", "2", "--warmup", "4", "--draws", "8", "--jobs", "1"]
    __main__.main([*arguments, "--out", str(tmp_path)])
    text = (tmp_path / "tables.md").read_text()
    assert "14" in text and "687" in text and "| 4 | PG |" in text  # ESS of table 1
    assert (tmp_path / "hypercube.png").stat().st_size > 0
    before = (tmp_path / "results.json").read_text()
    __main__.main([*arguments, "--out", str(tmp_path)])  # taken up, not run again
    assert (tmp_path / "results.json").read_text() == before


def test_every_sampler_of_the_paper_is_compared():
    assert {s.family for s in SAMPLERS.values()} == {*reported.SAMPLERS, None}
    assert set(__main__.MAIN) <= set(SAMPLERS)
    assert len(tables.HYPERCUBE_HEAD) == 14 and set(reported.HYPERCUBE_ESS) == set(hypercube.BETA)
