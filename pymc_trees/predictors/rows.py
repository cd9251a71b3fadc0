"""Rows of a table whose training rows had a schema, as one matrix of numbers. Needs numpy alone.

Levels become codes 0, 1, .. and missing cells the number `MISSING`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.predictors.columns import (
    CellsOfColumn,
    Column,
    Schema,
    check_finite,
    check_held,
    codes_of,
    column_names,
    columns_of,
    columns_of_objects,
    decoded,
    is_lazy,
    is_masked,
    matrix_of_reals,
)


def encode_held(X: Any, schema: Schema, name: str = "X") -> np.ndarray:
    """(n, p) matrix of other rows that are held in memory."""
    if not is_lazy(X):
        check_held(X, name)
    X = in_order(X, schema.names, name)
    columns = None
    if column_names(X):
        columns = columns_of(X, name)
    elif (objects := _objects(X)) is not None:
        columns = columns_of_objects(objects, name)
    if columns is None:
        return encode_matrix(checked(matrix_of_reals(X, name), name), schema, name)
    _check_width(len(columns), schema, name)
    return matrix_of(columns, schema, name)


def encode_partly(
    X: Any, schema: Schema, n_random: int, name: str = "X", encode: Callable = encode_held
) -> np.ndarray:
    """The same of rows that may lack the last columns, which are random: missing cells.

    ``encode`` reads rows with all columns of a schema.
    """
    if not n_random:
        return encode(X, schema, name)
    first = len(schema.rules) - n_random
    names, own = column_names(X), schema.names or ()
    if names is None:
        if len(np.shape(X)) != 2 or np.shape(X)[1] != first:
            return encode(X, schema, name)
        constant = Schema(None, schema.rules[:first], schema.levels[:first], schema.complete)
        return _with_missing(encode(X, constant, name), n_random)
    if all(one in names for one in own[first:]):
        return encode(X, schema, name)
    constant = Schema(own[:first], schema.rules[:first], schema.levels[:first], schema.complete)
    known = frame_of(X, [one for one in names if one not in own[first:]])
    rows = _with_missing(encode(known, constant, name), n_random)
    for j, one in enumerate(own[first:], start=first):
        if one in names:
            [rows[:, j]] = encode(frame_of(X, [one]), Schema.of_numbers(1, (one,)), name).T
    return rows


def _with_missing(rows, n: int) -> np.ndarray:
    return np.column_stack([np.asarray(rows), np.full((len(rows), n), MISSING)])


def frame_of(X: Any, names: list[str]) -> Any:
    """A frame with some of its columns."""
    if is_lazy(X):
        return X.select(names)
    which = [list(column_names(X) or ()).index(one) for one in names]
    return X.iloc[:, which] if hasattr(X, "iloc") else X[:, which]


def encode_matrix(matrix: np.ndarray, schema: Schema, name: str) -> np.ndarray:
    """The same of a matrix of numbers, `MISSING` for NaN: codes of levels, or levels."""
    _check_width(matrix.shape[1], schema, name)
    if not schema.are_levels.any():
        return matrix
    columns = columns_of_matrix(matrix)
    for j, levels in enumerate(schema.levels):
        if levels is not None:
            columns[j] = decoded(columns[j].cells, levels, f"{name}, column {schema.label(j)},")
    return matrix_of(columns, schema, name)


def _check_width(p, schema, name):
    if p != len(schema.rules):
        raise ValueError(
            f"{name} has {p} columns, but the model was declared with {len(schema.rules)}: give "
            "it the same columns in the same order."
        )


def check_repeated(names, name):
    """Raise an error where a frame has two columns of one name."""
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"{name} has repeated column names: rename them.")


def in_order(X, names, name):
    """A frame with its columns in the order of the training frame."""
    new = column_names(X)
    if names is None or new is None or new == names:
        return X
    check_repeated(new, name)
    missing = [c for c in names if c not in new]
    unknown = [c for c in new if c not in names]
    if missing or unknown:
        raise ValueError(
            f"{name}: the new frame lacks the columns {missing} and has the unknown columns "
            f"{unknown}. Give a frame with the columns of the training frame."
        )
    order = [new.index(c) for c in names]
    if is_lazy(X):
        return X.select(list(names))
    return X.iloc[:, order] if hasattr(X, "iloc") else X[:, order]


def columns_of_matrix(values: np.ndarray) -> list[Column]:
    """Columns of a matrix, NaN for `MISSING`."""
    return [Column(np.where(x == MISSING, np.nan, x), False) for x in values.T]


def _objects(X) -> np.ndarray | None:
    """Two-dimensional array of text or objects; None for one of numbers, or what is no array."""
    try:
        values = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError:  # lists of different lengths
        return None
    if values.dtype.kind not in "OUT" or values.ndim != 2:
        return None
    return values if isinstance(X, np.ndarray) else np.array(X, dtype=object)


def matrix_of(columns: list[Column], schema: Schema, name: str) -> np.ndarray:
    """Matrix of columns whose levels are known."""
    values = np.empty((len(columns[0].cells), len(columns)))
    for j, column in enumerate(columns):
        label, levels = f"{name}, column {schema.label(j)},", schema.levels[j]
        cells = column.numbers() if levels is None else codes_of(column, levels, label)
        if cells is None:
            raise ValueError(
                f"{label} was numeric, but now holds {column.present()[0]!r}: give numbers there, "
                "or declare the model with its levels, by a frame in pymc_trees.Data or BART."
            )
        values[:, j] = cells
    return checked(values, name, schema.names)


def checked(values, name, names=None) -> np.ndarray:
    """A matrix, `MISSING` for NaN, or an error where it is none, or is not finite."""
    if values.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows, columns), but has shape {values.shape}. "
            "For a single column use X.reshape(-1, 1), for a single row X.reshape(1, -1)."
        )
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one.")
    if not np.isfinite(values).all():
        check_finite(values, name, names)
        values[np.isnan(values)] = MISSING
    return values


# ------------------------------------------------------- Rows as JSON has them: records, or columns


class Records:
    """Rows by the names of their cells, as far as a frame is asked.

    Parameters
    ----------
    columns : mapping of str and sequence of cells
        Cells of each column.
    """

    def __init__(self, columns: Mapping[str, Any]):
        self.columns, self._cells = list(columns), columns

    def __getitem__(self, where):
        """A column, or some of them."""
        _, which = where
        if isinstance(which, list):
            return Records({self.columns[j]: self._cells[self.columns[j]] for j in which})
        return CellsOfColumn(np.array([*self._cells[self.columns[which]], None], dtype=object)[:-1])


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Raise an error unless all have as many rows."""
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"X: the new rows have different numbers, {dict(lengths)}: give one entry for each row."
        )


def check_some(n: int, name: str) -> None:
    """Raise an error where there are no rows."""
    if n == 0:
        raise ValueError(f"{name} is evaluated at no rows: give {name} at least one row.")


def _cells(given: Any) -> np.ndarray:
    """(n,) cells of a column, None where it is masked; dates stay dates, and are refused."""
    cells = np.array(given, object)
    if isinstance(given, np.ndarray) and given.dtype.kind in "mM":
        cells = np.empty(given.shape, object)
        cells.reshape(-1)[:] = list(np.asarray(given).reshape(-1))
    if is_masked(given):
        cells[np.ma.getmaskarray(given)] = None
    return np.atleast_1d(cells)


def as_table(X: Any) -> Any:
    """Records and columns by name as `encode_held` takes them; anything else as it is."""
    if isinstance(X, Mapping):
        columns = {str(name): _cells(c) for name, c in X.items()}
        lengths = {name: len(cells) for name, cells in columns.items()}
        n = max(lengths.values(), default=0)
        check_lengths({name: k for name, k in lengths.items() if k != 1 or 0 in lengths.values()})
        return Records({name: np.resize(cells, n) for name, cells in columns.items()})
    is_list = isinstance(X, list | tuple) and len(X) > 0
    if is_list and all(isinstance(row, Mapping) for row in X):
        names = dict.fromkeys(str(name) for row in X for name in row)
        return Records({name: [row.get(name) for row in X] for name in names})
    return X


# --------------- Rows as users give them, as the tables of a predictor and the numbers beside these


class Table(NamedTuple):
    """Inputs of forests."""

    name: str
    schema: Schema
    n_random: int = 0
    """Columns that are random variables, the last ones: they may be left out."""


class Data(NamedTuple):
    """Numbers beside them, with an entry for each row."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    """Lengths of the axes, -1 for that of the rows."""
    levels: tuple | None
    """What the numbers stand for, by code."""

    @property
    def is_named(self) -> bool:
        """Whether cells are the names of groups in other runtimes; numbers are codes."""
        return self.levels is not None and all(isinstance(one, str) for one in self.levels)


def read_rows(
    X, tables: Sequence[Table], data: Sequence[Data]
) -> tuple[list[np.ndarray], list[np.ndarray], int]:
    """Matrices of the tables, and data beside them with an axis for the draws."""
    names = [*(t.name for t in tables), *(d.name for d in data)]
    by_name = isinstance(X, Mapping) and bool(set(X) & {*names, "X"})
    by_name = by_name and not set(X) <= set(tables[0].schema.names or ())
    given = dict(X) if by_name else {tables[0].name: X}
    if "X" in given and len(tables) == 1:
        given[tables[0].name] = given.pop("X")
    if lacking := [name for name in names if name not in given]:
        raise ValueError(
            f"X lacks {lacking}: give a dict with an entry for each of {names}, as in "
            f"X={{{names[0]!r}: ..., {lacking[0]!r}: ...}}."
        )
    if unknown := [name for name in given if name not in names]:
        raise ValueError(f"X has {unknown}, which the model does not: give {names}.")
    matrices = [
        encode_partly(as_table(given[t.name]), t.schema, t.n_random, t.name) for t in tables
    ]
    numbers = [_beside(given[d.name], d, len(matrices[0])) for d in data]
    lengths = {t.name: len(x) for t, x in zip(tables, matrices, strict=True)}
    for d, x in zip(data, numbers, strict=True):
        lengths[d.name] = x.shape[1 + d.shape.index(-1)]
    check_lengths(lengths)
    n = next(iter(lengths.values()))
    check_some(n, names[0])
    return matrices, numbers, n


def _beside(given, data: Data, n: int) -> np.ndarray:
    """Numbers beside X, with a first axis for the draws; a single one for all n rows."""
    if is_masked(given):
        given = given.astype(float if given.dtype.kind in "biuf" else object).filled(np.nan)
    if data.levels is not None and np.asarray(given).dtype.kind in "OUT":
        schema = Schema(None, ("subset",), (data.levels,), True)
        given = encode_held(np.asarray(given, dtype=object).reshape(-1, 1), schema, data.name)[:, 0]
    values = np.asarray(given)
    if values.ndim == 0:
        values = np.full([n if k < 0 else k for k in data.shape], values)
    fits = values.ndim == len(data.shape) and all(
        k in (-1, size) for k, size in zip(data.shape, values.shape, strict=True)
    )
    if not fits or values.dtype.kind not in "biuf":
        wanted = tuple("rows" if k < 0 else k for k in data.shape)
        raise ValueError(
            f"{data.name} has the shape {values.shape} and the type {values.dtype}: give numbers "
            f"of shape {wanted}."
        )
    with np.errstate(invalid="ignore"):  # refused below
        kept = values.astype(data.dtype)
    if not np.isfinite(values).all() or (kept != values).any() and kept.dtype.kind in "biu":
        raise ValueError(
            f"{data.name} is {data.dtype} in the model, which cannot hold what it is given: give "
            "whole, finite numbers of groups or counts, or the names of groups."
        )
    return kept[None]
