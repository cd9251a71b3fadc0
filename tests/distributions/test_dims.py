"""Named dimensions (`pymc.dims`): what is read of a model, and drawn, is as without the names."""

import warnings

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytest
import xarray as xr
from pytensor.xtensor.type import XTensorVariable
from support.small_models import sample
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.step_methods.kernels.likelihood_parameters import read_nuisances
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.noise import read_noise

pytestmark = pytest.mark.usefixtures("quick_compile")

N = 24
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
Y = 2 * X[:, 0] + RNG.normal(size=N)
COUNTS = RNG.poisson(2, size=N)
GROUP = np.arange(N) % 3
COORDS = {
    "row": np.arange(N),
    "column": ["a", "b"],
    "group": list("uvw"),
    "species": ["s", "t"],
    "label": [0, 1, 2],
}
SHORT = {"draws": 4, "tune": 4, "chains": 1, "random_seed": 5}


class Plain:
    """How a model is written without names; `Named` has the same methods for one with them."""

    P = pm
    math = pm.math

    def data(self, name, values, *dims):
        return pm.Data(name, values, dims=dims)

    def observed(self, values, *dims):
        return np.asarray(values)

    def function(self, name, m=3, sd=0.5, **settings):
        X = pm.modelcontext(None).named_vars.get("X")
        X = self.data("X", globals()["X"], "row", "column") if X is None else X
        settings.setdefault("leaf", pmt.NormalLeaf(0, sd))
        return pmt.BART(name, X, m=m, **{"dims": "row"} | settings)

    def as_long_as(self, function):
        """What an observed variable needs to follow the rows of a prediction."""
        return {"shape": function.shape}

    def of_groups(self, name, sd):
        return pm.Normal(name, 0, sd, dims="group")[self.data("which", GROUP, "row")]


class Named(Plain):
    P = pmd
    math = pmd.math

    def data(self, name, values, *dims):
        return pmd.Data(name, values, dims=dims)

    def observed(self, values, *dims):
        return xr.DataArray(values, dims=dims or ("row",))

    def as_long_as(self, function):
        return {}

    def of_groups(self, name, sd):
        effect = pmd.Normal(name, 0, sd, dims="group")
        return effect.isel(group=self.data("which", GROUP, "row"))


def normal(w):
    w.P.Normal("y", w.function("mu"), w.P.HalfNormal("sigma"), observed=w.observed(Y))


def lognormal(w):
    sigma = w.P.HalfNormal("sigma")
    w.P.LogNormal("y", w.function("mu"), 2 * sigma, observed=w.observed(np.exp(Y)))


def groups(w):
    sigma, tau = w.P.HalfNormal("sigma"), w.P.HalfNormal("tau")
    eta = w.P.Deterministic("eta", w.function("mu") + w.of_groups("effect", tau))
    w.P.Normal("y", eta, sigma, observed=w.observed(Y), **w.as_long_as(eta))


def sd_of_forest(w):
    mu, log_sd = w.function("mu"), w.function("log_sd", sd=0.3)
    w.P.Normal("y", mu, w.math.exp(log_sd), observed=w.observed(Y))


def student(w):
    sigma, nu = w.P.HalfNormal("sigma"), w.P.Gamma("nu", 2.0, 0.1)
    w.P.StudentT("y", nu=nu, mu=w.function("mu"), sigma=sigma, observed=w.observed(Y))


def bernoulli(w):
    w.P.Bernoulli("y", logit_p=w.function("mu"), observed=w.observed(Y > 1))


def censored(w):
    law = w.P.Normal.dist(w.function("mu"), w.P.HalfNormal("sigma"))
    w.P.Censored("y", law, lower=None, upper=1.5, observed=w.observed(np.minimum(Y, 1.5)))


def poisson(w):
    exposure = w.data("exposure", 1.0 + GROUP, "row")
    w.P.Poisson("y", exposure * w.math.exp(w.function("mu")), observed=w.observed(COUNTS))


def negative_binomial(w):
    mean, alpha = w.math.exp(w.function("mu")), w.P.Exponential("alpha", 1.0)
    w.P.NegativeBinomial("y", mu=mean, alpha=alpha, observed=w.observed(COUNTS))


def weibull(w):
    alpha = w.P.Exponential("alpha", 1.0)
    observed = w.observed(np.exp(Y))
    w.P.Weibull("y", alpha=alpha, beta=w.math.exp(w.function("mu")), observed=observed)


def potential(w):
    sigma, y = w.P.HalfNormal("sigma"), w.data("y", Y, "row")
    w.P.Potential("p", -0.5 * ((y - w.function("mu")) / sigma) ** 2 - w.math.log(sigma))


def outputs(w):
    """One sd each, and observations whose axes have another order."""
    both = w.function("mu", dims=("species", "row"))
    sigma = w.P.HalfNormal("sigma", dims="species")
    if isinstance(w, Named):
        y = xr.DataArray(np.stack([Y, Y + 1], axis=1), dims=("row", "species"))
        pmd.Normal("y", both, sigma, dims=("species", "row"), observed=y)
    else:
        pm.Normal("y", both, sigma[:, None], observed=np.stack([Y, Y + 1]))


def softmax(w):
    f = w.function("mu", dims=("label", "row"))
    if isinstance(w, Named):
        pmd.Categorical("y", logit_p=f, core_dims="label", observed=w.observed(GROUP))
    else:
        pm.Categorical("y", logit_p=f.T, observed=GROUP)


def classes(w):
    settings = {"leaf": pmt.DirichletLeaf(3.0, 3), "dims": ("row", "label")}
    X = w.data("X", globals()["X"], "row", "column")
    p = pmt.DecisionTree("mu", X, **settings)
    core = {"core_dims": "label"} if isinstance(w, Named) else {}
    w.P.Categorical("y", p, observed=w.observed(GROUP), **core)


def priors(w):
    sd, alpha = w.P.HalfNormal("sd"), w.P.Beta("alpha", 20, 1)
    ones = w.data("ones", np.ones(2), "column")
    core = {"core_dims": "column"} if isinstance(w, Named) else {}
    weights = w.P.Dirichlet("weights", ones, **core)
    leaf = pmt.NormalLeaf(0, sd)
    mu = w.function("mu", leaf=leaf, alpha=alpha, split_prior=weights)
    w.P.Normal("y", mu, 1.0, observed=w.observed(Y))


KINDS = {
    normal: "NormalLikelihood",
    lognormal: "NormalLikelihood",
    groups: "NormalLikelihood",
    sd_of_forest: "NormalLikelihood LogSdLikelihood",
    student: "Student",
    bernoulli: "Logit",
    censored: "CensoredNormal",
    poisson: "PoissonLikelihood",
    negative_binomial: "NegativeBinomialLikelihood",
    weibull: "WeibullLikelihood",
    potential: "RowwiseTarget",
    outputs: "NormalLikelihood NormalLikelihood",
    softmax: "SoftmaxLikelihood SoftmaxLikelihood SoftmaxLikelihood",
    classes: "DirichletLikelihood",
    priors: "NormalLikelihood",
}


def written(of, way):
    with pm.Model(coords=COORDS) as model:
        of(way())
    return model


def what_is_read(model):
    """Kinds of the targets, and names of the variables that are drawn with forests."""
    kinds, drawn = [], set()
    for rv in model.free_RVs:
        if rv.name.endswith("_forest"):
            target = read_target(model, rv)
            kind = getattr(target, "likelihood", None) or getattr(target, "law", None) or target
            kinds.append(type(kind).__name__)
            drawn |= {v.name for v in read_nuisances(model, rv, target)}
        elif read_noise(model, rv):
            drawn.add(f"{rv.name} as noise")
    return " ".join(kinds), drawn


@pytest.mark.parametrize("of", KINDS, ids=lambda of: of.__name__)
def test_the_same_is_read(of):
    named, plain = written(of, Named), written(of, Plain)
    found = what_is_read(without_dims(named))
    assert found == what_is_read(plain)
    assert found[0] == KINDS[of]
    assert without_dims(plain) is plain
    assert without_dims(named) is without_dims(named)


@pytest.mark.parametrize(
    "of",
    tiers(KINDS, [normal, groups, outputs], single=True),
    ids=lambda of: of.__name__,
)
def test_the_same_draws(of):
    found = []
    for way in (Named, Plain):
        with written(of, way) as model:
            # PyMC has no gradient of a pmd.Potential, and assigns another step than without names
            step = [pm.Slice([model["sigma"]])] if of is potential else None
            found.append(sample(**SHORT, step=step))
    named, plain = found
    assert set(named.posterior.data_vars) == set(plain.posterior.data_vars)
    assert set(named.sample_stats.data_vars) == set(plain.sample_stats.data_vars)
    for name in plain.posterior.data_vars:
        np.testing.assert_array_equal(named.posterior[name], plain.posterior[name], err_msg=name)
    forest = next(name for name in plain.posterior if name.endswith("_forest"))
    assert (named.posterior[forest].diff("draw") != 0).any()


def test_names_in_names_out():
    with pm.Model(coords=COORDS) as model:
        given = pmd.Data("X", X, dims=("row", "column"))
        leaf = pmt.NormalLeaf(0, 1)
        functions = {
            "mu": pmt.BART("mu", given, Y, m=2),
            "soft": pmt.SoftBART("soft", given, Y, m=2),
            "tree": pmt.SoftDecisionTree("tree", given, Y),
            "held": pmt.BART("held", pmd.as_xtensor(pmt.Data("Z", X), dims=("row", "c")), Y, m=2),
            "free": pmt.evaluate(pmt.Forest("free_forest", given, m=2, leaf=leaf), given),
        }
        basis = pmd.as_xtensor(np.ones((N, 1)), dims=("row", "one"))
        functions["slope"] = pmt.BART("slope", given, m=2, leaf=pmt.BasisLeaf(basis))
        mean, precision = pmt.DecisionTree("both", given, leaf=pmt.NormalGammaLeaf())
        several = pmt.BART("several", given, Y, m=2, dims=("species", "row"))
        plain = pmt.BART("plain", X, Y, m=2, dims="row")
    for name, function in {**functions, "both": mean, "both_precision": precision}.items():
        assert isinstance(function, XTensorVariable)
        assert function.dims == ("row",)
        assert name == "free" or model.named_vars_to_dims[function.name] == ("row",)
    assert several.dims == ("species", "row")
    assert not isinstance(plain, XTensorVariable)
    assert pmd.as_xtensor(plain, dims=("row",)).dims == ("row",)
    with model:
        for one in (functions["mu"], pmd.as_xtensor(plain, dims=("row",)), "mu"):
            assert len(pmt.CGM([one]).forests) == 1


OTHERS = {
    "names": pd.DataFrame(np.eye(3)[:, :2], columns=["c", "d"]),
    "widths": pd.DataFrame(np.eye(3), columns=["c", "d", "e"]),
    "rows": pd.DataFrame(np.eye(4)[:, :2], columns=["a", "b"]),
}


@pytest.mark.parametrize("other", tiers(list(OTHERS), ["widths"]))
def test_nested_models_have_dimensions_of_their_own(other):
    tables = {"n": pd.DataFrame(np.eye(3)[:, 1:], columns=["a", "b"]), "s": OTHERS[other]}
    with pm.Model() as model:
        for name, table in tables.items():
            with pm.Model(name=name):
                mu = pmt.BART("mu", table, m=2, leaf=pmt.NormalLeaf(0, 1))
                pm.Normal("y", mu, 1.0, observed=np.zeros(len(table)), shape=mu.shape)
    data = pm.sample_prior_predictive(2, model=model, random_seed=1).constant_data
    for name, table in tables.items():
        found = data[f"{name}::mu_X"]
        np.testing.assert_array_equal(found, table)
        assert list(found[f"{name}::mu_X_column"].values) == list(table.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pmt.set_data({"s::mu_X": OTHERS[other].iloc[:2]}, model)
    assert model["s::mu_X"].get_value().shape == (2, OTHERS[other].shape[1])


def test_other_names_are_refused_with_what_works():
    with pm.Model(coords={**COORDS, "observation": np.arange(N)}) as model:
        given = pmd.Data("X", X, dims=("row", "column"))
        with pytest.raises(ValueError, match=r"the rows 'row', but dims='observation'.*same name"):
            pmt.BART("mu", given, Y, m=2, dims="observation")
        renamed = given.rename({"row": "observation"})
        assert pmt.BART("renamed", renamed, Y, m=2, dims="observation").dims == ("observation",)
        turned = given.transpose("column", "row")
        with pytest.raises(ValueError, match=r"give X.transpose\('row', 'column'\)"):
            pmt.BART("mu", turned, Y, m=2, dims="row")
        assert pmt.BART("turned", turned.transpose("row", "column"), Y, m=2).dims == ("row",)
        with pytest.raises(ValueError, match=r"mu has 2: name them with dims=, using 'row'"):
            pmt.BART("mu", given, Y, m=2, shape=(2, N))
        with pytest.raises(ValueError, match="X has the dimensions .'row',.: give two"):
            pmt.BART("mu", given.isel(column=0), Y, m=2)
        forest = pmt.Forest("f", given, m=1, leaf=pmt.DirichletLeaf(1.0, 2))
        with pytest.raises(ValueError, match=r"X.values, and name them all by pymc.dims.as_xten"):
            pmt.evaluate(forest, given)
        p = pmd.as_xtensor(pmt.evaluate(forest, given.values), dims=("row", "label"))
        assert p.dims == ("row", "label")
    assert "mu" not in model.named_vars


@pytest.fixture(scope="module")
def fits(quick_compile):
    models = [written(groups, way) for way in (Named, Plain)]
    return [(model, sample(**SHORT, model=model)) for model in models]


def test_predictions_are_the_same(fits):
    new = RNG.random((5, 2))
    found = []
    for model, idata in fits:
        quiet = {"var_name": "mu", "progressbar": False}
        found.append(
            [
                pmt.predictions(idata, model, new, **quiet),
                pmt.partial_dependence(idata, model, 0, **quiet),
                pmt.comparisons(idata, model, {1: (0.2, 0.8)}, **quiet),
            ]
        )
        log_likelihood = pm.compute_log_likelihood(
            idata, model=model, extend_inferencedata=False, progressbar=False
        )
        with model:
            pmt.set_data({"X": new, "which": GROUP[:5]}, coords={"row": np.arange(5)})
            drawn = pm.sample_posterior_predictive(
                idata,
                var_names=["mu", "eta", "y"],
                random_seed=1,
                predictions=True,
                progressbar=False,
            ).predictions
            pmt.set_data({"X": X, "which": GROUP}, coords={"row": np.arange(N)})
        np.testing.assert_array_equal(drawn["mu"], found[-1][0]["prediction"])
        found[-1] += [log_likelihood["y"], drawn["eta"], drawn["y"]]
    for named, plain in zip(*found, strict=True):
        if isinstance(plain, xr.Dataset):
            xr.testing.assert_identical(named, plain)
        else:
            np.testing.assert_array_equal(named, plain)
    assert drawn["y"].shape == (1, 4, 5)


def test_new_data_of_names_are_checked_as_others(fits):
    (model, _), _ = fits
    with model:
        with pytest.raises(ValueError, match="X has 3 columns"):
            pmt.set_data({"X": np.ones((N, 3))})
        pm.set_data({"X": X + 1})
        with pytest.raises(NotImplementedError, match="set the data back with pm.set_data"):
            sample(**SHORT)
        pm.set_data({"X": X})
        assert len(sample(**SHORT).posterior["draw"]) == 4


def test_steps_of_variables_with_names():
    model = written(priors, Named)
    with model:
        assert [v.name for v in pmt.SplitWeights().vars] == ["weights_simplex__"]
    with written(lognormal, Named):
        assert [v.name for v in pmt.NoiseScale().vars] == ["sigma_log__"]


def test_frames_keep_their_columns():
    frame = pd.DataFrame({"city": ["u", "v"] * (N // 2), "wind": X[:, 0]})
    with pm.Model(coords={"row": np.arange(N), "column": list(frame)}) as model:
        given = pmt.Data("X", frame, dims=("row", "column"))
        mu = pmt.BART("mu", pmd.as_xtensor(given, dims=("row", "column")), Y, m=2)
        pmd.Normal("y", mu, 1.0, observed=pmd.as_xtensor(Y, dims=("row",)))
    for known in (model, without_dims(model)):
        assert schema_of(known["mu_forest"]).names == ("city", "wind")
        assert schema_of(known["X"]).levels == (("u", "v"), None)


def test_a_model_that_grows_is_read_anew():
    model = written(normal, Named)
    before = without_dims(model)
    with model:
        pmd.Normal("more")
    assert "more" in without_dims(model).named_vars
    assert without_dims(model) is not before
