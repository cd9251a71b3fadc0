"""Lines in every leaf: the posterior listed, with paths and levels; the prior; what is refused.

Chains are compared with a list of all partitions into leaves with their paths, as
`support.naive.linear_sums` says; six cases of some 80 averages. Averages over N independent prior
draws are normal: at 5 standard errors one of 30 fails once in 60,000 runs with fresh seeds.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive import linear_sums
from support.naive.laws import MIXED, PROBLEMS
from support.naive.path_states import below, partition_in, with_choices
from support.stepping import tempered
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.coefficients import make_linear, read_linear
from pymc_trees.core.leaves.contract import add_row, draw_values, log_marginal, n_stats
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.likelihoods.normal import LinearLikelihood

MEAN, SD, SLOPE_SD = 0.3, 0.8, 0.6
PROBLEM = {
    "numbers": replace(PROBLEMS["two_columns"], prior={"alpha": 0.7, "beta": 1.0}),
    "levels": MIXED["levels"],
    "missing": MIXED["missing"],
}
SIGMA = np.array([0.6, 0.7, 0.5, 0.8, 0.6, 0.7, 0.9])


def inputs_of(problem):
    """A frame where columns of levels hold text."""
    kinds = problem.prior.get("kinds", ["number"] * problem.X.shape[1])
    if "subset" not in kinds:
        return problem.X
    columns = {}
    for j, kind in enumerate(kinds):
        x = problem.X[:, j]
        columns[f"c{j}"] = x if kind == "number" else [f"l{v:.0f}" for v in x]
    return pd.DataFrame(columns)


def standardised(problem):
    """(n, p) cells in standard deviations from the mean; 0 where there is no slope."""
    kinds = problem.prior.get("kinds", ["number"] * problem.X.shape[1])
    z = np.zeros_like(problem.X)
    for j, kind in enumerate(kinds):
        x = problem.X[:, j]
        seen = x[~np.isnan(x)]
        if kind == "number" and np.ptp(seen) > 0:
            z[:, j] = np.nan_to_num((x - seen.mean()) / seen.std())
    return z


@cache
def exact(name, m, columns, p_constant=0.0, of_prior=False):
    problem = PROBLEM[name]
    n, z = problem.n, standardised(problem)
    if columns == "all":
        plain = o.partition_prior(problem.X, **problem.prior)
        every = frozenset(range(z.shape[1]))
        prior = {frozenset((rows, every) for rows in part): p for part, p in plain.items()}
    else:
        prior = o.path_prior(problem.X, partial(below, columns), **problem.prior)
    if p_constant:
        prior = with_choices(prior, p_constant)

    def covariance_of(state):
        found = np.zeros((n, n))
        for rows, path in state:
            at = sorted(rows)
            of_leaf = z[np.ix_(at, sorted(path or ()))]
            found[np.ix_(at, at)] = SD**2 + SLOPE_SD**2 * of_leaf @ of_leaf.T
        return found

    mean = np.full(n, MEAN)
    noise = np.full(n, linear_sums.NOTHING_SEEN) if of_prior else SIGMA[:n]
    return linear_sums.exact(prior, m, problem.y, noise, mean, covariance_of, partition_in)


def declare(name, m, columns="parent", likelihood=True, **given):
    problem = PROBLEM[name]
    prior = {key: problem.prior[key] for key in ("alpha", "beta")}
    with pm.Model() as model:
        leaf = pmt.LinearLeaf(MEAN, SD, SLOPE_SD, columns=columns, **given)
        room = {"max_nodes": m * (2 * problem.n - 1)}
        f = pmt.BART("f", inputs_of(problem), m=m, leaf=leaf, **prior, **room)
        if likelihood:
            y = pm.Data("seen", problem.y)
            pm.Normal("y", f, SIGMA[: problem.n], observed=y, shape=f.shape)
    return model


ALL = {"grow": 1, "prune": 1, "change": 1, "swap": 1, "perturb": 1, "rotate": 1, "restructure": 1}
# With the moves of `Hybrid`: its kernel is then the same.
LOCAL = {"grow": 0.25, "prune": 0.25, "change": 0.3, "swap": 0.1, "perturb": 0.1}
STEPS = {
    "cgm": (lambda **given: pmt.CGM(moves=LOCAL, **given), 60_000),
    "all_moves": (lambda **given: pmt.CGM(moves=ALL, **given), 60_000),
    "hybrid": (pmt.Hybrid, 30_000),
    "optimal": (
        lambda **given: pmt.ParticleGibbs(num_particles=4, proposal="optimal", **given),
        30_000,
    ),
    "tempering": (tempered, 30_000),
}
# Every step, table and kind of columns, not their product: few kernels hold them all.
CASES = [
    ("cgm", "numbers", 1, "parent", 0.5),
    ("all_moves", "levels", 1, "path", 0.0),
    ("all_moves", "levels", 1, "all", 0.0),
    ("all_moves", "missing", 1, "path", 0.3),
    ("hybrid", "numbers", 2, "parent", 0.0),
    ("optimal", "numbers", 1, "path", 0.5),
    ("tempering", "numbers", 1, "parent", 0.5),
]


@pytest.mark.parametrize(
    "step, name, m, columns, p_constant",
    tiers(CASES, quick=CASES[:2]),
)
def test_steps_leave_the_listed_posterior_invariant(step, name, m, columns, p_constant):
    model = declare(name, m, columns, p_constant=p_constant)
    assert isinstance(read_target(model, model["f_forest"]).likelihood, LinearLikelihood)
    make, draws = STEPS[step]
    known = exact(name, m, columns, p_constant)
    linear_sums.check_chain(
        model, make(model=model, rng=5), draws, known, lambda outputs: outputs[..., 0]
    )


@pytest.mark.full
def test_drawing_forest_and_data_in_turn_keeps_the_prior(rng):
    """Geweke's test: the moments and partitions are those of the prior."""
    model, n = declare("numbers", 1, p_constant=0.5), PROBLEM["numbers"].n
    make, draws = STEPS["cgm"]

    def draw_data(f):
        model["seen"].set_value(f + SIGMA[:n] * rng.standard_normal(n))

    known = exact("numbers", 1, "parent", 0.5, of_prior=True)
    linear_sums.check_chain(
        model, make(model=model, rng=5), draws, known, lambda outputs: outputs[..., 0], draw_data
    )


@pytest.mark.full
@pytest.mark.parametrize(
    "columns, p_constant", [("parent", 0.0), ("path", 0.4), ("all", 0.0), ([1], 0.0)]
)
def test_prior_draws_have_the_moments_of_lines(columns, p_constant):
    """Of one tree, by the list of partitions with paths; m trees add up."""
    m, draws = 3, 4000
    problem = PROBLEM["numbers"]
    z, n = standardised(problem), problem.n
    if columns == [1]:
        variance = SD**2 + SLOPE_SD**2 * z[:, 1] ** 2
    elif columns == "all":
        variance = SD**2 + SLOPE_SD**2 * (z**2).sum(axis=1)
    else:
        prior = o.path_prior(problem.X, partial(below, columns), **problem.prior)
        variance = np.full(n, SD**2)
        for state, probability in prior.items():
            for rows, path in state:
                at = sorted(rows)
                of_leaf = (z[np.ix_(at, sorted(path or ()))] ** 2).sum(axis=1)
                variance[at] += (1 - p_constant) * probability * SLOPE_SD**2 * of_leaf
    with declare("numbers", m, columns, likelihood=False, p_constant=p_constant):
        f = pm.sample_prior_predictive(draws, random_seed=1).prior["f"].to_numpy()[0]
    scaled = (f - m * MEAN) / np.sqrt(m * variance)
    assert np.abs(scaled.mean(axis=0)).max() < 5.0 / np.sqrt(draws)
    spread = (scaled**2).std(axis=0) / np.sqrt(draws)
    assert (np.abs((scaled**2).mean(axis=0) - 1.0) < 5.0 * spread).all()


@njit(cache=True)
def drawn(leaf, rng, stats, out):
    for values in out:
        draw_values(leaf, rng, stats, values)
    return log_marginal(leaf, stats)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_marginal_and_the_draws_of_one_leaf(kind, rng):
    """Against the normal law of its rows, and the conditional of its coefficients."""
    n, draws = 5, 40_000
    X = rng.normal(size=(n, 3))
    constants = np.array([kind, 0.0, *[0.0, 1.0, -9.0, 9.0] * 3])
    reads = read_linear(5 if kind else 3, X, constants)
    y, w = rng.normal(size=n), 0.5 + rng.random(n)
    leaf = make_linear(MEAN, SD, SLOPE_SD, 0.35, reads, y.copy(), w)
    columns, path = {0: ([2], 3.0), 1: ([0, 2], 5.0), 2: ([0, 1, 2], 0.0)}[kind]
    d = 3
    stats_of = np.zeros(2 + 3 * d + (3 if kind else 0) + 1)
    assert n_stats(leaf) == stats_of.size
    for i in range(n):
        add_row(leaf, i, stats_of)
    stats_of[-1] = path
    values = np.empty((draws, 5 if kind else 3))
    found = drawn(leaf, rng, stats_of, values)
    U = np.column_stack([np.ones(n), X[:, columns]])
    prior = np.diag([SD**2] + [SLOPE_SD**2] * len(columns))
    logs = {}
    for name, k in (("constant", 1), ("line", 1 + len(columns))):
        covariance = U[:, :k] @ prior[:k, :k] @ U[:, :k].T + np.diag(1 / w)
        logs[name] = stats.multivariate_normal.logpdf(y, np.full(n, MEAN), covariance)
    base = stats.norm.logpdf(y, MEAN, w**-0.5).sum()
    exact_log = np.logaddexp(np.log(0.35) + logs["constant"], np.log(0.65) + logs["line"])
    np.testing.assert_allclose(found, exact_log - base, rtol=1e-10)
    p_constant = np.exp(np.log(0.35) + logs["constant"] - exact_log)
    is_constant = values[:, -1] < 0
    se = np.sqrt(p_constant * (1 - p_constant) / draws)
    assert abs(is_constant.mean() - p_constant) < 5 * se
    at = [0] + ([1] if kind == 0 else [1 + j for j in columns])
    lines = values[~is_constant][:, at]
    precision = np.linalg.inv(prior) + U.T @ (w[:, None] * U)
    mean = np.linalg.solve(precision, np.linalg.inv(prior)[:, 0] * MEAN + U.T @ (w * y))
    covariance = np.linalg.inv(precision)
    se = np.sqrt(np.diag(covariance) / len(lines))
    assert (np.abs(lines.mean(axis=0) - mean) < 5 * se).all()
    se = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / len(lines))
    assert (np.abs(np.cov(lines.T) - covariance) < 5 * se).all()


@pytest.mark.full
@pytest.mark.parametrize("extrapolate", [True, False])
def test_beyond_the_rows_lines_go_on_or_end(extrapolate):
    x = np.linspace(0.0, 1.0, 40)
    y = 3.0 * x + np.random.default_rng(1).normal(0.0, 0.05, 40)
    with pm.Model():
        leaf = pmt.LinearLeaf(0.15, 0.3, 0.5, columns="all", extrapolate=extrapolate)
        f = pmt.BART("f", x[:, None], m=5, leaf=leaf)
        pm.Normal("y", f, 0.05, observed=y, shape=f.shape)
        idata = pm.sample(100, tune=200, chains=2, cores=1, progressbar=False, random_seed=1)
        pmt.set_data({"f_X": np.array([[1.0], [1.5], [2.0]])})
        found = pm.sample_posterior_predictive(
            idata, var_names=["f"], predictions=True, progressbar=False
        )
    at = found.predictions["f"]
    np.testing.assert_allclose(at[..., 0], idata.posterior["f"][..., -1])
    first, second = at[..., 1] - at[..., 0], at[..., 2] - at[..., 1]
    if extrapolate:
        np.testing.assert_allclose(first, second, atol=1e-9)
        assert abs(float(at[..., 1].mean()) - 4.5) < 0.5
    else:
        np.testing.assert_allclose(at[..., 1:], np.broadcast_to(at[..., :1], at[..., 1:].shape))


@pytest.mark.full
def test_a_slope_sd_is_learnt_and_draws_are_read_again():
    problem = PROBLEM["levels"]
    with pm.Model() as model:
        slope_sd = pm.HalfNormal("slope_sd", 1.0)
        leaf = pmt.LinearLeaf(MEAN, SD, slope_sd, columns="path", p_constant=0.5)
        f = pmt.BART("f", inputs_of(problem), m=2, leaf=leaf, max_nodes=26)
        pm.Normal("y", f, 0.5, observed=problem.y, shape=f.shape)
        options = {"step": pmt.CGM(moves=ALL), "progressbar": False, "random_seed": 1}
        idata = pm.sample(50, tune=50, chains=2, cores=1, **options)
        pmt.check_draws(idata, model)
        pmt.set_data({"f_X": inputs_of(problem)[:4]})
        found = pm.sample_posterior_predictive(
            idata, var_names=["f"], predictions=True, progressbar=False
        )
    known = idata.posterior["f"].to_numpy()[..., :4]
    np.testing.assert_allclose(found.predictions["f"], known, atol=1e-10)
    logp = model.compile_logp(vars=[model["f_forest"]])
    assert np.isfinite(logp(model.initial_point()))


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize(
    "given, said",
    [
        ({"sd": 0.0}, "sd must be a positive number"),
        ({"slope_sd": -1.0}, "slope_sd must be a positive number"),
        ({"columns": "children"}, "columns='children': X has no column 'children'"),
        ({"columns": ["c9"]}, r"columns=\['c9'\]: X has no column 'c9'; it has \['c0', 'c1'\]"),
        ({"columns": ["c0"]}, "'c0' is a column of levels, which has no slope"),
        ({"columns": [True, False]}, "not True and False"),
        ({"mean": None}, "mean=None.: mean must be a number"),
        ({"sd": 1e200}, "sd=1e.200.: the square of sd"),
        ({"p_constant": 1.0}, "p_constant=1.0: must be at least 0 and below 1"),
        ({"extrapolate": "no"}, "extrapolate='no': must be True or False"),
    ],
)
def test_what_is_refused(given, said):
    with pm.Model(), pytest.raises((TypeError, ValueError), match=said):
        pmt.BART("f", inputs_of(PROBLEM["levels"]), m=2, leaf=pmt.LinearLeaf(**given))


@pytest.mark.usefixtures("quick_compile")
def test_at_most_52_sets_of_columns():
    X = np.random.default_rng(1).random((4, 53))
    with pm.Model(), pytest.raises(ValueError, match="53 columns would have slopes, but there can"):
        pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf(columns="path"))
    with pm.Model():
        pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf(columns="parent"))


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("response, p_constant", [("linear", 0.0), ("mix", 0.5)])
@pytest.mark.parametrize("declared", [pmt.BART, pmt.DecisionTree])
def test_the_words_of_response(declared, response, p_constant):
    """The same draws of the prior as from the leaf written out."""
    problem = PROBLEM["numbers"]
    found = []
    for given in (
        {"leaf": pmt.NormalLeaf(MEAN, SD), "response": response},
        {"leaf": pmt.LinearLeaf(MEAN, SD, p_constant=p_constant)},
    ):
        with pm.Model() as model:
            declared("f", problem.X, **given)
        found.append(pm.draw(model["f"], 5, random_seed=1))
    np.testing.assert_array_equal(*found)
    with pm.Model(), pytest.raises(ValueError, match=f"response='{response}' replaces a Nor"):
        declared("f", problem.X, leaf=pmt.LinearLeaf(), response=response)
    several = {"leaf": pmt.NormalLeaf(MEAN, SD), "shape": (2, problem.n)}
    with pm.Model() as model:
        declared("f", problem.X, response=response, **several)
    assert pm.draw(model["f"], random_seed=1).shape == (2, problem.n)


@pytest.mark.usefixtures("quick_compile")
def test_columns_by_name_in_any_list():
    frame = pd.DataFrame({"a": [0.0, 1.0, 3.0], "b": [1.0, 0.0, 2.0]})
    for columns in (["b"], np.array(["b"]), frame.columns[1:], [1], np.array([1])):
        with pm.Model() as model:
            pmt.BART("f", frame, m=2, leaf=pmt.LinearLeaf(columns=columns))
        assert model["f_forest"].owner.op.layout.n_values == 3


def test_the_words_of_a_leaf():
    words, columns = pmt.LinearLeaf.words, ["level", "a", "b"]
    of_each = [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 1.0, 2.0, 0.0, 3.0]
    for kind, values, said in [
        (0, [0.25, 0.0, 0.0], []),
        (0, [0.25, -2.0, 2.0], ["-2 per sd of b"]),
        (0, [0.25, 0.0, -2.0], []),
        (1, [0.25, 0.0, 5.0, 2.0], ["+5 per sd of b"]),
        (2, [0.25, 1.0, 5.0, 3.0], ["+1 per sd of a", "+5 per sd of b"]),
    ]:
        found = words(np.array(values), np.array([kind, 0.0, *of_each]), columns)
        assert found == ["0.25", *said]


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("columns", ["parent", "path", "all"])
def test_codes_of_levels_and_constant_columns_have_no_slope(columns):
    """Levels may come from split_rules; where no column is left the tree is constant."""
    X = np.column_stack([np.arange(6.0) % 3, np.ones(6)])
    for given in (X, pm.Data):
        with pm.Model() as model:
            held = given("X", X) if callable(given) else given
            leaf = pmt.LinearLeaf(MEAN, SD, columns=columns)
            pmt.BART("f", held, m=2, leaf=leaf, split_rules=["subset", "continuous"])
        f = pm.draw(model["f"], 50, random_seed=1)
        assert np.isfinite(f).all()
        np.testing.assert_allclose(f[:, :3], f[:, 3:])  # rows of the same level
    with pm.Model(), pytest.raises(ValueError, match="0 is a column of levels, which has no slope"):
        leaf = pmt.LinearLeaf(columns=[0])
        pmt.BART("f", X, m=2, leaf=leaf, split_rules=["subset", "continuous"])


SIZES = np.resize(["s", "m", "l", "xl", "xxl"], 20)
ORDER = ["s", "m", "l", "xl", "xxl"]
IN_ORDER = pd.Categorical(SIZES, ORDER, ordered=True)
WITHOUT_SLOPES = {
    "ordered category": ({"size": IN_ORDER}, None),
    "ordered category of numbers": (
        {"size": pd.Categorical(np.resize([10, 20, 30, 40, 50], 20), ordered=True)},
        None,
    ),
    "ordered category with missing cells": (
        {"size": pd.Categorical(np.where(SIZES == "l", None, SIZES), ORDER, ordered=True)},
        None,
    ),
    "ordered category, one-hot": ({"size": IN_ORDER}, {"size": "onehot"}),
    "text by cuts": ({"size": SIZES}, {"size": "continuous"}),
    "category by cuts": ({"size": pd.Categorical(SIZES)}, {"size": "continuous"}),
    "category": ({"size": pd.Categorical(SIZES)}, None),
    "polars' Enum": ({"size": pl.Series(SIZES.tolist(), dtype=pl.Enum(ORDER))}, None),
    "numbers by levels": ({"size": np.resize([1.5, 2.5, 3.5], 20)}, {"size": "subset"}),
}
WITH_SLOPES = {
    "codes of an ordered category": {"size": IN_ORDER.codes},
    "bool": {"size": SIZES == "s"},
    "0 and 1": {"size": np.resize([0, 1], 20)},
}


def frame_of(columns):
    polars = any(isinstance(one, pl.Series) for one in columns.values())
    return pl.DataFrame(columns) if polars else pd.DataFrame(columns)


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("columns", tiers(["parent", "path", "all", "response"], ["parent", "all"]))
@pytest.mark.parametrize("case", WITHOUT_SLOPES)
def test_columns_of_levels_have_no_slope_however_they_are_split(case, columns):
    """A tree has as many values as leaves: with slopes, levels in one leaf would differ."""
    given, rules = WITHOUT_SLOPES[case]
    frame, settings = frame_of(given), {"alpha": 0.6, "split_rules": rules}
    if columns == "response":
        settings |= {"leaf": pmt.NormalLeaf(MEAN, SD), "response": "linear"}
    else:
        settings["leaf"] = pmt.LinearLeaf(MEAN, SD, columns=columns)
    for data in (False, True):
        with pm.Model() as model:
            rules = settings.pop("split_rules", None)
            X = pmt.Data("X", frame, split_rules=rules) if data else frame
            given = settings if data else settings | {"split_rules": rules}
            pmt.DecisionTree("f", X, **given)
            settings["split_rules"] = rules
        trees, f = pm.draw([model["f_forest"], model["f"]], 40, random_seed=1)
        leaves = (trees[:, :, 0] == -1).sum(axis=1)
        assert [len(set(row)) for row in f] == leaves.tolist()
        assert leaves.min() < leaves.max()


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("case", WITHOUT_SLOPES)
def test_columns_of_levels_are_refused_by_name(case):
    """In words whose remedy, numbers in its place, has slopes."""
    given, rules = WITHOUT_SLOPES[case]
    for named in (["size"], [0]):
        with pm.Model(), pytest.raises(ValueError, match=r"^columns=.*is a column of levels.*X a"):
            leaf = pmt.LinearLeaf(columns=named)
            pmt.BART("f", frame_of(given), m=2, leaf=leaf, split_rules=rules)


@pytest.mark.usefixtures("quick_compile")
@pytest.mark.parametrize("case", WITH_SLOPES)
@pytest.mark.parametrize("columns", ["all", ["size"]])
def test_columns_of_numbers_have_slopes(case, columns):
    with pm.Model() as model:
        leaf = pmt.LinearLeaf(MEAN, SD, columns=columns)
        pmt.DecisionTree("f", frame_of(WITH_SLOPES[case]), alpha=0.6, leaf=leaf)
    trees, f = pm.draw([model["f_forest"], model["f"]], 40, random_seed=1)
    stumps = (trees[:, :, 0] == -1).sum(axis=1) == 1
    assert stumps.any()
    assert all(len(set(row)) > 1 for row in f[stumps])
