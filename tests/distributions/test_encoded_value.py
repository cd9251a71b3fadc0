"""What a prior draw is, what it evaluates to, and what becomes of an altered one."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.replace import clone_replace
from support import twin
from support.small_models import bart_model, forest_of, step_data

import pymc_trees as pmt
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.value.encode import decode
from pymc_trees.core.value.fields import sizes

pytestmark = pytest.mark.usefixtures("quick_compile")

LEAVES = {
    "normal": (3, pmt.NormalLeaf(0.3, 1.5)),
    "normal_gamma": (1, pmt.NormalGammaLeaf(0.5, 4.0, 0.7)),
    "dirichlet": (1, pmt.DirichletLeaf(2.0, 3)),
}


def declare(kind, n=25):
    """Forest with a leaf of some kind, function of replaceable inputs."""
    m, leaf = LEAVES[kind]
    with pm.Model() as model:
        X = pm.Data("X", step_data(n)[0])
        forest = pmt.Forest("forest", X, m=m, alpha=0.9, beta=0.5, leaf=leaf)
        out = pmt.evaluate(forest, X)
    return model, forest, out if isinstance(out, tuple) else (out,)


def evaluator(forest, outputs, data):
    """Function of a value and of inputs."""
    value, X = forest.clone(), pt.matrix("X_new")
    return pytensor.function([value, X], clone_replace(outputs, {forest: value, data: X}))


def as_columns(outputs):
    """(n, K) array of one or several outputs."""
    return np.column_stack(outputs)


@pytest.mark.parametrize("kind", LEAVES)
def test_prior_draw_is_a_forest_and_evaluates_as_its_trees_say(kind):
    model, forest, outputs = declare(kind)
    layout = forest.owner.op.layout
    X = model["X"].get_value()
    new = np.vstack([X, [[0.5, -3.0]]])
    function = pm.compile([], [forest, *outputs], random_seed=5)
    at = evaluator(forest, outputs, model["X"])
    sizes_seen = set()
    for _ in range(30):
        value, *fitted = function()
        trees = twin.read_trees(value, layout)
        sizes_seen.add(twin.n_leaves(trees))
        working = make_trees(layout.m, layout.max_nodes, layout.n_values, layout.n_rows)
        rows, spare = np.empty((2, layout.n_rows), dtype=np.int32)
        assert decode(
            value,
            make_design(X),
            make_prior(0.5, 0.0, np.full(2, 0.5)),
            sizes(layout),
            working,
            rows,
            spare,
        )
        np.testing.assert_allclose(as_columns(fitted), twin.f(trees, X), rtol=0, atol=1e-10)
        # One more row: nothing that is known fits, so the trees are walked.
        walked = as_columns(at(value, new))
        np.testing.assert_allclose(walked, twin.f(trees, new), rtol=0, atol=1e-10)
        np.testing.assert_allclose(walked[:-1], as_columns(fitted), rtol=0, atol=1e-10)
    assert len(sizes_seen) > 5, "hardly any tree was walked"


def alterations(value, layout, rng):
    """Every kind of entry, changed one at a time in a copy."""
    leaf = int(np.flatnonzero(value[: layout.max_nodes, 0] == -1)[0])
    split = int(np.flatnonzero(value[: layout.max_nodes, 0] >= 0)[0])
    unused = int(np.flatnonzero(value[: layout.max_nodes, 0] == -2)[0])
    certificate = layout.max_nodes * layout.fields
    places = {
        "split column": split * layout.fields,
        "cut": split * layout.fields + 1,
        "leaf mark": leaf * layout.fields,
        "leaf value": leaf * layout.fields + 1,
        "unused mark": unused * layout.fields,
        "unused field": unused * layout.fields + 1,
        "checksum": certificate,
        "log cuts": certificate + 1,
        "log columns": certificate + 2,
        "unsplittable leaves": certificate + 3,
        "padding": value.size - 1,
    }
    for name, place in places.items():
        for new in (
            np.nextafter(value.flat[place], np.inf),
            value.flat[place] + rng.normal(),
            np.nan,
            np.inf,
            -1e300,
            2.0**60,
        ):
            altered = value.copy()
            altered.flat[place] = new
            yield f"{name} = {new}", altered
    yield "float32", value.astype(np.float32).astype(float) + 0.0
    yield "zeros", np.zeros_like(value)
    yield "noise", rng.normal(size=value.shape)


def test_an_altered_value_is_nan_and_impossible(rng):
    model = bart_model(n=21, m=3, alpha=0.95, beta=0.5)
    forest, layout, X = forest_of(model)
    value = pm.draw(forest, random_seed=2)
    while (value[: layout.max_nodes, 0] >= 0).sum() == 0:
        value = pm.draw(forest, random_seed=int(rng.integers(1000)))
    logp = model.compile_logp(vars=[forest])
    whole = model.compile_logp()
    assert np.isfinite(logp({"mu_forest": value}))
    outputs = evaluator(forest, [model["mu"]], model["X"])
    new = np.vstack([X, X[:1]])
    count = 0
    for name, altered in alterations(value, layout, rng):
        assert np.isnan(outputs(altered, X)[0]).all(), name
        assert np.isnan(outputs(altered, new)[0]).all(), name
        assert logp({"mu_forest": altered}) == -np.inf, name
        assert not np.isfinite(whole({"mu_forest": altered})), name
        count += 1
    assert count == 11 * 6 + 3


def test_a_forest_of_other_data_is_not_a_forest_of_this_model():
    one = bart_model(n=20, m=3)
    other = bart_model(n=20, m=3, p=2, alpha=0.95, n_cuts=5)
    shifted = pm.draw(other["mu_forest"], random_seed=1)
    forest, layout, X = forest_of(one)
    if shifted.shape != layout.shape:
        shifted = np.resize(shifted, layout.shape)
    assert one.compile_logp(vars=[forest])({"mu_forest": shifted}) == -np.inf


def test_compiled_and_python_sides_of_the_ops_agree():
    model = bart_model()
    forest, layout, X = forest_of(model)
    new = np.vstack([X, X[:3] + 0.01])
    results = []
    for mode in ("FAST_COMPILE", "NUMBA"):
        with pytensor.config.change_flags(mode=mode):
            values = pm.draw(forest, 5, random_seed=6)
            logp = model.compile_logp(vars=[forest])
            out = evaluator(forest, [model["mu"]], model["X"])
            broken = values[0] + 1.0
            results.append(
                (
                    values,
                    model.initial_point()["mu_forest"],
                    [logp({"mu_forest": v}) for v in (*values, broken)],
                    [out(v, at)[0] for v in (*values, broken) for at in (X, new)],
                )
            )
    for python, compiled in zip(*results):
        for a, b in zip(python, compiled):
            np.testing.assert_allclose(a, b, rtol=1e-14)  # the order of a sum may differ


def test_pullback_tells_what_to_do():
    model = bart_model(n=20, m=3)
    with pytest.raises(NotImplementedError, match=r"pymc_trees\.CGM"):
        model.compile_dlogp()
