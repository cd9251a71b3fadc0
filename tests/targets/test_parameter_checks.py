"""A check that fails is a likelihood of 0, whatever the check stands above.

The numbers of each kind of term are those of the model's own log-probability, where an Assert that
fails counts as -inf. Chains are compared with quadrature: the error of a mean is its sd over the
root of the effective sample size, which ArviZ estimates, and the bounds are 5 such errors.
"""

import arviz_stats as azs
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.dist_math import check_parameters
from pytensor.raise_op import Assert
from support import oracle as o
from support.small_models import walked
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.targets.choose import read_target

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 4
X = np.arange(N).reshape(-1, 1)
Y = np.array([1, 0, 1, 1])
GROUPS = np.array([0, 2, 2, 3, 1, 0])
inside = Assert("f must lie in [0, 1]")


def within(f):
    return pt.and_(f >= 0, f <= 1)


def log_rows(f, y=Y):
    return pt.log(pt.abs(pt.switch(y > 0, f, 1 - f)))


def custom(f):
    def logp(value, p):
        return check_parameters(log_rows(p, value), p >= 0, p <= 1, msg="0 <= p <= 1")

    pm.CustomDist("y", f, logp=logp, observed=Y)


ROWWISE = {
    "Potential of logp": lambda f: pm.Potential("y", pm.logp(pm.Bernoulli.dist(p=f), Y)),
    "its sum": lambda f: pm.Potential("y", pm.logp(pm.Bernoulli.dist(p=f), Y).sum()),
    "CustomDist": custom,
    "not observed": lambda f: pm.Bernoulli("y", p=f, initval=Y),
    "Assert": lambda f: pm.Potential("y", inside(log_rows(f), pt.all(within(f)))),
    "Assert above a sum": lambda f: pm.Potential("y", inside(log_rows(f).sum(), pt.all(within(f)))),
    "Assert below": lambda f: pm.Potential("y", log_rows(inside(f, pt.all(within(f))))),
    "Assert in a mean": lambda f: pm.Normal("y", inside(f, pt.all(within(f))), 0.3, observed=Y),
    "Assert in a slope": lambda f: pm.Normal(
        "y", 2 * inside(f, pt.all(within(f))) + 1, 0.3, observed=Y
    ),
    "Assert in an offset": lambda f: pm.Normal(
        "y", f + inside(pt.as_tensor(Y / 3), pt.all(within(f))), 0.3, observed=Y
    ),
    "of the rows, above groups": lambda f: pm.Normal(
        "y", inside(f, pt.all(within(f)))[GROUPS], 0.3, observed=GROUPS / 3
    ),
    "of groups": lambda f: pm.Potential(
        "y", pm.logp(pm.Bernoulli.dist(p=f[GROUPS]), GROUPS % 2).sum()
    ),
    "of nothing else": lambda f: pm.Potential("y", inside(pt.constant(1.0), pt.all(within(f)))),
    "of another variable": lambda f: pm.Potential(
        "y", inside(log_rows(pt.sigmoid(f)), pm.Normal("b", initval=1.0) > 0)
    ),
}
WHOLE = {
    "a sum in the condition": lambda f: pm.Potential("y", inside(-(f**2).sum(), f.sum() < 2.5)),
    "MvNormal": lambda f: pm.MvNormal("y", inside(f, pt.all(within(f))), np.eye(N), observed=Y),
    "above MvNormal": lambda f: pm.Potential(
        "y", inside(pm.logp(pm.MvNormal.dist(f, np.eye(N)), Y), pt.all(within(f)))
    ),
    "value that does not see it": lambda f: pm.MvNormal(
        "y", pt.cumsum(f) + inside(pt.as_tensor(Y / 3), pt.all(within(f))), np.eye(N), observed=Y
    ),
    "PyMC's check": lambda f: pm.Potential(
        "y", pm.logp(pm.Bernoulli.dist(p=pt.cumsum(f) / N), Y).sum()
    ),
}


def read(likelihood, **settings):
    with pm.Model() as model:
        likelihood(pmt.BART("f", X, m=1, leaf=pmt.NormalLeaf(0.4, 0.5), **settings))
    return model, read_target(model, model["f_forest"])


def unpacked(free, table, data, at=1):
    arrays = []
    for variable in free:
        start, stop, *shape = table[at : at + 2 + variable.ndim]
        arrays.append(data[start:stop].reshape(shape))
        at += 2 + variable.ndim
    return arrays, at


def log_likelihood(target, point):
    """Function of the outputs, without compilation."""
    _, seen = target.at(point)
    if target.kind == "joint":
        free, _ = unpacked(target.value.free, *seen[:2])
        whole = compiled([target.value.outputs, *target.value.free], target.value.choices[0])
        return lambda fit: whole(fit, *free).item()
    parts, at = [], 1
    for group, result in zip(target.value.groups, target.value.choices[0], strict=True):
        free, at = unpacked(group.free, *seen[:2], at)
        rows = np.arange(N)
        if group.row_of is not None:
            rows = np.asarray(group.row_of.eval())
        inputs = [group.outputs, group.rows, group.units, *group.free]
        parts.append((compiled(inputs, result), rows, free))
    return lambda fit: sum(
        f(fit[rows], rows, np.arange(len(rows)), *free).sum() for f, rows, free in parts
    )


def compiled(inputs, result):
    return pytensor.function(inputs, result, mode="FAST_COMPILE", on_unused_input="ignore")


@pytest.mark.parametrize("case", [*ROWWISE, *WHOLE])
def test_numbers_are_those_of_the_model(case):
    model, target = read((ROWWISE | WHOLE)[case])
    assert target.kind == ("rowwise" if case in ROWWISE else "joint")
    rv, point = model["f_forest"], model.initial_point()
    others = [v for v in model.basic_RVs if v is not rv]
    logp = model.compile_logp(vars=[*others, *model.potentials])
    if case == "of another variable":
        points = [point, {**point, "b": np.array(-1.0)}]
    else:
        points = [point]
    found = []
    for point in points:
        ours = log_likelihood(target, point)
        for forest in pm.draw(rv, 30, random_seed=4):
            fit = walked(rv, forest)
            try:
                theirs = float(logp({**point, "f_forest": forest}))
            except AssertionError:
                theirs = -np.inf
            found.append((ours(fit.copy()), theirs - float(others_alone(model, others, point))))
    ours, theirs = np.array(found).T
    np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(theirs))
    possible = np.isfinite(theirs)
    assert (ours[~possible] == -np.inf).all()
    assert 3 < possible.sum() < len(possible) - 3
    # the target leaves out what does not see the forest
    gap = ours[possible] - theirs[possible]
    np.testing.assert_allclose(gap, gap[0], rtol=1e-9, atol=1e-9)


def others_alone(model, others, point):
    """Log-probability of what does not see the forest: the variable of a condition."""
    free = [v for v in others if v.name == "b"]
    return model.compile_logp(vars=free)(point) if free else 0.0


def test_a_check_below_a_minus_sign():
    """PyMC makes +inf of it."""
    _, target = read(lambda f: pm.Potential("y", -inside((f**2).sum(), pt.all(f > 0))))
    ours = log_likelihood(target, {})
    assert ours(np.array([[0.1], [0.2], [-0.1], [0.3]])) == -np.inf
    assert ours(np.full((N, 1), 0.5)) == -1.0


@pytest.mark.parametrize(
    "case", tiers(["Potential of logp", "Assert in a mean", "joint"], quick=["Assert in a mean"])
)
def test_chain_agrees_with_quadrature(case):
    """f outside [0, 1] is impossible; there is much prior mass there."""
    likelihood = (ROWWISE | {"joint": lambda f: inside_of_a_whole(f)})[case]
    model, target = read(likelihood, alpha=0.8, beta=0.5)
    assert target.kind == ("joint" if case == "joint" else "rowwise")

    def log_row(rows, values):
        i = np.array(sorted(rows))[:, None]
        if case == "Assert in a mean":
            return (-0.5 * ((Y[i] - values) / 0.3) ** 2).sum(axis=0)
        return np.log(np.where(Y[i] > 0, values, 1 - values)).sum(axis=0)

    leaf = o.QuadratureLeaf(log_row, o.normal_log_density(0.4, 0.5), 0.0, 1.0, panels=20)
    trees = o.enumerate_trees(X, 0.8, 0.5)
    weights, _ = o.posterior(trees, leaf)
    mean, _ = o.row_moments(trees, weights, leaf.moments, N)
    step = pmt.CGM(model=model, rng=3)
    point = model.initial_point()
    fits = np.empty((6_000, N))
    for k in range(len(fits)):
        point, _ = step.step(point)
        fits[k] = step.states[0].forest.fit[:, 0]
    assert ((fits >= 0) & (fits <= 1)).all()
    for i in range(N):
        error = fits[:, i].std() / np.sqrt(azs.ess(fits[None, :, i], method="mean"))
        assert abs(fits[:, i].mean() - mean[i]) < 5 * error


def inside_of_a_whole(f):
    """The same likelihood, behind an Op over all rows that changes nothing."""
    same = pt.dot(np.eye(N), f)
    pm.Potential("y", inside(log_rows(same).sum(), pt.all(within(same))))
