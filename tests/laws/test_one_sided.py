"""Errors on one side of Normal rows: densities against quadrature, Geweke's test, what is read.

Geweke: one iteration is every step given y, and a new y from the model; the chain then has the
joint prior. Averages over 100 batches are compared with those of independent draws in standard
errors of the difference (5 of them: by chance in one of 60,000 runs of all averages).
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import integrate, stats
from support.naive.batches import batch_means

import pymc_trees as pmt
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.terms import one_sided
from pymc_trees.terms.one_sided import draw_above_zero

pytestmark = pytest.mark.usefixtures("quick_compile")
BATCHES, Z = 100, 5.0
RNG = np.random.default_rng(8)
N = 7
X = np.round(RNG.random((N, 2)), 1)
PRIOR = {"m": 2, "alpha": 0.8, "beta": 1.0, "max_nodes": 60}
PRIORS = {one_sided.HalfNormal: stats.halfnorm, one_sided.Exponential: stats.expon}


@pytest.mark.parametrize("law", PRIORS)
@pytest.mark.parametrize("c", [-1.0, 0.7])
@pytest.mark.parametrize(("sigma", "s"), [(0.3, 0.8), (0.8, 0.3), (0.05, 1.5)])
def test_u_integrates_out(law, c, sigma, s):
    """Density of e, and mean and variance of u given e, against quadrature of the definition."""
    e = np.array([-1.2, -0.1, 0.0, 0.4, 1.5])
    mean, sd = (np.broadcast_to(v, e.shape) for v in law.conditional(e, sigma, s, c))
    found = [law.log_density(one[None], sigma, s, c) for one in e]
    for k, one in enumerate(e):
        peak = np.clip(mean[k], 0.0, None)
        edges = [0.0, *(peak + sd[k] * np.array([-8.0, -2.0, 0.0, 2.0, 8.0, 40.0])), peak + 40 * s]
        edges = np.unique(np.clip(edges, 0.0, None))

        def moment(power, one=one, edges=edges):
            def f(u):
                prior = PRIORS[law].pdf(u, scale=s)
                return u**power * prior * stats.norm.pdf(one, c * u, sigma)

            parts = zip(edges[:-1], edges[1:], strict=True)
            return sum(integrate.quad(f, a, b, epsabs=0, epsrel=1e-10)[0] for a, b in parts)

        density = moment(0)
        assert np.isclose(found[k], np.log(density), rtol=1e-7, atol=1e-7)
        above = stats.truncnorm(-mean[k] / sd[k], np.inf, mean[k], sd[k])
        assert np.isclose(above.mean(), moment(1) / density, rtol=1e-5)


def test_far_tails_are_finite():
    """An exponential of small scale, whose terms cancel: a Normal with the mean moved."""
    e, sigma = np.array([-3.0, 0.0, 2.0]), 0.4
    for s in (1e-4, 1e-7, 1e-10):
        found = one_sided.Exponential.log_density(e, sigma, s, -1.0)
        assert np.isclose(found, stats.norm.logpdf(e, -s, sigma).sum(), rtol=1e-3, atol=30 * s)


def test_draws_above_zero():
    rng = np.random.default_rng(3)
    for mean, sd in ((1.0, 0.5), (0.0, 1.0), (-3.0, 0.4), (-50.0, 1.0)):
        out = np.empty(20_000)
        draw_above_zero(rng, np.full(out.size, mean), np.full(out.size, sd), out)
        law = stats.truncnorm(-mean / sd, np.inf, mean, sd)
        assert stats.kstest(out, law.cdf).pvalue > 1e-4 if mean > -50 else True
        assert abs(out.mean() / law.mean() - 1.0) < 5.0 / np.sqrt(out.size)  # sd below the mean
    draw_above_zero(rng, np.full(5, -1e12), np.ones(5), out[:5])
    assert (out[:5] > 0).all() and (out[:5] < 1e-10).all()


# ------------------------------------------------------------------------------------ Geweke


def declare(errors, sign, likelihood=pm.Normal):
    with pm.Model() as model:
        y = pm.Data("observed", np.ones(N))
        s, sigma = pm.Gamma("s", 6.0, 9.0), pm.Gamma("sigma", 9.0, 12.0)
        if errors == "half-normal":
            u = pm.HalfNormal("u", s, shape=N)
        elif errors == "exponential":
            u = pm.Exponential("u", scale=s, shape=N)
        else:
            u = pm.Exponential("u", s, shape=N)
        f = pmt.BART("f", X, leaf=pmt.NormalLeaf(0.2, 0.5), **PRIOR)
        likelihood("y", f + sign * u, sigma, observed=y)
    return model


def functions(draw):
    f, u, y = draw["f"], draw["u"], draw["y"]
    s, sigma = np.log(draw["s"]), np.log(draw["sigma"])
    u = np.log(u)  # tails of u / s with a rate near 0 are heavy
    one = np.array([f[0], f[-1], u[0], u[3], s, sigma, y[0], y[-1]])
    two = [f[0] * f[-1], f[0] * u[0], s * sigma, u[0] * u[3], f[0] * s, y[0] * f[0], y[0] * u[0]]
    return np.concatenate([one, one**2, two])


def of_the_prior(model, draws, seed):
    wanted = [model[name] for name in ("s", "sigma", "u", "f", "y")]
    arrays = pm.draw(wanted, draws, random_seed=seed)
    named = {v.name: array for v, array in zip(wanted, arrays, strict=True)}
    named["y"] = np.log(named["y"]) if model["y"].owner.op.name == "lognormal" else named["y"]
    return np.array([functions({k: v[i] for k, v in named.items()}) for i in range(draws)])


def chain(model, sign, draws, seed):
    rng = np.random.default_rng(seed)
    of_logs = model["y"].owner.op.name == "lognormal"
    with model:
        steps = [pmt.CGM(), pmt.OneSidedErrors()]
    assert {v.name for v in steps[1].vars} == {"u_log__", "s_log__", "sigma_log__"}
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], 200, draws)
    names = ["s", "sigma", "u", "f"]
    numbers = model.compile_fn(
        model.replace_rvs_by_values([model[name] for name in names]),
        inputs=model.value_vars,
        on_unused_input="ignore",
    )
    point, rows = model.initial_point(), []
    for k in range(draws + 200):
        if k == 200:
            for step in steps:
                step.stop_tuning()
        for step in steps:
            point, _ = step.step(point)
        draw = dict(zip(names, numbers(point), strict=True))
        y = rng.normal(draw["f"] + sign * draw["u"], draw["sigma"])
        model["observed"].set_value(np.exp(y) if of_logs else y)
        if k >= 200:
            rows.append(functions(draw | {"y": y}))
    return np.array(rows)


def distances(prior, joint_draws):
    batches = batch_means(joint_draws, BATCHES)
    difference = batches.mean(axis=0) - prior.mean(axis=0)
    return difference / np.sqrt(
        batches.var(axis=0, ddof=1) / BATCHES + prior.var(axis=0) / len(prior)
    )


CASES = {
    "half-normal": ("half-normal", -1.0, pm.Normal),
    "exponential": ("exponential", -1.0, pm.Normal),
    "rate, above": ("rate", 0.5, pm.Normal),
    "logs": ("half-normal", 1.0, pm.LogNormal),
}


@pytest.mark.full
@pytest.mark.parametrize("case", CASES)
def test_geweke(case):
    errors, sign, likelihood = CASES[case]
    model = declare(errors, sign, likelihood)
    prior = of_the_prior(model, 20_000, 4)
    z = distances(prior, chain(model, sign, 5_000, 5))
    assert np.abs(z).max() < Z, z


# ------------------------------------------------------------- A single leaf, by quadrature

Y = np.array([0.9, -0.2, 0.4, 0.1, -0.6])
PRIOR_OF_LEAF = stats.norm(0.3, 0.6)


def quadrature(law, sign):
    """Means of `moments` given Y; f is one number, and u integrates out."""
    f, logs = np.linspace(-2.2, 3.2, 49), np.linspace(-3.5, 1.5, 49)
    prior_s = stats.gamma(6.0, scale=1 / 9.0).logpdf(np.exp(logs)) + logs
    prior_sigma = stats.gamma(9.0, scale=1 / 12.0).logpdf(np.exp(logs)) + logs
    weight = PRIOR_OF_LEAF.logpdf(f)[:, None, None] + prior_s[:, None] + prior_sigma
    for i, one in enumerate(f):
        for j, s in enumerate(np.exp(logs)):
            weight[i, j] += [law.log_density(Y - one, sigma, s, sign) for sigma in np.exp(logs)]
    weight = np.exp(weight - weight.max())
    grid = np.meshgrid(f, logs, logs, indexing="ij")
    return np.array([np.average(one, weights=weight) for one in moments(*grid)])


def moments(f, s, sigma):
    return [f, s, sigma, f**2, s**2, sigma**2, f * s, f * sigma, s * sigma]


def chain_of_a_leaf(errors, sign, draws, seed):
    n = Y.size
    with pm.Model() as model:
        s, sigma = pm.Gamma("s", 6.0, 9.0), pm.Gamma("sigma", 9.0, 12.0)
        kind = pm.HalfNormal if errors == "half-normal" else pm.Exponential
        u = kind("u", s, shape=n) if errors == "half-normal" else kind("u", scale=s, shape=n)
        f = pmt.BART("f", X[:n], leaf=pmt.NormalLeaf(0.3, 0.6), m=1, alpha=1e-9, max_nodes=30)
        pm.Normal("y", f + sign * u, sigma, observed=Y)
        steps = [pmt.CGM(), pmt.OneSidedErrors()]
    rng = np.random.default_rng(seed)
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], 200, draws)
    value = model.compile_fn(
        model.replace_rvs_by_values([f]), inputs=model.value_vars, on_unused_input="ignore"
    )
    point, rows = model.initial_point(), []
    for k in range(draws + 200):
        if k == 200:
            for step in steps:
                step.stop_tuning()
        for step in steps:
            point, _ = step.step(point)
        if k >= 200:
            rows.append(moments(value(point)[0][0], point["s_log__"], point["sigma_log__"]))
    return np.array(rows)


def gaps(joint_draws, exact):
    batches = batch_means(joint_draws, BATCHES)
    error = batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)
    return (batches.mean(axis=0) - exact) / error


@pytest.mark.full
@pytest.mark.parametrize("errors", ["half-normal", "exponential"])
def test_scales_and_level_have_their_exact_law(errors):
    law = one_sided.HalfNormal if errors == "half-normal" else one_sided.Exponential
    z = gaps(chain_of_a_leaf(errors, -1.0, 12_000, 3), quadrature(law, -1.0))
    assert np.abs(z).max() < Z, z


@pytest.fixture(scope="module")
def exact():
    return quadrature(one_sided.HalfNormal, -1.0)


@pytest.mark.full
@pytest.mark.parametrize("mistake", ["level", "share", "conditional", "prior"])
def test_mistakes_are_found(mistake, monkeypatch, exact):
    if mistake == "level":  # the forest rises by half of what the density says
        rise = one_sided.Lift.rise
        monkeypatch.setattr(one_sided.Lift, "rise", lambda self, delta: rise(self, 0.5 * delta))
    elif mistake == "prior":  # of the leaf values
        monkeypatch.setattr(one_sided.Lift, "log_density", lambda self, delta: 0.0)
    elif mistake == "share":  # a move that is not one of the density
        old = one_sided._Moves.along

        def along(self, rng, path, start, width):
            old(self, rng, path, start, width)
            self.now = {k: v - 0.05 for k, v in self.now.items()}

        monkeypatch.setattr(one_sided._Moves, "along", along)
    else:
        old = one_sided.HalfNormal.conditional

        def conditional(e, sigma, s, c):
            mean, sd = old(e, sigma, s, c)
            return mean, 1.5 * sd

        monkeypatch.setattr(one_sided.HalfNormal, "conditional", staticmethod(conditional))
    z = gaps(chain_of_a_leaf("half-normal", -1.0, 6_000, 3), exact)
    assert np.abs(z).max() > 7.0, z


# -------------------------------------------------------------------------------- What is read


def read(build):
    with pm.Model(coords={"row": range(N)}) as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60)
        build(f)
    found = one_sided.read_one_sided(without_dims(model))
    return [v.name for one in found for v in one.variables]


def s_and_sigma():
    return pm.HalfNormal("s"), pm.HalfCauchy("sigma", 1.0)


def plain(f):
    s, sigma = s_and_sigma()
    pm.Normal("y", f - pm.HalfNormal("u", s, shape=N), sigma, observed=np.ones(N))


def with_dims(f):
    s, sigma = s_and_sigma()
    b = pm.Normal("b")
    u = pm.Exponential("u", s, dims="row")
    pm.Normal("y", f + b * X[:, 0] - 2.0 * u, sigma, observed=np.ones(N), dims="row")


def fixed_scale(f):
    _, sigma = s_and_sigma()
    pm.LogNormal("y", f + pm.HalfNormal("u", 0.5, shape=N), sigma, observed=np.ones(N))


def scales_by_row(f):
    _, sigma = s_and_sigma()
    u = pm.HalfNormal("u", 0.5 + X[:, 0], shape=N)
    pm.Normal("y", f - u, sigma, observed=np.ones(N))


def noise_by_row(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - u, sigma * (1.0 + X[:, 0]), observed=np.ones(N))


def copied(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", pt.tensor_copy(s), shape=N)
    pm.Normal("y", f - u, pt.tensor_copy(sigma), observed=np.ones(N))


def precision(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - u, tau=sigma, observed=np.ones(N))


def inverse_sd(f):
    s, sigma = s_and_sigma()
    pm.Normal("y", f - pm.HalfNormal("u", s, shape=N), pt.reciprocal(sigma), observed=np.ones(N))


def scale_elsewhere(f):
    s, sigma = s_and_sigma()
    pm.Normal("more", 0, s, observed=1.0)
    pm.Normal("y", f - pm.HalfNormal("u", s, shape=N), sigma, observed=np.ones(N))


def function_of_scale(f):
    s, sigma = s_and_sigma()
    pm.Normal("y", f - pm.HalfNormal("u", s**2, shape=N), sigma, observed=np.ones(N))


def by_group(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=3)
    pm.Normal("y", f - u[np.arange(N) % 3], sigma, observed=np.ones(N))


def backwards(f):
    s, sigma = s_and_sigma()
    pm.Normal("y", f - pm.HalfNormal("u", s, shape=N)[::-1], sigma, observed=np.ones(N))


def exposed(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - X[:, 0] * u, sigma, observed=np.ones(N))


def unknown_factor(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - pm.Normal("b") * u, sigma, observed=np.ones(N))


def nonlinear(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - u**2, sigma, observed=np.ones(N))


def in_the_sd(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("y", f - u, sigma + u, observed=np.ones(N))


def seen_twice(f):
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    pm.Normal("more", u, 1.0, observed=np.ones(N))
    pm.Normal("y", f - u, sigma, observed=np.ones(N))


def counts(f):
    s, _ = s_and_sigma()
    pm.Poisson("y", pm.math.exp(f - pm.HalfNormal("u", s, shape=N)), observed=np.ones(N))


def a_column(f):
    """Another forest splits the rows by the errors."""
    s, sigma = s_and_sigma()
    u = pm.HalfNormal("u", s, shape=N)
    g = pmt.BART("g", pmt.with_columns(X, u=u), m=2, leaf=pmt.NormalLeaf(0.0, 0.5))
    pm.Normal("y", f + g - u, sigma, observed=np.ones(N))


def another_law(f):
    s, sigma = s_and_sigma()
    pm.Normal("y", f - pm.Gamma("u", 2.0, s, shape=N), sigma, observed=np.ones(N))


FORMS = {
    plain: ["u", "s", "sigma"],
    with_dims: ["u", "s", "sigma"],
    fixed_scale: ["u", "sigma"],
    scales_by_row: ["u", "sigma"],
    noise_by_row: ["u", "s"],
    copied: ["u", "s", "sigma"],
    precision: ["u", "s"],
    inverse_sd: ["u", "s"],
    scale_elsewhere: ["u", "sigma"],
    function_of_scale: ["u", "sigma"],
    **dict.fromkeys([by_group, backwards, exposed, unknown_factor, nonlinear], []),
    **dict.fromkeys([in_the_sd, seen_twice, counts, a_column, another_law], []),
}


@pytest.mark.parametrize("build", FORMS, ids=lambda build: build.__name__)
def test_what_is_read(build):
    assert read(build) == FORMS[build]


@pytest.mark.parametrize("build", [build for build in FORMS if FORMS[build]])
def test_a_step(build):
    """Values stay where they are defined, and forest and function agree."""
    with pm.Model() as model:
        build(
            pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60)
        ) if build is not with_dims else plain(
            pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60)
        )
        step = pmt.OneSidedErrors(rng=1)
    point = model.initial_point()
    step.setup_chain(np.random.default_rng(1), 5, 5)
    moved = {v.name for v in step.vars}
    for _ in range(5):
        before = point
        point, [stats_of] = step.step(point)
        assert all(np.isfinite(v).all() for v in point.values())
        changed = {k for k in point if not np.array_equal(point[k], before[k])}
        assert moved <= changed <= moved | {"f_forest"}
    assert ("f_forest" in changed) == ("s_log__" in moved)
    assert stats_of["one_sided_errors_evaluations"] > 0


def test_what_does_not_qualify():
    with pm.Model() as model:
        plain(pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60))
        with pytest.raises(ValueError, match="vars: .'s'.* is not a pm.HalfNormal"):
            pmt.OneSidedErrors([model["s"]])
        assert [v.name for v in pmt.OneSidedErrors([model["u"]]).vars] == ["u_log__"]


def test_a_step_after_new_data_has_their_factor():
    with pm.Model() as model:
        sign = pm.Data("sign", np.ones(N))
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60)
        u = pm.HalfNormal("u", 0.5, shape=N)
        pm.Normal("y", f + sign * u, 0.3, observed=np.ones(N))
        kept = pmt.OneSidedErrors(rng=1)
        pm.set_data({"sign": np.full(N, -2.0)})
        new = pmt.OneSidedErrors(rng=1)
    found = []
    for step in (kept, new):
        step.setup_chain(np.random.default_rng(1), 5, 5)
        found.append(step.step(model.initial_point(random_seed=1))[0]["u_log__"])
    np.testing.assert_array_equal(*found)
    with model:
        pm.set_data({"sign": np.arange(N) - 1.0})
    with pytest.raises(ValueError, match="u no longer has the same factor"):
        kept.setup_chain(np.random.default_rng(1), 5, 5)
    with model:
        pm.set_data({"sign": np.ones(N)})
    kept.setup_chain(np.random.default_rng(1), 5, 5)


def test_sample_assigns_it():
    with pm.Model() as model:
        plain(pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.2, 0.5), max_nodes=60))
    with model:
        idata = pm.sample(
            20, tune=20, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    assert "one_sided_errors_evaluations" in idata.sample_stats
    assert (idata.posterior["u"] > 0).all()
    with model:
        steps = pm.sample(
            5, tune=5, chains=1, cores=1, step=[pmt.CGM()], progressbar=False, random_seed=1,
            compute_convergence_checks=False,
        )  # fmt: skip
    assert "one_sided_errors_evaluations" not in steps.sample_stats  # left to NUTS
