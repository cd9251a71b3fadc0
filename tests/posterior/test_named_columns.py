"""Every argument that names columns takes a name, a number, and a list, tuple, array or index."""

from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from support.fitted import draws_of

import pymc_trees as pmt
from pymc_trees.distributions.data.schema import by_index, column_index
from pymc_trees.distributions.data.table import read
from pymc_trees.distributions.soft_bart import check_hard
from pymc_trees.distributions.tree_priors.read import read_split_prior
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.reading.functions import inputs_of

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 16
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(RNG.random((N, 3)), columns=["age", "kind", "dose"])
FRAME["kind"] = np.resize([0.0, 1.0, 2.0, 3.0], N)
QUIET = {"progressbar": False}
WAYS = {
    "name": "kind",
    "text of numpy": np.str_("kind"),
    "number": 1,
    "number of numpy": np.int64(1),
    "array of one number": np.array(1),
    "list": ["kind"],
    "list of a number": [1],
    "tuple": ("kind",),
    "array": np.array(["kind"]),
    "array of numbers": np.array([1]),
    "index": pd.Index(["kind"]),
    "series": pd.Series(["kind"]),
    "range": range(1, 2),
}
SEVERAL = {
    "list": ["kind", "dose"],
    "tuple": ("kind", "dose"),
    "array": np.array(["kind", "dose"]),
    "index": pd.Index(["kind", "dose"]),
    "numbers": np.array([1, 2]),
    "name and number": ["kind", 2],
}


@cache
def fitted():
    with pm.Model() as model:
        mu = pmt.BART("mu", FRAME, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=FRAME.kind.to_numpy(), shape=mu.shape)
        return model, draws_of()


def ask(function, **given):
    model, idata = fitted()
    return getattr(pmt, function)(idata, model, **given, **QUIET)


ASKED = {
    "partial_dependence features": lambda c: ask("partial_dependence", features=c),
    "accumulated_effects feature": lambda c: ask("accumulated_effects", feature=c),
    "comparisons variables": lambda c: ask("comparisons", variables=c),
    "comparisons by": lambda c: ask("comparisons", variables="age", by=c),
    "slopes variables": lambda c: ask("slopes", variables=c),
    "slopes by": lambda c: ask("slopes", variables="age", by=c),
    "predictions by": lambda c: ask("predictions", by=c),
    "interaction_strength features": lambda c: ask("interaction_strength", features=c, cores=1),
}
DRAWN = ["plot_pdp", "plot_ice", "plot_ale"]


@cache
def wanted(case):
    return ASKED[case]("kind")


@pytest.mark.parametrize("case", ASKED)
def test_one_column_in_every_way(case):
    for way, column in WAYS.items():
        found = ASKED[case](column)
        assert found.identical(wanted(case)), way


@pytest.mark.parametrize("function", DRAWN)
def test_pictures_of_one_column_in_every_way(function):
    for way, column in WAYS.items():
        drawn = ask(function, features=column, backend="none")
        assert list(drawn.data.data_vars) == ["kind"], way


@pytest.mark.parametrize("way", SEVERAL)
def test_several_columns_in_every_way(way):
    columns = SEVERAL[way]
    assert list(ask("comparisons", variables=columns)) == ["kind", "dose"]
    assert list(ask("slopes", variables=columns)) == ["kind", "dose"]
    found = ask("interaction_strength", features=columns, cores=1)
    assert found["feature"].to_numpy().tolist() == ["kind", "dose"]
    for function in DRAWN:
        if not isinstance(columns, tuple):
            drawn = ask(function, features=columns, backend="none")
            assert list(drawn.data.data_vars) == ["kind", "dose"]
    if not isinstance(columns, tuple):
        for function, argument in (
            ("partial_dependence", "features"),
            ("accumulated_effects", "feature"),
        ):
            said = rf"{argument}=.*one column at a time, or a pair as a tuple.*\('kind', 'dose'\)"
            with pytest.raises(ValueError, match=said):
                ask(function, **{argument: columns})


def test_a_tuple_of_two_is_a_pair_as_in_scikit_learn():
    for function, argument in (
        ("partial_dependence", "features"),
        ("accumulated_effects", "feature"),
    ):
        pair = ask(function, **{argument: ("kind", "dose")})
        assert {"kind", "dose"} <= set(pair.dims)
        assert ask(function, **{argument: [("kind", "dose")]}).identical(pair)
        assert ask(function, **{argument: [(1, "dose")]}).identical(pair)
        with pytest.raises(ValueError, match="give a pair of columns alone"):
            ask(function, **{argument: ["age", ("kind", "dose")]})
        with pytest.raises(ValueError, match="give different columns"):
            ask(function, **{argument: ("kind", 1)})
    alone = ask("plot_pdp", features=("kind", "dose"), backend="none").data
    assert alone.identical(ask("plot_pdp", features=[("kind", "dose")], backend="none").data)
    for function in ("plot_ale", "plot_ice"):
        with pytest.raises(ValueError, match="a tuple is a pair of columns, which only"):
            ask(function, features=("kind", "dose"), backend="none")


@pytest.mark.parametrize("case", ASKED)
@pytest.mark.parametrize("column", ["kinds", 3, -1, True, 1.0, None, ["kinds"], b"kind"])
def test_what_is_no_column_is_named(case, column):
    if case.endswith(" by") and column in (True, None):
        return  # all rows, or each
    if case.startswith("interaction") and column is None:
        return  # all columns
    with pytest.raises(ValueError, match="is not a column of X"):
        ASKED[case](column)


@pytest.mark.parametrize("case", [case for case in ASKED if not case.endswith(" by")])
def test_no_columns_at_all_are_refused(case):
    with pytest.raises(ValueError, match="is empty: give at least one column"):
        ASKED[case]([])


def test_one_column_where_several_are_given_is_said():
    for case in ("predictions by", "comparisons by", "slopes by"):
        with pytest.raises(ValueError, match=r"\['kind', 'dose'\] are several columns: give one"):
            ASKED[case](["kind", "dose"])


KEYS = ["kind", np.str_("kind"), 1, np.int64(1)]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_of_dicts(key):
    asked = ask("partial_dependence", features=("age", "kind"), grid={key: [0.0, 1.0], 0: 3})
    assert (asked.sizes["kind"], asked.sizes["age"]) == (2, 3)
    inputs = read(FRAME)
    _, weights = read_split_prior({key: 3.0}, inputs.schema.labels)
    np.testing.assert_allclose(weights, np.array([1.0, 3.0, 1.0]) / 5)
    assert read(FRAME, {key: "subset"}).schema.rules[1] == "subset"
    assert read(FRAME.to_numpy(), {1: "subset"}).schema.rules[1] == "subset"
    with pm.Model():
        pmt.BART("f", FRAME, m=2, leaf=pmt.NormalLeaf(0, 1), monotone={key: 1})


@pytest.mark.parametrize("way", WAYS)
def test_columns_of_declarations(way):
    column = WAYS[way]
    schema = read(FRAME).schema
    assert check_hard(column, schema).tolist() == [False, True, False]
    leaf = pmt.LinearLeaf(columns=column).for_inputs(read(FRAME), np.empty(0))
    assert np.flatnonzero(leaf.read[3::4] > 0).tolist() == [1]


def test_numbers_and_words_where_columns_have_no_names():
    assert [column_index(one, [0, 1, 2]) for one in (1, "x1", np.int64(1), np.str_("x1"))] == [
        1
    ] * 4
    assert [column_index(one, [0, 1, 2]) for one in ("1", 3, -1, 1.0, True, None)] == [None] * 6
    assert column_index(0, ["0", "1"]) == 0
    with pytest.raises(
        ValueError, match="1 is the name of a column of X, and also the number of the"
    ):
        column_index(1, ["1", "0"])
    _, weights = read_split_prior({"x2": 2.0, 0: 0.0}, [0, 1, 2])
    np.testing.assert_allclose(weights, np.array([0.0, 1.0, 2.0]) / 3)
    with pytest.raises(ValueError, match=r"split_prior names the columns \['age'\].*\[0, 1, 2\]"):
        read_split_prior({"age": 2.0}, [0, 1, 2])
    with pytest.raises(ValueError, match="names a column twice"):
        by_index("split_prior", {"kind": 1.0, 1: 2.0}, ["age", "kind"])


def test_forests_with_rules_of_their_own_share_inputs():
    with pm.Model():
        X = pmt.Data("X", FRAME, split_rules={"kind": "subset"})
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0, 1))
        g = pmt.BART("g", X, m=2, leaf=pmt.NormalLeaf(0, 1), split_rules={"kind": "onehot"})
    found = evaluations([f + g])
    rows, schema = inputs_of(found, [one.X for one in found], "f + g")
    assert rows.shape == (len(FRAME), 3) and schema.names == tuple(FRAME.columns)
