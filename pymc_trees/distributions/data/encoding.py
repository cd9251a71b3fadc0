"""Arrays and frames in, float64 matrices out.

Levels become codes 0, 1, .. and missing cells the number `MISSING`: PyMC's data hold no NaN.
"""

import tempfile
from typing import Any

import numpy as np

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.core.columns.table_file import BLOCK_BYTES, FileTable, in_file, write_table
from pymc_trees.distributions.data.levels import (
    Column,
    codes_of,
    column_names,
    columns_of,
    columns_of_objects,
    levels_at,
)
from pymc_trees.distributions.data.numbers import check_finite, check_held, is_lazy, matrix_of_reals
from pymc_trees.distributions.data.schema import CONTINUOUS, Schema, check_rules, read_schema

# --------- Large tables of numbers that are not float64 in memory, read by rows and kept in a file
#
# So a file is never in memory as a whole, and numbers of four bytes do not come to take eight
# there.


LARGE = 2**28
"""Bytes as float64 beyond which a table is kept in a file."""


def is_large(X: Any) -> bool:
    """Whether X is such a table: an array, what has rows like one, or a lazy frame."""
    if is_lazy(X):
        return True
    shape, kind = getattr(X, "shape", None), getattr(getattr(X, "dtype", None), "kind", "O")
    if not isinstance(shape, tuple) or len(shape) != 2 or kind not in "biuf":
        return False
    if in_file(X):
        return True
    if np.ma.isMaskedArray(X) or not hasattr(X, "__getitem__"):
        return False
    in_memory = isinstance(X, np.ndarray) and not _in_a_map(X)
    return 8 * shape[0] * shape[1] > LARGE and not (in_memory and X.dtype == np.float64)


def _in_a_map(X) -> bool:
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def large_table(X: Any, name: str) -> FileTable:
    """Such a table in a file, `MISSING` for NaN, or an error that names it."""
    if in_file(X):
        return X
    names = tuple(X.collect_schema().names()) if is_lazy(X) else None
    p = X.shape[1] if names is None else len(names)
    if p == 0:
        raise ValueError(f"{name} has no columns: give at least one.")

    def encoded():
        for part in _parts(X, max(1, BLOCK_BYTES // (8 * p))):
            block = matrix_of_reals(part, name)
            check_finite(block, name, names)
            block[np.isnan(block)] = MISSING
            yield block

    try:
        return write_table(p, encoded())
    except OSError as error:
        raise OSError(
            f"{name} could not be kept as float64 in a file in {tempfile.gettempdir()} ({error}). "
            "Free disk space, set the environment variable TMPDIR to another folder, or give "
            f"{name} as a float64 array in memory."
        ) from error


def _parts(X, step: int):
    """Blocks of so many rows."""
    if is_lazy(X):
        yield from X.collect_batches(chunk_size=step)
    else:
        for start in range(0, X.shape[0], step):
            yield X[start : min(start + step, X.shape[0])]


# --------------------------------------------------------------------------------------------------


def encode_training(X: Any, name: str, split_rules=None) -> tuple[np.ndarray, Schema]:
    """Float64 matrix of training inputs, and their schema."""
    _check_rows(X, name)
    names = column_names(X)
    _check_repeated(names, name)
    columns = columns_of(X, name) if names and not is_large(X) else None
    if columns is None:
        values = as_matrix(X, name)
        p = values.shape[1]
        rules = check_rules(split_rules, names, p)
        if set(rules) <= {None, CONTINUOUS}:  # a large array is not copied again
            return values, Schema(names, (CONTINUOUS,) * p, (None,) * p)
        columns = _columns_of_matrix(values)
    rules = check_rules(split_rules, names, len(columns))
    schema = read_schema(columns, names, rules, name)
    return _matrix(columns, schema, name), schema


def _matrix(columns: list[Column], schema: Schema, name: str) -> np.ndarray:
    """Matrix of columns whose levels are known."""
    values = np.empty((len(columns[0].cells), len(columns)))
    for j, column in enumerate(columns):
        label, levels = f"{name}, column {schema.label(j)},", schema.levels[j]
        coded = column.numbers() if levels is None else codes_of(column, levels, label)
        if coded is None:
            raise ValueError(f"{label} was numeric, but now holds {column.present()[0]!r}.")
        values[:, j] = coded
    return _checked(values, name, schema.names)


def encode_new(value: Any, schema: Schema | None, name: str, p: int) -> np.ndarray:
    """Matrix of new inputs for a data variable with p columns."""
    _check_rows(value, name)
    value = _in_order(value, None if schema is None else schema.names, name)
    if schema is None:
        new = as_matrix(value, name)
        _check_width(new.shape[1], p, name)
        return new
    large = is_large(value)
    if large and not any(schema.levels):
        new = as_matrix(value, name)
        _check_width(new.shape[1], p, name)
        return new
    if column_names(value) and not large:
        columns = columns_of(value, name)
        _check_width(len(columns), p, name)
    else:
        columns = _columns_of_array(value, schema, name, p)
    return _matrix(columns, schema, name)


def _columns_of_array(value, schema: Schema, name: str, p: int) -> list[Column]:
    """Columns of an array: of text or objects as those of a frame, of numbers with codes."""
    objects = None if is_large(value) else _objects(value)
    if objects is not None:
        _check_width(objects.shape[1], p, name)
        return columns_of_objects(objects, name)
    matrix = as_matrix(value, name)
    _check_width(matrix.shape[1], p, name)
    columns = _columns_of_matrix(matrix)
    for j, levels in enumerate(schema.levels):
        if levels is not None:
            label = f"{name}, column {schema.label(j)},"
            columns[j] = levels_at(columns[j].cells, levels, label)
    return columns


def _columns_of_matrix(values: np.ndarray) -> list[Column]:
    return [Column(np.where(x == MISSING, np.nan, x), False) for x in values.T]


def _objects(value) -> np.ndarray | None:
    """Two-dimensional array of text or objects; None for one of numbers, or what is no array."""
    try:
        values = value if isinstance(value, np.ndarray) else np.asarray(value)
    except ValueError:  # lists of different lengths
        return None
    if values.dtype.kind not in "OUT" or values.ndim != 2:
        return None
    return values if isinstance(value, np.ndarray) else np.array(value, dtype=object)


def _check_rows(X, name):
    if not is_lazy(X):
        check_held(X, name)


def _check_width(given, known, name):
    if given != known:
        raise ValueError(
            f"{name} has {given} columns, but the model was declared with {known}: give "
            "it the same columns in the same order."
        )


def inputs_at(X: Any, schema: Schema | None, name: str = "X") -> np.ndarray:
    """Matrix of other inputs, for a forest whose training inputs had a schema."""
    if schema is None:
        _check_rows(X, name)
        return as_matrix(X, name)
    return encode_new(X, schema, name, len(schema.rules))


def _check_repeated(names, name):
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"{name} has repeated column names: rename them.")


def _in_order(X, columns, name):
    given = column_names(X)
    if columns is None or given is None or given == columns:
        return X
    _check_repeated(given, name)
    missing = [c for c in columns if c not in given]
    unknown = [c for c in given if c not in columns]
    if missing or unknown:
        raise ValueError(
            f"{name}: the new frame lacks the columns {missing} and has the unknown columns "
            f"{unknown}. Give a frame with the columns of the training frame."
        )
    order = [given.index(c) for c in columns]
    if is_lazy(X):
        return X.select(list(columns))
    return X.iloc[:, order] if hasattr(X, "iloc") else X[:, order]


def as_matrix(X: Any, name: str) -> np.ndarray:
    """Float64 (n, p) matrix of numbers, `MISSING` for NaN, or an error that names it."""
    if is_large(X):
        return large_table(X, name)
    columns = column_names(X)
    if columns:
        found = columns_of(X, name)
        text = [c for c, column in zip(columns, found, strict=True) if column.are_levels]
        if text:
            raise ValueError(
                f"{name} has columns that are not numeric: {text}. Make it with pymc_trees.Data, "
                "or give the frame to BART."
            )
        return _checked(np.column_stack([column.cells for column in found]), name, columns)
    return _checked(matrix_of_reals(X, name), name, columns)


def _checked(values, name, columns):
    if values.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows, columns), but has shape {values.shape}. "
            "For a single column use X.reshape(-1, 1)."
        )
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one.")
    check_finite(values, name, columns)
    values[np.isnan(values)] = MISSING
    return values
