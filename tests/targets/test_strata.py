"""Logarithms of sums over rows: which ways of writing them are read, and the densities."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.step_methods.ridge_moves import RIDGE_SHIFT
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import open_forest, read_graph
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise import RowwiseTarget
from pymc_trees.targets.settings import compile_values
from pymc_trees.targets.strata import StrataTarget, exposed_slopes, exposed_value

pytestmark = pytest.mark.usefixtures("quick_compile")
S, K = 4, 3
N = S * K
RNG = np.random.default_rng(0)
X, Z = RNG.random((N, 2)), RNG.normal(size=N)
CHOSEN = RNG.integers(0, K, S)
STRATUM, ROWS = np.repeat(np.arange(S), K), np.arange(N).reshape(S, K)
CASE = (np.arange(N) % K == CHOSEN[STRATUM]).astype(float)
SETS = (STRATUM == np.arange(S)[:, None]).astype(float)
ORDER, EVENT = RNG.permutation(N), (RNG.random(N) < 0.5).astype(float)
PADDED = np.array([[0, 1, 2], [3, 4, -1], [6, -1, -1], [9, 10, 11]])
COUNTS = np.array([[5, 0, 0], [1, 1, 1], [2, 0, 0], [3, 3, 3]])
AVAILABLE = np.array([[1, 0, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]], dtype=bool)
exp, log = pt.exp, pt.log


def of_sets(f, total):
    return (CASE * f).sum() - log(total).sum()


def logit(f):
    return (CASE * f).sum() - pt.logsumexp(f.reshape((S, K)), axis=1).sum()


def by_hand(f):
    table = f.reshape((S, K))
    return table[np.arange(S), CHOSEN] - pm.math.logsumexp(table, axis=1, keepdims=False)


def padded(f):
    table = pt.switch(PADDED >= 0, f[PADDED], -np.inf)
    return table[:, 0] - pt.logsumexp(table, axis=1)


def padded_sums(f):
    table = exp(f)[PADDED]
    return log(table[:, 0]) - log(pt.switch(PADDED >= 0, table, 0).sum(axis=1))


def ranking(f):
    ahead = f[ROWS]
    return (ahead - log(pt.cumsum(exp(ahead)[:, ::-1], axis=1)[:, ::-1])).sum()


def alternatives(f):
    table = f.reshape((S, K)) + pm.Normal("b", shape=K)
    return (table.ravel() * CASE).sum() - pt.logsumexp(table, axis=1).sum()


def custom(f):
    def logp(y, f):
        return (y * f).sum() - pt.logsumexp(f.reshape((S, K)), axis=1).sum()

    pm.CustomDist("y", f, logp=logp, observed=CASE, signature="(n)->(n)")


def shares(f):
    e = exp(f.reshape((S, K)))
    pm.Categorical("y", p=e / e.sum(axis=1, keepdims=True), observed=CHOSEN)


def counted(f):
    p = pm.math.softmax(f.reshape((S, K)), axis=1)
    pm.Multinomial("y", n=COUNTS.sum(1), p=p, observed=COUNTS)


def some_available(f):
    table = pt.switch(AVAILABLE, f.reshape((S, K)), -np.inf)
    counts = COUNTS * AVAILABLE
    p = pm.math.softmax(table, axis=1)
    pm.Multinomial("y", n=counts.sum(1), p=p, observed=counts)


WAYS = {
    "by hand": by_hand,
    "cases": logit,
    "rows by a mask": lambda f: f[CASE == 1] - log(exp(f.reshape((S, K))).sum(axis=1)),
    "scattered": lambda f: of_sets(f, pt.zeros(S)[STRATUM].inc(exp(f))),
    "bincount": lambda f: of_sets(f, pt.extra_ops.bincount(pt.constant(STRATUM), exp(f))),
    "matrix": lambda f: pt.dot(CASE, f) - log(pt.dot(SETS, exp(f))).sum(),
    "matmul": lambda f: of_sets(f, SETS @ exp(f)),
    "index matrix": lambda f: of_sets(f, exp(f[ROWS]).sum(axis=1)),
    "softmax": lambda f: log(pm.math.softmax(f[ROWS], axis=1)[np.arange(S), CHOSEN]),
    "log_softmax": lambda f: pm.math.log_softmax(f[ROWS], axis=1)[np.arange(S), CHOSEN],
    "quotients": lambda f: log(exp(f[CASE == 1]) / exp(f).reshape((S, K)).sum(axis=1)),
    "product": lambda f: log(pt.prod(exp(f[CASE == 1]) / exp(f[ROWS]).sum(axis=1))),
    "loop": lambda f: pt.stack([f[s * K] - pt.logsumexp(f[s * K : s * K + K]) for s in range(S)]),
    "padded": padded,
    "padded sums": padded_sums,
    "ties": lambda f: (
        (f * np.repeat([1.0, 2.0, 1.0, 1.0], K) * CASE).sum()
        - pt.dot(np.array([1.0, 2.0, 1.0, 1.0]), pt.logsumexp(f[ROWS], axis=1))
    ),
    "pairs": lambda f: f[:4] - pm.math.logaddexp(f[:4], f[4:8]),
    "ranking": ranking,
    "Cox": lambda f: EVENT[ORDER] * (f[ORDER] - log(pt.cumsum(exp(f[ORDER])))),
    "Cox, turned": lambda f: EVENT * (f - log(pt.cumsum(exp(f)[::-1])[::-1])),
    "offset": lambda f: logit(f + pm.Normal("b") * Z),
    "data": lambda f: (
        (pm.Data("case", CASE) * f).sum()
        - log(pt.zeros(S)[pm.Data("at", STRATUM)].inc(exp(f))).sum()
    ),
    "weights": lambda f: of_sets(f, (pm.Exponential("w", 1, shape=K) * exp(f[ROWS])).sum(axis=1)),
    "alternatives": alternatives,
    "Categorical": lambda f: pm.Categorical("y", logit_p=f.reshape((S, K)), observed=CHOSEN),
    "p": lambda f: pm.Categorical("y", p=pm.math.softmax(f[ROWS], axis=1), observed=CHOSEN),
    "shares": shares,
    "Multinomial": counted,
    "Multinomial of some": some_available,
    "CustomDist": custom,
}
"""Those of which the level of f is left to the prior."""
WITH_LEVEL = {
    "slope": lambda f: logit(pm.HalfNormal("s") * f * Z + pm.Normal("b") * Z),
    "none of them": lambda f: of_sets(f, 1.0 + exp(f[ROWS]).sum(axis=1)),
    "log1p": lambda f: (CASE * f).sum() - pt.log1p(exp(f[ROWS]).sum(axis=1)).sum(),
    "sigmoid": lambda f: log(pm.math.sigmoid(f[ROWS])).sum() - pt.logsumexp(f[ROWS], axis=1),
    "a prior on some rows": lambda f: by_hand(f).sum() + f[0],
}


def model_of(declare):
    with pm.Model() as model:
        value = declare(pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.2, 0.5)))
        if value is not None and value.name != "y":
            pm.Potential("potential", value)
    return model


def density_of(model):
    """PyMC's log-likelihood at a point, as a function of f."""
    graph = read_graph(model, model["f_forest"])
    seen = [*model.observed_RVs, *model.potentials]
    [total], outputs = open_forest(graph, [model.logp(vars=seen, sum=True)])
    function, names = compile_values(model, [total], [outputs])
    return lambda fit, point: float(function(fit, *(point[name] for name in names))[0])


def moved(model):
    point = model.initial_point()
    others = {k: np.asarray(v + 0.3) for k, v in point.items() if k != "f_forest"}
    return point | others


@pytest.mark.parametrize("way", [*WAYS, *WITH_LEVEL])
def test_rows_are_apart_given_the_latent_variables(way):
    # log L(f) + log p(u | f), the second of which is sum w log S - u S + (w - 1) log u + ..., is
    # the sum of the rows' kernels but for a number that depends on u alone
    model = model_of((WAYS | WITH_LEVEL)[way])
    target, density, point = read_target(model, model["f_forest"]), density_of(model), moved(model)
    assert type(target) is StrataTarget
    assert (target.free_level is not None) == (way in WAYS)
    settings, seen = target.at(point)
    rng = np.random.default_rng(1)
    fits = rng.normal(size=(3, N, 1))
    sums = [target._sums_at(seen, target._eta(seen, fit)) for fit in fits]
    drawn = [rng.gamma(2.0, size=np.shape(w)) for w in seen.weights]
    numbers = np.reshape(target.given(seen, drawn).data, (N, 4))
    both, rows = [], []
    for fit, of in zip(fits, sums, strict=True):
        log_likelihood = density(fit, point)
        assert abs(log_likelihood - target.log_likelihood(None, seen, fit.copy)) < 1e-10
        pairs = zip(seen.weights, drawn, of, strict=True)
        both.append(log_likelihood + sum(np.sum(w * np.log(s) - u * s) for w, u, s in pairs))
        rows.append(sum(exposed_value(row, f) for row, f in zip(numbers, fit[:, 0], strict=True)))
    np.testing.assert_allclose(np.diff(both), np.diff(rows), rtol=0, atol=1e-10)
    # the native functions are those of the kernels
    leaf, none = target.leaf_data(settings, seen, fits[0], rng)
    numbers = np.reshape(leaf.data, (N, 4))
    out = np.empty((N, 2))
    call_native(leaf.slopes_at, N, np.arange(N), leaf.offset, leaf.table, leaf.data, out)
    pairs = [exposed_slopes(row, f) for row, f in zip(numbers, fits[0][:, 0], strict=True)]
    assert none is None and np.array_equal(out, pairs)


def test_slopes():
    numbers, f, h = np.array([1.0, -1.7, 0.4, 2.5]), 0.3, 1e-4
    values = [exposed_value(numbers, f + k * h) for k in (-1, 0, 1)]
    first, second = exposed_slopes(numbers, f)
    # errors of order h^2 times derivatives below 100, and rounding of 1e-16 / h^2
    assert abs((values[2] - values[0]) / (2 * h) - first) < 1e-5
    assert abs((values[2] - 2 * values[1] + values[0]) / h**2 - second) < 1e-5


def test_latent_variables_are_gamma():
    model = model_of(WAYS["ties"])
    target = read_target(model, model["f_forest"])
    settings, seen = target.at(model.initial_point())
    fit, rng, kept = RNG.normal(size=(N, 1)), np.random.default_rng(2), []
    own = target.given
    target.given = lambda seen, drawn: kept.append(drawn[0]) or own(seen, drawn)
    for _ in range(4_000):
        target.leaf_data(settings, seen, fit, rng)
    u, w = np.array(kept), np.array([1.0, 2.0, 1.0, 1.0])
    rate = np.exp(fit[ROWS, 0]).sum(1)
    # averages of 4,000: five standard errors, of which the variance's is at most sqrt(8 / 4000)
    assert np.all(np.abs(u.mean(0) * rate / w - 1) < 5 / np.sqrt(4_000 * w))
    assert np.all(np.abs(u.var(0) * rate**2 / w - 1) < 5 * np.sqrt(8 / 4_000))


REFUSED = {
    "added logarithm": lambda f: pt.logsumexp(f[ROWS], axis=1).sum() - f.sum(),
    "nested": lambda f: f[0] - pt.logsumexp(pt.logsumexp(f[ROWS], axis=1)),
    "difference of sums": lambda f: f[0] - log(10 * exp(f).sum() - exp(f[0])),
    "slopes after a table": lambda f: f[0] - pt.logsumexp(2 * f[ROWS]),
    "square": lambda f: (f**2).sum() - pt.logsumexp(f),
    "rows in one exponential": lambda f: -log(exp(f[0] - f[1]) + 1),
    "rate": lambda f: f[0] - pt.logsumexp(-f),
    "weights that vary": lambda f: pm.HalfNormal("w") * (f[0] - pt.logsumexp(f)),
    "weights below 0": lambda f: f[0] - log(pt.dot(Z, exp(f))),
    "weights that may be below 0": lambda f: f[0] - log(pt.dot(pm.Normal("w", shape=N), exp(f))),
    "an index of f": lambda f: f[pt.argmax(f)] - pt.logsumexp(f),
    "the largest": lambda f: f[0] - f.max() - log(exp(f - f.max()).sum()),
    "not a softmax": lambda f: pm.Categorical(
        "y", p=pm.math.softmax(f[ROWS], axis=0), observed=CHOSEN
    ),
}


@pytest.mark.parametrize("form", REFUSED)
def test_other_forms_are_evaluated_as_a_whole(form):
    model = model_of(REFUSED[form])
    assert type(read_target(model, model["f_forest"])) is JointTarget


def test_rows_that_are_apart_already():
    model = model_of(lambda f: (CASE * f).sum() - pt.log1p(exp(f)).sum())
    assert type(read_target(model, model["f_forest"])) is RowwiseTarget


def test_weights_set_anew():
    with pm.Model() as model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.2, 0.5))
        weights = pm.Data("w", np.ones(S))
        pm.Potential("y", (CASE * f).sum() - pt.dot(weights, pt.logsumexp(f[ROWS], axis=1)))
        step = pmt.Hybrid([f])
    step.setup_chain(np.random.default_rng(0), 0, 2)
    point, [stats] = step.step(model.initial_point())
    assert abs(stats["log_likelihood"] - model.compile_logp(vars=model.potentials)(point)) < 1e-10
    assert stats[RIDGE_SHIFT] != 0.0
    with model:
        pm.set_data({"w": np.full(S, 2.0)})
    step.setup_chain(np.random.default_rng(0), 0, 2)
    point, [stats] = step.step(point)  # f's level is no longer free
    assert abs(stats["log_likelihood"] - model.compile_logp(vars=model.potentials)(point)) < 1e-10
    assert stats[RIDGE_SHIFT] == 0.0
    with model:
        pm.set_data({"w": np.full(S, -1.0)})
    with pytest.raises(ValueError, match="make the step anew"):
        step.step(point)


def test_coefficients():
    with pm.Model() as model:
        basis = np.column_stack([np.ones(N), Z])
        f = pmt.BART("f", X, m=3, leaf=pmt.BasisLeaf(basis, 0.2, 0.5))
        pm.Potential("y", logit(f))
        step = pmt.Hybrid([f])
    assert type(step.forests[0].target) is StrataTarget
    step.setup_chain(np.random.default_rng(0), 0, 3)
    point = model.initial_point()
    for _ in range(3):
        point, [stats] = step.step(point)
    expected = model.compile_logp(vars=model.potentials)(point)
    assert abs(stats["log_likelihood"] - expected) < 1e-9


def test_soft_trees():
    with pm.Model() as model:
        f = pmt.SoftBART("f", X, m=3, leaf=pmt.NormalLeaf(0.2, 0.5))
        pm.Potential("y", logit(f))
        step = pmt.SoftCGM([f])
    step.setup_chain(np.random.default_rng(0), 0, 3)
    point = model.initial_point()
    for _ in range(3):
        point, [stats] = step.step(point)
    expected = model.compile_logp(vars=model.potentials)(point)
    assert abs(stats["log_likelihood"] - expected) < 1e-9
