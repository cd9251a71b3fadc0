"""`LatentNormals`: which variables it takes, their limits, and draws from their conditional."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from support.naive.batches import batch_means, gap
from support.small_models import sample

import pymc_trees as pmt
from pymc_trees.targets.latent_normals import latent_entries

pytestmark = [
    pytest.mark.usefixtures("quick_compile"),
    pytest.mark.filterwarnings("ignore:Data in y contains missing values"),
]

N = 5
RNG = np.random.default_rng(4)
X, Y = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 2))
B = np.array([[0, 1], [1, 1], [0, 0], [1, 0], [1, 1]])
COV = np.array([[1.0, 0.7], [0.7, 1.5]])
ONE_MISSING = np.where(np.arange(2 * N).reshape(N, 2) == 3, np.nan, Y)
SECOND_LATENT = np.column_stack([Y[:, 0], np.full(N, np.nan)])
LOW, HIGH = np.array([-np.inf, -1.0, 0.0, 1.0, -0.5]), np.array([-1.0, 0.0, 1.0, np.inf, np.inf])


def mean():
    return pmt.BART("f", X, m=2, shape=(2, N), leaf=pmt.NormalLeaf(0.0, 0.5)).T


def free(**given):
    return pm.MvNormal("y", mean(), cov=COV, **{"shape": (N, 2)} | given)


def masked(values=SECOND_LATENT, **given):
    return pm.MvNormal("y", mean(), observed=values, **given or {"cov": COV})


def is_one(condition, b=B, name="b"):
    pm.Bernoulli(name, p=pm.math.switch(condition, 1.0, 0.0), observed=b)


def between(condition, name="c"):
    pm.Potential(name, pm.math.switch(condition, 0.0, -np.inf))


def signs(z, b=B):
    is_one(z > 0, b)


NO = np.full(N, np.inf)
SIGNS = np.where(B == 1, 0.0, -np.inf), np.where(B == 1, np.inf, 0.0)
OF_SECOND = SIGNS[0][:, 1], SIGNS[1][:, 1]
# What is declared, and the limits of the entries of the variable, in their order.
TAKEN = {
    "signs": (lambda: signs(free()), *SIGNS),
    "below": (lambda: is_one(free() <= 0.3), -SIGNS[1] + 0.3, -SIGNS[0] + 0.3),
    "the other way round": (lambda: is_one(pt.lt(0.0, free())), *SIGNS),
    "zero where it holds": (
        lambda: pm.Bernoulli("b", p=pt.switch(free() > 0, 0.0, 1.0), observed=1 - B),
        *SIGNS,
    ),
    "as a float": (
        lambda: pm.Bernoulli("b", p=(free() > 0).astype("float64"), observed=B),
        *SIGNS,
    ),
    "times and plus": (lambda: is_one(1.0 - 2.0 * free() < 0.0), SIGNS[0] + 0.5, SIGNS[1] + 0.5),
    "of the other variable": (lambda: is_one(free() > pm.Normal("a", initval=0.0)), *SIGNS),
    "by columns": (
        lambda: (lambda z: (is_one(z[:, 0] > 0, B[:, 0]), is_one(z[:, 1] > 0, B[:, 1], "b1")))(
            free()
        ),
        *SIGNS,
    ),
    "of one output": (
        lambda: is_one(free()[:, 1] > 0, B[:, 1]),
        np.column_stack([-NO, OF_SECOND[0]]),
        np.column_stack([NO, OF_SECOND[1]]),
    ),
    "twice": (
        lambda: (lambda z: (signs(z), between(z < 2.0)))(free()),
        SIGNS[0],
        np.minimum(SIGNS[1], 2.0),
    ),
    "intervals": (
        lambda: (lambda z: between((z[:, 1] > LOW) & (z[:, 1] < HIGH)))(masked()),
        LOW,
        HIGH,
    ),
    "intervals, summed": (
        lambda: (
            lambda z: pm.Potential(
                "c", pt.switch(pt.and_(z[:, 1] >= LOW, z[:, 1] <= HIGH), 0, -np.inf).sum()
            )
        )(masked()),
        LOW,
        HIGH,
    ),
    "missing": (lambda: masked(ONE_MISSING), [-np.inf], [np.inf]),
    "signs of an output": (lambda: is_one(masked()[:, 1] > 0, B[:, 1]), *OF_SECOND),
    "signs of all, some observed": (
        lambda: signs(masked(ONE_MISSING)),
        [SIGNS[0][1, 1]],
        [SIGNS[1][1, 1]],
    ),
    "random covariance": (
        lambda: signs(pm.MvNormal("y", mean(), cov=pm.LKJCorr("corr", n=2, eta=2.0), shape=(N, 2))),
        *SIGNS,
    ),
}


def model_of(declare):
    with pm.Model() as model:
        declare()
    return model


def latent_of(model):
    return next(rv for rv in model.free_RVs if rv.name in ("y", "y_unobserved"))


def numbers_of(model, point):
    [entries] = latent_entries(model)
    return entries.numbers(point)


@pytest.mark.parametrize("case", TAKEN)
def test_limits(case):
    declare, low, high = TAKEN[case]
    model = model_of(declare)
    found = numbers_of(model, model.initial_point())
    for ours, wanted in ((found.low, low), (found.high, high)):
        np.testing.assert_allclose(ours[found.is_latent], np.ravel(wanted), rtol=1e-12)
    with model:
        assert pmt.LatentNormals.competence(latent_of(model), True).name == "IDEAL"


def test_limits_are_where_the_model_has_a_density():
    """Whatever is drawn is within the limits of PyMC's own log-probability."""
    for case in ("signs", "zero where it holds", "twice", "signs of an output", "intervals"):
        model = model_of(TAKEN[case][0])
        step = pmt.LatentNormals(model=model, rng=1)
        point, _ = step.step(model.initial_point())
        assert np.isfinite(model.compile_logp()(point)), case


NOT_TAKEN = {
    "counts": lambda: pm.Poisson("c", pm.math.exp(free()), observed=B),
    "a probability between": lambda: pm.Bernoulli(
        "b", p=pt.switch(free() > 0, 0.9, 0.1), observed=B
    ),
    "probit": lambda: pm.Bernoulli("b", p=pm.math.invprobit(free()), observed=B),
    "two entries": lambda: is_one((lambda z: z[:, 0] > z[:, 1])(free()), B[:, 0]),
    "a sum": lambda: is_one(free().sum(axis=1) > 0, B[:, 0]),
    "a square": lambda: is_one(free() ** 2 > 1.0),
    "one or the other": lambda: between((lambda z: (z < -1) | (z > 1))(free())),
    "another Potential": lambda: (lambda z: (signs(z), pm.Potential("d", -(z**2).sum())))(free()),
    "a Normal around it": lambda: pm.Normal("x", free(), 1.0, observed=Y),
    "not observed": lambda: pm.Bernoulli("b", p=pt.switch(free() > 0, 1.0, 0.0), shape=(N, 2)),
    "no forest": lambda: (
        mean(),
        signs(pm.MvNormal("y", np.zeros(2), cov=COV, shape=(N, 2))),
    ),
    "transformed": lambda: free(
        transform=pm.distributions.transforms.ordered, initval=np.sort(Y, axis=1)
    ),
}


@pytest.mark.parametrize("case", NOT_TAKEN)
def test_what_is_left_to_other_steps(case):
    model = model_of(NOT_TAKEN[case])
    with model:
        assert pmt.LatentNormals.competence(latent_of(model), True).name == "INCOMPATIBLE"
        with pytest.raises(ValueError, match="vars: nothing is not latent"):
            pmt.LatentNormals()


def test_no_room_between_limits():
    model = model_of(lambda: (lambda z: between((z > 1) & (z < 0)))(free()))
    with pytest.raises(ValueError, match="Entries of y have no room between their limits"):
        model.initial_point()


def test_initial_values_lie_within_the_limits():
    for case in TAKEN.keys() - {"signs of all, some observed"}:  # whose observed entries do not
        model = model_of(TAKEN[case][0])
        assert np.isfinite(model.compile_logp()(model.initial_point())), case
    model = model_of(lambda: signs(free(initval=np.where(B == 1, 0.7, -0.2))))
    np.testing.assert_array_equal(model.initial_point()["y"], np.where(B == 1, 0.7, -0.2))


def test_a_covariance_that_is_none():
    model = model_of(lambda: masked(cov=COV * pm.Normal("s", initval=-1.0)))
    with pytest.raises(ValueError, match="y_unobserved must be finite, and its covariance"):
        pmt.LatentNormals(model=model).step(model.initial_point())


def test_draws_have_the_moments_of_the_truncated_normal():
    """By sums over a grid: the two entries of each row, given the forests.

    60 batches of 200 steps; 25 averages at 5 standard errors, of a t law with 59 degrees of
    freedom, of which one fails by chance in 5,000 runs with fresh seeds.
    """
    model = model_of(TAKEN["twice"][0])
    point = model.initial_point()
    for forest in ("f_0_forest", "f_1_forest"):
        point[forest] = pm.draw(model[forest], random_seed=7)
    step, draws = pmt.LatentNormals(model=model, rng=3), []
    for _ in range(12_000):
        point, _ = step.step(point)
        draws.append(point["y"])
    draws = np.array(draws)
    at = numbers_of(model, point)
    assert np.ptp(at.mean) > 0.1
    grid = (np.arange(-720, 720) + 0.5) / 80  # the limits are edges of cells
    cells = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1)
    for i in range(N):
        weight = stats.multivariate_normal(at.mean[i], COV).pdf(cells)
        weight *= np.all((cells > at.low[i]) & (cells < at.high[i]), axis=-1)
        mean = np.einsum("ab,abk->k", weight, cells) / weight.sum()
        square = np.einsum("ab,abj,abk->jk", weight, cells, cells) / weight.sum()
        z = draws[:, i]
        values = np.column_stack([z, z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])
        exact = [*mean, square[0, 0], square[0, 1], square[1, 1]]
        assert gap(batch_means(values, 60), exact).within(5.0, 0.1)


def test_means_of_other_layouts_in_one_step():
    """One is a transposed forest, in Fortran's order, the other is stacked, in C's."""
    apart = 10.0 * np.arange(N)[:, None] + np.arange(3)
    with pm.Model() as model:
        f = pmt.BART("f", X, m=1, leaf=pmt.NormalLeaf(0.0, 0.01), shape=(2, N))
        g = pmt.BART("g", X, m=1, leaf=pmt.NormalLeaf(0.0, 0.01), shape=(3, N))
        pm.MvNormal("z", f.T, cov=np.eye(2), shape=(N, 2))
        mean = pm.math.stack([g[0], g[1], g[2]], axis=1) + apart
        pm.MvNormal("u", mean, cov=np.eye(3), shape=(N, 3))
    step, point = pmt.LatentNormals(model=model, rng=1), model.initial_point()
    for _ in range(3):
        point, _ = step.step(point)
    assert abs(point["u"] - apart).max() < 6 and abs(point["z"]).max() < 6


def test_assigned_by_plain_sample(caplog):
    caplog.set_level("INFO")
    with model_of(lambda: is_one(masked(chol=chol())[:, 1] > 0, B[:, 1])) as model:
        idata = sample(3, 3)
    assert "LatentNormals: [y_unobserved]" in caplog.text
    assert ((idata.posterior["y"][..., 1] > 0) == B[:, 1]).all()
    assert model["y_unobserved"] is latent_of(model)


def chol():
    return pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0, shape=2))[0]


def test_a_step_goes_to_another_process():
    """Pickled, it makes the same draws."""
    model = model_of(TAKEN["twice"][0])
    step, point = pmt.LatentNormals(model=model, rng=5), model.initial_point()
    step.step(point)
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    copy.rng = np.random.default_rng(1)
    step.rng = np.random.default_rng(1)
    np.testing.assert_array_equal(step.step(point)[0]["y"], copy.step(point)[0]["y"])


def test_named_dimensions():
    """A model of pymc.dims is read as the same one without."""
    coords = {"output": ["a", "b"], "row": range(N)}
    with pm.Model(coords=coords) as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 0.5), dims=("output", "row"))
        y = pm.MvNormal("y", f.T, cov=COV, dims=("row", "output"))
        pm.Bernoulli("b", p=pt.switch(y > 0, 1.0, 0.0), observed=B, dims=("row", "output"))
        assert pmt.LatentNormals.competence(y, True).name == "IDEAL"
        idata = sample(2, 2)
    assert idata.posterior["y"].dims == ("chain", "draw", "row", "output")
    assert model.coords["output"] == ("a", "b")
