"""What the tables of `benchmarks/mixing` rest on: parts of f, directions, data, R-hat."""

import sys
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks.mixing import agreement, directions, parts, processes, samplers  # noqa: E402
from benchmarks.peers import data  # noqa: E402


def chains(seed, shape=(4, 200, 30)):
    return np.random.default_rng(seed).normal(size=shape)


def test_parts_are_those_of_a_function_that_has_them():
    X = np.random.default_rng(0).uniform(size=(400, 5))
    sums, product = 3 * X[:, 2] - X[:, 0], X[:, 0] * X[:, 1]
    additive, interaction = parts.additive(X), parts.interaction(X, [0, 1])
    np.testing.assert_allclose(additive.T @ interaction, 0, atol=1e-8)
    f = np.array([[sums], [product]])
    both = parts.project(f, additive), parts.project(f, interaction)
    np.testing.assert_allclose(both[0][0, 0], sums, atol=1e-8)
    np.testing.assert_allclose(both[1][0, 0], 0, atol=1e-8)
    np.testing.assert_allclose(both[0][1, 0] + both[1][1, 0], product, atol=1e-8)
    assert np.var(both[1][1, 0]) > 0.003  # of (x1 - 1/2) (x2 - 1/2): 1 / 144


def test_a_column_with_few_values_has_a_function_for_each():
    x = np.repeat([0.0, 1.0, 5.0], 20)
    np.testing.assert_allclose(parts.hats(x), np.repeat(np.eye(3), 20, axis=0))


def test_chains_that_disagree_along_a_direction_show_it():
    f, v = chains(0), np.eye(30)[7]
    f += np.array([-2, 0, 0, 2])[:, None, None] * v
    for axes in (directions.between(f, 3), directions.principal(f, 3), directions.shared([f], 3)):
        np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-10)
        assert abs(axes[0] @ v) > 0.98
    draws = directions.along(f, directions.principal(f, 30))
    np.testing.assert_allclose(directions.variance(draws), directions.variance(f))


def test_samplers_of_other_scales_count_alike():
    f, g = 0.01 * chains(1), chains(2)
    f[:, :, 3] *= 8
    g[:, :, 5] *= 8
    axes = directions.shared([f, g], 2)
    np.testing.assert_allclose(np.abs(axes[:, [3, 5]]).sum(axis=0) > 0.9, True)


@pytest.mark.parametrize("name", processes.SIMULATED)
def test_held_out_rows_are_the_same_for_every_n(name):
    few, many = (processes.load(name, n, 50, 40, 1) for n in (60, 90))
    np.testing.assert_array_equal(few.X_test, many.X_test)
    assert few.X.shape == (60, 10) and many.X.shape == (90, 10)
    assert not np.array_equal(few.X[0], many.X[0])
    assert not np.array_equal(few.X_test, processes.load(name, 60, 50, 40, 2).X_test)


def test_published_variance_of_the_low_process():
    X = processes.normal_rows(np.random.default_rng(0), 400_000)
    assert np.var(processes.low(X)) == pytest.approx(3 * processes.LOW_NOISE, rel=0.02)
    assert np.corrcoef(X.T)[0, 1] == pytest.approx(0.01, abs=0.006)


def test_tables_give_no_more_rows_than_they_have(tmp_path, monkeypatch):
    text = "sex,length,target\n" + "M,1.5,2\nF,2.5,3\n" * 20
    pd.read_csv(StringIO(text)).to_csv(tmp_path / "shells.csv.gz", index=False)
    monkeypatch.setenv(data.DATA_VARIABLE, str(tmp_path))
    case = processes.load("shells", 30, 50, 100, 1)
    assert case.X.shape == (30, 3) and len(case.X_test) == 4 and case.f_test is None
    assert set(map(tuple, case.X[:, 1:])) == {(0.0, 1.0), (1.0, 0.0)}
    assert processes.load("shells", 37, 50, 100, 1) is None


def test_rhat_tells_chains_that_agree_from_those_that_do_not():
    case = SimpleNamespace(y_test=np.zeros(30), f_test=np.zeros(30))
    result = SimpleNamespace(f=chains(3), seconds=1.0, version="-")
    good = agreement.judge(result, case)
    assert max(good["rhat_f_mean"], good["rhat_rmse"], good["rhat_rmse_1992"]) < 1.02
    result.f[0] *= 2
    result.f[1, :, 4] += 3
    bad = agreement.judge(result, case)
    assert bad["rhat_f_worst"] > 1.3 and min(bad["rhat_rmse"], bad["rhat_rmse_1992"]) > 1.5


def test_a_line_averages_repeats_and_keeps_the_worst():
    lines = [
        {"process": "low", "rows": 200, "sampler": "CGM", "paper": 1.007}
        | dict.fromkeys(set(agreement.KEYS) - {"paper"}, value)
        for value in (1.0, 2.0)
    ]
    merged = agreement.over_repeats(lines)
    assert merged["rhat_f_mean"] == 1.5 and merged["rhat_f_worst"] == 2.0
    assert agreement.cells(merged)[:4] == ["low", "200", "CGM", "1.500"]


def test_names_of_samplers():
    assert samplers.parts_of("default") == ("pymc_trees", "")
    assert samplers.parts_of("CGM") == ("pymc_trees", "CGM")
    assert samplers.parts_of("pymc_bart:all") == ("pymc_bart", "all")
    samplers.check(["default", "Hybrid", "dbarts"])
    with pytest.raises(ValueError, match="no step method"):
        samplers.check(["Hybird"])
