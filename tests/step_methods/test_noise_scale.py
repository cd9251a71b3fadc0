"""Which variables `NoiseScale` takes, and what a step owes PyMC; its law is in `tests/laws`."""

import pickle
import warnings

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.step_methods.compound import Competence
from pytensor.raise_op import Assert
from support.small_models import bart_model, sample, step_data
from support.stepping import assert_same, go
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)
ROWS = np.linspace(0.5, 1.5, 20)
MISSING = np.where(np.arange(20) == 3, np.nan, Y)


def forest(name="mu", **given):
    return pmt.BART(name, X, Y, m=2, max_nodes=78, **given)


def noise(sd, observed=Y, mean=lambda mu: mu):
    """Declares y around a forest with the sd that ``sd`` makes of the variable s."""
    pm.Normal("y", mean(forest()), sd(pm.HalfNormal("s")), observed=observed)


def with_two_forests():
    pm.Normal("y", forest() + 2 * forest("nu") + 1.0, pm.HalfNormal("s"), observed=Y)


def with_tau():
    pm.Normal("y", forest(), tau=pm.Gamma("s", 2, 2), observed=Y)


def with_variance():
    pm.Normal("y", forest(), pm.math.sqrt(pm.InverseGamma("s", 2, 2)), observed=Y)


def with_log():
    pm.Normal("y", forest(), pm.math.exp(2 * pm.Normal("s") + 1), observed=Y)


def with_prior_above():
    noise_of = pm.HalfNormal("s", pm.Exponential("above", 1.0))
    pm.Normal("y", forest(), pm.Deterministic("sd", noise_of), observed=pm.Data("Y", Y))


def with_regression():
    b = pm.Normal("b", shape=2)
    pm.Normal("y", pm.math.exp(forest()) + pt.dot(X, b), pm.Uniform("s", 0, 9), observed=Y)


def noise_of_one():
    pm.Normal("y", forest(), pm.HalfNormal("s", shape=1), observed=Y)


def with_logs():
    pm.LogNormal("y", forest(), pm.HalfNormal("s"), observed=np.exp(Y))


def with_two_columns():
    f = pmt.BART("mu", X, shape=(2, 20), m=2, leaf=pmt.NormalLeaf(0.0, 1.0), max_nodes=160)
    pm.Normal("y", f, pm.HalfNormal("s"), observed=np.stack([Y, -Y]))


def with_known_errors():
    pm.Normal("y", forest(), pm.math.sqrt(pm.HalfCauchy("s", 1.0) ** 2 + ROWS**2), observed=Y)


def with_two_observed():
    mu, s = forest(), pm.HalfNormal("s")
    pm.Normal("y", mu, s, observed=Y)
    pm.Normal("z", mu, 2 * s, observed=Y)


def with_one_beside():
    s = pm.HalfNormal("s")
    pm.Normal("y", forest(), s, observed=Y)
    pm.Normal("blank", 0.0, s, observed=Y[:5])


def with_another_factor():
    pm.Normal("y", forest(), pm.HalfNormal("s") * pm.HalfNormal("t"), observed=Y)


def with_regression_of_the_sd():
    log_sd = pm.Normal("s") + ROWS * pm.Normal("t")
    pm.Normal("y", forest(), pm.math.exp(log_sd), observed=Y)


def with_two_groups():
    s = pt.stack([pm.HalfNormal("s"), pm.Exponential("t", 1.0)])
    pm.Normal("y", forest(), s[GROUP % 2], observed=Y)


def with_crossed_groups():
    s, t = pm.HalfNormal("s", shape=4), pm.HalfNormal("t", shape=2)
    pm.Normal("y", forest(), s[GROUP] * t[GROUP % 2], observed=Y)


def with_a_sum_by_groups():
    s, t = pm.HalfNormal("s", shape=4), pm.HalfNormal("t", shape=4)
    pm.Normal("y", forest(), pm.math.sqrt(s[GROUP] ** 2 + t[GROUP] ** 2), observed=Y)


def with_a_forest_in_the_sd():
    g = forest("nu", leaf=pmt.NormalLeaf(0.0, 0.3))
    pm.Normal("y", 0.0, pm.HalfNormal("s") * pm.math.exp(g), observed=Y)


def with_an_sd_of_each_column():
    f = pmt.BART("mu", X, shape=(2, 20), m=2, leaf=pmt.NormalLeaf(0.0, 1.0), max_nodes=160)
    s = pm.HalfNormal("s", shape=2)
    pm.Normal("y", f, s[:, None] * ROWS, observed=np.stack([Y, -Y]))


def with_ordered():
    s = pm.Normal(
        "s", shape=4, transform=pm.distributions.transforms.ordered, initval=np.arange(-2.0, 2.0)
    )
    pm.Normal("y", forest(), pm.math.exp(s[GROUP]), observed=Y)


def by_group(sd, **more):
    """Of a vector with an entry for each of four groups."""
    return lambda: pm.Normal("y", forest(), sd(pm.HalfNormal("s", shape=4)), observed=Y, **more)


GROUP = np.arange(20) % 4
TAKEN = {
    "sigma": lambda: noise(lambda s: s),
    "tau": with_tau,
    "root of a variance": with_variance,
    "exp of any number": with_log,
    "twice": lambda: noise(lambda s: 2 * s),
    "twice by name": lambda: noise(lambda s: pm.Deterministic("sd", 2 * s)),
    "of rows": lambda: noise(lambda s: s * ROWS),
    "over rows of data": lambda: noise(lambda s: s / pm.math.sqrt(pm.Data("w", ROWS))),
    "affine mean": lambda: noise(lambda s: s, mean=lambda mu: 2 * mu - ROWS),
    "two forests": with_two_forests,
    "prior that depends on another": with_prior_above,
    "other variables in the mean": with_regression,
    "two columns of observations": with_two_columns,
    "logs": with_logs,
    "known errors": with_known_errors,
    "plus rows": lambda: noise(lambda s: s + ROWS),
    "rows over it": lambda: noise(lambda s: ROWS / s),
    "power of rows": lambda: noise(lambda s: s**ROWS),
    "picked": lambda: noise(lambda s: pt.stack([s, 2 * s])[np.arange(20) % 2]),
    "precision of rows": lambda: pm.Normal(
        "y", forest(), tau=pm.Gamma("s", 2, 2) * ROWS, observed=Y
    ),
    "two observed": with_two_observed,
    "another observed that sees no forest": with_one_beside,
    "times another variable": with_another_factor,
    "regression": with_regression_of_the_sd,
    "two groups": with_two_groups,
    "crossed groups": with_crossed_groups,
    "sums by groups": with_a_sum_by_groups,
    "times a forest": with_a_forest_in_the_sd,
    "by columns": with_an_sd_of_each_column,
    "ordered": with_ordered,
    "one entry for all": noise_of_one,
    "groups": by_group(lambda s: s[GROUP]),
    "groups with exposure": by_group(lambda s: 3 * (2 * s)[GROUP] / ROWS),
    "groups, one of them empty": by_group(lambda s: s[GROUP % 3]),
    "groups with known errors": by_group(lambda s: pm.math.sqrt(s[GROUP] ** 2 + ROWS**2)),
    "groups by data": by_group(lambda s: s[pm.Data("group", GROUP)]),
    "groups from the last": by_group(lambda s: s[-1 - GROUP]),
    "groups by a product": by_group(lambda s: pt.dot(np.eye(4)[GROUP] + 0.1, s)),
    "groups by choice": by_group(lambda s: pm.math.switch(GROUP > 1, s[0], s[1])),
}
"""The variables s and t, if there is one, enter the noise alone."""


def with_mean():
    s = pm.HalfNormal("s")
    pm.Normal("y", forest() + s, s, observed=Y)


def with_another_law_too():
    mu, s = forest(), pm.HalfNormal("s")
    pm.Normal("y", mu, s, observed=Y)
    pm.Laplace("z", mu, s, observed=Y)


def with_potential():
    s = pm.HalfNormal("s")
    pm.Normal("y", forest(), s, observed=Y)
    pm.Potential("more", -s)


def with_leaf():
    s = pm.HalfNormal("s")
    mu = pmt.BART("mu", X, m=2, leaf=pmt.NormalLeaf(0.0, s), max_nodes=78)
    pm.Normal("y", mu, s, observed=Y)


def with_child():
    s = pm.HalfNormal("s")
    b = pm.Normal("b", 0, s)
    pm.Normal("y", forest() + b, s, observed=Y)


def with_another_law(law, **more):
    law("y", mu=forest(), sigma=pm.HalfNormal("s"), observed=Y, **more)


def with_not_observed():
    pm.Normal("y", forest(), pm.HalfNormal("s"))


def with_a_forest_above():
    mu = forest()
    pm.Normal("y", mu, pm.HalfNormal("s", pm.math.exp(mu[0])), observed=Y)


def without_forest():
    forest()
    pm.Normal("y", 0.0, pm.HalfNormal("s"), observed=Y)


def with_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        noise(lambda s: s, observed=MISSING)


def with_soft_tree():
    mu = pmt.SoftDecisionTree("mu", X, Y)
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=Y)


def with_total_size():
    pm.Normal("y", forest(), pm.HalfNormal("s"), observed=Y, total_size=100)


def long_vector():
    return pm.HalfNormal("s", shape=51)


def with_discrete():
    pm.Normal("y", forest(), 1.0 + pm.Poisson("s", 1.0), observed=Y)


LEFT = {
    "checked": lambda: noise(lambda s: Assert("small")(s, s < 9)),
    "in the mean too": with_mean,
    "another law too": with_another_law_too,
    "a long vector": lambda: pm.Normal("y", forest(), long_vector()[:20], observed=Y),
    "drawn in the sd": lambda: noise(lambda s: s * pm.math.exp(pm.Normal.dist(0, 1))),
    "a Potential": with_potential,
    "the leaf prior": with_leaf,
    "another variable": with_child,
    "Laplace": lambda: pm.Laplace("y", forest(), pm.HalfNormal("s"), observed=Y),
    "StudentT": lambda: with_another_law(pm.StudentT, nu=4),
    "SkewNormal": lambda: with_another_law(pm.SkewNormal, alpha=1.0),
    "Censored": lambda: pm.Censored(
        "y", pm.Normal.dist(forest(), pm.HalfNormal("s")), -9, 9, observed=Y
    ),
    "Truncated": lambda: pm.Truncated(
        "y", pm.Normal.dist(forest(), pm.HalfNormal("s")), -9, 9, observed=Y
    ),
    "not observed": with_not_observed,
    "a prior that sees the forest": with_a_forest_above,
    "a mean without forest": without_forest,
    "missing rows": with_missing,
    "soft tree": with_soft_tree,
    "a share of the rows": with_total_size,
    "discrete": with_discrete,
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name):
    with pm.Model() as model:
        TAKEN[name]()
        wanted = [rv for rv in model.free_RVs if rv.name in ("s", "t")]
        assert all(pmt.NoiseScale.competence(rv, True) is Competence.IDEAL for rv in wanted)
        assert pmt.NoiseScale().vars == [model.rvs_to_values[rv] for rv in wanted]
        others = [rv for rv in model.free_RVs if rv.name not in ("s", "t")]
        assert not any(pmt.NoiseScale.competence(rv, True) for rv in others)


@pytest.mark.parametrize("name", LEFT)
def test_left_to_pymc(name):
    with pm.Model() as model:
        LEFT[name]()
        for rv in model.free_RVs:
            assert pmt.NoiseScale.competence(rv, True) is Competence.INCOMPATIBLE, rv
        with pytest.raises(ValueError, match="vars: .*'s'.*Leave it to pm.sample"):
            pmt.NoiseScale([model["s"]])


BY_ROWS = {
    "known errors",
    "plus rows",
    "power of rows",
    "regression",
    "crossed groups",
    "groups with known errors",
    "groups by a product",
    "groups by choice",
}
QUICK = ["sigma", "known errors", "groups with exposure", "two groups", "regression"]


@pytest.mark.parametrize("name", tiers(TAKEN, quick=QUICK))
def test_the_density_is_that_of_the_model(name):
    """But for what does not see the variables. Some need all rows at each evaluation."""
    with pm.Model() as model:
        TAKEN[name]()
    step, rng = pmt.NoiseScale(model=model), np.random.default_rng(3)
    [block], point, logp = step._blocks, model.initial_point(), model.compile_logp()
    for rv in model.free_RVs:
        if rv.name in ("mu_forest", "nu_forest"):
            point[rv.name] = pm.draw(rv, random_seed=3)
    density, at = block._density.at(point), block.entries(point)
    own, whole = [], []
    for _ in range(4):
        values = block.values(at + rng.normal(0, 0.5, at.size), point)
        own.append(density(*values.values()))
        whole.append(float(logp(point | values)))
    np.testing.assert_allclose(np.diff(own), np.diff(whole), rtol=1e-9, atol=1e-11)
    assert np.abs(np.diff(whole)).min() > 1e-3
    assert (block._density._summed is None) is (name in BY_ROWS)


def test_assigned_by_itself_and_seen_in_the_statistics(caplog):
    caplog.set_level("INFO")
    with bart_model(n=20, m=2, sigma=None):
        found = sample(20, 20).sample_stats
    assert "NoiseScale: [sigma]" in caplog.text and "NUTS" not in caplog.text
    evaluations = found["noise_scale_evaluations"]
    assert evaluations.shape == (2, 20) and evaluations.dtype == np.int64
    assert evaluations.min() >= 3 and evaluations.mean() < 15


def test_assigned_outside_the_context_too(caplog):
    caplog.set_level("INFO")
    sample(3, 3, model=bart_model(n=20, m=2, sigma=None))
    assert "NoiseScale: [sigma]" in caplog.text and "NUTS" not in caplog.text


@pytest.mark.parametrize("name", tiers(["known errors", "groups", "regression"], quick=["groups"]))
def test_the_rest_of_a_run(name, caplog):
    """By pm.sample(): no NUTS, all entries move, and runs with one seed are the same."""
    caplog.set_level("INFO")
    with pm.Model() as model:
        TAKEN[name]()
        one, two = sample(60, 15, chains=1), sample(60, 15, chains=1)
    assert "NoiseScale: [s" in caplog.text and "NUTS" not in caplog.text
    drawn = one.posterior["s"].values
    assert (np.diff(drawn, axis=1) != 0).all()
    np.testing.assert_array_equal(drawn, two.posterior["s"].values)
    assert (name == "regression") is ("t" in one.posterior)
    assert model["s"].name in one.posterior


def test_vectors_go_on_where_they_were():
    """Widths and the directions of several entries are part of the state."""
    with pm.Model() as model:
        with_two_groups()
    step = make(model)
    points, _ = go(step, model.initial_point(), 80)
    step.stop_tuning()
    state = pickle.loads(pickle.dumps(step.sampling_state))
    on = go(step, points[-1], 12)
    assert set(state.widths) == {"s_log__", "t_log__"} and state.moments[0].n == 80
    for again in (step, make(model, 99), cloudpickle.loads(cloudpickle.dumps(step))):
        again.sampling_state = state
        assert_same(go(again, points[-1], 12), on)


def test_one_step_for_several_variables():
    with pm.Model() as model:
        pm.Normal("y", forest(), pm.HalfNormal("s"), observed=Y)
        pm.Normal("z", forest("nu"), pm.HalfNormal("t"), observed=-Y)
        step = pmt.NoiseScale()
        assert [v.name for v in step.vars] == ["s_log__", "t_log__"]
        found = sample(5, 5)
    assert found.sample_stats["noise_scale_evaluations"].min() >= 6
    assert model["t"].name in found.posterior


@pytest.mark.parametrize("kind", [pm.Slice, pm.NUTS, pm.Metropolis])
def test_a_step_of_the_users_own_is_respected(kind, caplog):
    caplog.set_level("INFO")
    with bart_model(n=20, m=2, sigma=None) as model:
        found = sample(4, 4, chains=1, step=[kind([model["sigma"]])])
    assert f"{kind.__name__}: [sigma]" in caplog.text and "NoiseScale" not in caplog.text
    assert "noise_scale_evaluations" not in found.sample_stats


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"target_accept": 0.9}, id="plain"),
        pytest.param({"nuts": {"target_accept": 0.9}}, id="nuts", marks=pytest.mark.full),
    ],
)
def test_options_for_nuts_ask_for_nuts(options, caplog):
    """PyMC refuses options of a step that has no variable."""
    caplog.set_level("INFO")
    with bart_model(n=20, m=2, sigma=None):
        sample(4, 4, chains=1, **options)
    assert "NUTS: [sigma]" in caplog.text and "NoiseScale" not in caplog.text
    caplog.clear()
    with pm.Model():
        with_regression()
        sample(4, 4, chains=1, **options)
    assert "NUTS: [b]" in caplog.text and "NoiseScale: [s]" in caplog.text


def test_beside_a_step_for_the_forest(caplog):
    caplog.set_level("INFO")
    with bart_model(n=20, m=2, sigma=None):
        sample(4, 4, chains=1, step=[pmt.CGM()])
    assert "NoiseScale: [sigma]" in caplog.text and "CGM: [mu_forest]" in caplog.text


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(sigma=None)


def make(model, seed=4):
    step = pmt.NoiseScale(model=model)
    step.setup_chain(np.random.default_rng(seed), 5, 50)
    return step


def test_seeds(model):
    with model:
        one, two, other = sample(8, 8), sample(8, 8), sample(8, 8, random_seed=2)
    same, differs = (
        one.posterior["sigma"].values == o.posterior["sigma"].values for o in (two, other)
    )
    assert same.all() and not differs.any()
    assert (one.posterior["sigma"].values[0] != one.posterior["sigma"].values[1]).any()


@pytest.mark.full
@pytest.mark.parametrize("mp_ctx", ["fork", "spawn"])
def test_other_processes_draw_the_same(model, mp_ctx):
    with model:
        here, there = sample(8, 8), sample(8, 8, cores=2, mp_ctx=mp_ctx)
    for name in ("sigma", "mu"):
        np.testing.assert_array_equal(here.posterior[name].values, there.posterior[name].values)


@pytest.mark.parametrize("tuned", [False, True])
def test_a_state_goes_on_where_it_was(model, tuned):
    step = make(model)
    points, _ = go(step, model.initial_point(), 15)
    if tuned:
        step.stop_tuning()
    state = pickle.loads(pickle.dumps(step.sampling_state))
    on = go(step, points[-1], 12)
    assert (step.widths == state.widths) is tuned
    for again in (step, make(model, 99), cloudpickle.loads(cloudpickle.dumps(step))):
        again.sampling_state = state
        assert_same(go(again, points[-1], 12), on)


def test_a_new_chain_forgets_the_old_one(model):
    used, start = make(model, 3), model.initial_point()
    go(used, start, 10)
    used.setup_chain(np.random.default_rng(4), 5, 50)
    assert_same(go(used, start, 10), go(make(model), start, 10))
    used.setup_chain(np.random.default_rng(4), 0, 50)
    width = dict(used.widths)
    go(used, start, 3)
    assert used.widths == width and not used.tune


def test_the_width_follows_the_posterior(model):
    step, point = make(model), model.initial_point()
    points, _ = go(step, point, 300)
    values = np.array([p["sigma_log__"] for p in points[100:]])
    assert 0.5 < step.widths["sigma_log__"] / (3.4 * values.std()) < 2


def test_from_afar(model):
    """Such starts have a density; the first draws come back by steps of the first width."""
    step, point = make(model), model.initial_point()
    points, _ = go(step, {**point, "sigma_log__": np.array(-40.0)}, 30)
    assert abs(points[-1]["sigma_log__"]) < 3


def test_it_does_not_write_into_its_input(model):
    step, point = make(model), model.initial_point()
    kept = {name: np.copy(value) for name, value in point.items()}
    step.step(point)
    for name, value in kept.items():
        np.testing.assert_array_equal(point[name], value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 800.0, -800.0])
def test_a_start_without_density(model, value):
    point = {**model.initial_point(), "sigma_log__": np.array(value)}
    with pytest.raises(ValueError, match="density of sigma is 0.*initvals"):
        make(model).step(point)


def test_rows_and_scales_that_are_no_numbers():
    with pm.Model() as model:
        w, y = pm.Data("w", ROWS), pm.Data("Y", Y)
        pm.Normal("y", forest(), pm.HalfNormal("s") * w, observed=y)
        step, point = pmt.NoiseScale(), model.initial_point()
        step.step(point)
        for name, bad in (("w", 0.0), ("w", -1.0), ("w", np.inf), ("Y", np.nan)):
            old = model[name].get_value()
            pm.set_data({name: np.where(np.arange(20) == 4, bad, old)})
            with pytest.raises(ValueError, match="y or the scale of its sd is not finite"):
                step.step(point)
            pm.set_data({name: old})
        step.step(point)


@pytest.mark.parametrize("wrong", ["mu", "nothing", "y", 3, np.ones(2)])
def test_anything_else_is_an_error(model, wrong):
    given = model.named_vars.get(wrong, wrong) if isinstance(wrong, str) else wrong
    with model, pytest.raises(ValueError, match=r"(?s)vars: .*sigma or tau.*pm.sample"):
        pmt.NoiseScale([given])


def test_without_any_noise_to_scale():
    with pm.Model():
        forest()
        with pytest.raises(ValueError, match="vars: nothing is not part of the sigma or tau"):
            pmt.NoiseScale()


def test_a_chain_goes_on_with_the_same_outputs():
    options = {"step": None, "random_seed": 3, "chains": 1, "cores": 1}
    with bart_model(sigma=None) as model:
        whole = sample(9, 5, **options)
        part = sample(4, 5, **options)
        both = pmt.resume(part, model, draws=5, progressbar=False)
    np.testing.assert_array_equal(both.posterior["sigma"], whole.posterior["sigma"])
    np.testing.assert_array_equal(both.posterior["mu"], whole.posterior["mu"])
