"""Rows of several outputs with correlated errors: how `pm.MvNormal` is read, and its numbers."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.linalg import block_diag
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import (
    add_rows,
    log_constant,
    log_likelihood_of,
    log_marginal,
    n_stats,
)
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.graph import NotConjugateError, open_forest, read_graph
from pymc_trees.targets.likelihoods.contract import recognise

pytestmark = pytest.mark.usefixtures("quick_compile")

N = 6
RNG = np.random.default_rng(3)
X, Z, Y2, Y3 = (RNG.normal(size=(N, k)) for k in (2, 2, 2, 3))
LEAF = pmt.NormalLeaf(0.1, 0.5)
COV2 = np.array([[1.0, -0.6], [-0.6, 0.7]])
COV3 = np.array([[1.0, 0.5, 0.1], [0.5, 2.0, -0.4], [0.1, -0.4, 0.6]])
MISSING = np.ma.masked_array(Y2, mask=np.arange(2 * N).reshape(N, 2) % 5 == 1)


def outputs(k=2, **more):
    return pmt.BART("f", X, m=2, shape=(k, N), leaf=LEAF, **more)


def one(name):
    return pmt.BART(name, X, m=2, leaf=LEAF)


def lkj(k=2):
    return pm.LKJCholeskyCov("chol", n=k, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=k))[0]


def observed(mean, y=Y2, **of):
    pm.MvNormal("y", mean, observed=y, **of)


def named():
    pm.modelcontext(None).add_coords({"output": ["a", "b"], "row": range(N)})
    f = pmt.BART("f", X, m=2, leaf=LEAF, dims=("output", "row"))
    pm.MvNormal("y", f.T, cov=COV2, observed=Y2, dims=("row", "output"))


def scaled():
    sd = pm.HalfNormal("sd", shape=2)
    rho = pm.Uniform("rho", -1, 1)
    corr = pt.eye(2) + rho * (1 - pt.eye(2))
    observed(outputs().T, cov=sd[:, None] * corr * sd)


def latent():
    z = pm.MvNormal("z", outputs().T, cov=COV2, shape=(N, 2))
    pm.Poisson("y", pm.math.exp(z), observed=RNG.poisson(1.0, (N, 2)))


FORMS = {
    "chol": lambda: observed(outputs().T, chol=lkj()),
    "chol, three outputs": lambda: observed(outputs(3).T, Y3, chol=lkj(3)),
    "upper chol": lambda: observed(outputs().T, chol=lkj().T, lower=False),
    "cov": lambda: observed(outputs().T, cov=COV2),
    "tau": lambda: observed(outputs(3).T, Y3, tau=np.linalg.inv(COV3)),
    "cov of sds and a correlation": scaled,
    "cov of each row": lambda: observed(
        outputs().T, cov=COV2 * pm.HalfNormal("s") * np.arange(1.0, N + 1)[:, None, None]
    ),
    "transposed twice": lambda: observed(pt.transpose(outputs(), (1, 0)), cov=COV2),
    "offset": lambda: observed(pm.Normal("a", shape=2) + outputs().T + Z, cov=COV2),
    "slope and offset": lambda: observed(
        2.0 - pm.Normal("b", shape=2) * outputs().T / 3 + pt.dot(Z, np.ones((2, 2))), chol=lkj()
    ),
    "varying coefficient": lambda: observed(outputs().T * np.arange(N)[:, None], cov=COV2),
    "stack of two forests": lambda: observed(pt.stack([one("f"), one("g")], axis=1), cov=COV2),
    "stack, transposed": lambda: observed(pt.stack([one("f"), 2 * one("g")]).T, chol=lkj()),
    "concatenated": lambda: observed(
        pt.concatenate([one("f")[:, None], one("g")[:, None]], axis=1), cov=COV2
    ),
    "one output without a forest": lambda: observed(
        pt.stack([one("f"), pt.dot(Z, pm.Normal("b", shape=2))], axis=1), chol=lkj()
    ),
    "one function in all outputs": lambda: observed(
        one("f")[:, None] * pm.Normal("b", shape=3), Y3, cov=COV3
    ),
    "shared and own": lambda: observed(
        one("f")[:, None] + pt.stack([one("g"), one("h")], 1), cov=COV2
    ),
    "loadings": lambda: observed(pt.dot(outputs().T, pm.Normal("L", shape=(2, 3))), Y3, cov=COV3),
    "shape": lambda: observed(outputs().T, cov=COV2, shape=(N, 2)),
    "shape of the mean": lambda: (lambda f: observed(f.T, cov=COV2, shape=f.T.shape))(outputs()),
    "dims": named,
    "data": lambda: observed(outputs().T, pm.Data("seen", Y2), cov=pm.Data("cov", COV2)),
    "Deterministic": lambda: observed(pm.Deterministic("mu", outputs().T), cov=COV2),
    "missing entries": lambda: observed(outputs().T, MISSING, chol=lkj()),
    "latent variables": latent,
    "soft trees": lambda: observed(
        pt.stack([pmt.SoftBART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 0.5)), one("g")], 1), cov=COV2
    ),
    "linear leaves": lambda: observed(
        pt.stack([pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf(0.0, 0.5)), one("g")], 1), cov=COV2
    ),
}


def model_of(declare):
    with pm.Model() as model:
        declare()
    return model


def forests_of(model):
    return [rv for rv in model.free_RVs if rv.name.endswith("_forest")]


def point_of(model):
    """Values of all other variables that are no initial ones."""
    point = model.initial_point(random_seed=1)
    rng = np.random.default_rng(2)
    trees = {model.rvs_to_values[rv].name for rv in forests_of(model)}
    for name, value in point.items():
        if name in trees:
            point[name] = pm.draw(model[name], random_seed=4)
        else:
            point[name] = value + 0.3 * rng.standard_normal(value.shape)
    return point


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("form", tiers(FORMS, quick=["chol", "loadings", "missing entries"]))
def test_the_likelihood_is_that_of_the_model(form):
    """At any outputs, constants included, for each of the forests."""
    model = model_of(FORMS[form])
    point = point_of(model)
    for forest in forests_of(model):
        graph = read_graph(model, forest)
        target = read_target(model, forest)
        assert isinstance(target, ConjugateTarget)
        terms, outputs = open_forest(graph, model.logp(vars=graph.terms, sum=False))
        values = [v for v in model.value_vars if v.name in target.others]
        logp = pytensor.function(
            [outputs, *values], sum(t.sum() for t in terms), on_unused_input="ignore"
        )
        settings, seen = target.at(point)
        for fit in RNG.normal(size=(3, N, 1)):
            leaf, _ = target.leaf_data(settings, seen, fit)
            found = log_likelihood_of(leaf, None) + target.log_scale(seen)
            wanted = logp(fit, *(point[v.name] for v in values))
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


def shared(k=2, **more):
    return pmt.BART("f", X, m=3, shape=(k, N), leaf=LEAF, separate_trees=False, **more)


def coefficients():
    basis = np.column_stack([np.ones(N), X[:, 0]])
    f = pmt.BART("f", X, m=3, leaf=pmt.BasisLeaf(basis, 0.1, 0.5))
    observed(pt.stack([f, 2.0 * f], axis=1), cov=COV2)


SHARED = {
    "own": lambda: observed(shared().T, chol=lkj()),
    "loadings": lambda: observed(
        pt.dot(shared().T, pm.Normal("L", shape=(2, 3))) + 1.0,
        Y3,
        cov=COV3 * np.arange(1.0, N + 1)[:, None, None],
    ),
    "one of them": lambda: observed(pt.stack([shared()[0], Z[:, 0]], axis=1), cov=COV2),
    "basis": coefficients,
    "missing entries": lambda: observed(shared().T, MISSING, cov=COV2),
}


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("form", tiers(SHARED, quick=["loadings"]))
def test_trees_that_outputs_share(form):
    """The likelihood that steps add up while trees move is that of the model."""
    model = model_of(SHARED[form])
    assert isinstance(read_target(model, model["f_forest"]), ConjugateTarget)
    point, logp = (
        point_of(model),
        model.compile_logp(vars=read_graph(model, model["f_forest"]).terms),
    )
    for step in (pmt.CGM(model=model, rng=1), pmt.ParticleGibbs(model=model, rng=2)):
        for _ in range(4):
            point, [stats] = step.step(point)
            np.testing.assert_allclose(stats["log_likelihood"], logp(point), rtol=1e-10)


def test_the_marginal_likelihood_of_a_leaf_is_that_of_its_rows():
    """A stump, against a dense normal density of all rows."""
    model = model_of(SHARED["loadings"])
    target = read_target(model, model["f_forest"])
    point = point_of(model)
    settings, seen = target.at(point)
    leaf, _ = target.leaf_data(settings, seen, np.zeros((N, 2)))
    stats_of_all = np.zeros(n_stats(leaf))
    add_rows(leaf, np.arange(N), 0, N, stats_of_all)
    found = log_marginal(leaf, stats_of_all) + log_constant(leaf) + target.log_scale(seen)
    design = np.tile(point["L"].T, (N, 1))
    total = LEAF.sd**2 * design @ design.T + block_diag(*(COV3 * k for k in range(1, N + 1)))
    mean = 1.0 + design @ np.full(2, LEAF.mean)
    wanted = stats.multivariate_normal(mean, total).logpdf(Y3.ravel())
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_rows_are_regressions_on_the_other_outputs():
    """Target and precision are those of the conditional of an output given the other two."""
    model = model_of(lambda: observed(outputs(3).T, Y3, cov=COV3))
    target = read_target(model, model["f_1_forest"])
    settings, seen = target.at(model.initial_point())
    leaf, rows = target.leaf_data(settings, seen, np.zeros((N, 1)))
    start = 2 * LEAF.mean
    by = np.linalg.solve(COV3[np.ix_([0, 2], [0, 2])], COV3[1, [0, 2]])
    np.testing.assert_allclose(rows, Y3[:, 1] - (Y3[:, [0, 2]] - start) @ by)
    np.testing.assert_allclose(leaf.w, [1 / (COV3[1, 1] - by @ COV3[[0, 2], 1])])


def test_rows_that_do_not_see_the_forest_have_no_precision():
    model = model_of(FORMS["varying coefficient"])
    settings, seen = (target := read_target(model, model["f_0_forest"])).at(model.initial_point())
    leaf, _ = target.leaf_data(settings, seen, np.zeros((N, 1)))
    np.testing.assert_allclose(leaf.w, np.arange(N) ** 2 * np.linalg.inv(COV2)[0, 0])


REFUSED = {
    "exp": (lambda: observed(pm.math.exp(outputs()).T, cov=COV2), "not an affine"),
    "product": (lambda: observed((lambda f: f * f[::-1])(outputs()).T, cov=COV2), "not an affine"),
    "covariance": (
        lambda: (lambda f: observed(f.T, cov=COV2 * pm.math.exp(f[0])[:, None, None]))(outputs()),
        "covariance of y depends",
    ),
    "rows in the other order": (lambda: observed(outputs().T[::-1], cov=COV2), "not an affine"),
    "rows taken": (lambda: observed(outputs().T[np.arange(N)], cov=COV2), "not an affine"),
    "covariance of the rows": (
        lambda: observed(outputs(), Y2.T, cov=np.eye(N) + 0.1),
        "rows of the mean of y are not",
    ),
    "rows missing": (
        lambda: observed(outputs().T, np.where(np.arange(N)[:, None] == 2, np.nan, Y2), cov=COV2),
        "several variables|missing values",
    ),
    "two likelihoods": (
        lambda: (lambda f: (observed(f.T, cov=COV2), pm.Normal("z", f.T, 1.0, observed=Y2)))(
            outputs()
        ),
        "several variables",
    ),
    "heavy tails": (
        lambda: pm.MvStudentT("y", nu=4, mu=outputs().T, scale=COV2, observed=Y2),
        "is not pm.Normal",
    ),
    "transformed": (
        lambda: pm.MvNormal(
            "y", outputs().T, cov=COV2, shape=(N, 2), transform=pm.distributions.transforms.ordered
        ),
        "y is transformed",
    ),
}


@pytest.mark.filterwarnings("ignore:Data in y contains missing values")
@pytest.mark.parametrize("form", REFUSED)
def test_anything_else_is_sampled_in_the_general_way(form):
    declare, said = REFUSED[form]
    model = model_of(declare)
    forest = forests_of(model)[0]
    with pytest.raises(NotConjugateError, match=f"(?s)f_0_forest.*({said})"):
        recognise(read_graph(model, forest))
    assert read_target(model, forest).kind in ("rowwise", "joint")


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda point: point | {"cov": COV2 - np.eye(2)}, "must be positive definite"),
        (lambda point: point | {"cov": np.full((2, 2), np.nan)}, "must be positive definite"),
        (lambda point: point | {"b": np.array([np.nan, 1.0])}, "mean .* is not finite"),
        (lambda point: point | {"b": np.array([np.inf, 1.0])}, "mean .* is not finite"),
    ],
)
def test_numbers_that_are_none(change, said):
    def declare():
        b = pm.Normal("b", shape=2)
        cov = pm.Normal("cov", shape=(2, 2), initval=COV2)
        observed(outputs().T * b, cov=cov)

    model = model_of(declare)
    target = read_target(model, model["f_0_forest"])
    with pytest.raises(ValueError, match=said):
        target.at(change(model.initial_point()))


def test_draws_follow_the_conditional_of_an_output():
    """All rows alike: the value of each function is Gaussian given the other function."""
    with pm.Model() as model:
        f = pmt.BART("f", np.ones((N, 1)), m=1, shape=(2, N), leaf=pmt.NormalLeaf(0.0, 1.0))
        observed(f.T, cov=COV2)
    step = pmt.CGM(model=model, rng=1)
    point, draws = model.initial_point(), np.empty((4000, 2))
    for draw in draws:
        point, _ = step.step(point)
        draw[:] = [state.forest.fit[0, 0] for state in step.states]
    precision = np.eye(2) + N * np.linalg.inv(COV2)
    mean = np.linalg.solve(precision, N * np.linalg.solve(COV2, Y2.mean(axis=0)))
    # given the first function of the same sweep, and so independent of the sweeps before
    of_second = mean[1] - precision[0, 1] / precision[1, 1] * (draws[:, 0] - mean[0])
    z = (draws[:, 1] - of_second) * np.sqrt(precision[1, 1])
    assert stats.kstest(z, "norm").pvalue > 1e-4
