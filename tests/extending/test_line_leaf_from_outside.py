"""A leaf whose outputs differ from row to row, and that is no part of the package.

The exact posterior of a sum of lines comes from a list of all partitions (pairs of them for two
trees): given these, y is multivariate normal. It shares no formula with the leaf.

Tolerances. Averages over a chain are compared as `support.naive.linear_sums` says; the largest gap
seen is 2.7 standard errors. Averages over N independent prior draws are
normal: at 5 standard errors one of 12 fails once in 140,000 runs.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from numba.core import event
from support import oracle as o
from support.naive import linear_sums
from support.naive.laws import PROBLEMS
from support.small_models import sample
from support.tiers import tiers

import pymc_trees as pmt
from extending.line_leaf import LineLeaf, LineLikelihood
from pymc_trees.core.value.fields import LEAF
from pymc_trees.core.value.text import tree_starts
from pymc_trees.distributions.leaves.contract import register_leaf
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import NotConjugateError

MEAN, SD, SLOPE_SD, COLUMN = 0.3, 0.8, 0.6, 1
PROBLEM = PROBLEMS["two_columns"]
PRIOR = {"alpha": 0.7, "beta": 1.0}  # few enough pairs of partitions for each to be visited often
SIGMA = np.array([0.6, 0.7, 0.5, 0.8, 0.6, 0.7])


def leaf(**changed):
    settings = {"mean": MEAN, "sd": SD, "slope_sd": SLOPE_SD, "column": COLUMN} | changed
    return LineLeaf(**settings)


def declare(m, X=PROBLEM.X, y=PROBLEM.y, sigma=SIGMA, **settings):
    """Sum of m trees of lines, with as much room as there can be nodes."""
    with pm.Model() as model:
        X = pm.Data("X", X)
        room = {"max_nodes": m * (2 * len(y) - 1)} | settings
        f = pmt.BART("f", X, m=m, **{"leaf": leaf(), **PRIOR, **room})
        pm.Normal("y", f, sigma, observed=y, shape=f.shape)
    return model


@cache
def exact(m):
    """Posterior of m trees of lines."""
    x = PROBLEM.X[:, COLUMN]
    kernel = SD**2 + SLOPE_SD**2 * np.outer(x, x)
    prior = o.partition_prior(PROBLEM.X, **PRIOR)
    n = len(x)
    return linear_sums.exact(
        prior, m, PROBLEM.y, SIGMA, np.full(n, MEAN), lambda part: kernel * o.same_leaf(part, n)
    )


def steps():
    # with the moves of `Hybrid`, which samples below: its kernel is then the same
    moves = {"grow": 0.25, "prune": 0.25, "change": 0.3, "swap": 0.1, "perturb": 0.1}
    optimal = {"num_particles": 4, "proposal": "optimal"}
    return {
        "cgm": (lambda **given: pmt.CGM(moves=moves, **given), 60_000),
        "optimal": (lambda **given: pmt.ParticleGibbs(**optimal, **given), 30_000),
    }


CASES = [("cgm", 2), ("optimal", 2)]  # `Hybrid` is both


@pytest.mark.parametrize("name, m", tiers(CASES, quick=[("cgm", 2)]))
def test_it_leaves_the_listed_posterior_invariant(name, m):
    """From the declaration through steps of PyMC to the function recorded in the value."""
    model, (make, draws) = declare(m), steps()[name]
    step = make(model=model, rng=5)
    linear_sums.check_chain(model, step, draws, exact(m), lambda outputs: outputs[..., 0])


@pytest.mark.full
def test_top_down_smc_finds_the_evidence():
    """Ten runs of 2,000 particles; their spread is the Monte Carlo error."""
    with declare(1):
        options = {"particles": 2000, "progressbar": False, "cores": 1}
        runs = [pmt.sample_tree_smc(**options, random_seed=seed) for seed in range(10)]
    found = np.exp([run.attrs["log_marginal_likelihood"] - exact(1).log_evidence for run in runs])
    assert abs(found.mean() - 1.0) < 5.0 * found.std(ddof=1) / np.sqrt(10) < 0.1


@pytest.mark.full
def test_prior_draws_have_the_moments_of_lines():
    """A line of m trees has variance ``m (sd**2 + slope_sd**2 x**2)``, whatever the trees."""
    m, n_draws = 3, 4000
    with declare(m) as model:
        prior = pm.sample_prior_predictive(n_draws, random_seed=1)
    f = prior.prior["f"].values[0]
    sd = np.sqrt(m * (SD**2 + SLOPE_SD**2 * PROBLEM.X[:, COLUMN] ** 2))
    z = (f - m * MEAN) / sd
    assert np.abs(z.mean(axis=0)).max() < 5.0 / np.sqrt(n_draws)
    # a sum of m normals, given the trees: fourth moment 3
    assert np.abs((z**2).mean(axis=0) - 1.0).max() < 5.0 * np.sqrt(2.0 / n_draws)
    values = prior.prior["f_forest"].values[0]
    forest = model["f_forest"].owner.op.layout
    by_hand = [walked(value, forest, PROBLEM.X) for value in values[:20]]
    np.testing.assert_allclose(f[:20], by_hand)


def walked(value, layout, X):
    """Sum of lines at rows of X, node by node."""

    def output(row, x):
        while value[row, 0] != LEAF:
            if x[int(value[row, 0])] <= value[row, 1]:
                row += 1
            else:
                row += 1
                open_ends = 1
                while open_ends:
                    open_ends += -1 if value[row, 0] == LEAF else 1
                    row += 1
        return value[row, 1] + value[row, 2] * x[COLUMN]

    return [sum(output(root, x) for root in tree_starts(value, layout)[:-1]) for x in X]


def sampled_model(column=COLUMN):
    rng = np.random.default_rng(4)
    X = rng.random((40, 3))
    y = np.where(X[:, 0] > 0.5, 3.0 * X[:, 1], 1.0 - 2.0 * X[:, 1]) + 0.1 * rng.normal(size=40)
    with pm.Model() as model:
        X = pm.Data("X", X)
        slope_sd = pm.HalfNormal("slope_sd", 2.0)
        line = leaf(slope_sd=slope_sd, column=column)
        f = pmt.BART("f", X, m=3, leaf=line, max_nodes=60)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", f, sigma, observed=y, shape=f.shape)
    return model, y


@pytest.mark.full
def test_it_is_sampled_saved_read_and_predicts(tmp_path):
    model, y = sampled_model()
    assert isinstance(read_target(model, model["f_forest"]).likelihood, LineLikelihood)
    with model:
        sample(150, 200).to_netcdf(tmp_path / "draws.nc")
    idata = xr.open_datatree(tmp_path / "draws.nc").load()
    model, y = sampled_model()
    layout, posterior = model["f_forest"].owner.op.layout, idata.posterior
    pmt.check_draws(idata, model)
    assert posterior["f"].shape == (2, 150, 40)
    assert np.abs(posterior["f"].mean(("chain", "draw")).values - y).mean() < 0.3
    values = posterior["f_forest"].values
    X = model["X"].get_value()
    np.testing.assert_allclose(posterior["f"][1, -1], walked(values[1, -1], layout, X), atol=1e-8)
    [tree] = tree_variables(model)
    shown = tree.function_values(model, values[:, :3], 40)
    np.testing.assert_allclose(shown, posterior["f"].values[:, :3], atol=1e-8)

    new = np.random.default_rng(5).random((7, 3))
    with model:
        elsewhere = pm.Deterministic("elsewhere", pmt.evaluate(model["f_forest"], new[:2]))
        pm.set_data({"X": new})
        names = ["f", "y", "elsewhere"]
        found = pm.sample_posterior_predictive(idata, predictions=True, var_names=names)
    at_new = found.predictions
    assert at_new["y"].shape == (2, 150, 7) and elsewhere.type.shape == (2,)
    for at in [(0, 0), (1, 149)]:
        by_hand = walked(values[at], layout, new)
        np.testing.assert_allclose(at_new["f"].values[at], by_hand)
        np.testing.assert_allclose(at_new["elsewhere"].values[at], by_hand[:2])

    other, _ = sampled_model(column=2)
    with pytest.raises(ValueError, match=r"f_forest.*(other|another kind of) lea"):
        pmt.check_draws(idata, other)


class Kernels(event.Listener):
    """Functions of this package and of the example that numba compiles."""

    def __init__(self):
        self.compiled = []

    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").split(".")[0] in ("pymc_trees", "extending"):
            self.compiled.append(function.__qualname__)

    def on_end(self, event):
        pass


def test_other_sizes_and_another_column_compile_no_kernel():
    kernels, new = Kernels(), pt.matrix("new")
    event.register("numba:compile", kernels)
    try:
        for n, m, max_nodes, column in [(6, 2, 22, 0), (9, 3, 40, 1), (5, 1, 9, 1)]:
            kernels.compiled.clear()
            X, line = np.random.default_rng(n).random((n, 2)), leaf(column=column)
            model = declare(m, X, X[:, 0], 1.0, max_nodes=max_nodes, leaf=line)
            at_new = model.replace_rvs_by_values([pmt.evaluate(model["f_forest"], new)])
            function = model.compile_fn(at_new, inputs=[*model.value_vars, new])
            point = model.initial_point()
            assert np.isfinite(model.compile_logp()(point))
            (found,) = function({**point, "new": np.ones((4, 2))})
            np.testing.assert_allclose(found, m * MEAN)
    finally:
        event.unregister("numba:compile", kernels)
    assert kernels.compiled == []
    with pytest.raises(ValueError, match="another number of columns"):
        function({**point, "new": np.zeros((4, 3))})


@pytest.mark.usefixtures("quick_compile")
def test_missing_cells_reach_the_leaf_as_nan():
    X = PROBLEM.X.copy()
    X[2, COLUMN] = np.nan
    with pm.Model(), pytest.raises(ValueError, match=r"a LineLeaf has no finite.*row 2\. Missing"):
        pmt.BART("f", X, m=2, leaf=leaf())
    with pm.Model() as model:
        pmt.BART("f", X, m=2, leaf=leaf(column=0))
        pmt.set_data({"f_X": [[np.nan, 0.5], [1.0, np.nan]]})
        point = model.initial_point()
        found = model.compile_fn(model.replace_rvs_by_values([model["f"]]))(point)[0]
    np.testing.assert_allclose(found, [np.nan, 2 * MEAN])


@pytest.mark.usefixtures("quick_compile")
def test_what_a_line_is_refused():
    with declare(2) as model:
        pm.Potential("more", model["f"].sum())
        with pytest.raises(NotConjugateError, match="a LineLeaf forest in the mean of one pm.Norm"):
            read_target(model, model["f_forest"])
    with pm.Model(), pytest.raises(ValueError, match="X has no such column"):
        pmt.BART("f", PROBLEM.X, m=2, leaf=leaf(column=5))

    @register_leaf
    @dataclass(frozen=True, eq=False)
    class Twofold(LineLeaf):
        name = "example_twofold"
        n_outputs = 2
        any_likelihood = in_soft_trees = True

    with (
        pm.Model(),
        pytest.raises(TypeError, match="Twofold: n_outputs=2 must be that of its kern"),
    ):
        pmt.BART("f", PROBLEM.X, m=2, leaf=Twofold(0.0, 1.0, 1.0))
    with pm.Model(), pytest.raises(ValueError, match="SoftDecisionTree needs a NormalLeaf"):
        pmt.SoftDecisionTree("f", PROBLEM.X, leaf=Twofold(0.0, 1.0, 1.0))
    inner = {"name": "example_inner", "outputs": staticmethod(lambda n_values, X, constants: None)}
    with pytest.raises(TypeError, match="Inner: outputs must be a kernel at the top level of"):
        register_leaf(type("Inner", (LineLeaf,), inner))


@pytest.mark.usefixtures("quick_compile")
def test_no_proposal_is_made_for_lines_under_another_likelihood():
    """Even where the leaf says so: proposals are for leaves whose outputs are their values."""

    @register_leaf
    @dataclass(frozen=True, eq=False)
    class Bold(LineLeaf):
        name = "example_bold"
        any_likelihood = True

    with pm.Model() as model:
        f = pmt.BART("f", PROBLEM.X, m=2, leaf=Bold(0.0, 1.0, 1.0))
        pm.Poisson("y", pt.exp(f), observed=np.arange(len(PROBLEM.y)))
        with pytest.raises(NotConjugateError, match="no likelihood is registered for a Bold"):
            read_target(model, model["f_forest"])
