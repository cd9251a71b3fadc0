"""Rows as users give them, as the tables of a predictor and the numbers beside these."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.rows import as_table, check_lengths, encode_held


class Table(NamedTuple):
    """Inputs of forests."""

    name: str
    schema: Schema


class Data(NamedTuple):
    """Numbers beside them, with an entry for each row."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    """Lengths of the axes, -1 for that of the rows."""
    levels: tuple | None
    """What the numbers stand for, by code."""


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
    matrices = [encode_held(as_table(given[t.name]), t.schema, t.name) for t in tables]
    numbers = [_beside(given[d.name], d, len(matrices[0])) for d in data]
    lengths = {t.name: len(x) for t, x in zip(tables, matrices, strict=True)}
    for d, x in zip(data, numbers, strict=True):
        lengths[d.name] = x.shape[1 + d.shape.index(-1)]
    check_lengths(lengths)
    n = next(iter(lengths.values()))
    if n == 0:
        raise ValueError(f"{names[0]} is evaluated at no rows: give {names[0]} at least one row.")
    return matrices, numbers, n


def _beside(given, data: Data, n: int) -> np.ndarray:
    """Numbers beside X, with a first axis for the draws; a single one for all n rows."""
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
    kept = values.astype(data.dtype)
    if not np.isfinite(values).all() or (kept != values).any() and kept.dtype.kind in "biu":
        raise ValueError(
            f"{data.name} is {data.dtype} in the model, which cannot hold what it is given: give "
            "whole, finite numbers of groups or counts, or the names of groups."
        )
    return kept[None]
