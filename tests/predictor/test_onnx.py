"""Models of ONNX in ONNX Runtime against the predictor that they were made of."""

import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import predictor_models as models
from support.generated_forests import forest, frame_of, predictor_of, rows_of

import pymc_trees as pmt
from pymc_trees.predictors import hard
from pymc_trees.predictors.elsewhere.asked import LOCATION, MEANS, commutes_with_mean
from pymc_trees.predictors.elsewhere.onnx_model import Inputs, tree_outputs
from pymc_trees.predictors.elsewhere.tensors import Graph, NotCarriedError, Tensor
from pymc_trees.predictors.laws import LAWS
from pymc_trees.predictors.packed import PackedForest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
Q = (0.05, 0.5, 0.93)
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def outputs_with_slopes(columns):
    """Two outputs that share trees, whose leaves have slopes."""
    leaf = pmt.LinearLeaf(0.1, 0.3, columns=columns)
    return models.mixed(leaf=leaf, shape=(2, models.N), separate_trees=False)


CASES = {
    **{name: case for name, case in models.CASES.items() if name != "soft"},
    **{f"slopes of outputs, {columns}": partial(outputs_with_slopes, columns)
       for columns in ("parent", "path", "all")},
}  # fmt: skip


def results(made, given):
    """Outputs by name, of rows as a predictor takes them."""
    onnx.checker.check_model(made)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    fed = {one.name: cells(one, given) for one in session.get_inputs()}
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, fed), strict=True))


def cells(one, given):
    """What an input is fed."""
    if isinstance(given, dict):
        table, _, column = one.name.partition(".")
        found = given[table if column else one.name]
        found = found[column] if column else found
    else:
        found = given if one.shape[1] != 1 or given.shape[1] == 1 else given[one.name]
    if one.type == "tensor(string)":
        present = np.asarray(found, dtype=object).flat
        known = [v if isinstance(v, str) else "no level" for v in present]
        return np.array(known, dtype=object).reshape(-1, *one.shape[1:])
    kind = {"tensor(double)": float, "tensor(int64)": np.int64}[one.type]
    return np.asarray(found, dtype=kind).reshape(-1, *one.shape[1:])


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    case = CASES[name]()
    predictor = pmt.predictor(case.idata, case.model)
    given = case.new
    if isinstance(given, np.ndarray):
        given = {predictor._evaluator.tables[0].name: given}
    if name == "expressions":  # groups by their names
        given = given | {"group_of": np.array(list("abcd"), object)[given["group_of"]]}
    for function in predictor.functions:
        found = results(predictor.to_onnx(quantiles=Q, of=function), given)
        assert list(found) == ["mean", "sd", "quantiles"]
        for kind, values in found.items():
            expected = predictor.predict(case.new, kind, quantiles=Q, of=function)
            np.testing.assert_allclose(values, expected, **EXACT)
        [mean] = results(predictor.to_onnx("mean", of=function), given).values()
        np.testing.assert_allclose(mean, predictor.predict(case.new, of=function), **EXACT)


@pytest.mark.parametrize("law", models.LAWS)
def test_means_of_responses(law):
    case = models.response(law)
    predictor = pmt.predictor(case.idata, case.model)
    found = results(predictor.to_onnx(draws=4), {"X": case.new})
    fewer = predictor.thinned(4)
    if predictor.law == "categorical":
        np.testing.assert_allclose(found["mean"], fewer.predict_proba(case.new), **EXACT)
        return
    for kind, values in found.items():
        np.testing.assert_allclose(values, fewer.predict(case.new, kind), **EXACT)


def test_every_law_has_a_mean():
    assert {*MEANS, *LOCATION} == set(LAWS)


def test_means_of_linear_functions_are_averaged():
    case = models.expressions()
    predictor = pmt.predictor(case.idata, case.model)
    steps = {name: predictor._about["functions"][name]["of"] for name in predictor.functions}
    program = predictor._about["program"]
    averaged = [name for name, of in steps.items() if commutes_with_mean(program, of)]
    assert averaged == ["f", "g"]
    for name in predictor.functions:
        [ensemble, *_] = [
            node for node in predictor.to_onnx("mean", of=name).graph.node
            if node.op_type == "TreeEnsemble"
        ]  # fmt: skip
        [targets] = [one.i for one in ensemble.attribute if one.name == "n_targets"]
        assert targets == (1 if name in averaged else 2 * models.DRAWS)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 6),
    n_draws=st.integers(1, 3),
    depth=st.integers(0, 6),
    mixed=st.booleans(),
    n_values=st.integers(1, 3),
)
@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
def test_generated_forests(seed, m, n_draws, depth, mixed, n_values):
    """With ties at cuts, sets of no, some and all levels, new levels, and missing cells."""
    *_, packed = forest(seed, m, n_draws, depth, mixed, n_values)
    predictor = predictor_of(packed, mixed)
    rows = frame_of(rows_of(np.random.default_rng(seed + 1), 25, mixed, new=True), mixed)
    given = rows if mixed else {"X": rows.to_numpy()}
    for kinds in ("mean", ("mean", "sd", "quantiles")):
        for kind, values in results(predictor.to_onnx(kinds, quantiles=Q[:1]), given).items():
            expected = predictor.predict(rows, kind, quantiles=Q[:1])
            np.testing.assert_allclose(values, expected, **EXACT)


def test_sets_of_many_levels():
    """Up to the 50 that a set can hold, of which runtimes keep the first in bits."""
    rng, n, n_trees = np.random.default_rng(1), 50, 40
    sets = np.unique(rng.integers(1, 2**50 - 1, n_trees).astype(float))
    sizes, values = np.full(len(sets), 3, np.uint8), rng.normal(size=(2 * len(sets), 1))
    arrays = {
        "sizes": sizes,
        "rules": np.tile([1 + 2, 0, 0], len(sets)).astype(np.uint8),  # column 0 of 1
        "places": np.arange(len(sets), dtype=np.uint8),
        "cuts": sets,
        "values": values,
        "levels": np.array([n]),
    }
    about = {"kind": "constant", "draws": 1, "trees": len(sets), "columns": 1, "outputs": 1}
    packed = PackedForest(arrays, about | {"mixed": True})
    codes = np.append(np.arange(n + 2.0), -(2.0**900)).reshape(-1, 1)
    expected = hard.evaluate(packed, codes)[0]
    graph = Graph(onnx)
    X = Tensor(graph, "X", (1, -1, 1), float)
    made = tree_outputs(packed, X, averaged=False)
    shape = [1, None, 1]
    whole = onnx.helper.make_graph(
        graph.nodes,
        "g",
        [onnx.helper.make_tensor_value_info("X", 11, shape)],
        [onnx.helper.make_tensor_value_info(made.name, 11, shape)],
        initializer=graph.constants,
    )
    versions = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 5)]
    model = onnx.helper.make_model(whole, opset_imports=versions, ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString())
    [found] = session.run(None, {"X": codes[None]})
    np.testing.assert_allclose(found[0], expected, **EXACT)


def test_names_of_columns_are_not_taken():
    """By outputs, nodes and constants of the graph."""
    frame = models.FRAME[["a", "b", "town"]].set_axis(["mean", "c0", "v0_0"], axis=1)
    new = models.new_frame()[["a", "b", "town"]].set_axis(["mean", "c0", "v0_0"], axis=1)
    case = models.forest(frame, new)
    predictor = pmt.predictor(case.idata, case.model)
    made = predictor.to_onnx()
    assert [one.name for one in made.graph.input] == ["X.mean", "c0", "v0_0"]
    found = results(made, new.rename(columns={"mean": "X.mean"}))
    np.testing.assert_allclose(found["mean"], predictor.predict(new), **EXACT)


def test_levels_that_float64_does_not_hold():
    """Keys of the operator would be equal."""
    for levels in ((2**53, 2**53 + 1), (1, 2**60 + 1)):
        with pytest.raises(NotCarriedError, match="levels of id that are no numbers of float64"):
            Inputs.__new__(Inputs)._coded("id", levels, (-1, 1), np.float64, np.nan)


def test_what_is_refused(monkeypatch):
    case = models.soft()
    predictor = pmt.predictor(case.idata, case.model)
    with pytest.raises(ValueError, match="soft trees"):
        predictor.to_onnx()
    case = models.response("normal")
    predictor = pmt.predictor(case.idata, case.model)
    with pytest.raises(ValueError, match="has no new observations"):
        predictor.to_onnx(of="y")
    with pytest.raises(ValueError, match="choose from"):
        predictor.to_onnx("median")
    monkeypatch.setattr("pymc_trees.predictors.elsewhere.onnx_model.MOST_BYTES", 100)
    with pytest.raises(ValueError, match="Give draws="):
        predictor.to_onnx()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pymc_trees\[onnx\]"):
        predictor.to_onnx()
