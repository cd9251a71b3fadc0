"""What a step has is what is recorded, to the last bit, and no tree is walked for it again."""

import gc

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.traversal import ancestors
from support.small_models import FAST, bart_model, sample, soft_model, step_data
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.value import evaluate
from pymc_trees.distributions.forest_inputs import FunctionOfRows, declared, forest_inputs
from pymc_trees.distributions.ops import by_name
from pymc_trees.distributions.ops import soft_forest_rv as soft_forest_evaluation
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest

pytestmark = pytest.mark.usefixtures("quick_compile")

X, Y = step_data(40, 3)
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
BASIS = np.column_stack([np.ones(40), X[:, 2]])


def normal(f):
    pm.Normal("y", f, 0.5, observed=Y, shape=f.shape)


def of_sums(likelihood=normal, X=X, **settings):
    """Model of a forest `f`."""

    def declare():
        with pm.Model() as model:
            f = pmt.BART("f", X, **{"m": 4, "leaf": pmt.NormalLeaf(0, 0.7)} | settings)
            likelihood(f)
        return model

    return declare


def correlated(f):
    cov = 0.3 * np.eye(40) + 0.1
    pm.MvNormal("y", f, cov, observed=Y)


def two_outputs(f):
    pm.Normal("y", f[0], pm.math.exp(f[1]), observed=Y)


def of_precision():
    with pm.Model() as model:
        mean, precision = pmt.DecisionTree("f", X, leaf=pmt.NormalGammaLeaf(2.0, 2.0, 1.0))
        pm.Normal("y", mean, tau=precision, observed=Y)
    return model


def of_classes():
    with pm.Model() as model:
        p = pmt.DecisionTree("f", X, leaf=pmt.DirichletLeaf(1.0, 3))
        pm.Categorical("y", p=p, observed=np.arange(40) % 3)
    return model


MODELS = {
    "numbers": of_sums(),
    "one tree": of_sums(m=1),
    "more than eight trees": of_sums(m=19),
    "missing cells": of_sums(X=HOLES),
    "Mondrian": of_sums(tree_prior=pmt.MondrianPrior(1.0)),
    "grid": of_sums(n_cuts=7),
    "counts": of_sums(lambda f: pm.Poisson("y", pm.math.exp(f), observed=np.arange(40) % 4)),
    "probit": of_sums(lambda f: pm.Bernoulli("y", pm.math.invprobit(f), observed=Y > 2)),
    "correlated rows": of_sums(correlated),
    "two outputs": of_sums(two_outputs, shape=(2, 40), separate_trees=False),
    "mean and precision": of_precision,
    "classes": of_classes,
    "lines": of_sums(leaf=pmt.LinearLeaf(0, 0.7, slope_sd=1.0)),
    "basis": of_sums(leaf=pmt.BasisLeaf(BASIS, 0, 0.7)),
    "monotone": of_sums(monotone={0: 1}),
    "soft": soft_model,
}
STEPS = [pmt.CGM, pmt.GrowPrune, pmt.ParticleGibbs, pmt.Hybrid]
CASES = [(model, None) for model in MODELS] + [("numbers", step) for step in STEPS]


def forest_of(model):
    return next(rv for rv in model.free_RVs if rv.name.endswith("_forest"))


def walk(model, value):
    """Outputs at the training rows by a walk through the trees: with a row more none is known."""
    rv = forest_of(model)
    rows = forest_inputs(rv).X.data
    more, n = np.vstack([rows, rows[:1]]), len(rows)
    if is_soft_forest(rv):
        given = forest_inputs(rv)
        parts = [v.data for v in (*given.unit_map, given.hard)]
        out = np.empty((n + 1, 1))
        sizes = soft_forest_evaluation.sizes_vector(rv.owner.op.layout)
        stamp = float(given.fingerprint.data)
        soft_forest_evaluation.walk_in_threads(False, value, more, *parts, sizes, stamp, out)
        return out[:n]
    given, op = declared(rv), rv.owner.op
    kernel = by_name.evaluation_of(op.leaf_type.outputs)
    at = (given.constants, op.layout, given.fingerprint)
    return by_name.outputs_at(kernel, value, more, given.X, *at)[:n]


def recorder(model):
    """Function of a point: the raw outputs that a model's Deterministics are made of."""
    seen = ancestors(model.replace_rvs_by_values(model.deterministics))
    [outputs] = [v for v in seen if v.owner and isinstance(v.owner.op, FunctionOfRows)]
    return model.compile_fn(outputs, inputs=model.value_vars, on_unused_input="ignore")


@pytest.fixture
def walks(monkeypatch):
    """Walks at training rows."""
    made = []
    for module in (by_name, soft_forest_evaluation):
        original = module.cache_evaluated

        def counted(*given, original=original):
            made.append(given)
            return original(*given)

        monkeypatch.setattr(module, "cache_evaluated", counted)
    return made


@pytest.mark.parametrize(
    ("case", "kind"),
    tiers(CASES, [(c, None) for c in ("numbers", "soft")]),
)
def test_a_step_has_what_a_walk_gives(case, kind, walks):
    model = MODELS[case]()
    record, point = recorder(model), model.initial_point()
    rv = forest_of(model)
    with model:
        made = pmt.SoftCGM() if is_soft_forest(rv) else (kind or pmt.Hybrid)()
    made.setup_chain(np.random.default_rng(2), 3, 20)
    seen = set()
    for _ in range(12):
        point, _ = made.step(point)
        found = record(point)
        np.testing.assert_array_equal(found, walk(model, point[rv.name]))
        found[:] = 0.0  # a graph may compute in place
        seen.add(record(point).tobytes())
    assert len(walks) == 0
    assert len(seen) > 3, "the forest hardly moved"


def test_a_function_is_that_of_its_value_alone(walks):
    model = bart_model()
    record, step = recorder(model), pmt.CGM(model=model)
    step.setup_chain(np.random.default_rng(1), 0, 10)
    start = model.initial_point()
    point, _ = step.step(start)
    of_point = record(point)
    others = pm.draw(model["mu_forest"], 5, random_seed=1)
    for other in others:
        at = {**point, "mu_forest": other}
        np.testing.assert_array_equal(record(at), walk(model, other))
        np.testing.assert_array_equal(record(point), of_point)
    assert len(walks) == len(others)
    record(at)  # the last walk is known, until another one
    assert len(walks) == len(others)
    broken = point["mu_forest"].copy()
    broken[0, 1] = np.nextafter(broken[0, 1], np.inf)
    assert np.isnan(record({**point, "mu_forest": broken})).all()
    # Of one checksum and one declaration, which no two values have, the entries decide.
    value, copy = point["mu_forest"], point["mu_forest"].copy()
    copy[0, 1] += 1.0
    known_as = value[model["mu_forest"].owner.op.layout.max_nodes, 0]
    stamp = declared(model["mu_forest"]).fingerprint
    assert evaluate.cached_outputs(value, known_as, stamp) is not None
    assert evaluate.cached_outputs(copy, known_as, stamp) is None
    assert evaluate.cached_outputs(value, known_as, stamp + 1.0) is None


def test_knowledge_ends_with_who_keeps_it(walks):
    model = bart_model()
    record, step = recorder(model), pmt.CGM(model=model)
    step.setup_chain(np.random.default_rng(1), 0, 10)
    free = len(evaluate._free)
    points = [step.step(model.initial_point())[0]]
    for _ in range(5):
        points.append(step.step(points[-1])[0])
    assert len(evaluate._free) == free - 1
    record(points[-1])
    assert not walks
    record(points[-2])
    assert len(walks) == 1
    del step
    gc.collect()
    record(points[-1])
    assert len(walks) == 2


@pytest.mark.parametrize("make", [bart_model, soft_model, MODELS["two outputs"], of_classes])
def test_a_walk_in_threads_is_the_walk(make, monkeypatch):
    model = make()
    rv, record = forest_of(model), recorder(model)
    values = pm.draw(rv, 4, random_seed=3)
    alone = [walk(model, value) for value in values]
    for module in (by_name, soft_forest_evaluation):
        monkeypatch.setattr(module, "WORTH", 1)
        monkeypatch.setattr(module, "given_threads", lambda: 3)
    for value, expected in zip(values, alone, strict=True):
        found = record({**model.initial_point(), rv.name: value})
        np.testing.assert_array_equal(found, expected)


@pytest.mark.full
def test_a_sum_in_threads_is_the_sum(monkeypatch):
    for model in (bart_model(m=13), MODELS["lines"](), MODELS["two outputs"]()):
        step = pmt.CGM(model=model)
        step.setup_chain(np.random.default_rng(1), 0, 10)
        step.step(model.initial_point())
        [forest] = step.forests
        monkeypatch.setattr("pymc_trees.targets.forest_state.WORTH", 1)
        state = step.states[0].forest
        np.testing.assert_array_equal(forest.add_up(state.trees, 3), state.fit)


def test_nuts_beside_the_forest_reads_it(walks):
    model = bart_model(sigma=None)
    with model:
        steps = [pmt.CGM(), pm.NUTS([model["sigma"]])]
        idata = sample(6, 6, chains=1, step=steps)
    assert len(walks) <= 1  # where the chain starts
    for at in np.ndindex(1, 6):
        value = idata.posterior["mu_forest"].values[at]
        mu = idata.posterior["mu"].values[at]
        np.testing.assert_array_equal(mu, walk(model, value)[:, 0])


@pytest.mark.parametrize(
    ("make", "context"),
    [
        (bart_model, "fork"),
        pytest.param(soft_model, "fork", marks=pytest.mark.full),
        pytest.param(MODELS["two outputs"], "fork", marks=pytest.mark.full),
        pytest.param(bart_model, "spawn", marks=pytest.mark.full),
        pytest.param(bart_model, "forkserver", marks=pytest.mark.full),
    ],
)
def test_what_other_processes_know_is_recorded(make, context, walks):
    model = make()
    name = forest_of(model).name
    with model:
        options = {"step": None, "cores": 2, "mp_ctx": context, "random_seed": 3} | FAST
        idata = pm.sample(15, tune=10, chains=3, discard_tuned_samples=False, **options)
    assert len(walks) <= 1  # where the chains start
    f = model.deterministics[0].name
    for group in (idata.posterior, idata.warmup_posterior):
        for at in np.ndindex(*group[name].shape[:2]):
            expected = walk(model, group[name].values[at])
            found = group[f].values[at]
            np.testing.assert_array_equal(found.reshape(-1), expected.T.reshape(-1))


def test_forests_that_are_not_recorded_take_no_room(monkeypatch):
    rooms = []
    monkeypatch.setattr(
        "pymc_trees.hooks.states._Context", lambda context, room: rooms.append(room)
    )
    with bart_model(sigma=None):
        pm.sample(
            3, tune=2, chains=2, cores=2, mp_ctx="fork", var_names=["sigma"], step=None, **FAST
        )
    assert rooms == []


def test_a_function_at_rows_that_move_is_that_of_its_rows():
    """Known numbers, here wrong ones, are those of a value at the very same cells."""
    X, n = np.random.default_rng(3).random((30, 1)), 30
    with pm.Model() as model:
        z = pm.Normal("z", shape=n)
        inputs = pmt.with_columns(X, z=z)
        pmt.BART("mu", inputs, leaf=pmt.NormalLeaf(0.0, 1.0), m=5)
    record, forest = recorder(model), model["mu_forest"]
    value, cells = pm.draw([forest, z], random_seed=2)
    truth, point = np.empty(n), {"mu_forest": value, "z": cells}
    truth[:] = record(point).ravel()
    checksum = value[forest.owner.op.layout.max_nodes, 0]
    known = (value, checksum, declared(forest).fingerprint, np.full((n, 1), 7.0))
    kept = evaluate.CachedOutputs(*known, np.column_stack([X, cells]))
    assert (record(point) == 7.0).all()
    moved = cells.copy()
    moved[-1] = np.nextafter(moved[-1], np.inf)
    assert not (record({"mu_forest": value, "z": moved}) == 7.0).any()
    del kept
    gc.collect()
    np.testing.assert_array_equal(record(point).ravel(), truth)
    trained = evaluate.CachedOutputs(*known)  # at the rows of the declaration, not these
    np.testing.assert_array_equal(record(point).ravel(), truth)
    del trained
