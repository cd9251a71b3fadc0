"""Selection by permuted responses: thresholds by hand, fits by PyMC, interrupts."""

from functools import partial

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_trees as pmt
from pymc_trees.posterior.importance import selection
from pymc_trees.posterior.importance.selection import select_variables, thresholds

pytestmark = pytest.mark.usefixtures("quick_compile")
X = np.random.default_rng(0).random((30, 3))
Y = 3.0 * (X[:, 1] > 0.5)
SHORT = {"tune": 20, "draws": 15}
QUIET = {"progressbar": False, "cores": 1, "sample_kwargs": SHORT, "random_seed": 4}


def declare(y, X=X, m=4):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=m, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
    return model


def test_thresholds_are_those_of_bleich(rng):
    null = rng.dirichlet([2.0, 1.0, 0.5], 37)
    found = thresholds(null, 0.1)
    ranked = np.sort(null, axis=0)
    place = 0.9 * 36  # the 90% quantile of 37 numbers, between two of them
    low = int(place)
    want = ranked[low] + (place - low) * (ranked[low + 1] - ranked[low])
    np.testing.assert_allclose(found["local"], want, atol=1e-15)
    highest = np.sort(null.max(axis=1))
    want = highest[low] + (place - low) * (highest[low + 1] - highest[low])
    np.testing.assert_allclose(found["global_max"], [want] * 3, atol=1e-15)
    mean, sd = null.mean(axis=0), null.std(axis=0, ddof=1)
    multipliers = (found["global_se"] - mean) / sd
    np.testing.assert_allclose(multipliers, multipliers[0])

    def covered(C):
        return np.mean([all(row <= mean + C * sd) for row in null])

    assert covered(multipliers[0] + 1e-9) >= 0.9 > covered(multipliers[0] - 1e-9)


def test_a_column_that_is_never_split_has_the_threshold_0():
    null = np.array([[0.0, 1.0, 0.0], [0.0, 0.4, 0.6], [0.0, 0.5, 0.5]])
    found = thresholds(null, 0.05)
    assert found["local"][0] == found["global_se"][0] == 0.0
    assert np.isfinite(found["global_se"]).all()


def test_the_column_with_an_effect_is_selected():
    wide = np.random.default_rng(1).random((30, 8))
    several = partial(declare, X=wide, m=8)
    longer = QUIET | {"sample_kwargs": {"tune": 100, "draws": 100}}
    y = 8.0 * wide[:, 1]  # of many steps: a share of .6, where permuted responses give at most .25
    found = select_variables(several, y, n_permutations=12, n_replicates=2, **longer)
    assert found["selected"].dims == ("threshold", "feature")
    assert found["feature"].to_numpy().tolist() == [f"x{j}" for j in range(8)]
    assert found["threshold"].to_numpy().tolist() == ["local", "global_max", "global_se"]
    assert found.sizes["permutation"] == 12 and found.sizes["replicate"] == 2
    np.testing.assert_allclose(found["null"].sum("feature"), 1.0)
    np.testing.assert_allclose(found["share"], found["replicates"].mean("replicate"))
    np.testing.assert_array_equal(found["selected"], found["cutoff"] < found["share"])
    alone = found["feature"] == "x1"
    for threshold in ("global_max", "global_se"):
        np.testing.assert_array_equal(found["selected"].sel(threshold=threshold), alone)


def test_fits_are_to_the_responses_and_to_permutations_of_them():
    seen = []

    def declare_seen(y):
        seen.append(np.array(y))
        return declare(y)

    pairs = np.stack([Y, np.arange(30.0)])

    def declare_pair(pair):
        seen.append(pair)
        return declare(pair[0])

    select_variables(declare_seen, list(Y), n_permutations=2, n_replicates=2, **QUIET)
    for y in seen[:2]:
        np.testing.assert_array_equal(y, Y)
    for y in seen[2:]:
        assert sorted(y) == sorted(Y) and (y != Y).any()
    assert len(seen) == 4 and (seen[2] != seen[3]).any()
    select_variables(declare_pair, pairs, n_permutations=2, n_replicates=1, **QUIET)
    last = seen[-1]
    np.testing.assert_array_equal(last[0], Y[last[1].astype(int)])
    assert (last[1] != pairs[1]).any()


def test_a_fit_is_that_of_pymc_with_its_own_seed():
    found = select_variables(declare, Y, n_permutations=2, n_replicates=1, **QUIET)
    first, second, _ = np.random.default_rng(4).spawn(3)
    order = second.permutation(30)
    options = {"chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    for rng, y, shares in (
        (first, Y, found["replicates"].isel(replicate=0)),
        (second, Y[order], found["null"].isel(permutation=0)),
    ):
        seed = int(rng.integers(2**31))
        with declare(y) as model:
            idata = pm.sample(**SHORT, **options, random_seed=seed)
        want = pmt.get_variable_inclusion(idata, model)["share"].mean(("chain", "draw"))
        np.testing.assert_array_equal(shares, want)


@pytest.mark.full
def test_processes_give_the_same():
    arguments = QUIET | {"n_permutations": 3, "n_replicates": 1}
    one = select_variables(partial(declare, m=2), Y, **arguments)
    two = select_variables(partial(declare, m=2), Y, **arguments | {"cores": 2})
    xr.testing.assert_identical(one, two)


def interrupted(at):
    """Fits of which one is interrupted."""

    def fit(declare, y, number, *others):
        if number == at:
            raise KeyboardInterrupt
        return number, ["a", "b"], np.array([0.25, 0.75])

    return fit


def test_an_interrupt_keeps_what_was_done(monkeypatch):
    monkeypatch.setattr(selection, "_fit", interrupted(4))
    with pytest.warns(UserWarning, match="Interrupted: the result uses 2 fits.* and 2 to perm"):
        found = select_variables(declare, Y, n_permutations=5, n_replicates=2, **QUIET)
    assert found.sizes["permutation"] == 2 and found.sizes["replicate"] == 2
    monkeypatch.setattr(selection, "_fit", interrupted(3))
    with pytest.raises(KeyboardInterrupt):
        select_variables(declare, Y, n_permutations=5, n_replicates=2, **QUIET)


def test_a_fit_that_pymc_ended_early_is_an_interrupt(monkeypatch):
    sample, calls = pm.sample, []

    def ended_early(*args, **kwargs):
        calls.append(1)
        idata = sample(*args, **kwargs)
        return idata.isel(draw=slice(3)) if len(calls) == 4 else idata

    monkeypatch.setattr(pm, "sample", ended_early)
    with pytest.warns(UserWarning, match="uses 1 fits to the responses and 2 to permutations"):
        found = select_variables(declare, Y, n_permutations=9, n_replicates=1, **QUIET)
    assert len(calls) == 4 and found.sizes["permutation"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"declare": None}, "declare=None: must be a function of the responses"),
        ({"declare": lambda y: y}, "declare returned a ndarray: it must return a pymc.Model"),
        ({"y": 3.0}, r"y has the shape \(\): give the responses of at least two rows"),
        ({"y": [1.0]}, r"y has the shape \(1,\)"),
        ({"alpha": 0.0}, "alpha=0.0: must be between 0 and 1"),
        ({"alpha": "5%"}, "alpha='5%': must be between 0 and 1"),
        ({"n_permutations": 1}, "n_permutations=1: must be a whole number of at least 2"),
        ({"n_replicates": 0}, "n_replicates=0: must be a whole number"),
        ({"cores": 0}, "cores=0: must be a whole number"),
        ({"random_seed": "a"}, "random_seed='a'"),
        ({"forest": "f"}, "forest='f' is not one forest"),
        ({"sample_kwargs": {"random_seed": 1}}, r"sample_kwargs has \['random_seed'\]: the model"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    arguments = {"declare": declare, "y": Y, "n_permutations": 2, "n_replicates": 1}
    with pytest.raises((ValueError, TypeError), match=message):
        select_variables(**arguments | QUIET | options)
