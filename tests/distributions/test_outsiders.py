"""Methods that know no forests end in an error with a remedy, or only in valid forests."""

import inspect

import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.compound import BlockedStep
from support.small_models import FAST, bart_model, forest_of, sample
from support.soft_models import regression

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def model(quick_compile):
    return bart_model(n=20, m=2, sigma=None, max_nodes=20)


def assert_only_forests(model, draws):
    logp = model.compile_logp(vars=[model["mu_forest"]])
    for value in draws.reshape(-1, *draws.shape[-2:]):
        assert np.isfinite(logp({**model.initial_point(), "mu_forest": value}))


WALKS = [
    pm.Metropolis,
    pm.DEMetropolis,
    pm.DEMetropolisZ,
    pm.Slice,
    pm.NUTS,
    pm.HamiltonianMC,
    pm.BinaryMetropolis,
    pm.BinaryGibbsMetropolis,
    pm.CategoricalGibbsMetropolis,
]


@pytest.mark.parametrize("step", WALKS)
@pytest.mark.parametrize("soft", [False, True])
def test_steps_that_walk_vectors_refuse_trees(model, soft_model, step, soft):
    model = soft_model if soft else model
    forest = model["mu_forest"]
    said = rf"{step.__name__} .*cannot sample \['mu_forest'\].*pymc_trees\.(CGM|DCCTree)"
    given = ([forest], forest, [model.rvs_to_values[forest]], [model["sigma"], forest])
    with model:
        for variables in given:
            with pytest.raises(NotImplementedError, match=said):
                step(variables)
        with pytest.raises(NotImplementedError, match=said):
            step(vars=[forest], blocked=False)
        with pytest.raises(NotImplementedError, match=said):
            step()
    with pytest.raises(NotImplementedError, match=said):
        step([forest], model=model)


@pytest.fixture(scope="module")
def soft_model(quick_compile):
    return regression(n=20)[0]


@pytest.mark.parametrize("step", [pm.Metropolis, pm.Slice])
def test_they_move_everything_else(model, step):
    with model:
        walk = step([model["sigma"]])
    assert [v.name for v in walk.vars] == ["sigma_log__"]
    with pm.Model():
        pm.Normal("x")
        assert [v.name for v in step().vars] == ["x"]


@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax"])
def test_samplers_of_other_libraries_are_refused(model, soft_model, sampler):
    for each in (model, soft_model):
        said = rf"nuts_sampler='{sampler}' cannot sample \['mu_forest'\].*PyMC's own sampler"
        with each, pytest.raises(NotImplementedError, match=said):
            pm.sample(5, nuts_sampler=sampler)
        with pytest.raises(NotImplementedError, match=said):
            pm.sample(5, nuts_sampler=sampler, model=each)
    with model:
        sample(2, 2, nuts_sampler="pymc")


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: pm.find_MAP(),  # looked up when called: the package replaces it
        lambda: pm.find_MAP(method="powell"),
        lambda: pm.find_MAP(vars=[pm.modelcontext(None)["mu_forest"]]),
        lambda: pm.sample_smc(20, chains=1, cores=1, progressbar=False),
        lambda: pm.sample_smc(20, kernel=pm.smc.MH, chains=1, cores=1, progressbar=False),
        lambda: pm.fit(5, progressbar=False),
        lambda: pm.fit(5, method="fullrank_advi", progressbar=False),
        lambda: pm.fit(2, method="svgd", progressbar=False),
        pm.NUTS,
        pm.HamiltonianMC,
    ],
)
def test_vector_methods_refuse_and_name_the_remedy(model, attempt):
    with model, pytest.raises(NotImplementedError, match=r"pymc_trees\.Hybrid"):
        attempt()


def optimum(**options):
    """What `pymc.find_MAP` finds; PyMC 6.3 does not jitter and returns a dict."""
    if "jitter" in inspect.signature(pm.find_MAP).parameters:
        options |= {"jitter": False, "return_inferencedata": True}
    best = pm.find_MAP(progressbar=False, **options)
    return getattr(best, "posterior", best)


def test_refusals_leave_the_rest_alone(model):
    with model:
        assert "sigma" in optimum(vars=[model["sigma"]])
    with pm.Model():
        x = pm.Normal("x")
        pm.Normal("y", x, observed=2.0)
        best = optimum()
        idata = pm.sample_smc(50, chains=1, cores=1, random_seed=1, **FAST)
    np.testing.assert_allclose(best["x"].item(), 1.0, atol=1e-4)
    assert idata.posterior["x"].shape == (1, 50)


def test_initvals(model):
    forest, layout, _ = forest_of(model)
    noise = np.random.default_rng(1).normal(size=layout.shape)
    with model:
        for start in ("prior", "support_point", pm.draw(forest, random_seed=3)):
            idata = sample(4, 2, initvals={"mu_forest": start})
            assert_only_forests(model, idata.posterior["mu_forest"].values)
        with pytest.raises(ValueError, match="mu_forest is not a forest of this model.*initvals"):
            sample(4, 2, initvals={"mu_forest": noise})
        with pytest.raises((ValueError, TypeError)):
            sample(4, 2, initvals={"mu_forest": noise[:3]})
        idata = sample(4, 2, init="jitter+adapt_diag")
    assert_only_forests(model, idata.posterior["mu_forest"].values)


class Still(BlockedStep):
    """Leaves everything where it is."""

    def __init__(self, vars, **options):
        self.vars = [pm.modelcontext(None).rvs_to_values[v] for v in vars]

    def step(self, point):
        return point, [{}]


def test_a_start_is_where_the_chain_starts(model):
    forest, layout, _ = forest_of(model)
    start = pm.draw(forest, random_seed=3)
    with model:
        idata = sample(2, 0, initvals={"mu_forest": start}, step=[Still([forest])])
    assert (idata.posterior["mu_forest"].values == start).all()
