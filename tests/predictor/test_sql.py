"""Queries in DuckDB and SQLite against the predictor that they were written from."""

import sqlite3
from functools import partial

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import predictor_models as models
from support.generated_forests import NAMES, forest, frame_of, predictor_of, rows_of

import pymc_trees as pmt
from pymc_trees.predictors import program
from pymc_trees.predictors.elsewhere.sql import DIALECTS, Query, Text, Words
from pymc_trees.predictors.special import softmax

duckdb = pytest.importorskip("duckdb")
EXACT = {"rtol": 1e-11, "atol": 1e-12}
TABLE = 'the "table"'


def plain(frame):
    """Cells as SQL has them, None for missing ones."""
    return [
        tuple(None if v is None or v != v else v for v in row)
        for row in frame.astype(object).itertuples(index=False)
    ]


def definitions(frame, number, text):
    """Columns and their types."""
    return ", ".join(
        '"' + name.replace('"', '""') + '" '
        + (text if frame[name].dtype == object or str(frame[name].dtype) == "str" else number)
        for name in frame
    )  # fmt: skip


def run(dialect, query, frame):
    """Rows of the answer, as a frame."""
    is_duck = dialect == "duckdb"
    base = duckdb.connect() if is_duck else sqlite3.connect(":memory:")
    table = '"' + TABLE.replace('"', '""') + '"'
    types = ("DOUBLE", "VARCHAR") if is_duck else ("REAL", "TEXT")
    base.execute(f"CREATE TABLE {table} (id INTEGER, {definitions(frame, *types)})")
    marks = ", ".join("?" * (1 + frame.shape[1]))
    rows = [(k, *row) for k, row in enumerate(plain(frame))]
    base.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    found = base.execute(query)
    names = [one[0] for one in found.description]
    answer = pd.DataFrame(found.fetchall(), columns=names).sort_values("id")
    base.close()
    assert list(answer.columns[1 : 1 + frame.shape[1]]) == list(frame.columns)
    return answer


def answers(dialect, predictor, frame, name="prediction", **settings):
    """(n, ...) numbers of the new columns."""
    query = predictor.to_sql(TABLE, dialect=dialect, name=name, max_bytes=10**8, **settings)
    answer = run(dialect, query, frame)
    new = answer[[column for column in answer if column.startswith(name)]].to_numpy(float)
    return new[:, 0] if list(answer.columns)[-1] == name else new


def frame_for(new):
    """Rows, and data beside them, as one table."""
    if not isinstance(new, dict):
        return new if hasattr(new, "columns") else pd.DataFrame(new, columns=list("abc"))
    parts = [
        frame_for(part) if np.ndim(part) == 2 else pd.DataFrame({name: part})
        for name, part in new.items()
    ]
    return pd.concat(parts, axis=1)


def of_two_columns(**settings):
    """A forest of named numbers."""
    return models.forest(models.FRAME[["a", "b"]], models.new_frame()[["a", "b"]], **settings)


def outputs_with_slopes(columns):
    """Two outputs that share trees, whose leaves have slopes."""
    leaf = pmt.LinearLeaf(0.1, 0.3, columns=columns)
    return models.mixed(leaf=leaf, shape=(2, models.N), separate_trees=False)


NAMED = {
    "numbers": lambda: of_two_columns(),
    "grid": lambda: of_two_columns(n_cuts=5),
    **{name: models.CASES[name] for name in (
        "mixed", "onehot", "decision tree", "slope of the parent", "slopes of the path", "slopes",
        "several inputs", "outputs", "forests of outputs", "counterfactual")},
    **{f"slopes of outputs, {columns}": partial(outputs_with_slopes, columns)
       for columns in ("parent", "path", "all")},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("name", NAMED)
def test_functions(name, dialect):
    case = NAMED[name]()
    predictor, frame = pmt.predictor(case.idata, case.model), frame_for(case.new)
    columns = None if predictor._evaluator.tables[0].schema.names else list("abc")
    for function in predictor.functions:
        if function == "line":
            continue  # a product of missing cells
        found = answers(dialect, predictor, frame, of=function, columns=columns)
        np.testing.assert_allclose(found, predictor.predict(case.new, of=function), **EXACT)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_expressions(dialect):
    case = models.expressions()
    predictor, frame = pmt.predictor(case.idata, case.model), frame_for(case.new)
    frame["group_of"] = np.array(list("abcd"), dtype=object)[frame["group_of"]]
    for function in ("f", "sd", "rate"):
        found = answers(dialect, predictor, frame, of=function, columns=list("abc"), draws=4)
        expected = predictor.thinned(4).predict(case.new, of=function)
        np.testing.assert_allclose(found, expected, **EXACT)
    with pytest.raises(ValueError, match="the operation erfc, which databases lack"):
        predictor.to_sql(TABLE, of="share", columns=list("abc"))


def of_whole_numbers(big=0):
    """Whole numbers and truth values where types matter, and groups called by numbers."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": big + 2 * rng.integers(1, 9, 40), "c": rng.integers(1, 6, 40)})
    X["b"] = rng.random(40) < 0.5
    with pm.Model(coords={"group": [2, 0, 1]}) as model:
        data, g = pmt.Data("X", X), pm.Data("g", np.arange(40) % 3)
        f = pmt.BART("f", data, leaf=models.LEAF, m=4, **models.TREES)
        effect = pm.Normal("effect", 0, 10, dims="group")
        pm.Deterministic("of group", f + effect[g])
        pm.Deterministic("ratio", f + data[:, 0] / data[:, 1])
        pm.Deterministic("below", f * pm.math.lt(data[:, 1], 4))
        pm.Deterministic("unlike", f * pm.math.neq(data[:, 1], data[:, 2]))
        pm.Deterministic("choice", pm.math.switch(pm.math.lt(f, 0), f, 2 * f))
    new = X.sample(12, random_state=1, ignore_index=True).assign(
        a=lambda x: x["a"] + np.arange(12) % 2
    )
    return models.drawn(model, {"X": new, "g": np.arange(12) % 3})


def of_types(dialect, query, frame, types):
    """Numbers of the new column where those of the table have some types."""
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    named = ", ".join(f'"{name}" {types.get(name, "INTEGER")}' for name in frame)
    base.execute(f"CREATE TABLE cells (id INTEGER, {named})")
    rows = [(k, *row) for k, row in enumerate(plain(frame))]
    base.executemany(f"INSERT INTO cells VALUES ({', '.join('?' * len(rows[0]))})", rows)
    found = [row[-1] for row in base.execute(query + " ORDER BY id").fetchall()]
    base.close()
    return np.array(found, dtype=float)


TYPES = [
    {"b": "BOOLEAN"},
    {"a": "BIGINT", "c": "SMALLINT", "b": "BOOLEAN", "g": "BIGINT"},
    {"a": "DOUBLE", "c": "FLOAT", "b": "FLOAT", "g": "FLOAT"},
]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_types_of_columns(dialect):
    """A number is a number, and a group is its code: whole numbers are not divided as such."""
    case = of_whole_numbers()
    predictor, frame = pmt.predictor(case.idata, case.model), frame_for(case.new)
    for function in predictor.functions:
        query = predictor.to_sql("cells", dialect=dialect, of=function)
        for types in TYPES:
            found = of_types(dialect, query, frame, types)
            np.testing.assert_allclose(found, predictor.predict(case.new, of=function), **EXACT)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_large_whole_numbers_are_rounded_as_elsewhere(dialect):
    case = of_whole_numbers(big=2**53)
    predictor, frame = pmt.predictor(case.idata, case.model), frame_for(case.new)
    query = predictor.to_sql("cells", dialect=dialect, of="f")
    found = of_types(dialect, query, frame, {"a": "BIGINT"})
    np.testing.assert_allclose(found, predictor.predict(case.new, of="f"), **EXACT)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_operations_where_powers_are_too_large_or_small(dialect):
    """Softplus and softmax at +-1000, and numbers near 0 that 1 would swallow."""
    some = [-1000.0, -1.0, -0.6, -1e-9, 0.0, 1e-9, 1e-3, 0.6, 3.0, 1000.0]
    words = Words(DIALECTS[dialect])
    cells = np.array([Text(f"({value!r})") for value in some], dtype=object)
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    for name in ("softplus", "sigmoid", "log1p", "expm1"):
        inside = np.array(some) > -1 if name == "log1p" else np.isfinite(some)
        written = ", ".join(words.apply(name, [cells[inside]]))
        found = base.execute(f"SELECT {written}").fetchone()
        with np.errstate(over="ignore"):
            expected = program.ELEMENTWISE[name](np.array(some)[inside])
        np.testing.assert_allclose(np.array(found, float), expected, rtol=1e-14, atol=1e-16)
    query = Query.__new__(Query)
    query._words = words
    x = np.array([[-1000.0, 3.0, 1000.0, 1000.5], [-1e3, -1e3, -1e3, -1e3]]).T[None]
    texts = np.frompyfunc(lambda value: Text(f"({value!r})"), 1, 1)(x)
    found = base.execute(f"SELECT {', '.join(query._softmax(texts, 1).reshape(-1))}").fetchone()
    base.close()
    np.testing.assert_allclose(np.reshape(found, x.shape), softmax(x, 1), rtol=1e-14, atol=1e-300)


LAWS = [law for law in models.LAWS if not law.startswith(("ordered", "bernoulli"))]
LAWS += ["bernoulli of a logit"]


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("law", LAWS)
def test_means_of_responses(law, dialect):
    case = models.response(law)
    predictor, frame = pmt.predictor(case.idata, case.model), frame_for(case.new)
    found = answers(dialect, predictor, frame, columns=list("abc"))
    wanted = predictor.predict_proba if law == "categorical" else predictor.predict
    np.testing.assert_allclose(found, wanted(case.new), **EXACT)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 6),
    n_draws=st.integers(1, 3),
    depth=st.integers(0, 6),
    mixed=st.booleans(),
    n_values=st.integers(1, 3),
    dialect=st.sampled_from(["duckdb", "sqlite"]),
)
@pytest.mark.filterwarnings("ignore:.*none of the new values:UserWarning")
def test_generated_forests(seed, m, n_draws, depth, mixed, n_values, dialect):
    """Ties at cuts, sets of levels, new levels, quotes in names and levels, and missing cells."""
    *_, packed = forest(seed, m, n_draws, depth, mixed, n_values)
    predictor = predictor_of(packed, mixed)
    rows = frame_of(rows_of(np.random.default_rng(seed + 1), 25, mixed, new=True), mixed)
    found = answers(dialect, predictor, rows).reshape(25, n_values)
    np.testing.assert_allclose(found, predictor.predict(rows), **EXACT)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_cuts_are_read_to_the_last_bit(dialect):
    rng = np.random.default_rng(1)
    some = [*rng.random(300), *(10.0 ** rng.uniform(-15, 15, 300)), *rng.normal(size=300).round(3)]
    some += [0.0, -0.5, 1e-300, 5e17, 2.0**60, 0.1, 1 / 3, 123456789012345.0, 41.72022493488436]
    words = ", ".join(DIALECTS[dialect].cut(value) for value in some)
    base = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    read = [float(value) for value in base.execute(f"SELECT {words}").fetchone()]
    base.close()
    assert read == [float(value) for value in some]


def test_nan_is_a_missing_cell():
    *_, packed = forest(4, 5, 2, 4, True, 1)
    predictor = predictor_of(packed, True)
    rows = frame_of(rows_of(np.random.default_rng(1), 200, True, new=True), True)
    base = duckdb.connect()
    query = predictor.to_sql("rows", max_bytes=10**8)
    base.register("rows", rows.assign(id=np.arange(200)))
    base.execute("CREATE TABLE kept AS SELECT * FROM rows")
    base.execute("""UPDATE kept SET "a" = 'NaN'::DOUBLE WHERE "a" IS NULL""")
    [many] = base.execute("""SELECT count(*) FROM kept WHERE isnan("a")""").fetchone()
    found = base.execute(query.replace('"rows"', '"kept"') + " ORDER BY id").fetchdf()
    base.close()
    assert many > 5
    np.testing.assert_allclose(found["prediction_0"], predictor.predict(rows)[:, 0], **EXACT)


def test_postgres_is_written_like_the_others():
    """No server runs it: what it shares with DuckDB is compared."""
    *_, packed = forest(4, 5, 2, 4, True, 1)
    predictor = predictor_of(packed, True)
    query = predictor.to_sql(("main", "rows"), dialect="postgres")
    assert query.endswith('FROM "main"."rows" AS t')
    shared = query.replace("float8", "DOUBLE")
    assert shared == predictor.to_sql(("main", "rows"))


def test_what_is_refused():
    *_, packed = forest(4, 5, 8, 4, True, 1)
    predictor = predictor_of(packed, True, n_chains=2)
    size = len(predictor.to_sql(TABLE).encode())
    with pytest.raises(ValueError, match=r"Give draws=\d") as error:
        predictor.to_sql(TABLE, max_bytes=size // 2)
    draws = int(str(error.value).split("draws=")[1].split(",")[0])
    predictor.to_sql(TABLE, max_bytes=size // 2, draws=draws)
    with pytest.raises(ValueError, match="dialect='oracle'"):
        predictor.to_sql(TABLE, dialect="oracle")
    with pytest.raises(ValueError, match="columns="):
        predictor.to_sql(TABLE, columns=["a"])
    with pytest.raises(ValueError, match="name='a'"):
        predictor.to_sql(TABLE, name=NAMES[0])
    unnamed = models.forest()
    with pytest.raises(ValueError, match="have no names. Give columns="):
        pmt.predictor(unnamed.idata, unnamed.model).to_sql(TABLE)
    soft = models.soft()
    with pytest.raises(ValueError, match="soft trees"):
        pmt.predictor(soft.idata, soft.model).to_sql(TABLE, columns=list("abc"))
