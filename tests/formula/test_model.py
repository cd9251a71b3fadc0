"""The model of a formula is the one that is written by hand."""

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.formula.families import FAMILIES, POSITIVE_ONLY

RNG = np.random.default_rng(3)
N = 30
DATA = pd.DataFrame(
    {
        "x1": RNG.random(N),
        "x2": RNG.random(N),
        "site": RNG.choice(["u", "v", "w"], N),
        "z": RNG.normal(1, 2, N),
        "g": RNG.permutation(np.resize(["a", "b", "c"], N)),
        "y": RNG.normal(size=N),
        "binary": np.resize([0, 1], N),
        "count": RNG.poisson(2, N),
        "hits": RNG.integers(0, 6, N),
        "positive": np.exp(RNG.normal(size=N)),
        "share": RNG.beta(2, 3, N),
        "angle": RNG.uniform(-3, 3, N),
        "w": RNG.random(N) + 0.5,
        "status": np.resize(["none", "right", "left"], N),
        "size": np.resize(["mid", "low", "top"], N),
    }
)
DATA["size"] = pd.Categorical(DATA["size"], ["low", "mid", "top"], ordered=True)


def logp(model, **changes):
    point = model.initial_point() | {k: np.asarray(v) for k, v in changes.items()}
    return float(model.compile_logp()(point))


def test_a_model_with_all_kinds_of_terms():
    made = pmt.model("y ~ bart(x1 + site, m=5) + z + site + (1 + z | g)", DATA)
    y, z, sd = DATA["y"].to_numpy(), DATA["z"].to_numpy(), DATA["y"].std(ddof=0)
    levels = pd.get_dummies(DATA["site"])[["v", "w"]].to_numpy(dtype=float)
    g = pd.Categorical(DATA["g"]).codes
    slope = 2.5 * sd / z.std()
    dummies = 2.5 * sd / levels.std(axis=0)
    wide = (2.5 * sd) ** 2 + (slope * z.mean()) ** 2
    wide = np.sqrt(wide + ((dummies * levels.mean(axis=0)) ** 2).sum())
    with pm.Model() as hand:
        leaf = pmt.NormalLeaf(0.0, np.ptp(y) / (4 * np.sqrt(5)))
        f = pmt.BART("bart", DATA[["x1", "site"]], m=5, leaf=leaf)
        b = pm.Normal("z", 0, slope)
        c = pm.Normal("site", 0, dummies)
        level = pm.Normal("Intercept_centered", y.mean(), wide)
        sd_1 = pm.HalfNormal("1|g_sigma", wide)
        sd_z = pm.HalfNormal("z|g_sigma", slope)
        a = pm.Normal("1|g_offset", 0, 1, shape=3)
        s = pm.Normal("z|g_offset", 0, 1, shape=3)
        sigma = pm.HalfStudentT("sigma", 4, sd)
        mu = level + b * (z - z.mean()) + pt.dot(levels - levels.mean(axis=0), c)
        mu = mu + (a * sd_1)[g] + (s * sd_z)[g] * z + f
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    assert {v.name for v in made.value_vars} == {v.name for v in hand.value_vars}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        start = made.initial_point()
        point = {
            name: value if "forest" in name else value + rng.normal(size=value.shape)
            for name, value in start.items()
        }
        assert logp(made, **point) == pytest.approx(logp(hand, **point), rel=1e-9)
    assert made.coords["g__factor_dim"] == ("a", "b", "c")
    assert made.coords["site_dim"] == ("v", "w")


RESPONSES = {
    "gaussian": "y",
    "t": "y",
    "laplace": "y",
    "asymmetriclaplace": "y",
    "exgaussian": "y",
    "vonmises": "angle",
    "bernoulli": "binary",
    "binomial": "proportion(hits, 6)",
    "beta_binomial": "proportion(hits, 6)",
    "zero_inflated_binomial": "proportion(hits, 6)",
    "beta": "share",
    "cumulative": "size",
    "categorical": "site",
}
ETA = 0.3


def by_hand(family, eta):
    """Log-likelihood of the rows with all other parameters at 0.5."""
    one, mu, p = 0.5, np.exp(eta), 1 / (1 + np.exp(-eta))
    y, count, positive = DATA["y"], DATA["count"], DATA["positive"]
    hits, share = DATA["hits"], DATA["share"]
    shape = {"alpha": p * one, "beta": (1 - p) * one}
    cuts = np.array([-2.0, 2.0])
    below = np.concatenate([[0], 1 / (1 + np.exp(-(cuts - eta))), [1]])
    table = {
        "gaussian": (pm.Normal.dist(eta, one), y),
        "t": (pm.StudentT.dist(nu=one, mu=eta, sigma=one), y),
        "laplace": (pm.Laplace.dist(eta, one), y),
        "asymmetriclaplace": (pm.AsymmetricLaplace.dist(mu=eta, b=one, kappa=one), y),
        "exgaussian": (pm.ExGaussian.dist(mu=eta, sigma=one, nu=one), y),
        "vonmises": (pm.VonMises.dist(eta, one), DATA["angle"]),
        "lognormal": (pm.LogNormal.dist(eta, one), positive),
        "gamma": (pm.Gamma.dist(mu=mu, sigma=mu / np.sqrt(one)), positive),
        "exponential": (pm.Exponential.dist(scale=mu), positive),
        "weibull": (pm.Weibull.dist(one, mu / 2.0), positive),  # gamma(1 + 1 / 0.5) is 2
        "wald": (pm.Wald.dist(mu=mu, lam=one), positive),
        "beta": (pm.Beta.dist(**shape), share),
        "bernoulli": (pm.Bernoulli.dist(p), DATA["binary"]),
        "binomial": (pm.Binomial.dist(6, p), hits),
        "beta_binomial": (pm.BetaBinomial.dist(n=6, **shape), hits),
        "zero_inflated_binomial": (pm.ZeroInflatedBinomial.dist(one, 6, p), hits),
        "poisson": (pm.Poisson.dist(mu), count),
        "negativebinomial": (pm.NegativeBinomial.dist(mu=mu, alpha=one), count),
        "zero_inflated_poisson": (pm.ZeroInflatedPoisson.dist(one, mu), count),
        "zero_inflated_negativebinomial": (
            pm.ZeroInflatedNegativeBinomial.dist(psi=one, mu=mu, alpha=one),
            count,
        ),
        "hurdle_poisson": (pm.HurdlePoisson.dist(one, mu), count),
        "hurdle_negativebinomial": (
            pm.HurdleNegativeBinomial.dist(psi=one, mu=mu, alpha=one),
            count,
        ),
        "hurdle_gamma": (
            pm.HurdleGamma.dist(psi=one, mu=mu, sigma=mu / np.sqrt(one)),
            positive,
        ),
        "hurdle_lognormal": (pm.HurdleLogNormal.dist(psi=one, mu=eta, sigma=one), positive),
        "cumulative": (pm.Categorical.dist(np.diff(below)), DATA["size"].cat.codes),
        "categorical": (
            pm.Categorical.dist(np.exp([0, eta, eta]) / np.exp([0, eta, eta]).sum()),
            pd.Categorical(DATA["site"]).codes,
        ),
    }
    rv, observed = table[family]
    return float(
        pm.logp(rv, observed.to_numpy() if hasattr(observed, "to_numpy") else observed).sum().eval()
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_the_likelihood_that_is_written_by_hand(family):
    kind = FAMILIES[family]
    link = "log" if kind.links[0] in POSITIVE_ONLY else None
    y = RESPONSES.get(family, "count" if kind.support[2] else "positive")
    made = pmt.model(
        f"{y} ~ 0 + offset(eta) + bart(x1, m=2)",
        DATA.assign(eta=ETA),
        family=family,
        link=link,
        priors=dict.fromkeys(kind.auxiliary, 0.5),
    )
    [observed], start = made.observed_RVs, made.initial_point()
    [f] = made.replace_rvs_by_values([made["bart"]])
    own = {name: value for name, value in start.items() if name.startswith("bart")}
    outputs = made.compile_fn(f, on_unused_input="ignore")(own)
    assert np.ptp(outputs) == 0  # trees of one leaf
    [rows] = made.logp(vars=[observed], sum=False)
    total = made.compile_fn(rows, on_unused_input="ignore")(start).sum()
    assert total == pytest.approx(by_hand(family, ETA + outputs.flat[0]), rel=1e-6)


LINKS = [(family, link) for family, kind in FAMILIES.items() for link in kind.links]


@pytest.mark.parametrize(
    ("family", "link"),
    tiers(LINKS, [(family, "identity") for family in ("poisson", "beta", "binomial")]),
)
def test_chains_can_start_under_every_link(family, link):
    """The intercept starts at the mean where 0 is impossible; its prior is that of the default."""
    kind = FAMILIES[family]
    y = RESPONSES.get(family, "count" if kind.support[2] else "positive")
    formula, settings = f"{y} ~ bart(x1, m=2)", {"family": family, "link": link}
    if link in POSITIVE_ONLY:
        with pytest.raises(ValueError, match="Give link='log'"):
            pmt.model(formula, DATA, **settings)
        return
    made = pmt.model(formula, DATA, **settings)
    assert np.isfinite(list(made.point_logps().values())).all()
    if link == "identity":
        middle = made["Intercept"].owner.op.dist_params(made["Intercept"].owner)[0]
        assert middle.data == (DATA[y].mean() if family in ("gaussian", "t") else 0.0)


def test_predictors_that_cannot_start():
    settings = {"family": "poisson", "link": "identity"}
    with pytest.raises(ValueError, match=r"between 0 and inf .* at -1. Give link='log'"):
        pmt.model("count ~ bart(x1, m=2)", DATA, **settings, priors={"Intercept": -1.0})
    with pytest.raises(ValueError, match=r"between 0 and 1 .* Give link='logit'"):
        far = DATA.assign(far=np.arange(N))
        pmt.model("binary ~ offset(far) + bart(x1)", far, family="bernoulli", link="identity")
    prior = {"Intercept": pm.Gamma.dist(2, 1)}
    made = pmt.model("count ~ bart(x1, m=2)", DATA, **settings, priors=prior)
    assert np.exp(made.initial_point()["Intercept_log__"]) == pytest.approx(2)


def test_weights_multiply_the_log_density():
    w, y = DATA["w"].to_numpy(), DATA["y"].to_numpy()
    for family, kind in (("gaussian", pm.Normal), ("laplace", pm.Laplace)):
        priors = {"Intercept": pm.Normal.dist(0, 1), {"gaussian": "sigma"}.get(family, "b"): 0.7}
        made = pmt.model("weighted(y, w) ~ 1", DATA, family=family, priors=priors)
        level = 0.4
        rows = pm.logp(kind.dist(level, 0.7), y).eval()
        prior = pm.logp(pm.Normal.dist(0, 1), level).eval()
        assert logp(made, Intercept=level) == pytest.approx((w * rows).sum() + prior)


def test_censored_and_truncated_responses():
    y, status = DATA["y"].to_numpy(), DATA["status"].to_numpy()
    priors = {"Intercept": pm.Normal.dist(0, 1), "sigma": 0.7}
    prior = pm.logp(pm.Normal.dist(0, 1), 0.4).eval()
    one = pm.Normal.dist(0.4, 0.7)
    made = pmt.model("censored(y, status) ~ 1", DATA, priors=priors)
    below = pm.logcdf(one, y).eval()
    rows = np.where(
        status == "left",
        below,
        np.where(status == "right", np.log1p(-np.exp(below)), pm.logp(one, y).eval()),
    )
    assert logp(made, Intercept=0.4) == pytest.approx(rows.sum() + prior)
    made = pmt.model("truncated(y, lb=-4) ~ 1", DATA, priors=priors)
    mass = np.log1p(-np.exp(pm.logcdf(one, -4.0).eval()))
    rows = pm.logp(one, y).eval() - mass
    assert logp(made, Intercept=0.4) == pytest.approx(rows.sum() + prior)


TERMS = {
    "bart(x1, m=2)": {"bart_forest"},
    "softbart(x1 + x2, m=2)": {"softbart_forest", "softbart_leaf_sd", "softbart_split_weights"},
    "tree(x1)": {"tree_forest"},
    "z:bart(x1, m=2)": {"z:bart_forest"},
    "bs(z, df=4)": {"bs(z, df=4)"},
    "z * site": {"z", "site", "z:site"},
    "(1 | g)": {"1|g_offset", "1|g_sigma"},
    "(0 + site | g)": {"site|g_offset", "site|g_sigma"},
}


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize(
    ("y", "family", "others"),
    [
        ("y", "gaussian", {"sigma"}),
        ("binary", "bernoulli", set()),
        ("count", "negativebinomial", {"alpha"}),
        ("size", "cumulative", {"threshold"}),
        ("site", "categorical", set()),
    ],
)
def test_terms_and_families_cross(term, y, family, others):
    if family == "categorical" and ("site" in term or "soft" in term or "tree" in term):
        pytest.skip("the response, or refused")
    made = pmt.model(f"{y} ~ 0 + {term}", DATA, family=family)
    free = {v.name for v in made.free_RVs}
    forests = {f"z:bart_{k}_forest" if "z:" in term else f"bart_{k}_forest" for k in (0, 1)}
    wanted = forests if family == "categorical" and "bart" in term else TERMS[term]
    assert free == wanted | others
    assert np.isfinite(logp(made))


SD = pm.HalfNormal.dist(1)
SD_TIMES_2, SD_OF_TAU = pm.Normal.dist(0, 2 * SD), pm.Normal.dist(0, tau=pm.Gamma.dist(2, 1))


@pytest.mark.parametrize(
    ("formula", "settings", "error", "words"),
    [
        ("y ~ x1", {"family": "multinomial"}, ValueError, "is not supported"),
        ("y ~ x1", {"link": "logit"}, ValueError, "choose from"),
        ("positive ~ bart(x1)", {"family": "gamma"}, ValueError, "Give link='log'"),
        ("y ~ x1", {"family": "poisson"}, ValueError, "impossible under it"),
        ("y ~ x1", {"priors": {"x2": 1.0}}, ValueError, "choose from"),
        ("y ~ x1", {"priors": {"x1": "wide"}}, TypeError, "give a distribution"),
        ("y ~ (1|g)", {"priors": {"1|g": pm.Laplace.dist(0, 1)}}, TypeError, "Normal about 0"),
        # an expression of distributions is random, and no number at which an sd is held
        ("y ~ (1|g)", {"priors": {"1|g": SD_OF_TAU}}, TypeError, "not an expression"),
        ("y ~ (1|g)", {"priors": {"1|g": SD_TIMES_2}}, TypeError, "not an expression"),
        ("y ~ x1", {"priors": {"sigma": 2 * SD}}, TypeError, "give a distribution"),
        ("y ~ x1", {"priors": {"x1": pm.Normal.dist(0, SD)}}, TypeError, "random parameters"),
        ("y ~ site:bart(x1)", {}, ValueError, "one column of numbers"),
        ("y ~ bart(x1, trees=3)", {}, ValueError, "has no argument 'trees'"),
        ("y ~ bart(x1, k=0)", {}, ValueError, "positive number"),
        ("y ~ x1", {"family": "cumulative"}, ValueError, "three or more"),
        ("y ~ x1", {"family": "binomial"}, ValueError, "proportion"),
        ("share ~ x1", {"family": "bernoulli"}, ValueError, "impossible under it"),
        ("proportion(hits, w + 6) ~ x1", {"family": "binomial"}, ValueError, "whole number of at"),
        ("site ~ x1", {"family": "cumulative"}, ValueError, r"no order. Give data\['site'\] ="),
    ],
)
def test_what_is_refused(formula, settings, error, words):
    with pytest.raises(error, match=words):
        pmt.model(formula, DATA, **settings)


def test_rows_with_missing_cells():
    data = DATA.assign(x1=DATA["x1"].where(DATA.index != 0), z=DATA["z"].where(DATA.index != 1))
    with pytest.raises(ValueError, match="dropna=True"):
        pmt.model("y ~ bart(x1) + z", data)
    made = pmt.model("y ~ bart(x1) + z", data, dropna=True)
    assert len(made["bart_X"].get_value()) == N - 1


@pytest.mark.parametrize("noncentered", [True, False])
@pytest.mark.parametrize("forest", ["bart(x1, m=3) + ", ""])
def test_predictions_at_new_rows_and_groups(noncentered, forest):
    made = pmt.model(f"y ~ {forest}z + (1 + z | g)", DATA, noncentered=noncentered)
    idata = pm.sample(
        200,
        tune=20,
        chains=1,
        model=made,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )
    same = pmt.formula.predict(idata, made, DATA, random_seed=1, progressbar=False)
    np.testing.assert_allclose(same.predictions["mu"], idata.posterior["mu"], atol=1e-9)
    new = DATA.iloc[[0, 0, 0]].drop(columns="y").assign(g=["a", "new", "new"])
    found = pmt.formula.predict(idata, made, new, random_seed=2, progressbar=False)
    mu = found.predictions["mu"].to_numpy()
    np.testing.assert_array_equal(mu[..., 1], mu[..., 2])
    draws = idata.posterior
    row = new.iloc[0]
    known = draws["1|g"].sel({"g__factor_dim": "a"}) + row["z"] * draws["z|g"].sel(
        {"g__factor_dim": "a"}
    )
    effect = mu[..., 1] - (mu[..., 0] - known.to_numpy())
    sd = np.hypot(draws["1|g_sigma"], row["z"] * draws["z|g_sigma"]).to_numpy()
    # standard normal: the mean of 200 squares is within 5 of its sds, sqrt(2 / 200)
    assert np.mean((effect / sd) ** 2) == pytest.approx(1, abs=0.5)
    fewer = idata.copy()
    fewer["posterior"] = xr.DataTree(idata["posterior"].to_dataset().drop_vars(["z", "sigma"]))
    with pytest.raises(ValueError, match=r"lacks the parameters \['z', 'sigma'\]"):
        pmt.formula.predict(fewer, made, DATA, progressbar=False)
    with pytest.raises(ValueError, match="lacks the columns"):
        pmt.formula.predict(idata, made, new.drop(columns="z"))


def test_orders_of_the_levels_of_a_response():
    names = ["low", "mid", "top"]
    text = DATA.assign(size=DATA["size"].astype(str))
    unordered = DATA.assign(size=pd.Categorical(text["size"], names))
    for data in (text, unordered):
        with pytest.raises(ValueError, match="have no order"):
            pmt.model("size ~ x1", data, family="cumulative")
    remedied = text.assign(size=pd.Categorical(text["size"], categories=names, ordered=True))
    numbers = DATA.assign(size=DATA["size"].cat.codes + 9)
    with pytest.raises(ValueError, match=r"data\['size'\].astype\('category'\)"):
        pmt.model("size ~ x1", numbers, family="cumulative")
    for data, levels in (
        (remedied, names),
        (numbers.assign(size=numbers["size"].astype("category")), [9, 10, 11]),
    ):
        made = pmt.model("size ~ x1", data, family="cumulative")
        assert list(made.coords["size_dim"]) == levels
        values = made.rvs_to_values[made["size"]].eval()
        np.testing.assert_array_equal(values, DATA["size"].cat.codes)


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "boolean", "Int64"])
def test_binary_responses_become_whole_numbers(dtype):
    made = pmt.model("binary ~ x1", DATA.astype({"binary": dtype}), family="bernoulli")
    values = made.rvs_to_values[made["binary"]].eval()
    assert values.dtype == np.int64
    np.testing.assert_array_equal(values, DATA["binary"])


def test_the_success_of_two_levels():
    data = DATA.assign(said=np.where(DATA["binary"] == 1, "yes", "no"))
    for response, success in (("said", "no"), ("said['yes']", "yes"), ("said['no']", "no")):
        made = pmt.model(f"{response} ~ x1", data, family="bernoulli")
        values = made.rvs_to_values[made["said"]].eval()
        np.testing.assert_array_equal(values, data["said"] == success)


def test_groups_of_another_type_are_not_new_groups():
    data = DATA.assign(g=DATA["g"].map({"a": 1, "b": 2, "c": 3}))
    made = pmt.model("y ~ 1 + (1 | g)", data)
    prior = pm.sample_prior_predictive(3, model=made, random_seed=1)["prior"].to_dataset()
    idata = xr.DataTree.from_dict({"posterior": prior})
    with pytest.raises(ValueError, match=r"data\['g'\] holds '[123]' as str, but .* type int"):
        pmt.formula.predict(idata, made, data.assign(g=data["g"].astype(str)), progressbar=False)
    floats = data.assign(g=data["g"].astype(float))
    found = pmt.formula.predict(idata, made, floats, random_seed=1, progressbar=False)
    np.testing.assert_allclose(found.predictions["mu"], prior["mu"])
