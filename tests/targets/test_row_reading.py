"""Which likelihoods are read row by row, and that the numbers are those of the model.

Every distribution in every form is in `test_likelihood_table`; here are ways to write expressions.
"""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from support.small_models import step_data, walked
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rows import NotRowwiseError
from pymc_trees.targets.rowwise import RowwiseTarget

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 12
X, Y = step_data(N)
CLASSES = np.arange(N) % 3
LEAF = pmt.NormalLeaf(0.0, 1.0)
GROUPS = np.arange(20) % 5 * 2


def three(mu):
    return pt.stack([mu, 0.5 * mu, -mu], axis=1)


ROWWISE = {
    "logit": lambda mu: pm.Bernoulli("y", logit_p=mu, observed=CLASSES > 0),
    "probit": lambda mu: pm.Bernoulli("y", p=pm.math.invprobit(mu), observed=CLASSES > 0),
    "cloglog": lambda mu: pm.Bernoulli(
        "y", p=1 - pm.math.exp(-pm.math.exp(mu)), observed=CLASSES > 0
    ),
    "Poisson": lambda mu: pm.Poisson("y", pm.math.exp(mu), observed=CLASSES),
    "censored Weibull": lambda mu: pm.Censored(
        "y", pm.Weibull.dist(1.5, pm.math.exp(mu)), None, np.full(N, 3.0), observed=CLASSES + 1.0
    ),
    "Categorical": lambda mu: pm.Categorical("y", logit_p=three(mu), observed=CLASSES),
    "reference category": lambda mu: pm.Categorical(
        "y", logit_p=pt.stack([mu, pt.zeros(N)], axis=1), observed=CLASSES % 2
    ),
    "reference category, joined": lambda mu: pm.Multinomial(
        "y",
        n=5,
        p=pm.math.softmax(pt.concatenate([three(mu), np.zeros((N, 1))], axis=1), axis=1),
        observed=np.array([[1, 2, 1, 1]] * N),
    ),
    "reference category of groups": lambda mu: pm.Multinomial(
        "y",
        n=1,
        p=pm.math.softmax(pt.stack([mu[GROUPS], pt.ones(20)], axis=1), axis=1),
        observed=np.eye(2)[np.arange(20) % 2],
    ),
    "Multinomial": lambda mu: pm.Multinomial(
        "y", n=5, p=pm.math.softmax(three(mu), axis=1), observed=np.array([[1, 2, 2]] * N)
    ),
    "mixture": lambda mu: pm.NormalMixture(
        "y", w=[0.3, 0.7], mu=pt.stack([mu, mu + 1], axis=-1), sigma=1.0, observed=Y
    ),
    "groups": lambda mu: pm.Poisson("y", pm.math.exp(mu[GROUPS]), observed=np.arange(20) % 3),
    "groups and offsets": lambda mu: pm.Poisson(
        "y", pm.math.exp(mu + np.linspace(0, 1, N))[GROUPS], observed=np.arange(20) % 3
    ),
    "some rows": lambda mu: pm.Laplace("y", mu[CLASSES > 0], 1.0, observed=Y[CLASSES > 0]),
    "two terms": lambda mu: (
        pm.Normal("z", mu, 2.0, observed=Y),
        pm.Poisson("y", pm.math.exp(mu[GROUPS]), observed=np.arange(20) % 3),
    ),
    "Potential": lambda mu: pm.Potential("y", -(mu**2).sum()),
    "latent": lambda mu: pm.StudentT("latent", nu=3, mu=mu, sigma=1.0),
    "several columns": lambda mu: pm.Normal("y", mu[:, None], 1.0, observed=np.ones((N, 2))),
    "used twice": lambda mu: pm.Normal("y", mu + mu**2, pm.math.exp(0.3 * mu), observed=Y),
    "three terms": lambda mu: (
        pm.Poisson("z", pm.math.exp(mu), observed=CLASSES),
        pm.StudentT("y", nu=3, mu=mu, sigma=1, observed=Y),
        pm.Potential("p", -pt.log1p(mu**2)),
    ),
    "rows last": lambda mu: pm.Laplace(
        "y", mu + np.arange(2.0 * N).reshape(2, N), 1.0, observed=np.ones((2, N))
    ),
    "groups that are data": lambda mu: pm.Poisson(
        "y", pm.math.exp(mu[pm.Data("g", GROUPS)]), observed=np.arange(20) % 3
    ),
    "above another variable": lambda mu: pm.Normal(
        "y", pt.maximum(mu, pm.Normal("floor")), 1.0, observed=Y
    ),
    "shares of a mixture": lambda mu: pm.NormalMixture(
        "y",
        w=pm.math.softmax(pt.stack([mu, 0 * mu], axis=1), axis=1),
        mu=[0.0, 1.0],
        sigma=1.0,
        observed=Y,
    ),
}
WHOLE = {
    "pairs": lambda mu: pm.MvNormal(
        "y", pt.stack([mu, mu], axis=1), np.array([[1, 0.5], [0.5, 2]]), observed=np.ones((N, 2))
    ),
    "cumsum": lambda mu: pm.Normal("y", pt.cumsum(mu), 1, observed=Y),
    "MvNormal": lambda mu: pm.MvNormal("y", mu, np.eye(N), observed=Y),
    "diagonal so far": lambda mu: pm.MvNormal(
        "y", mu, np.eye(N) + pm.Normal("r", 0, 0.1) * (1 - np.eye(N)), observed=Y
    ),
    "centred": lambda mu: pm.Normal("y", mu - mu.mean(), 1, observed=Y),
    "reversed": lambda mu: pm.Normal("y", mu * mu[::-1], 1, observed=Y),
    "one for all": lambda mu: pm.Normal("y", mu[0], 1, observed=Y),
    "matrix": lambda mu: pm.StudentT("y", 3, mu=pt.dot(np.eye(N), mu), observed=Y),
    "two orders": lambda mu: pm.Normal("y", mu + mu[np.arange(N) // 2], 1, observed=Y),
    "square of sum": lambda mu: pm.Potential("y", -(mu.sum() ** 2)),
    "all pairs": lambda mu: pm.Potential("y", -pt.log1p((mu[:, None] - mu[None, :]) ** 2)),
    "choice among rows": lambda mu: pm.Categorical("y", logit_p=mu, observed=np.array([1, 2])),
}


def target_of(likelihood):
    with pm.Model() as model:
        likelihood(pmt.BART("mu", X, m=3, leaf=LEAF))
    return model, read_rows_of(model)


def read_rows_of(model):
    """Target of terms that are read row by row, else that of the whole."""
    graph = read_graph(model, model["mu_forest"])
    try:
        return RowwiseTarget(graph)
    except NotRowwiseError:
        return JointTarget(graph)


def native(target, rows, outputs, seen):
    """Log-likelihood of rows by the compiled function."""
    result = np.zeros((len(rows), 1))
    call_native(target.value.address, len(rows), rows, outputs, seen.table, seen.data, result)
    return result[:, 0]


def interpreted(target, rows, outputs, seen):
    """The same without compilation, for row-wise terms without an index."""
    total, at = np.zeros(len(rows)), 1
    for group, result in zip(target.value.groups, target.value.choices[0], strict=True):
        free = []
        for variable in group.free:
            start, stop, *shape = seen.table[at : at + 2 + variable.ndim]
            free.append(seen.data[start:stop].reshape(shape))
            at += 2 + variable.ndim
        inputs = [group.outputs, group.rows, *group.free]
        f = pytensor.function(inputs, result, mode="FAST_COMPILE", on_unused_input="ignore")
        total += f(outputs, rows, *free)[:, 0]
    return total


def differences(model, target, points):
    """Log-likelihood at some outputs less that at the first, by the target and by the model."""
    indexed = target.kind == "rowwise" and any(g.row_of is not None for g in target.value.groups)
    value = native if indexed or target.kind == "joint" else interpreted
    point = model.initial_point()
    _, seen = target.at(point)
    rv = model["mu_forest"]
    others = [v for v in model.basic_RVs if v is not rv]
    logp = model.compile_logp(vars=[*others, *model.potentials])
    ours, theirs = [], []
    for forest in pm.draw(rv, points, random_seed=4):
        fit = walked(rv, forest)
        result = value(target, np.arange(N), fit, seen)
        if target.kind == "rowwise":
            rest = np.arange(5, N)  # any rows can be asked for
            some = value(target, rest, fit[5:].copy(), seen)
            np.testing.assert_allclose(some, result[5:], rtol=1e-12)
        ours.append(result.sum())
        theirs.append(float(logp({**point, "mu_forest": forest})))
    return np.array(ours) - ours[0], np.array(theirs) - theirs[0]


@pytest.mark.parametrize("case", ROWWISE)
def test_read_row_by_row(case):
    assert target_of(ROWWISE[case])[1].kind == "rowwise"


# Each compiles its likelihood: those are left out that the others are harder than.
EASIER = ["Categorical", "some rows", "two terms"]


@pytest.mark.parametrize("case", [case for case in ROWWISE if case not in EASIER])
def test_numbers_row_by_row(case):
    model, target = target_of(ROWWISE[case])
    np.testing.assert_allclose(*differences(model, target, 4), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", WHOLE)
def test_read_as_a_whole(case):
    assert target_of(WHOLE[case])[1].kind == "joint"


# Whatever is read as a whole is the model's own log-probability: a few of a kind each.
NUMBERS = ["choice among rows", "MvNormal", "diagonal so far", "cumsum", "all pairs"]


@pytest.mark.parametrize("case", tiers(NUMBERS, quick=NUMBERS[1:2]))
def test_numbers_as_a_whole(case):
    model, target = target_of(WHOLE[case])
    np.testing.assert_allclose(*differences(model, target, 4), rtol=1e-9, atol=1e-9)


def test_slopes():
    """Gradient and second derivative by differences."""
    model, target = target_of(ROWWISE["groups and offsets"])
    _, seen = target.at(model.initial_point())
    rows, fit = np.arange(N), np.linspace(-1, 1, N)[:, None].copy()

    def value(outputs):
        result = np.zeros((N, 1))
        call_native(target.value.address, N, rows, outputs, seen.table, seen.data, result)
        return result[:, 0]

    slopes, h = np.zeros((N, 2)), 1e-4
    call_native(target.slopes.address, N, rows, fit, seen.table, seen.data, slopes)
    up, here, down = value(fit + h), value(fit), value(fit - h)
    np.testing.assert_allclose(slopes[:, 0], (up - down) / (2 * h), atol=1e-6)
    np.testing.assert_allclose(slopes[:, 1], (up - 2 * here + down) / h**2, atol=1e-5)


def test_model_data_are_refreshed():
    """A response that is 0 everywhere when the model is declared, and set afterwards."""
    with pm.Model() as model:
        y = pm.Data("counts", np.zeros(N, dtype=int))
        pm.Poisson("y", pm.math.exp(pmt.BART("mu", X, m=3, leaf=LEAF)), observed=y)
        target = read_rows_of(model)
        pm.set_data({"counts": CLASSES})
    np.testing.assert_allclose(*differences(model, target, 3), rtol=1e-9, atol=1e-9)


def test_other_values_are_refreshed():
    model, target = target_of(
        lambda mu: pm.StudentT("y", nu=3, mu=mu, sigma=pm.HalfNormal("s", 1), observed=Y)
    )
    point = model.initial_point()
    found = [target.at({**point, "s_log__": np.log(s)})[1].data for s in (1.0, 2.0)]
    assert not np.allclose(*found)
