"""Pictures of survival: steps and bands are those of the draws, estimates those of the rows."""

import numpy as np
import pytest
import xarray as xr
from sksurv.nonparametric import cumulative_incidence_competing_risks, kaplan_meier_estimator

import pymc_trees as pmt

RNG = np.random.default_rng(3)
TIMES = np.array([0.5, 1.0, 2.0])
N = 40
ARM = np.array(["drug", "placebo"] * 20)
TIME = RNG.integers(1, 30, N) / 10.0
CAUSE = RNG.choice([0, 1, 2], N)


def survival(stepwise=1, **dims):
    """Draws of curves along some dimensions."""
    coords = {"chain": [0, 1], "draw": range(20)} | dims | {"time": TIMES}
    shape = [len(of) for of in coords.values()]
    falls = np.cumprod(RNG.uniform(0.5, 1.0, shape), axis=-1)
    values = xr.DataArray(falls, coords, list(coords))
    return xr.Dataset({"survival": values}, attrs={"stepwise": stepwise})


def incidence(**dims):
    """Of two causes."""
    found = survival(**dims)["survival"]
    share = xr.DataArray([0.3, 0.7], {"cause": [1, 2]})
    order = ("chain", "draw", "cause", *dims, "time")
    whole = ((1 - found) * share).transpose(*order)
    return xr.Dataset({"incidence": whole, "survival": found}, attrs={"stepwise": 1})


ARMS = {"arm": ["drug", "placebo"]}


def lines_of(drawn, label, name="survival"):
    """Artists in the order of their curves."""
    return np.ravel(drawn.viz[label].to_dataset()[name].to_numpy())


@pytest.mark.parametrize("backend", ["none", "matplotlib", "plotly", "bokeh"])
@pytest.mark.parametrize("curves", [survival(), survival(**ARMS), incidence(), incidence(**ARMS)])
def test_every_backend(curves, backend):
    if backend in ("plotly", "bokeh"):
        pytest.importorskip(backend)
    group = ARM if "arm" in curves.dims else None
    drawn = pmt.plot_survival(curves, TIME, CAUSE, group=group, backend=backend)
    assert drawn.backend == backend
    assert {"line", "band", "seen"} <= set(drawn.viz.children)


def test_steps_are_means_of_draws_from_one_on():
    curves = survival(**ARMS)
    drawn = pmt.plot_survival(curves, backend="matplotlib")
    for line, arm in zip(lines_of(drawn, "line"), ARMS["arm"], strict=True):
        mean = curves["survival"].sel(arm=arm).mean(("chain", "draw")).to_numpy()
        x, y = line.get_data()
        np.testing.assert_allclose(x, [0, 0.5, 0.5, 1, 1, 2, 2])
        np.testing.assert_allclose(y, [1, 1, mean[0], mean[0], mean[1], mean[1], mean[2]])


def test_other_curves_are_straight_between_their_times():
    curves = survival(stepwise=0)
    drawn = pmt.plot_survival(curves, backend="matplotlib")
    [line] = lines_of(drawn, "line")
    x, y = line.get_data()
    np.testing.assert_allclose(x, [0, *TIMES])
    np.testing.assert_allclose(y, [1, *curves["survival"].mean(("chain", "draw"))])


def test_bands_hold_the_probability_that_was_asked_for():
    curves = survival(stepwise=0)
    drawn = pmt.plot_survival(curves, ci_prob=0.5, backend="matplotlib")
    [band] = lines_of(drawn, "band")
    [path] = band.get_paths()
    low, high = curves["survival"].quantile([0.25, 0.75], ("chain", "draw")).to_numpy()
    for y in (*low, *high):
        assert np.isclose(path.vertices[:, 1], y).any()


def steps(x, y, start):
    """At each of some times, the value of the step that has come."""
    at = np.linspace(0.0, 3.0, 301)
    whole = np.append(start, y)
    return at, whole[np.searchsorted(x, at, side="right")]


def value_of(line, at):
    x, y = line.get_data()
    known = ~np.isnan(x)
    x, y = x[known], y[known]
    return y[np.searchsorted(x, at, side="right") - 1]


@pytest.mark.parametrize("grouped", [False, True])
def test_survival_that_was_seen_is_that_of_kaplan_and_meier(grouped):
    curves = survival(**ARMS)
    group = ARM if grouped else None
    drawn = pmt.plot_survival(curves, TIME, CAUSE > 0, group=group, backend="matplotlib")
    lines = lines_of(drawn, "seen")
    members = [arm == ARM for arm in ARMS["arm"]] if grouped else [np.full(N, True)]
    assert len(lines) == len(members)
    for line, who in zip(lines, members, strict=True):
        at, wanted = steps(*kaplan_meier_estimator(CAUSE[who] > 0, TIME[who]), 1.0)
        np.testing.assert_allclose(value_of(line, at), wanted, rtol=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_incidences_that_were_seen_are_those_of_aalen_and_johansen(grouped):
    curves = incidence(**ARMS)
    group = ARM if grouped else None
    drawn = pmt.plot_survival(curves, TIME, CAUSE, group=group, backend="matplotlib")
    found = drawn.viz["seen"].to_dataset()["incidence"]
    for cause in (1, 2):
        for arm in ARMS["arm"] if grouped else [None]:
            who = np.full(N, True) if arm is None else arm == ARM
            x, y = cumulative_incidence_competing_risks(CAUSE[who], TIME[who])
            at, wanted = steps(x, y[cause], 0.0)
            chosen = found.sel(cause=cause)
            line = (chosen if arm is None else chosen.sel(arm=arm)).item()
            np.testing.assert_allclose(value_of(line, at), wanted, rtol=1e-12, atol=1e-15)


def test_causes_by_name_with_missing_ones():
    curves = incidence().assign_coords(cause=["death", "relapse"])
    named = np.where(CAUSE == 0, None, np.where(CAUSE == 1, "death", "relapse"))
    drawn = pmt.plot_survival(curves, TIME, named, backend="matplotlib")
    again = pmt.plot_survival(incidence(), TIME, CAUSE, backend="matplotlib")
    for name, number in (("death", 1), ("relapse", 2)):
        one = drawn.viz["seen"].to_dataset()["incidence"].sel(cause=name).item()
        other = again.viz["seen"].to_dataset()["incidence"].sel(cause=number).item()
        np.testing.assert_array_equal(one.get_data(), other.get_data())


def test_expected_numbers_start_at_none():
    curves = survival().rename(survival="expected")
    drawn = pmt.plot_survival(curves, backend="matplotlib")
    [line] = lines_of(drawn, "line", "expected")
    assert line.get_ydata()[0] == 0.0


def test_the_callers_size_and_columns(monkeypatch):
    given = {"figure_kwargs": {"figsize": (3.0, 2.0)}}
    drawn = pmt.plot_survival(survival(), backend="matplotlib", **given)
    figure = drawn.viz["figure"].item()
    np.testing.assert_allclose(figure.get_size_inches(), [3.0, 2.0])
