"""Groups that were not seen: entries of each prior against its formulae, draw by draw."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")

N, DRAWS = 12, 2000
SEEN, NEW = ["a", "b", "c"], ["d", "e"]
RNG = np.random.default_rng(4)
X = RNG.random((N, 2))
ALPHA = 1e-4
"""Of each test of Kolmogorov and Smirnov; there are some thirty, so one run in 300 would fail."""


def declare(prior, **data):
    """A model with a forest and group effects ``a``, which ``prior`` declares."""
    with pm.Model(coords={"school": SEEN}) as model:
        rows, g = pmt.Data("X", X), pm.Data("g", np.arange(N) % 3)
        for name, values in data.items():
            pm.Data(name, values, dims="school")
        a = prior(model)
        f = pmt.BART("f", rows, X[:, 0], m=2)
        pm.Normal("y", f + (a[g] if a.ndim == 1 else a[g, 0]), 0.1, observed=X[:, 0], shape=f.shape)
    return model


def prior_draws(model, n=DRAWS, seed=1, without=("y",)):
    """Draws of the prior, as a posterior: hyperparameters differ from draw to draw."""
    names = [v.name for v in model.unobserved_RVs if v.name not in without]
    with model:
        found = pm.sample_prior_predictive(n, random_seed=seed, var_names=names)
    found["posterior"] = found["prior"].copy()
    return found


def predict(model, idata, coords, names, seed=2, **data):
    """Draws of some variables with the new coordinates; the model is set back."""
    with model:
        before = {"g": model["g"].get_value()}
        before |= {name: model[name].get_value() for name in data}
        pmt.set_data(
            {"g": np.array([0, len(coords) - 1]), "X": X[:2], **data}, coords={"school": coords}
        )
        try:
            found = pm.sample_posterior_predictive(
                idata, predictions=True, var_names=names, random_seed=seed, progressbar=False
            )
        finally:
            pmt.set_data({**before, "X": X}, coords={"school": SEEN})
    return {name: found.predictions[name].to_numpy()[0] for name in names}


def uniform(values):
    """Fail unless numbers are uniform: those of a distribution function at its own draws."""
    for column in np.reshape(values, (len(values), -1)).T:
        assert stats.kstest(column, "uniform").pvalue > ALPHA


def tau_and_mean():
    """Hyperparameters."""
    return pm.HalfNormal("tau", 1.0), pm.Normal("mu_a", 0.0, 2.0)


def centred(model):
    tau, mean = tau_and_mean()
    return pm.Normal("a", mean, tau, dims="school")


def student(model):
    tau, mean = tau_and_mean()
    return pm.StudentT("a", nu=3.0, mu=mean, sigma=tau, dims="school")


def with_covariate(model):
    tau, mean = tau_and_mean()
    return pm.Normal("a", mean * model["u"], tau, dims="school")


def gamma(model):
    tau, mean = tau_and_mean()
    return pm.Gamma("a", 2.0, 1.0 / tau, dims="school")


SCALAR = {
    "centred": (centred, {}, lambda a, tau, mean, u: stats.norm.cdf(a, mean, tau)),
    "StudentT": (student, {}, lambda a, tau, mean, u: stats.t.cdf(a, 3.0, mean, tau)),
    "Gamma": (gamma, {}, lambda a, tau, mean, u: stats.gamma.cdf(a, 2.0, scale=tau)),
    "a covariate of groups": (
        with_covariate,
        {"u": np.array([1.0, 2.0, 3.0])},
        lambda a, tau, mean, u: stats.norm.cdf(a, mean * u, tau),
    ),
}


@pytest.mark.parametrize("kind", SCALAR)
def test_independent_entries_are_drawn_from_their_population(kind):
    prior, data, cdf = SCALAR[kind]
    model = declare(prior, **data)
    idata = prior_draws(model)
    u = np.array([1.0, 2.0, 3.0, -1.0, 0.5])
    new = {"u": u} if data else {}
    found = predict(model, idata, SEEN + NEW, ["a"], **new)["a"]
    old = {
        name: idata.posterior[name].to_numpy()[0]
        for name in ("a", "tau", "mu_a")
        if name in idata.posterior
    }
    np.testing.assert_array_equal(found[:, :3], old["a"])
    tau, mean = old["tau"][:, None], old.get("mu_a", np.zeros(DRAWS))[:, None]
    uniform(cdf(found[:, 3:], tau, mean, u[3:]))
    assert abs(np.corrcoef(found[:, 3], found[:, 4])[0, 1]) < 1.0  # two numbers, not one


def test_labels_decide_which_groups_are_known():
    """In any order, some left out: each known label keeps its own draws."""
    model = declare(centred)
    idata = prior_draws(model, 50)
    old = idata.posterior["a"].to_numpy()[0]
    found = predict(model, idata, ["c", "z", "a"], ["a"])["a"]
    np.testing.assert_array_equal(found[:, [0, 2]], old[:, [2, 0]])
    assert not np.isin(found[:, 1], old).any()


def test_not_centred():
    """New entries of z; effects follow, and a Deterministic that was stored is computed anew."""

    def prior(model):
        tau, mean = tau_and_mean()
        z = pm.Normal("z", dims="school")
        return pm.Deterministic("a", mean + tau * z, dims="school")

    model = declare(prior)
    idata = prior_draws(model)
    found = predict(model, idata, ["a", "d", "b", "c"], ["a", "z"])
    post = {name: idata.posterior[name].to_numpy()[0] for name in ("a", "z", "tau", "mu_a")}
    np.testing.assert_array_equal(found["z"][:, [0, 2, 3]], post["z"])
    np.testing.assert_allclose(found["a"][:, [0, 2, 3]], post["a"])
    uniform(stats.norm.cdf(found["a"][:, 1], post["mu_a"], post["tau"]))


def test_correlated_slopes():
    """Rows of an MvNormal are independent: each is drawn with the covariance of the draw."""

    def prior(model):
        chol, *_ = pm.LKJCholeskyCov("chol", n=2, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0, shape=2))
        model.add_coord("effect", ["intercept", "slope"])
        return pm.MvNormal("a", np.zeros(2), chol=chol, dims=("school", "effect"))

    model = declare(prior)
    idata = prior_draws(model, without=("y", "chol_corr", "chol_stds"))
    found = predict(model, idata, SEEN + NEW, ["a"])["a"]
    post = {name: idata.posterior[name].to_numpy()[0] for name in ("a", "chol")}
    np.testing.assert_array_equal(found[:, :3], post["a"])
    L = np.zeros((DRAWS, 2, 2))
    L[:, [0, 1, 1], [0, 0, 1]] = post["chol"]
    for k in (3, 4):
        uniform(stats.norm.cdf(np.linalg.solve(L, found[:, k, :, None])[..., 0]))


def test_a_random_walk_goes_on():
    def prior(model):
        tau, _ = tau_and_mean()
        return pm.GaussianRandomWalk(
            "a", 0.3, tau, init_dist=pm.Normal.dist(0.0, 1.0), dims="school"
        )

    model = declare(prior)
    idata = prior_draws(model)
    found = predict(model, idata, SEEN + NEW, ["a"])["a"]
    old, tau = (idata.posterior[name].to_numpy()[0] for name in ("a", "tau"))
    np.testing.assert_array_equal(found[:, :3], old)
    uniform(stats.norm.cdf(np.diff(found[:, 2:], axis=1), 0.3, tau[:, None]))
    for wrong in (["a", "b", "d", "c"], ["b", "c", "d"]):
        with pytest.raises(ValueError, match="first and in their order"):
            predict(model, idata, wrong, ["a"])


def test_a_walk_with_other_innovations_goes_on():
    def prior(model):
        return pm.RandomWalk(
            "a",
            innovation_dist=pm.Laplace.dist(0.0, tau_and_mean()[0]),
            init_dist=pm.Normal.dist(),
            dims="school",
        )

    model = declare(prior)
    idata = prior_draws(model)
    found = predict(model, idata, SEEN + NEW, ["a"])["a"]
    tau = idata.posterior["tau"].to_numpy()[0]
    uniform(stats.laplace.cdf(np.diff(found[:, 2:], axis=1), 0.0, tau[:, None]))


def test_a_walk_of_increments_goes_on():
    """Not centred: a sum of increments of which the known come first; else an error."""

    def prior(model):
        z = pm.Normal("z", dims="school")
        return pm.Deterministic("a", tau_and_mean()[0] * pm.math.cumsum(z), dims="school")

    model = declare(prior)
    idata = prior_draws(model)
    found = predict(model, idata, SEEN + NEW, ["a"])["a"]
    old, tau = (idata.posterior[name].to_numpy()[0] for name in ("a", "tau"))
    np.testing.assert_allclose(found[:, :3], old)
    uniform(stats.norm.cdf(np.diff(found[:, 2:], axis=1), 0.0, tau[:, None]))
    with pytest.raises(ValueError, match="changes with the new ones"):
        predict(model, idata, ["a", "d", "b", "c"], ["a"])


PLACES = np.array([0.0, 0.4, 1.0, 0.5, 1.3])


def kernel(x, tau):
    """Covariance of effects at places."""
    return tau**2 * (
        pm.math.exp(-((x[:, None] - x[None, :]) ** 2)) + 0.1 * pm.math.eq(x[:, None], x[None, :])
    )


def test_a_vector_with_a_covariance():
    """Given the known entries: whitened residuals of the conditional Gaussian, in any order."""

    def prior(model):
        tau, mean = tau_and_mean()
        return pm.MvNormal(
            "a", mean * pm.math.ones_like(model["x"]), kernel(model["x"], tau), dims="school"
        )

    model = declare(prior, x=PLACES[:3])
    idata = prior_draws(model)
    order = np.array([3, 0, 4, 1, 2])
    labels = np.array(SEEN + NEW)[order].tolist()
    found = predict(model, idata, labels, ["a"], x=PLACES[order])["a"]
    found = found[:, np.argsort(order)]
    old, tau, mean = (idata.posterior[name].to_numpy()[0] for name in ("a", "tau", "mu_a"))
    np.testing.assert_array_equal(found[:, :3], old)
    K = np.exp(-((PLACES[:, None] - PLACES) ** 2)) + 0.1 * np.eye(5)
    gain = K[3:, :3] @ np.linalg.inv(K[:3, :3])
    cov = K[3:, 3:] - gain @ K[:3, 3:]
    expected = mean[:, None] + (old - mean[:, None]) @ gain.T
    apart = (found[:, 3:] - expected) / tau[:, None]
    uniform(stats.norm.cdf(np.linalg.solve(np.linalg.cholesky(cov), apart.T).T))
    # other places of known groups are another prior of them
    with pytest.raises(ValueError, match="is another one with the new labels"):
        predict(model, idata, SEEN + NEW, ["a"], x=PLACES + [0.0, 0.1, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="must hold the 3 labels of the draws too"):
        predict(model, idata, ["a", "d"], ["a"], x=PLACES[[0, 3]])


def test_deviations_that_sum_to_zero():
    """N(0, sigma^2 (1 + 1/K)) each, of which the mean of the known groups is common to all."""

    def prior(model):
        return pm.ZeroSumNormal("a", tau_and_mean()[0], dims="school")

    model = declare(prior)
    idata = prior_draws(model)
    found = predict(model, idata, SEEN + NEW, ["a"])["a"]
    old, tau = (idata.posterior[name].to_numpy()[0] for name in ("a", "tau"))
    np.testing.assert_array_equal(found[:, :3], old)
    cov = np.eye(2) + 1 / 3
    uniform(
        stats.norm.cdf(np.linalg.solve(np.linalg.cholesky(cov), (found[:, 3:] / tau[:, None]).T).T)
    )


def test_nested_and_crossed_factors():
    """Schools of new districts, and items beside them: each is completed by its own labels."""
    with pm.Model(coords={"school": SEEN, "district": ["p", "q"], "item": [1, 2, 3]}) as model:
        rows, g = pmt.Data("X", X), pm.Data("g", np.arange(N) % 3)
        district = pm.Data("district_of", np.array([0, 1, 1]), dims="school")
        item = pm.Data("i", np.arange(N) % 3)
        tau = pm.HalfNormal("tau")
        d = pm.Normal("d", 0.0, 3.0, dims="district")
        a = pm.Normal("a", d[district], tau, dims="school")
        b = pm.Normal("b", 5.0, 1.0, dims="item")
        f = pmt.BART("f", rows, X[:, 0], m=2)
        pm.Normal("y", f + a[g] + b[item], 0.1, observed=X[:, 0], shape=f.shape)
    idata = prior_draws(model)
    coords = {"school": [*SEEN, "d"], "district": ["p", "q", "r"], "item": [3, 4]}
    new = {
        "X": X[:2],
        "g": np.array([0, 3]),
        "district_of": np.array([0, 1, 1, 2]),
        "i": np.array([0, 1]),
    }
    with model:
        pmt.set_data(new, coords=coords)
        found = pm.sample_posterior_predictive(
            idata,
            predictions=True,
            var_names=["d", "a", "b", "y", "f"],
            random_seed=1,
            progressbar=False,
        ).predictions
    d, a, b, y, f = (found[name].to_numpy()[0] for name in ("d", "a", "b", "y", "f"))
    tau = idata.posterior["tau"].to_numpy()[0]
    uniform(stats.norm.cdf(d[:, 2], 0.0, 3.0))
    uniform(stats.norm.cdf(a[:, 3], d[:, 2], tau))
    uniform(stats.norm.cdf(b[:, 1], 5.0, 1.0))
    np.testing.assert_array_equal(b[:, 0], idata.posterior["b"].to_numpy()[0, :, 2])
    # the rows use them
    mean = f + np.stack([a[:, 0], a[:, 3]], axis=1) + b
    uniform(stats.norm.cdf(y, mean, 0.1))


def test_in_another_process(tmp_path):
    """Draws from a file, and a model built anew: the same numbers as here."""
    model = declare(centred)
    idata = prior_draws(model, 30)
    here = predict(model, idata, SEEN + NEW, ["a"])["a"]
    pmt.save(idata, tmp_path / "draws.nc")
    read = xr.open_datatree(tmp_path / "draws.nc")
    there = predict(declare(centred), read, SEEN + NEW, ["a"])["a"]
    np.testing.assert_array_equal(here, there)


def test_seeds_and_stacked_draws():
    """A seed gives the same draws, others give others; draws that are stacked have new groups."""
    model = declare(centred)
    idata = prior_draws(model, 30)
    one, same, other = (predict(model, idata, SEEN + NEW, ["a"], seed=s)["a"] for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one[:, 3:] != other[:, 3:]).all()
    stacked = idata.posterior.to_dataset().stack(sample=("chain", "draw"))
    with model:
        pmt.set_data({"g": np.array([3]), "X": X[:1]}, coords={"school": SEEN + NEW})
        found = pm.sample_posterior_predictive(
            stacked, sample_dims=["sample"], var_names=["a"], random_seed=1, progressbar=False
        )
        assert found.posterior_predictive["a"].shape == (30, 5)
        # asked for by the user: all of them are drawn anew
        redrawn = pm.sample_posterior_predictive(
            idata, sample_vars=["a"], var_names=["a"], random_seed=1, progressbar=False
        )
    assert not np.isin(redrawn.posterior_predictive["a"], idata.posterior["a"]).any()


def test_results_that_are_added_to_the_draws():
    model = declare(centred)
    idata = prior_draws(model, 5)
    with model:
        pmt.set_data({"g": np.array([3]), "X": X[:1]}, coords={"school": [*SEEN, "d"]})
        found = pm.sample_posterior_predictive(
            idata, predictions=True, extend_inferencedata=True, random_seed=1, progressbar=False
        )
    assert found is idata
    assert idata.posterior["a"].shape == (1, 5, 3)
    assert idata.predictions["y"].shape == (1, 5, 1)


def icar(model):
    W = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    return pm.CAR("a", np.zeros(3), W, 0.5, 1.0, dims="school")


def mean_free(model):
    z = pm.Normal("z", dims="school")
    return pm.Deterministic("a", z - z.mean(), dims="school")


def fixed_length(model):
    return pm.Normal("a", np.arange(3.0), dims="school")


def by_indicators(vector, product=pm.math.dot):
    """A model whose rows take their group's entry by a product with 0 and 1."""
    coords = {"school": SEEN, "row": range(N)}
    with pm.Model(coords=coords) as model:
        rows = pmt.Data("X", X)
        Z = pm.Data("Z", np.eye(3)[np.arange(N) % 3], dims=("row", "school"))
        w = pm.Data("w", np.array([1.0, 2.0, 3.0]), dims="school")
        f = pmt.BART("f", rows, X[:, 0], m=2)
        a = pm.Normal("a", 0.0, 2.0, dims="school")
        pm.Deterministic("mu", f + product(Z, vector(a, w, Z)))
    return model


def at_new_schools(model, idata):
    """Effects of the known schools and of a new one, beside the forest."""
    new = {"X": X[:4], "Z": np.eye(4), "w": np.array([1.0, 2.0, 3.0, 9.0])}
    with model:
        pmt.set_data(new, coords={"school": [*SEEN, "d"], "row": range(4)})
        found = pm.sample_posterior_predictive(
            idata, predictions=True, var_names=["f", "mu", "a"], random_seed=1, progressbar=False
        ).predictions
    f, mu, a = (found[name].to_numpy()[0] for name in ("f", "mu", "a"))
    return mu - f, a


PRODUCTS = {
    "dot": pm.math.dot,
    "matmul": lambda Z, a: a @ Z.T,
    "of matrices": lambda Z, a: (Z @ a[:, None])[:, 0],
    "einsum": lambda Z, a: pt.einsum("rs,s->r", Z, a),
}


@pytest.mark.parametrize("kind", PRODUCTS)
def test_products_with_indicators(kind):
    """As `a[g]`: entries of their own are taken, and those that others change are refused."""
    model = by_indicators(lambda a, w, Z: a * w, PRODUCTS[kind])
    idata = prior_draws(model, 5)
    effects, a = at_new_schools(model, idata)
    np.testing.assert_allclose(effects, a * [1.0, 2.0, 3.0, 9.0], rtol=1e-9)
    np.testing.assert_array_equal(a[:, :3], idata.posterior["a"].to_numpy()[0])
    model = by_indicators(lambda a, w, Z: a - (a * w).mean(), PRODUCTS[kind])
    with pytest.raises(ValueError, match="for known labels of school changes with the new ones"):
        at_new_schools(model, prior_draws(model, 5))


def test_products_of_what_belongs_to_rows_are_taken():
    model = by_indicators(lambda a, w, Z: Z * a, lambda Z, za: za @ pt.ones((za.shape[1],)))
    effects, a = at_new_schools(model, prior_draws(model, 5))
    np.testing.assert_allclose(effects, a, rtol=1e-9)


REFUSED = {
    "a map": (icar, SEEN + NEW, "Declare the model with all of them from the start"),
    "a mean that is subtracted": (mean_free, SEEN + NEW, "pm.ZeroSumNormal instead of a mean"),
    "a parameter of fixed length": (fixed_length, SEEN + NEW, "pm.Data with dims='school'"),
    "numbers for texts": (centred, [1, 2, 3, 4], "give labels of the same type"),
    "a label twice": (centred, ["a", "d", "d"], "give each group one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    prior, coords, words = REFUSED[case]
    model = declare(prior)
    idata = prior_draws(model, 5)
    with pytest.raises(ValueError, match=words):
        predict(model, idata, coords, ["y"])


def test_two_dimensions_at_once():
    """Of a vector that sums to zero: in each outcome by itself, and not in both."""

    def prior(model):
        model.add_coord("outcome", ["u", "v"])
        both = pm.ZeroSumNormal("both", dims=("outcome", "school"))
        return pm.Deterministic("a", both[0])

    model = declare(prior)
    idata = prior_draws(model, 5)
    assert predict(model, idata, SEEN + NEW, ["both"])["both"].shape == (5, 2, 5)
    with model:
        pmt.set_data({"X": X}, coords={"school": SEEN + NEW, "outcome": ["u", "v", "w"]})
        with pytest.raises(ValueError, match="two of its dimensions have other labels"):
            pm.sample_posterior_predictive(idata, var_names=["both"], progressbar=False)


def test_hyperparameters_that_were_not_kept():
    model = declare(centred)
    idata = prior_draws(model, 5, without=("y", "tau"))
    with pytest.raises(ValueError, match="draws lack tau"):
        predict(model, idata, SEEN + NEW, ["a"])


def test_data_of_the_fit_are_needed_for_a_covariance():
    def prior(model):
        return pm.MvNormal(
            "a", pm.math.zeros_like(model["x"]), kernel(model["x"], 1.0), dims="school"
        )

    model = declare(prior, x=PLACES[:3])
    idata = prior_draws(model, 5)
    del idata["constant_data"]
    with pytest.raises(ValueError, match="constant_data"):
        predict(model, idata, SEEN + NEW, ["a"], x=PLACES)


@pytest.mark.parametrize("group", ["posterior", "prior"])
def test_pictures_of_fewer_draws_have_the_data_of_the_fit(group):
    def prior(model):
        x = model["x"]
        return pm.MvNormal("a", pm.math.zeros_like(x), kernel(x, 1.0), dims="school")

    model = declare(prior, x=PLACES[:3])
    with model:
        pm.Deterministic("rate", model["f"] + model["a"][model["g"]])
    idata = prior_draws(model, 5)
    idata["prior"] = xr.DataTree(idata["prior"].to_dataset().isel(draw=slice(3)))
    new = {"g": np.array([0, 4]), "X": X[:2], "x": PLACES}
    pmt.set_data(new, model, coords={"school": SEEN + NEW})
    given = {"draws": 2, "group": group, "progressbar": False}
    pmt.plot_pdp(idata, model, 0, var_name="rate", backend="none", **given)


def test_coordinates_that_do_not_exist():
    model = declare(centred)
    with pytest.raises(ValueError, match="not dimensions of the model"):
        pmt.set_data({"X": X}, model, coords={"shool": SEEN})


def test_nothing_changes_where_labels_are_those_of_the_draws():
    """As many random numbers are drawn as before: the same predictions as PyMC's, bit for bit."""
    model = declare(centred)
    idata = prior_draws(model, 5)
    with model:
        ours = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
        plain = pm.sample_posterior_predictive.__wrapped__(idata, random_seed=1, progressbar=False)
    np.testing.assert_array_equal(ours.posterior_predictive["y"], plain.posterior_predictive["y"])


def test_labels_of_other_types():
    """Dates, numbers and labels of a frame are compared as they are."""
    for labels in (
        pd.date_range("2024-01-01", periods=3).to_numpy(),
        [10, 20, 30],
        pd.Categorical(["u", "v", "w"]),
    ):
        with pm.Model(coords={"t": labels}) as model:
            rows, g = pmt.Data("X", X), pm.Data("g", np.arange(N) % 3)
            a = pm.Normal("a", 0.0, 1.0, dims="t")
            f = pmt.BART("f", rows, X[:, 0], m=2)
            pm.Normal("y", f + a[g], 0.1, observed=X[:, 0], shape=f.shape)
        idata = prior_draws(model, 4)
        kept = list(labels)[1:]
        with model:
            pmt.set_data({"g": np.array([0]), "X": X[:1]}, coords={"t": kept})
            found = pm.sample_posterior_predictive(idata, var_names=["a"], progressbar=False)
        np.testing.assert_array_equal(
            found.posterior_predictive["a"], idata.posterior["a"][..., 1:]
        )
