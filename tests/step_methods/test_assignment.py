"""Which step PyMC assigns, and which variables and weights a step takes."""

import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.compound import Competence
from support.small_models import bart_model, sample, step_data

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)


@pytest.fixture(scope="module")
def two(quick_compile):
    """Two forests and another variable."""
    with pm.Model() as model:
        one = pmt.BART("one", X, Y, m=2, max_nodes=78)
        other = pmt.BART("two", X[:, :1], Y, m=3, max_nodes=117)
        sigma = pm.HalfNormal("sigma")
        pm.Deterministic("both", one + other)
        pm.Deterministic("twice", 2 * one)
        pm.Normal("y", one + other, sigma, observed=Y, shape=one.shape)
    return model


def taken(step):
    """Names of the variables of a step."""
    return [v.name for v in step.vars]


def test_plain_sample_assigns_hybrid(two, caplog):
    caplog.set_level("INFO")
    with two:
        sample(3, 3)
    assert "Hybrid: [one_forest, two_forest]" in caplog.text
    assert "NoiseScale: [sigma]" in caplog.text


def test_registered_once_and_only_the_default_is_ideal(two):
    import importlib

    import pymc.step_methods as registry

    import pymc_trees.hooks as ours

    importlib.reload(ours)
    for step in (pmt.Hybrid, pmt.CGM, pmt.GrowPrune, pmt.RestructureCGM):
        assert [s.__name__ for s in registry.STEP_METHODS].count(step.__name__) == 1
    forest, sigma = two["one_forest"], two["sigma"]
    assert pmt.Hybrid.competence(forest, False) is Competence.IDEAL
    assert pmt.CGM.competence(forest, False) is Competence.COMPATIBLE
    assert pmt.GrowPrune.competence(forest, False) is Competence.COMPATIBLE
    assert pmt.RestructureCGM.competence(forest, False) is Competence.COMPATIBLE
    for step in (pmt.Hybrid, pmt.CGM, pmt.GrowPrune, pmt.RestructureCGM):
        assert step.competence(sigma, True) is Competence.INCOMPATIBLE


@pytest.mark.parametrize("step", [pmt.CGM, pmt.GrowPrune])
def test_ways_to_name_a_forest(two, step):
    with two:
        ways = [
            two["one"],
            two["one_forest"],
            two.rvs_to_values[two["one_forest"]],
            "one",
            "one_forest",
            two["twice"],
        ]
        for way in ways:
            assert taken(step([way])) == ["one_forest"], way
            assert taken(step(vars=[way])) == ["one_forest"], way
        assert taken(step(two["one"])) == ["one_forest"]
        assert taken(step("one")) == ["one_forest"]
        assert taken(step(("one", "two"))) == ["one_forest", "two_forest"]
        assert taken(step(["two", "two_forest"])) == ["two_forest"]
        assert taken(step()) == taken(step(None)) == ["one_forest", "two_forest"]
        assert taken(step(two.value_vars)) == ["one_forest", "two_forest"]
    assert taken(step(model=two)) == ["one_forest", "two_forest"]
    assert step(["one"], model=two).name == step.__name__.lower()


@pytest.mark.parametrize(
    "wrong", ["sigma", "both", "nothing", "y", 3, None, np.ones(2), ["one", "sigma"], "one_X"]
)
def test_anything_else_is_an_error(two, wrong):
    given = wrong if isinstance(wrong, list) else [wrong]
    with two, pytest.raises(ValueError, match=r"(?s)vars: .*one_forest.*two_forest"):
        pmt.CGM(given)


def test_the_error_shows_what_was_given(two):
    with two:
        for given in ("foo", ["foo"], ("one", "foo")):
            with pytest.raises(ValueError, match="vars: 'foo' is neither a forest"):
                pmt.Hybrid(vars=given)


def test_no_forest_at_all():
    with pm.Model():
        x = pm.Normal("x")
        for given in (None, [x]):
            with pytest.raises(ValueError, match="forest"):
                pmt.CGM(given)


def test_each_forest_its_own_step(two):
    with two:
        idata = sample(6, 6, step=[pmt.CGM(["one"]), pmt.GrowPrune(["two"])])
    stats = idata.sample_stats
    assert stats["variable_inclusion_one_forest"].shape == (2, 6, 2)
    assert stats["variable_inclusion_two_forest"].shape == (2, 6, 1)
    assert stats["n_leaves_two_forest"].dtype == np.int64
    with two:
        steps = pmt.CGM(["one", "two"], blocked=False)
        assert [taken(s) for s in steps.methods] == [["one_forest"], ["two_forest"]]
        sample(3, 3, step=steps)


def test_the_other_forest_gets_the_default_step(two, caplog):
    caplog.set_level("INFO")
    with two:
        sample(3, 3, step=[pmt.GrowPrune(["two"])])
    assert "GrowPrune: [two_forest]" in caplog.text and "Hybrid: [one_forest]" in caplog.text


def test_moves(two):
    with two:
        weights = pmt.CGM(moves={"grow": 1, "prune": 1, "swap": 2}).kernels[0].moves.weights
        np.testing.assert_allclose(weights, [0.25, 0.25, 0.0, 0.5])
        np.testing.assert_allclose(pmt.CGM().kernels[0].moves.weights, [0.25, 0.25, 0.4, 0.1])
        huge = (
            pmt.CGM(moves={"grow": 1e308, "prune": 1e308, "change": 1.7e308})
            .kernels[0]
            .moves.weights
        )
        np.testing.assert_allclose(huge, np.array([1, 1, 1.7, 0]) / 3.7)
        np.testing.assert_allclose(pmt.GrowPrune().kernels[0].moves.weights, [0.5, 0.5, 0, 0])
        mixed = pmt.RestructureCGM().kernels[0]
        np.testing.assert_allclose(mixed.moves.weights, [0.2, 0.2, 0.32, 0.08, 0.2])
        assert mixed.names[-1] == "restructure"


def test_a_further_move_is_compiled_in_where_it_has_a_weight(two):
    given = {"grow": 1, "prune": 1}
    with two:
        without, zero, half = (
            pmt.CGM(moves=given | more).kernels[0] for more in ({}, {"perturb": 0}, {"perturb": 2})
        )
    assert zero.moves.moves == without.moves.moves and len(zero.moves.weights) == 4
    assert zero.names == without.names
    np.testing.assert_allclose(half.moves.weights, [0.25, 0.25, 0.0, 0.0, 0.5])
    assert half.names == [*without.names, "perturb"]


@pytest.mark.parametrize(
    ("moves", "said"),
    [
        ({"grow": 1, "prune": 1, "chnage": 1}, r"'chnage'.*'change'"),
        ({"grow": 1, "prune": 0}, "grow and prune need positive weights"),
        ({"change": 1}, "grow and prune need positive weights"),
        ({"grow": 1e-300, "prune": 1, "swap": 1e308}, "grow and prune need positive weights"),
        ({}, "grow and prune need positive weights"),
        ({"grow": 1, "prune": 1, "swap": -1}, "at least 0"),
        ({"grow": 1, "prune": np.nan}, "finite"),
        ({"grow": 1, "prune": np.inf}, "finite"),
        ({"grow": 1, "prune": "much"}, "moves"),
        (["grow", "prune"], "moves"),
        ("grow", "moves"),
    ],
)
def test_bad_moves(two, moves, said):
    with two, pytest.raises((ValueError, TypeError), match=said):
        pmt.CGM(moves=moves)


def test_options_through_sample():
    with bart_model(n=20, m=2) as model:
        idata = sample(30, 10, hybrid={"moves": {"grow": 1, "prune": 1}})
    assert np.isnan(idata.sample_stats["accept_change"]).all()
    assert model["mu_forest"].name in idata.posterior
