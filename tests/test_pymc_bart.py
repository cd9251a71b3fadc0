"""`pymc_trees.pymc_bart`: models and pictures of pymc-bart's users, with its names and shapes."""

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support.tiers import tiers

import pymc_trees as pmt
import pymc_trees.pymc_bart as pmb

N, SAMPLES = 30, 12
X = np.column_stack([np.random.default_rng(k).random(N) for k in range(2)])
X = np.column_stack([X, np.resize([0.0, 1.0, 2.0], N)])
Y = 3.0 * X[:, 0] + X[:, 2]
FRAME = pd.DataFrame(X, columns=["hour", "wind", "day"])


def sampled(step=None, **options):
    run = {"tune": 20, "draws": 8, "chains": 2, "cores": 1, "progressbar": False}
    return pm.sample(**run, random_seed=1, compute_convergence_checks=False, step=step, **options)


@pytest.fixture(scope="module")
def one():
    with pm.Model() as model:
        mu = pmb.BART("mu", X, Y, m=5)
        pm.Normal("y", mu, 0.3, observed=Y)
        return model, mu, sampled()


@pytest.fixture(scope="module")
def classes():
    codes = X[:, 2].astype(int)
    with pm.Model(coords={"class": list("abc"), "row": range(N)}) as model:
        with pytest.warns(UserWarning, match="class codes"):
            mu = pmb.BART("mu", FRAME, codes, m=3, dims=["class", "row"], separate_trees=True)
        pm.Categorical("y", p=pm.math.softmax(mu, axis=0).T, observed=codes)
        return model, mu, sampled()


def test_it_has_three_hundred_lines_at_most():
    """Of code: docstrings, comments and empty lines apart."""
    source = Path(pmb.__file__).read_text()
    texts = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(source.splitlines(), 1)
    code = [n for n, line in lines if line.strip() and not line.strip().startswith("#")]
    assert len(set(code) - texts) <= 300


def test_of_the_package_it_uses_public_names():
    source = Path(pmb.__file__).read_text()
    tree = ast.parse(source)
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pmt"
    }
    assert used <= set(pmt.__all__)
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in modules if name.startswith("pymc_trees")}
    assert ours == {"pymc_trees.arguments", "pymc_trees.hooks.wrap"}  # checks, and pm.sample


def test_draws_are_those_of_the_package(one):
    with pm.Model():
        mu = pmt.BART("mu", X, Y, m=5)
        pm.Normal("y", mu, 0.3, observed=Y)
        own = sampled()
    np.testing.assert_array_equal(own.posterior["mu"], one[2].posterior["mu"])


RULES = [
    [pmb.ContinuousSplitRule, pmb.OneHotSplitRule, pmb.SubsetSplitRule],
    ["ContinuousSplit", "OneHotSplit", "SubsetSplit"],
]


@pytest.mark.parametrize("rules", RULES)
def test_split_rules_by_name(rules):
    columns = np.resize([0.0, 1.0, 2.0], (N, 3))
    models = []
    for bart, words in ((pmb.BART, rules), (pmt.BART, ["continuous", "onehot", "subset"])):
        with pm.Model() as model:
            bart("mu", columns, Y, m=3, split_rules=words)
        models.append(model)
    ours, theirs = (pm.draw(model["mu"], 3, random_seed=1) for model in models)
    np.testing.assert_array_equal(ours, theirs)


def test_a_rule_that_is_none():
    with pm.Model(), pytest.raises(ValueError, match="split_rules='round': choose from"):
        pmb.BART("mu", X, Y, split_rules=["round"] * 3)
    with pm.Model(), pytest.raises(ValueError, match="size: leave it out"):
        pmb.BART("mu", X, Y, size=3)


def test_outputs_share_their_trees_as_in_pymc_bart():
    with pm.Model() as model:
        mu = pmb.BART("mu", X, Y, m=3, shape=(2, N))
    assert mu.type.ndim == 2
    assert [rv.name for rv in model.free_RVs] == ["mu_forest"]


def test_particle_gibbs_by_its_name():
    with pm.Model():
        mu = pmb.BART("mu", X, Y, m=3)
        pm.Normal("y", mu, 0.3, observed=Y)
        step = pmb.PGBART([mu], 5, (0.5, 0.5))
        assert isinstance(step, pmt.ParticleGibbs)
        assert sampled([step]).posterior["mu"].shape == (2, 8, N)


PDP = [
    {},
    {"var_idx": [0], "smooth": False, "color": "k", "alpha": 0.3},
    {"xs_interval": "linear", "xs_values": 4, "grid": "wide", "ref_line": False},
    {"xs_interval": "insample", "grid": (2, 2), "var_discrete": [2], "sharey": "none"},
    {"func": np.exp, "figsize": (4, 4), "smooth_kwargs": {"window_length": 11}},
]


@pytest.mark.parametrize("keywords", tiers(PDP, PDP[:1], single=True))
def test_partial_dependence(one, keywords):
    axes = pmb.plot_pdp(one[1], X, Y, samples=SAMPLES, random_seed=1, **keywords)
    assert [ax.get_xlabel() for ax in axes] == ["X_0", "X_1", "X_2"][: len(axes)]
    assert len(axes) == len(keywords.get("var_idx", X.T))


def test_partial_dependence_is_that_of_the_package(one):
    model, mu, idata = one
    values = [0.2, 0.5, 0.8]
    [ax] = pmb.plot_pdp(mu, X, var_idx=[0], xs_values=values, samples=16, smooth=False)
    at = np.quantile(X[:, 0], values)
    ours = pmt.partial_dependence(idata, model, 0, grid=at, progressbar=False)["average"]
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xdata(), at)
    np.testing.assert_allclose(line.get_ydata(), ours.mean(("chain", "draw")))


@pytest.mark.full
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"centered": False, "instances": 3, "smooth": False},
        {"var_discrete": [2], "func": np.exp},
    ],
)
def test_single_rows(one, keywords):
    axes = pmb.plot_ice(one[1], X, Y, samples=SAMPLES, **keywords)
    assert len(axes) == 3
    assert len(axes[0].lines) == keywords.get("instances", N) + 1


@pytest.mark.parametrize("method", tiers(["VI", "backward", "backward_VI"], ["VI"]))
def test_importance(one, method):
    fixed = {"fixed": 1} if method == "backward_VI" else {}
    vi = pmb.compute_variable_importance(one[2], one[1], X, method=method, samples=5, **fixed)
    assert vi["preds"].shape == (3, 5, N)
    assert vi["preds_all"].shape == (5, N)
    assert vi["r2_hdi"].shape == (3, 2)
    np.testing.assert_allclose(vi["preds"][-1], vi["preds_all"])
    assert vi["indices"][0] == 0
    assert vi["labels"][0] == "0"
    assert pmb.vi_to_kulprit(vi)[:2] == [[], ["0"]]
    assert pmb.plot_variable_importance(vi, submodels=[0, 1]).get_ylim() == (0, 1)
    assert len(pmb.plot_scatter_submodels(vi, func=np.exp, labels=["a", "b", "c"])) == 3


@pytest.mark.full
def test_classes_on_a_frame(classes):
    _, mu, idata = classes
    vi = pmb.compute_variable_importance(idata, mu, FRAME, samples=SAMPLES, random_seed=1)
    assert vi["preds"].shape == (3, SAMPLES, N, 3)
    assert {label.removeprefix("+ ") for label in vi["labels"]} == set(FRAME)
    assert len(pmb.plot_scatter_submodels(vi, grid=(3, 3))) == 9
    pmb.plot_variable_importance(vi)
    seen = []
    axes = pmb.plot_pdp(mu, FRAME, samples=SAMPLES, grid=(3, 3), func=lambda f: seen.append(f) or f)
    assert len(axes) == 9
    assert {f.shape[::2] for f in seen} == {(SAMPLES, 3)}
    shares, names = pmb.get_variable_inclusion(idata, FRAME)
    assert names[0] == "day"
    np.testing.assert_allclose(shares.sum(), 1)


@pytest.mark.full
def test_inclusion_and_convergence(one):
    model, mu, idata = one
    shares, names = pmb.get_variable_inclusion(idata, X)
    ours = pmt.get_variable_inclusion(idata, model, progressbar=False)["count"]
    ours = ours.sum(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(shares, np.sort(ours / ours.sum())[::-1])
    assert pmb.get_variable_inclusion(idata, FRAME, to_kulprit=True)[1] == ["hour"]
    assert len(names) == 3
    assert len(pmb.plot_variable_inclusion(idata, X, ["a", "b", "c"]).get_xticks()) == 3
    assert len(pmb.plot_convergence(idata)) == 3
    assert len(pmb.plot_convergence(idata, var_name="mu", figsize=(6, 2))) == 3


@pytest.mark.full
def test_two_functions():
    with pm.Model() as model:
        a = pmb.BART("a", X, Y, m=3)
        b = pmb.BART("b", FRAME, Y, m=3)
        pm.Normal("y", a + b, 0.3, observed=Y)
        idata = sampled()
    assert len(pmb.plot_pdp([a, b], X, samples=SAMPLES, var_idx=[0])) == 2
    with pytest.raises(ValueError, match=r"bart_var_name=None: choose from \['a', 'b'\]"):
        pmb.get_variable_inclusion(idata, X)
    with pytest.raises(ValueError, match=r"one BART with shape=\(K, n\)"):
        pmb.compute_variable_importance(idata, [model["a"], b], FRAME)
    shares = pmb.get_variable_inclusion(idata, X, bart_var_name="a")[0]
    line = pmb.plot_variable_inclusion(idata, X, bart_var_name="a").lines[-1]
    np.testing.assert_array_equal(line.get_ydata(), shares)
    assert len(pmb.get_variable_inclusion(idata, X, model=model, bart_var_name="a")[1]) == 3
    vi = pmb.compute_variable_importance(idata, b, FRAME, model=model, samples=5)
    assert vi["preds"].shape == (3, 5, N)


def test_a_frame_with_its_columns_in_another_order(classes):
    _, mu, idata = classes
    other = FRAME[["day", "hour", "wind"]]
    keywords = {"samples": SAMPLES, "random_seed": 1}
    for plot in (pmb.plot_pdp, pmb.plot_ice):
        here = plot(mu, other, var_idx=[0], smooth=False, **keywords)
        there = plot(mu, FRAME, var_idx=[2], smooth=False, **keywords)
        assert here[0].get_xlabel() == there[0].get_xlabel() == "day"
        for a, b in zip(here[0].lines, there[0].lines, strict=True):
            np.testing.assert_array_equal(a.get_xydata(), b.get_xydata())
    vi, known = (pmb.compute_variable_importance(idata, mu, F, **keywords) for F in (other, FRAME))
    np.testing.assert_array_equal(vi["labels"], known["labels"])
    assert list(other.columns[vi["indices"]]) == list(FRAME.columns[known["indices"]])
    np.testing.assert_allclose(vi["preds"], known["preds"])


def test_numbered_functions_are_functions_of_their_own():
    with pm.Model():
        parts = [pmb.BART(f"mu_{k}", X, Y, m=3) for k in (0, 1)]
        pm.Normal("y", parts[0] + parts[1], 0.3, observed=Y)
        idata = sampled()
    for name in ("mu_0", "mu_1"):
        counts = idata.sample_stats[f"variable_inclusion_{name}_forest"].sum(("chain", "draw"))
        shares, _ = pmb.get_variable_inclusion(idata, X, bart_var_name=name)
        np.testing.assert_allclose(shares, np.sort(counts / counts.sum())[::-1])
    with pytest.raises(ValueError, match=r"bart_var_name=None: choose from \['mu_0', 'mu_1'\]"):
        pmb.get_variable_inclusion(idata, X)
    assert len(pmb.plot_convergence(idata)) == 3


@pytest.mark.parametrize("recorded", [["mu"], ["mu_0_forest", "mu_1_forest", "mu_2_forest"]])
def test_outputs_are_one_function(recorded):
    """Whether its values are among the draws or not."""
    with pm.Model():
        mu = pmb.BART("mu", X, Y, m=3, shape=(3, N), separate_trees=True)
        pm.Normal("y", mu.sum(axis=0), 0.3, observed=Y)
        idata = sampled(var_names=recorded)
    counts = sum(
        idata.sample_stats[f"variable_inclusion_mu_{k}_forest"].sum(("chain", "draw")).to_numpy()
        for k in range(3)
    )
    shares, _ = pmb.get_variable_inclusion(idata, X, bart_var_name="mu")
    np.testing.assert_allclose(shares, np.sort(counts / counts.sum())[::-1])


@pytest.mark.full
def test_draws_from_elsewhere(one):
    with pm.Model():
        mu = pmb.BART("mu", X, Y, m=5)
        pm.Normal("y", mu, 0.3, observed=Y)
    with pytest.raises(ValueError, match="bartrv='mu' has no draws yet"):
        pmb.plot_pdp(mu, X)
    assert len(pmb.plot_pdp(mu, X, idata=one[2], samples=SAMPLES)) == 3
    with pytest.raises(ValueError, match="bartrv must be a variable made by BART"):
        pmb.plot_pdp(pm.math.exp(mu), X)


def test_words_that_are_none(one):
    with pytest.raises(ValueError, match="xs_interval='round': choose from"):
        pmb.plot_pdp(one[1], X, xs_interval="round")
    with pytest.raises(ValueError, match="grid='round': choose from"):
        pmb.plot_pdp(one[1], X, grid="round")
    with pytest.raises(TypeError, match="colour"):
        pmb.plot_pdp(one[1], X, colour="k")
    with pytest.raises(TypeError, match="ax: leave it out"):
        pmb.plot_convergence(one[2], ax=1)
    with pytest.raises(ValueError, match=r"bart_var_name='nu': choose from \['mu'\]"):
        pmb.get_variable_inclusion(one[2], X, bart_var_name="nu")
