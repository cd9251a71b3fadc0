"""Levels of new rows are those of training, exactly, or an error that shows both."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.table import schema_of

pytestmark = pytest.mark.usefixtures("quick_compile")
IDS = ["1", "2", "3", "2"]
CITIES = ["Rome", "Oslo", "Bern", "Oslo"]
M = MISSING


def coded(training, new, how=pmt.set_data, **settings):
    """Codes of the first column of new rows."""
    with pm.Model():
        data = pmt.Data("X", training, **settings)
        how({"X": new})
    return data.get_value()[:, 0].tolist()


def table(cells, dtype=None):
    return pd.DataFrame({"id": pd.Series(cells, dtype=dtype), "w": np.arange(float(len(cells)))})


IDS_AS = {
    "text": table(IDS),
    "object": table(IDS, object),
    "category": table(IDS, "category"),
    "polars text": pl.DataFrame({"id": IDS, "w": np.arange(4.0)}),
    "polars category": pl.DataFrame({"id": IDS, "w": np.arange(4.0)}).with_columns(
        pl.col("id").cast(pl.Categorical)
    ),
    "polars enum": pl.DataFrame({"id": IDS, "w": np.arange(4.0)}).with_columns(
        pl.col("id").cast(pl.Enum(["3", "2", "1"]))
    ),
    "array of objects": table(IDS).to_numpy().astype(object),
    "array of text": np.array([[i, "0"] for i in IDS]),
    "list": [[i, 0.5] for i in IDS],
    "int": table([1, 2, 3, 2]),
    "float": table([1.0, 2.0, 3.0, 2.0]),
    "nullable int": table([1, 2, 3, 2], "Int64"),
    "category of int": table([1, 2, 3, 2]).astype({"id": "category"}),
    "object of int": table([1, 2, 3, 2], object),
    "polars int": pl.DataFrame({"id": [1, 2, 3, 2], "w": np.arange(4.0)}),
    "array of int objects": np.array([[1, 0.5], [2, 0.5], [3, 0.5], [2, 0.5]], dtype=object),
}


@pytest.mark.parametrize("how", [pm.set_data, pmt.set_data])
@pytest.mark.parametrize("kind", IDS_AS)
def test_text_ids_in_every_form_have_their_own_codes(kind, how):
    training = table(IDS)
    if kind == "array of text":  # whose second column is text too, and was a number
        training = pd.DataFrame({"id": IDS, "w": ["0", "1", "0", "1"]})
    assert coded(training, IDS_AS[kind], how) == [0.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize(
    "kind",
    ["text", "category", "object", "polars text", "int", "float", "nullable int", "polars int"],
)
def test_numbers_split_by_levels_take_text_of_the_same_numbers(kind):
    training = table([1, 2, 3, 2])
    assert coded(training, IDS_AS[kind], split_rules={"id": "subset"}) == [0.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_cells_in_every_form(missing):
    cells = ["2", missing, "1"]
    for new in (table(cells, object), np.array([[c, 0.5] for c in cells], dtype=object)):
        assert coded(table(IDS), new) == [1.0, M, 0.0]
    assert coded(table(IDS), table(cells, "string")) == [1.0, M, 0.0]
    assert coded(table(IDS), table([2.0, np.nan, 1.0])) == [1.0, M, 0.0]
    assert coded(table(IDS), table([2, missing, 1], object)) == [1.0, M, 0.0]
    masked = np.ma.masked_array(np.array([["2", 0], ["1", 0]], dtype=object), [[0, 0], [1, 0]])
    assert coded(table(IDS), masked) == [1.0, M]


def test_a_level_that_was_not_there_is_missing_without_a_warning():
    assert coded(table(IDS), table(["1", "9"])) == [0.0, M]
    assert coded(table(IDS), table([1, 9])) == [0.0, M]
    assert coded(table([1, 2, 3]), table([1, 9]), split_rules={"id": "onehot"}) == [0.0, M]


def test_bools_are_zero_and_one():
    flags = table([True, False, True])
    assert coded(flags, table([True, None, False], object)) == [1.0, M, 0.0]
    by_sets = {"split_rules": {"id": "subset"}}
    for new in (table([True, False]), table([1, 0]), table([True, False], "category")):
        assert coded(flags, new, **by_sets) == [1.0, 0.0]
        assert coded(table([True, None, False], object), new) == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"levels 0, 1 \(numbers\).*'True'.*\(text"):
        coded(flags, table(["True", "False"]), **by_sets)


REFUSED = {
    "numbers for words": (CITIES, table([0, 1]), r"'Bern', 'Oslo', 'Rome' \(text\).*0, 1 .*int64"),
    "padded": (["01", "02"], table([1, 2]), r"'01', '02' \(text\).*1, 2 \(numbers, int64\)"),
    "one word": (["1", "2", "other"], table([1, 2]), r"'1', '2', 'other' \(text\).*1, 2"),
    "fractions as written": (["1.0", "2.0"], table([1.0, 2.0]), r"'1.0', '2.0'.*float64"),
    "words for numbers": ([1, 2], table(["1", "x"]), r"1, 2 \(numbers\).*'1', 'x' \(text"),
    "blanks for numbers": ([1, 2], table([" 1", "2"]), r"1, 2 \(numbers\).*' 1', '2' \(text"),
    "dates": (CITIES, table(pd.date_range("2020", periods=2)).astype({"id": "category"}), "Timest"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_types_are_refused_showing_both(case):
    training, new, said = REFUSED[case]
    with pytest.raises(ValueError, match=f"X, column 'id', has the training levels.*{said}"):
        coded(table(training), new, split_rules={"id": "subset"})


def test_text_in_a_column_of_numbers_is_refused():
    with pytest.raises(ValueError, match=r"column 'id', was numeric, but now holds '1'"):
        coded(table([1, 2]), table(["1", "2"]))
    assert coded(table([1, 2]), table([2, 1], "category")) == [2.0, 1.0]


@pytest.mark.parametrize("new", [table([" 1", "2 "]), table([7, 8]), table(["x", None])])
def test_a_whole_column_of_unseen_levels_warns(new):
    with pytest.warns(UserWarning, match="X, column 'id': none of .* '1', '2', '3'") as caught:
        assert coded(table(IDS), new) == [M, M]
    assert caught[0].filename == __file__


def test_a_column_of_missing_cells_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert coded(table(IDS), table([None, None], object)) == [M, M]


def test_numbers_of_an_array_are_codes_of_words():
    codes = np.array([[2.0, 0.5], [0.0, 0.5], [np.nan, 0.5], [M, 0.5]])
    assert coded(table(CITIES), codes) == [2.0, 0.0, M, M]
    assert coded(table(CITIES), [[2, 0], [1, 0]]) == [2.0, 1.0]
    words = np.array([["Oslo", 0.5], ["Bern", 0.5]], dtype=object)
    assert coded(table(CITIES), words) == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"column 'id', holds the numbers 3 .*'Bern'.*0 \.\. 2"):
        coded(table(CITIES), np.array([[3.0, 0.5]]))
    with pytest.raises(ValueError, match="the training levels 'Bern'.*object"):
        coded(table(CITIES), np.array([[1, 0.5]], dtype=object))


def test_numbers_of_an_array_are_never_taken_for_codes_of_ids():
    with pytest.raises(ValueError, match="levels that read as numbers.*Give a frame, or an array"):
        coded(table(IDS), np.array([[1.0, 0.5]]))


def test_numbers_of_an_array_are_levels_that_are_numbers():
    new = np.array([[30.0, 0.5], [10.0, 0.5]])
    assert coded(table([10, 20, 30]), new, split_rules={"id": "subset"}) == [2.0, 0.0]
    X = np.array([[10.0], [20.0], [30.0]])
    with pm.Model() as model:  # evaluate reads arrays as set_data does
        pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=1, split_rules="subset")
        forest = model["mu_forest"]
        outputs = [model["mu"], pmt.evaluate(forest, X), pmt.evaluate(forest, X[::-1])]
        levels, again, turned = pm.draw(outputs, 20, random_seed=1)
    assert schema_of(model["mu_X"]).levels == ((10.0, 20.0, 30.0),)
    np.testing.assert_array_equal(levels, again)
    np.testing.assert_array_equal(levels, turned[:, ::-1])
    assert levels.std(axis=1).max() > 0


def test_whole_numbers_that_floats_round_are_refused_as_levels():
    large = [2**53, 2**53 + 1]
    with pytest.raises(ValueError, match="column 'id', is split by levels.*2\\*\\*53.*category"):
        coded(table(large), table(large), split_rules={"id": "subset"})
    assert coded(table(large, "category"), table(large, "category")) == [0.0, 1.0]
    with pytest.raises(ValueError, match="9007199254740992, 9007199254740993"):
        coded(table(large, "category"), table(large))


def test_arrow_columns():
    pa = pytest.importorskip("pyarrow")
    words = table(CITIES)
    for dtype in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        arrow = words.astype({"id": pd.ArrowDtype(dtype), "w": "double[pyarrow]"})
        assert coded(words, arrow) == coded(arrow, words) == [2.0, 1.0, 0.0, 1.0]
    assert coded(table(IDS), table([1, 2, None], "int64[pyarrow]")) == [0.0, 1.0, M]
