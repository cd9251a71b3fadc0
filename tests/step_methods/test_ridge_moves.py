"""Draws along ridges: they keep every row, and the law of what moves.

The law is checked on the prior: leaf values and other variables are independent draws from it, and
so must they be after one move along each ridge. The change of a function of them then has mean 0;
its average over independent replicates is held to 5 standard errors (one of some 60 averages fails
by chance in 30,000 fresh runs). The trees are given: a move leaves them as they are.
"""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.core.forest.trees import make_trees, split_leaf
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.soft_forest.trees import make_soft_trees
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.step_methods.kernels.contract import SweepData
from pymc_trees.step_methods.kernels.replica_exchange import exchange_outputs
from pymc_trees.step_methods.ridge_moves import RidgeMoves
from pymc_trees.targets.lift import Lift, leaves_of
from pymc_trees.targets.settings import Settings

pytestmark = pytest.mark.usefixtures("quick_compile")
N, REPLICATES, Z_MOST = 6, 1_500, 5.0
X = np.linspace(0, 1, N)[:, None]
G = np.arange(N) % 2
COUNTS = np.array([0, 2, 1, 0, 3, 1])
LEAF = pmt.NormalLeaf(0.3, 0.8)
ORDERED = pm.distributions.transforms.ordered


def forest(name="f", m=2, leaf=LEAF):
    return pmt.BART(name, X, m=m, leaf=leaf)


def intercept():
    pm.Poisson("y", pm.math.exp(forest() + pm.StudentT("b", nu=4, sigma=0.7)), observed=COUNTS)


def centred():
    a = pm.Normal("a", pm.Normal("mu", 0.5, 1.5), 0.6, shape=2)
    pm.Bernoulli("y", logit_p=forest() + a[G], observed=COUNTS > 0)


def not_centred():
    a = pm.HalfNormal("tau") * pm.Normal("z", shape=2)
    pm.Bernoulli("y", logit_p=forest() + a[G], observed=COUNTS > 0)


def cut_points():
    cuts = pm.Normal("c", 0, 2, shape=2, transform=ORDERED, initval=[-1.0, 1.0])
    pm.OrderedLogistic("y", eta=forest(), cutpoints=cuts, observed=np.minimum(COUNTS, 2))


def with_potential():
    """The density of b: exp(-b^4) by the Potential alone."""
    b = pm.Flat("b", initval=0.0)
    pm.Potential("quartic", -(b**4))
    pm.Poisson("y", pm.math.exp(forest() + b), observed=COUNTS)


def two_forests():
    pm.Poisson(
        "y", pm.math.exp(forest("g", leaf=pmt.NormalLeaf(0.1, 0.4)) + 2 * forest()), observed=COUNTS
    )


def soft():
    mu = pmt.SoftBART("f", X, m=2, leaf=LEAF, split_prior=np.ones(1))
    pm.Poisson("y", pm.math.exp(mu + pm.Normal("b", 0, 0.7)), observed=COUNTS)


def several_outputs():
    f = pmt.BART("f", X, m=2, leaf=LEAF, shape=(2, N), separate_trees=False)
    b = pm.Normal("b", 0, 1, shape=2)
    pm.Poisson("y", pm.math.exp(f + b[:, None]), observed=np.stack([COUNTS, COUNTS]))


def quartic(rng):
    while True:
        u = rng.uniform(-3, 3)
        if rng.random() < np.exp(-(u**4)):
            return u


def ordered(rng):
    low, high = np.sort(rng.normal(0, 2, 2))
    return np.array([low, np.log(high - low)])


def groups(rng):
    mu = rng.normal(0.5, 1.5)
    return {"mu": mu, "a": rng.normal(mu, 0.6, 2)}


CASES = {
    intercept: lambda rng: {"b": 0.7 * rng.standard_t(4)},
    centred: groups,
    not_centred: lambda rng: {"tau_log__": np.log(abs(rng.normal())), "z": rng.normal(size=2)},
    cut_points: lambda rng: {"c_ordered__": ordered(rng)},
    with_potential: lambda rng: {"b": quartic(rng)},
    two_forests: lambda rng: {},
    soft: lambda rng: {"b": rng.normal(0, 0.7)},
    several_outputs: lambda rng: {"b": rng.normal(size=2)},
}
"""Models, and draws of the prior of their variables."""


def unequal_trees(n_values):
    """A stump and a tree of three leaves."""
    trees = make_trees(2, 12, n_values, N)
    split_leaf(trees, 1, 0, 0.5)
    split_leaf(trees, trees.right[1], 0, 0.8)
    return trees


def unequal_soft_trees():
    trees = make_soft_trees(2, 12)
    trees.size[1] = 3
    trees.column[1, :3] = 0, -1, -1
    return trees


class Chain(NamedTuple):
    """Moves of a model, the trees of its forests, and the mean and sd of their leaf values."""

    moves: RidgeMoves
    trees: dict
    settings: dict


def chain_of(declare) -> Chain:
    with pm.Model() as model:
        declare()
    model = without_dims(model)
    *others, rv = [v for v in model.free_RVs if v.name.endswith("_forest")]
    trees = {
        v.name: unequal_soft_trees()
        if declare is soft
        else unequal_trees(v.owner.op.layout.n_values)
        for v in [*others, rv]
    }
    settings = dict.fromkeys(trees, (0.3, 0.8)) | {v.name: (0.1, 0.4) for v in others}
    return Chain(RidgeMoves(model, rv, others), trees, settings)


def places_of_leaves(trees):
    """Array of leaf values of all nodes, and the index of those of leaves."""
    if hasattr(trees, "number"):
        return trees.number, (np.array([0, 1, 1]), np.array([0, 1, 2]))
    return trees.values, leaves_of(trees)[1]


def changes(chain: Chain, draw, rng) -> np.ndarray:
    """(replicates, functions) changes of functions of what moves, in one move along each ridge."""

    def lift_of(name, output):
        mean_sd = list(chain.settings[name])
        return Lift.of(chain.trees[name], Settings(0.0, 0.0, None, mean_sd), "normal", output)

    def numbers(point):
        own = [np.atleast_1d(v).ravel() for v in point.values()]
        leaves = [values[at].ravel() for values, at in map(places_of_leaves, chain.trees.values())]
        v = np.concatenate([*own, *leaves])
        return np.concatenate([v, v**2, np.outer(v, v)[np.triu_indices(len(v), 1)], np.tanh(v)])

    rows = []
    for _ in range(REPLICATES):
        point = {name: np.asarray(value) for name, value in draw(rng).items()}
        for name, trees in chain.trees.items():
            mean, sd = chain.settings[name]
            values, at = places_of_leaves(trees)
            values[at] = rng.normal(mean, sd, values[at].shape)
        before = numbers(point)
        new, risen, _ = chain.moves.draw(rng, point, lift_of)
        assert np.all(risen != 0)
        rows.append(numbers(point | new) - before)
    return np.array(rows)


def largest_z(rows) -> float:
    moving = rows.std(axis=0) > 1e-9
    assert moving.any()
    rows = rows[:, moving]
    return float(np.abs(rows.mean(axis=0) / (rows.std(axis=0) / np.sqrt(len(rows)))).max())


@pytest.mark.parametrize("declare", CASES, ids=lambda one: one.__name__)
def test_prior_stays_the_prior(declare):
    z = largest_z(changes(chain_of(declare), CASES[declare], np.random.default_rng(1)))
    assert z < Z_MOST


def test_mistakes_are_seen(monkeypatch):
    """No pull of the leaf prior, and one of the wrong sign."""
    right, chain = Lift.of, chain_of(intercept)
    for mistake in (
        lambda one: one._replace(slope=0.0),
        lambda one: one._replace(slope=-one.slope),
    ):
        monkeypatch.setattr(Lift, "of", lambda *a, mistake=mistake: mistake(right(*a)))
        assert largest_z(changes(chain, CASES[intercept], np.random.default_rng(1))) > Z_MOST


@pytest.mark.parametrize("declare", [intercept, cut_points, two_forests, soft, several_outputs])
def test_rows_stay_as_they_are(declare):
    """And the forest that is recorded is the one of the point."""
    with pm.Model() as model:
        declare()
        step = (pmt.SoftCGM if declare is soft else pmt.CGM)()
    rows = model.compile_fn(
        model.logp(vars=model.observed_RVs, sum=False)[0], inputs=model.value_vars
    )
    prior = model.compile_fn(model.logp(vars=model.free_RVs), inputs=model.value_vars)
    rng = np.random.default_rng(3)
    step.setup_chain(rng, 5, 5)
    point = model.initial_point()
    for _ in range(10):
        point, [stats] = step.step(point)
    [name] = step.ridges
    assert np.all(stats[[key for key in stats if key.startswith("ridge_shift")][0]] != 0)
    [own] = [k for k, one in enumerate(step.forests) if one.name == name]
    forest, state = step.forests[own], step.states[own].forest
    settings, _ = forest.target.at(point)
    new, risen = step._along_ridges(rng, forest, state, settings, point)
    new = new | {forest.value_name: forest.store(state, settings).value}
    assert np.all(np.abs(risen) > 1e-6)
    np.testing.assert_allclose(rows(new), rows(point), rtol=1e-9, atol=1e-9)
    assert prior(new) != prior(point)
    step.step(new)  # as a value of the model


@pytest.mark.parametrize("soft_trees", [False, True])
def test_a_decoded_forest_has_the_same_prior_to_the_bit(soft_trees):
    """Its nodes have other numbers; draws after `resume` are those of one long run all the same."""
    rng = np.random.default_rng(5)
    table = rng.random((40, 2))
    with pm.Model() as model:
        front = pmt.SoftBART if soft_trees else pmt.BART
        f = front(
            "f", table, m=12, leaf=LEAF, **({"split_prior": np.ones(2)} if soft_trees else {})
        )
        pm.Normal("y", f + pm.StudentT("b", nu=4), 0.2, observed=np.sin(9 * table[:, 0]))
        step = (pmt.SoftCGM if soft_trees else pmt.CGM)()
    step.setup_chain(rng, 5, 30)
    point, apart = model.initial_point(), 0
    for _ in range(30):
        point, _ = step.step(point)
        [forest], [state] = step.forests, step.states
        settings, _ = forest.target.at(point)
        decoded = forest.load(None, point[forest.value_name], settings, point)
        evolved, again = (
            Lift.of(one.trees, settings, "normal", 0) for one in (state.forest, decoded)
        )
        assert (evolved.slope, evolved.precision) == (again.slope, again.precision)
        apart += not np.array_equal(evolved.values[evolved.at], again.values[again.at])
    assert soft_trees or apart > 5  # as often are leaves in another order


def test_no_move_at_other_data():
    """A direction of the data before is not one of the data now."""
    with pm.Model() as model:
        column = pm.Data("column", np.ones((N, 1)))
        b = pm.Normal("b", shape=1)
        pm.Poisson("y", pm.math.exp(forest() + column @ b), observed=COUNTS)
        moves = RidgeMoves(model, model["f_forest"], [])
        moves.start()
        assert moves.is_current
        pm.set_data({"column": X})
        moves.start()
        assert not moves.is_current


def test_models_without_ridges_have_no_statistic():
    with pm.Model():
        pm.Poisson("y", pm.math.exp(forest() + X[:, 0] * pm.Normal("b")), observed=COUNTS)
        step = pmt.CGM()
    assert not step.ridges and "ridge_shift" not in step.stats_dtypes[0]


def test_what_is_adapted_does_not_wander_with_the_level():
    """The Gaussian rows of delayed acceptance are around f less a function of what moves along."""
    for declare in (intercept, centred, not_centred, cut_points):
        chain = chain_of(declare)
        rng = np.random.default_rng(2)
        point = {name: np.asarray(value) for name, value in CASES[declare](rng).items()}
        settings = Settings(0.0, 0.0, None, [0.3, 0.8])
        [trees] = chain.trees.values()
        before = chain.moves.level(point)
        new, risen, _ = chain.moves.draw(
            rng, point, lambda name, output, t=trees, s=settings: Lift.of(t, s, "normal", output)
        )
        np.testing.assert_allclose(chain.moves.level(new) - before, risen)


class Accepts:
    """A generator that accepts what can be accepted."""

    def random(self):
        return 0.0


class Work(NamedTuple):
    rows_valid: np.ndarray


def test_exchange_of_forests_of_different_levels():
    """The ratio is that of the densities before and after; a second exchange undoes the first."""
    rng, level = np.random.default_rng(5), 0.7
    places = []
    for k, precision in enumerate((2.0, 0.8)):
        trees = unequal_trees(1)
        values, at = places_of_leaves(trees)
        values[at] = rng.normal(0.3, 0.8, values[at].shape)
        for t, leaves in enumerate(([0], at)):
            trees.leaf_of[t] = rng.choice([one for one in leaves if t == 0 or one != 0], N)
        target = rng.normal(size=N) + level * (k == 0)
        leaf = make_normal(0.3, 0.8, target - fit_of(trees), precision, 12)
        problem = Problem(trees, None, None, leaf)
        work = Work(np.ones(2, dtype=bool))
        places.append(SweepData(None, problem, work, target, False, {}, level=level * (k == 0)))

    def log_density():
        total = 0.0
        for place in places:
            values, at = places_of_leaves(place.problem.trees)
            leaf, r = place.problem.leaf, place.target - fit_of(place.problem.trees)
            np.testing.assert_allclose(leaf.r, r, atol=1e-12)
            total += -0.5 * np.sum(leaf.w * r**2)
            total += -0.5 * np.sum(((values[at] - leaf.mean) / leaf.sd) ** 2)
        return total

    before = [place.problem.trees.values.copy() for place in places]
    densities = [log_density()]
    for _ in range(2):
        share, accepted = exchange_outputs(Accepts(), *places)
        assert accepted
        densities.append(log_density())
        np.testing.assert_allclose(share, min(1.0, np.exp(densities[-1] - densities[-2])))
    assert abs(densities[1] - densities[0]) > 0.1
    for place, values in zip(places, before, strict=True):
        np.testing.assert_allclose(place.problem.trees.values, values, atol=1e-12)


def fit_of(trees):
    return sum(trees.values[leaf_of, 0] for leaf_of in trees.leaf_of)
