"""Coefficients of a basis in every leaf: the posterior listed, the prior's moments, other terms.

Chains are compared with a list of all partitions as `support.naive.linear_sums` says; five cases of
some 80 averages. Under a Poisson the coefficients of a leaf are summed over a grid, as in
`test_several_outputs`. Averages over N independent prior draws are normal: at 5 standard errors
one of 30 fails once in 60,000 runs with fresh seeds.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive import linear_sums
from support.naive.laws import MIXED, PROBLEMS
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.graph import NotConjugateError, read_graph
from pymc_trees.targets.likelihoods.normal import CombinationLikelihood
from pymc_trees.targets.rowwise import RowwiseTarget

NUMBERS = replace(PROBLEMS["two_columns"], prior={"alpha": 0.7, "beta": 1.0})
LEVELS = MIXED["levels"]
SETTINGS = {
    "number": (0.3, 0.8),
    "each": ([0.3, -0.2], [0.8, 0.5]),
    "covariance": ([0.3, -0.2], [[0.5, 0.25], [0.25, 0.4]]),
}
SIGMA = np.array([0.6, 0.7, 0.5, 0.8, 0.6, 0.7, 0.9])


def basis_of(n):
    """An intercept and a regressor that is no column of X."""
    return np.column_stack([np.ones(n), np.array([-1.0, 0.4, 0.9, -0.3, 1.2, 0.0, -0.8])[:n]])


def moments_of(settings, d=2):
    """Mean and covariance of the coefficients of a leaf."""
    mean, sd = (np.array(v) for v in SETTINGS[settings])
    covariance = sd if sd.ndim == 2 else np.diag(np.broadcast_to(sd**2, d))
    return np.broadcast_to(mean, d), covariance


def inputs_of(problem):
    """A frame where the first column holds levels."""
    if "kinds" not in problem.prior:
        return problem.X
    return pd.DataFrame({"level": [f"l{v:.0f}" for v in problem.X[:, 0]], "x": problem.X[:, 1]})


def declare(m, settings="number", problem=NUMBERS, likelihood=None, **more):
    n = problem.n
    mean, sd = SETTINGS[settings]
    prior = {name: problem.prior[name] for name in ("alpha", "beta")}
    with pm.Model() as model:
        leaf = pmt.BasisLeaf(pm.Data("B", basis_of(n)), mean, sd)
        room = {"max_nodes": m * (2 * n - 1)}
        f = pmt.BART("f", inputs_of(problem), m=m, leaf=leaf, **prior, **room, **more)
        if likelihood is None:
            y = pm.Data("seen", problem.y)
            pm.Normal("y", f, SIGMA[:n], observed=y, shape=f.shape)
        else:
            likelihood(f)
    return model


@cache
def exact(m, settings, name, of_prior=False):
    problem = {"numbers": NUMBERS, "levels": LEVELS}[name]
    n, (mean, covariance) = problem.n, moments_of(settings)
    prior, B = o.partition_prior(problem.X, **problem.prior), basis_of(n)
    kernel = B @ covariance @ B.T
    noise = np.full(n, linear_sums.NOTHING_SEEN) if of_prior else SIGMA[:n]
    return linear_sums.exact(
        prior, m, problem.y, noise, B @ mean, lambda part: kernel * o.same_leaf(part, n)
    )


# With the moves of `Hybrid`: its kernel is then the same.
LOCAL = {"grow": 0.25, "prune": 0.25, "change": 0.3, "swap": 0.1, "perturb": 0.1}
STEPS = {
    "cgm": (lambda **given: pmt.CGM(moves=LOCAL, **given), 60_000),
    "hybrid": (pmt.Hybrid, 30_000),
    "particles": (lambda **given: pmt.ParticleGibbs(num_particles=4, **given), 30_000),
}
CASES = [
    ("cgm", 1, "each", "levels"),
    ("cgm", 2, "covariance", "numbers"),
    ("hybrid", 2, "each", "numbers"),
    ("particles", 2, "number", "numbers"),
]


@pytest.mark.parametrize(
    "name, m, settings, problem", tiers(CASES, quick=[("cgm", 2, "covariance", "numbers")])
)
def test_steps_leave_the_listed_posterior_invariant(name, m, settings, problem):
    data = {"numbers": NUMBERS, "levels": LEVELS}[problem]
    model, (make, draws) = declare(m, settings, data), STEPS[name]
    assert isinstance(read_target(model, model["f_forest"]).likelihood, CombinationLikelihood)
    factor = np.eye(2)
    if settings == "covariance":
        factor = np.linalg.cholesky(moments_of(settings)[1])
    rows = basis_of(data.n) @ factor
    linear_sums.check_chain(
        model,
        make(model=model, rng=5),
        draws,
        exact(m, settings, problem),
        lambda held: np.einsum("snk,nk->sn", held, rows),
    )


@pytest.mark.full
def test_drawing_forest_and_data_in_turn_keeps_the_prior(rng):
    """Geweke's test: the moments and partitions are those of the prior."""
    model, n, B = declare(1, "each"), NUMBERS.n, basis_of(NUMBERS.n)

    def draw_data(f):
        model["seen"].set_value(f + SIGMA[:n] * rng.standard_normal(n))

    make, draws = STEPS["cgm"]
    linear_sums.check_chain(
        model,
        make(model=model, rng=5),
        draws,
        exact(1, "each", "numbers", of_prior=True),
        lambda held: np.einsum("snk,nk->sn", held, B),
        draw_data,
    )


@pytest.mark.full
def test_top_down_smc_finds_the_evidence():
    """Ten runs of 2,000 particles; their spread is the Monte Carlo error."""
    with declare(1, "covariance"):
        options = {"particles": 2000, "progressbar": False, "cores": 1}
        runs = [pmt.sample_tree_smc(**options, random_seed=seed) for seed in range(10)]
    known = exact(1, "covariance", "numbers").log_evidence
    found = np.exp([run.attrs["log_marginal_likelihood"] - known for run in runs])
    assert abs(found.mean() - 1.0) < 5.0 * found.std(ddof=1) / np.sqrt(10) < 0.1
    model, values = declare(1, "covariance"), runs[0].posterior["f_forest"].to_numpy()[0, :5]
    outputs = pmt.evaluate(model["f_forest"], NUMBERS.X[::-1].copy())  # walks the trees
    walk = model.compile_fn(model.replace_rvs_by_values([outputs]), inputs=model.value_vars)
    factor = np.linalg.cholesky(moments_of("covariance")[1])
    for value, beta in zip(values, runs[0].posterior["f_coefficients"].to_numpy()[0], strict=False):
        [held] = walk({"f_forest": value})
        np.testing.assert_allclose(beta, (factor @ held).T[::-1], atol=1e-10)


COUNTS = np.array([1, 0, 3, 0, 6, 1, 2])


@cache
def exact_counts(points=121):
    """Law of the partitions of one tree and means of f, coefficients summed over a grid."""
    mean, covariance = moments_of("each")
    sd, z, n = np.sqrt(np.diag(covariance)), np.linspace(-7.0, 7.0, points), NUMBERS.n
    first, second = np.meshgrid(mean[0] + sd[0] * z, mean[1] + sd[1] * z, indexing="ij")
    B, beta = basis_of(n), np.stack([first.ravel(), second.ravel()])
    log_prior = stats.norm.logpdf(beta, mean[:, None], sd[:, None]).sum(0)
    f = B @ beta
    rows = stats.poisson.logpmf(COUNTS[:n, None], np.exp(f))

    @cache
    def leaf_of(members):
        weight = np.exp(log_prior + rows[list(members)].sum(0))
        cell = sd.prod() * (z[1] - z[0]) ** 2
        return weight.sum() * cell, f[list(members)] @ weight / weight.sum()

    law, moments = {}, np.zeros(n)
    for partition, share in o.partition_prior(NUMBERS.X, **NUMBERS.prior).items():
        leaves = {members: leaf_of(members) for members in partition}
        law[partition] = share * np.prod([total for total, _ in leaves.values()])
        for members, (_, found) in leaves.items():
            moments[list(members)] += law[partition] * found
    total = sum(law.values())
    return {part: share / total for part, share in law.items()}, moments / total


@pytest.mark.full
def test_the_grid_of_coefficients_is_fine_enough():
    law, mean = exact_counts(121)
    coarse, coarse_mean = exact_counts(81)
    assert max(abs(law[p] - coarse[p]) for p in law) < 1e-6
    np.testing.assert_allclose(mean, coarse_mean, atol=1e-5)


@pytest.mark.full
def test_coefficients_under_a_poisson():
    """They are proposed, several at a time."""
    n, draws = NUMBERS.n, 60_000
    model = declare(
        1,
        "each",
        likelihood=lambda f: pm.Poisson("y", pm.math.exp(f), observed=COUNTS[: NUMBERS.n]),
    )
    assert isinstance(read_target(model, model["f_forest"]), RowwiseTarget)
    law, mean = exact_counts()
    step, point = pmt.CGM(model=model, rng=5), model.initial_point()
    codes, f = np.empty(draws, dtype=np.int64), np.empty((draws, n))
    for s in range(draws):
        point, _ = step.step(point)
        f[s] = (step.states[0].forest.fit * basis_of(n)).sum(axis=1)
        codes[s] = linear_sums.partition_code(step.states[0].forest.trees.leaf_of[0], n)
    codes, shares = linear_sums.frequencies(codes, linear_sums.BATCHES)
    states = [linear_sums.partition_of(code, n) for code in codes]
    found = linear_sums.law_gap(states, shares, law, draws)
    assert found.within(linear_sums.Z, 0.03), found
    found = linear_sums.gap(linear_sums.batch_means(f, linear_sums.BATCHES), mean)
    assert found.within(linear_sums.Z, 0.05), found


@pytest.mark.full
@pytest.mark.parametrize("settings", SETTINGS)
def test_prior_draws_have_the_moments_of_the_coefficients(settings):
    """Of m trees m times those of one, whatever the trees."""
    m, draws = 3, 4000
    mean, covariance = moments_of(settings)
    with declare(m, settings):
        prior = pm.sample_prior_predictive(draws, random_seed=1).prior.isel(chain=0)
    beta = prior["f_coefficients"].to_numpy()
    sd = np.sqrt(m * np.diag(covariance))
    z = (beta - m * mean) / sd
    assert np.abs(z.mean(axis=0)).max() < 5.0 / np.sqrt(draws)
    assert np.abs((z**2).mean(axis=0) - 1.0).max() < 5.0 * np.sqrt(2.0 / draws)
    rho = m * covariance[0, 1] / sd.prod()
    products = (z[..., 0] * z[..., 1]).mean(axis=0)
    assert np.abs(products - rho).max() < 5.0 * np.sqrt((1.0 + rho**2) / draws)
    f = (beta * basis_of(NUMBERS.n)).sum(axis=2)
    np.testing.assert_allclose(prior["f"], f, atol=1e-12)


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize(
    "mean, factors",
    [
        (lambda f, w: f.T @ w, [1.0, 2.0]),
        (lambda f, w: w @ f + 1.0, [1.0, 2.0]),
        (lambda f, w: 2.0 * f[0] - f[1] / 4.0, [2.0, -0.25]),
        (lambda f, w: (f * w[:, None]).sum(axis=0), [1.0, 2.0]),
        (lambda f, w: (f.T @ np.array([[1.0, 0.0], [3.0, 1.0]]))[:, 0], [1.0, 3.0]),
        (lambda f, w: f[0] * f[1], "its outputs, row by row .Mul"),
        (lambda f, w: f[0] / f[1], "its outputs, row by row .True_div"),
        (lambda f, w: f[0, ::-1], "its outputs, row by row .*of the rows"),
        (lambda f, w: f.sum() * w[0] + f[0], "its outputs, row by row .Sum"),
        (lambda f, w: f @ f.T @ w, "its outputs, row by row"),
        (lambda f, w: f.cumsum(axis=1)[0], "its outputs, row by row .Cumsum"),
    ],
)
def test_which_means_combine_outputs_row_by_row(mean, factors):
    w = pm.math.stack([1.0, 2.0])
    with pm.Model() as model:
        shape = (2, NUMBERS.n)
        leaf = pmt.NormalLeaf(0.0, 1.0)
        f = pmt.BART("f", NUMBERS.X, m=2, leaf=leaf, shape=shape, separate_trees=False)
        pm.Normal("y", mean(f, w), 1.0, observed=NUMBERS.y)
    graph = read_graph(model, model["f_forest"])
    if isinstance(factors, str):
        with pytest.raises(NotConjugateError, match=factors):
            ConjugateTarget(graph)
        return
    _, seen = ConjugateTarget(graph).at(model.initial_point())
    np.testing.assert_allclose(np.broadcast_to(seen[-1], (NUMBERS.n, 2)), [factors] * NUMBERS.n)


@pytest.mark.full
def test_it_is_sampled_and_predicts_with_another_basis(tmp_path):
    model = declare(3, "covariance")
    with model:
        idata = pm.sample(50, tune=50, chains=2, cores=1, progressbar=False, random_seed=1)
        pmt.set_data({"f_X": NUMBERS.X[:4]})
        said = f"B has {NUMBERS.n} rows, but the inputs of .* have 4"
        with pytest.raises(ValueError, match=said):
            pm.sample_posterior_predictive(idata, predictions=True, progressbar=False)
        pmt.set_data({"B": 3.0 * basis_of(4)})
        names = ["f", "f_coefficients", "y"]
        found = pm.sample_posterior_predictive(idata, predictions=True, var_names=["f"])
        assert set(names) <= set(model.named_vars)
    pmt.check_draws(idata, model)
    known = idata.posterior["f"].to_numpy()[..., :4]
    np.testing.assert_allclose(found.predictions["f"], 3.0 * known)


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize(
    "given, said",
    [
        ({"basis": np.ones(6)}, r"basis has shape \(6,\): give a matrix"),
        ({"basis": np.full((6, 2), np.nan)}, "basis holds missing"),
        ({"basis": np.array([["a"]])}, "basis must hold numbers only"),
        ({"basis": np.ones((5, 2))}, "basis has 5 rows, but X has 6"),
        ({"mean": [1.0, 2.0, 3.0]}, "mean=.*give a number, 2 numbers, or a random"),
        ({"sd": -1.0}, "Standard deviations must be positive"),
        ({"sd": [[1.0, 2.0], [2.0, 1.0]]}, "a covariance matrix positive definite"),
        ({"sd": "wide"}, r"sd='wide'.*a \(2, 2\) covariance"),
    ],
)
def test_what_is_refused(given, said):
    settings = {"basis": np.ones((6, 2))} | given
    with pm.Model() as model:
        with pytest.raises((TypeError, ValueError), match=said):
            pmt.BART("f", NUMBERS.X, m=2, leaf=pmt.BasisLeaf(**settings))
        assert not model.named_vars
