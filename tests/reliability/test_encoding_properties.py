"""Columns in, codes out, whatever the cells and whatever they come in."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
from hypothesis import given
from hypothesis import strategies as st

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.table import encode, read, schema_of
from pymc_trees.distributions.forest_inputs import forest_inputs

WORDS = st.text("ab 01", max_size=3)
NUMBERS = st.floats(-1e6, 1e6)
NAMES = ["word", "id", "x", "flag"]
RULES = {"id": "subset"}


@st.composite
def tables(draw):
    """Cells of four columns, None for missing ones, where every column has a present cell."""
    n = draw(st.integers(2, 8))

    def column(cells):
        found = draw(st.lists(st.none() | cells, min_size=n, max_size=n))
        return [draw(cells), *found[1:]]

    kinds = [WORDS, st.integers(-9, 9), NUMBERS, st.booleans()]
    return dict(zip(NAMES, map(column, kinds), strict=True))


def pandas_of(table, word="object", number="Int64", real="Float64", flag="boolean"):
    dtypes = dict(zip(NAMES, [word, number, real, flag], strict=True))
    return pd.DataFrame({k: pd.Series(v, dtype=dtypes[k]) for k, v in table.items()})


def polars_of(table, word=pl.String):
    dtypes = dict(zip(NAMES, [word, pl.Int32, pl.Float64, pl.Boolean], strict=True))
    return pl.DataFrame(table, schema=dtypes)


def forms_of(table):
    """The table in the forms users have it in."""
    words = [w for w in dict.fromkeys(table["word"]) if w is not None]
    yield pandas_of(table, "category", "float64", "object")
    yield pandas_of(table, "string", "object", "float64")
    yield polars_of(table)
    yield polars_of(table, pl.Categorical)
    yield polars_of(table, pl.Enum(words[::-1]))


def encoded(X):
    table = read(X, RULES if hasattr(X, "columns") else None)
    return table.values, table.schema


def assert_same_bits(a, b):
    assert a.shape == b.shape and a.tobytes() == b.tobytes()


@given(tables())
def test_every_form_of_a_table_gives_the_same_matrix(table):
    matrix, schema = encoded(pandas_of(table))
    for form in forms_of(table):
        other, its_schema = encoded(form)
        assert_same_bits(matrix, other)
        assert its_schema == schema
        assert_same_bits(matrix, encode(form, schema))
    cells = np.array([table[k] for k in NAMES], dtype=object).T
    assert_same_bits(matrix, encode(cells, schema))


@given(tables())
def test_cells_have_equal_codes_when_they_are_equal(table):
    matrix, schema = encoded(pandas_of(table))
    for j, name in enumerate(NAMES):
        for cell, code in zip(table[name], matrix[:, j].tolist(), strict=True):
            assert (cell is None) == (code == MISSING)
            if cell is not None:
                levels = schema.levels[j]
                assert cell == (code if levels is None else levels[int(code)])
    assert [levels is not None for levels in schema.levels] == [True, True, False, False]


@given(tables(), st.permutations(NAMES), st.data())
def test_the_order_of_columns_and_rows_of_new_frames(table, order, data):
    matrix, schema = encoded(pandas_of(table))
    rows = data.draw(st.lists(st.integers(0, len(matrix) - 1), min_size=1))
    new = pandas_of(table)[order].iloc[rows]
    assert_same_bits(encode(new, schema), matrix[rows])
    new = polars_of(table)[rows].select(order)
    assert_same_bits(encode(new, schema), matrix[rows])


@given(tables(), tables())
def test_set_data_leaves_the_training_rows_alone(table, other):
    """Levels that training had not are missing; the training frame has its matrix back, always."""
    frame = pandas_of(table)
    with pm.Model() as model:
        pmt.BART("mu", frame, leaf=pmt.NormalLeaf(0, 1), m=1, split_rules=RULES, max_nodes=15)
        data, forest = model["mu_X"], model["mu_forest"]
        training, schema = data.get_value(), schema_of(data)
        design = [v.data.copy() for v in forest_inputs(forest).design]
        new = pandas_of(other)
        for name in ("word", "id"):  # one level that training had: no warning
            new[name] = [table[name][0], *new[name].tolist()[1:]]
        pmt.set_data({"mu_X": new})
        found = data.get_value()
        assert found.shape == (len(new), 4) and not np.isnan(found).any()
        for j in (0, 1):
            for cell, code in zip(new.iloc[:, j].tolist(), found[:, j].tolist(), strict=True):
                known = not pd.isna(cell) and cell in schema.levels[j]
                assert code == (schema.levels[j].index(cell) if known else MISSING)
        for _ in range(2):
            pmt.set_data({"mu_X": pandas_of(table)})
            assert_same_bits(data.get_value(), training)
        assert all((v.data == kept).all() for v, kept in zip(forest_inputs(forest).design, design))
        assert schema_of(data) is schema
