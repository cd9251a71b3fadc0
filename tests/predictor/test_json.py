"""A reader of 40 lines that knows JSON alone against the predictor that wrote it."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import predictor_models as models
from support.generated_forests import forest, frame_of, predictor_of, rows_of

import pymc_trees as pmt


def outputs_with_slopes(columns):
    """Two outputs that share trees, whose leaves have slopes."""
    leaf = pmt.LinearLeaf(0.1, 0.3, columns=columns)
    return models.mixed(leaf=leaf, shape=(2, models.N), separate_trees=False)


EXACT = {"rtol": 1e-12, "atol": 1e-12}
MORE = ("expressions", "counterfactual", "basis with covariances")
"""Expressions with operations that the reader does not have."""
CASES = {
    **{k: v for k, v in models.CASES.items() if k not in MORE},
    "lognormal": lambda: models.response("lognormal"),
    **{f"slopes of outputs, {columns}": partial(outputs_with_slopes, columns)
       for columns in ("parent", "path", "all")},
}  # fmt: skip


# ------------------------------------------------------------------------------------- the reader


def codes(table, row):
    """Cells of a dict, or of a list without names, as numbers and codes; None if missing."""
    cells = [row[c["name"] or k] for k, c in enumerate(table["columns"])]
    levels = [c["levels"] for c in table["columns"]]
    known = [c is not None and (e is None or c in e) for c, e in zip(cells, levels, strict=True)]
    found = zip(cells, levels, known, strict=True)
    return [(c if e is None else e.index(c)) if is_known else None for c, e, is_known in found]


def tree(forest, node, x):
    """Value of the leaf of a row."""
    nodes = forest["nodes"]
    while (j := nodes["column"][node]) >= 0:
        cell, members = x[j], nodes["set"][node]
        if cell is None or (members is not None and cell >= forest["known_levels"][j]):
            left = nodes["missing_left"][node]
        else:
            left = cell <= nodes["cut"][node] if members is None else cell in members
        node = node + 1 if left else nodes["right"][node]
    value, slopes = nodes["value"][node], forest.get("slopes")
    if not slopes:
        return value
    n = forest["outputs"]
    total = value[:n]
    for k, j in enumerate(slopes["columns"]):
        if x[j] is not None:
            low, high = (slopes["low"][k], slopes["high"][k]) if slopes["clipped"] else (x[j],) * 2
            z = (min(max(x[j], low), high) - slopes["mean"][k]) / slopes["sd"][k]
            total = [v + z * s for v, s in zip(total, value[n * (k + 1) :])]
    return total


def soft_tree(forest, t, node, x, weight=1.0):
    """Value of a soft tree, and the node behind it."""
    j, value = forest["nodes"]["column"][node], forest["nodes"]["value"][node]
    if j < 0:
        return weight * value[0]
    gap = (x[j] - forest["nodes"]["cut"][node]) / forest["bandwidths"][t]
    left = float(gap <= 0) if forest["map"][j]["hard"] else 1 / (1 + math.exp(min(gap, 700)))
    right = forest["nodes"]["right"][node]
    return soft_tree(forest, t, node + 1, x, weight * left) + soft_tree(
        forest, t, right, x, weight * (1 - left)
    )


def outputs(forest, x, draw):
    """Of a forest in a draw."""
    trees = range(draw * forest["trees"], (draw + 1) * forest["trees"])
    if forest["kind"] == "soft":
        unit = [np.interp(c, f["knots"], f["heights"]) for c, f in zip(x, forest["map"])]
        return [sum(soft_tree(forest, t, forest["roots"][t], unit) for t in trees)]
    return [sum(v) for v in zip(*(tree(forest, forest["roots"][t], x) for t in trees))]


OPS = {"add": lambda *of: sum(of), "mul": lambda *of: math.prod(of), "exp": math.exp}
OPS |= {"pow": lambda x, y: x**y, "true_div": lambda x, y: x / y}


def value(model, number, row, draw):
    """Of an instruction, a number or a list of them."""
    step = model["program"][number]
    of = [value(model, k, row, draw) for k in step["of"]]
    if step["op"] == "rows":
        table = model["tables"][step["table"]]
        return codes(table, row.get(table["name"], row) if isinstance(row, dict) else row)
    if step["op"] == "forest":
        return outputs(model["forests"][step["forest"]], of[0], draw)
    if step["op"] == "pick":  # an entry of the last axis
        return of[0][step["index"][-1]]
    if step["op"] in ("draws", "constant"):
        return step["value"][draw] if step["op"] == "draws" else step["value"]
    if step["op"] in ("order", "identity"):
        return of[0]
    if step["op"] == "join":
        return [v for one in of for v in (one if isinstance(one, list) else [one])]
    return OPS[step["op"]](*of)


# -------------------------------------------------------------------------------------------------


def read(text, name, rows):
    """(draws, n, ...) values of a function."""
    model = json.loads(text)
    assert (model["format"], model["version"]) == ("pymc_trees predictor", 1)
    of, n_draws = model["functions"][name]["of"], model["chains"] * model["draws"]
    return np.array([[value(model, of, row, d) for row in rows] for d in range(n_draws)])


def records(new):
    """Rows as JSON has them."""
    if isinstance(new, dict):
        parts = {name: records(part) for name, part in new.items()}
        n = len(next(iter(parts.values())))
        return [{name: part[i] for name, part in parts.items()} for i in range(n)]
    if hasattr(new, "columns"):
        return new.astype(object).where(new.notna(), None).to_dict("records")
    cells = np.asarray(new, dtype=object)
    return [[None if c != c else c for c in row] if np.ndim(row) else row for row in cells.tolist()]


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_reader_of_json(name):
    case = CASES[name]()
    predictor = pmt.predictor(case.idata, case.model)
    for function in predictor.functions:
        if name.startswith("basis") and function == "f":
            continue  # a product of vectors, which the reader does not have
        found = read(predictor.to_json(), function, records(case.new))
        [expected] = zip(*predictor.blocks(case.new, [function]), strict=True)
        expected = np.concatenate(expected, axis=1)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, **EXACT)


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
    *_, packed = forest(seed, m, n_draws, depth, mixed, n_values)
    predictor = predictor_of(packed, mixed)
    rows = frame_of(rows_of(np.random.default_rng(seed + 1), 25, mixed, new=True), mixed)
    found = read(predictor.to_json(), "f", records(rows))
    [[expected]] = predictor.blocks(rows, ["f"])
    np.testing.assert_allclose(found, expected, **EXACT)


def test_it_holds_what_the_predictor_holds():
    case = models.expressions()
    predictor = pmt.predictor(case.idata, case.model)
    read = json.loads(predictor.to_json(draws=4))
    assert read["draws"] == 2 and read["chains"] == 2
    fewer = predictor.thinned(4)
    for name, drawn in fewer.parameters.items():
        assert read["parameters"][name] == drawn.reshape(4, *drawn.shape[2:]).tolist()
    assert [one["name"] for one in read["data"]] == ["group_of", "exposure"]
    assert read["response"]["law"] == "normal"
    assert set(read["functions"]) == set(predictor.functions)


def test_numbers_that_json_does_not_have():
    from pymc_trees.predictors.elsewhere.methods import plain

    found = plain(np.array([[1.5, np.inf], [-np.inf, np.nan]]))
    assert found == [[1.5, "Infinity"], ["-Infinity", "NaN"]]
