"""Arrays and frames in, float64 matrices out.

Levels become codes 0, 1, .. and missing cells the number `MISSING`: PyMC's data hold no NaN.
"""

from typing import Any

import numpy as np

from pymc_trees.core.forest.mixed import MISSING
from pymc_trees.distributions.schema import (
    CONTINUOUS,
    Schema,
    check_rules,
    codes_of,
    column_names,
    columns_of,
    read_schema,
)


def encode_training(X: Any, name: str, split_rules=None) -> tuple[np.ndarray, Schema]:
    """Float64 matrix of training inputs, and their schema."""
    names = column_names(X)
    if names is not None and len(set(names)) < len(names):
        raise ValueError(f"{name} has repeated column names: rename them.")
    columns = columns_of(X, name) if names else None
    if columns is None:
        values = as_matrix(X, name)
        p = values.shape[1]
        rules = check_rules(split_rules, names, p)
        if set(rules) <= {None, CONTINUOUS}:  # a large array is not copied again
            return values, Schema(names, (CONTINUOUS,) * p, (None,) * p)
        columns = [(np.where(x == MISSING, np.nan, x), False, None) for x in values.T]
    rules = check_rules(split_rules, names, len(columns))
    schema = read_schema(columns, names, rules, name)
    return _matrix(columns, schema, name), schema


def _matrix(columns, schema, name) -> np.ndarray:
    """Matrix of columns whose levels are known."""
    coded = []
    for j, (cells, are_levels, _) in enumerate(columns):
        levels = schema.levels[j]
        if levels is None and are_levels:
            raise ValueError(f"{name}, column {schema.label(j)}, was numeric, but now holds text.")
        coded.append(cells if levels is None else codes_of(cells.tolist(), levels))
    values = np.empty((len(coded[0]), len(coded)))
    for j, cells in enumerate(coded):
        values[:, j] = cells
    return _checked(values, name, schema.names)


def encode_new(value: Any, schema: Schema | None, name: str, p: int) -> np.ndarray:
    """Matrix of new inputs for a data variable with p columns."""
    value = _in_order(value, None if schema is None else schema.names, name)
    if schema is None:
        new = as_matrix(value, name)
        _check_width(new.shape[1], p, name)
        return new
    columns = columns_of(value, name) if column_names(value) else None
    if columns is None:
        columns = [(x, False, None) for x in _cells_of(value, name, schema)]
    _check_width(len(columns), p, name)
    return _matrix(columns, schema, name)


def _cells_of(value, name, schema):
    """Columns of an array: codes of text levels back to the levels, so that both may be given."""
    matrix = as_matrix(value, name)
    cells = []
    for j, x in enumerate(matrix.T):
        x = np.where(x == MISSING, np.nan, x)
        levels = schema.levels[j] if j < len(schema.levels) else None
        if levels is not None and any(isinstance(level, str) for level in levels):
            known = dict(enumerate(levels))
            text = np.empty(len(x), dtype=object)
            text[:] = [known.get(code) for code in x.tolist()]
            x = text
        cells.append(x)
    return cells


def _check_width(given, known, name):
    if given != known:
        raise ValueError(
            f"{name} has {given} columns, but the model was declared with {known}: give "
            "it the same columns in the same order."
        )


def inputs_at(X: Any, schema: Schema | None) -> np.ndarray:
    """Matrix of other inputs, for a forest whose training inputs had a schema."""
    if schema is None or not column_names(X):
        return as_matrix(X, "X")
    return _matrix(columns_of(_in_order(X, schema.names, "X"), "X"), schema, "X")


def _in_order(X, columns, name):
    given = column_names(X)
    if columns is None or given is None or given == columns:
        return X
    missing = [c for c in columns if c not in given]
    unknown = [c for c in given if c not in columns]
    if missing or unknown:
        raise ValueError(
            f"{name}: the new frame lacks the columns {missing} and has the unknown columns "
            f"{unknown}. Give it the columns of the training frame."
        )
    order = [given.index(c) for c in columns]
    return X.iloc[:, order] if hasattr(X, "iloc") else X[:, order]


def as_matrix(X: Any, name: str) -> np.ndarray:
    """Float64 (n, p) matrix of numbers, `MISSING` for NaN, or an error that names it."""
    columns = column_names(X)
    if columns:
        found = columns_of(X, name)
        text = [c for c, (_, are_levels, _) in zip(columns, found, strict=True) if are_levels]
        if text:
            raise ValueError(
                f"{name} has columns that are not numeric: {text}. Make it with pymc_trees.Data, "
                "or give the frame to BART."
            )
        return _checked(np.column_stack([cells for cells, _, _ in found]), name, columns)
    try:
        values = np.array(X.to_numpy() if hasattr(X, "to_numpy") else X)
        if values.dtype.kind in "USMm":
            raise TypeError(f"its entries are of type {values.dtype}")
        if np.iscomplexobj(values):
            raise TypeError("complex numbers have no order")
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers only, but could not be read as floats ({error}). Text needs "
            "a pandas or polars frame; encode dates as numbers first."
        ) from error
    return _checked(values, name, columns)


def _checked(values, name, columns):
    if values.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows, columns), but has shape {values.shape}. "
            "For a single column use X.reshape(-1, 1)."
        )
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one.")
    infinite = np.isinf(values)
    if infinite.any():
        named = [columns[j] if columns else int(j) for j in np.flatnonzero(infinite.any(axis=0))]
        raise ValueError(
            f"{name} holds infinite values in columns {named}: remove or impute those rows, or put "
            "NaN for a missing cell."
        )
    values[np.isnan(values)] = MISSING
    return values
