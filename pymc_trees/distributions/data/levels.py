"""What the columns of a frame hold, numbers or levels, and which code a level has."""

import re
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.distributions.data.numbers import EXACT, is_lazy, is_real, real_array

# ---------------- What the columns of a frame hold: numbers, or levels such as text and categories


_NUMBERS = re.compile(r"(sparse\[)?(u?int\d|float|halffloat|double|decimal|bool)")
_LEVELS = re.compile(r"category|categorical|enum|dictionary<|str|string|large_string|utf8|object")


class Column(NamedTuple):
    """Cells of one column."""

    cells: np.ndarray
    """Float64 with NaN for missing ones, or objects with None for missing ones."""
    are_levels: bool
    """Whether they are objects."""
    order: tuple | None = None
    """The levels of an ordered category."""
    dtype: str = "float64"
    """Name of the type they came in, for messages."""

    def present(self) -> list:
        """Cells that are not missing."""
        return [c for c in self.cells.tolist() if c is not None and c == c]

    def numbers(self) -> np.ndarray | None:
        """The cells as float64 with NaN, or None when one of them is no number."""
        if not self.are_levels:
            return self.cells
        if not all(is_real(c) for c in self.present()):
            return None
        return np.array([np.nan if c is None else float(c) for c in self.cells])


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None for an array."""
    if is_lazy(X):
        return tuple(X.collect_schema().names())
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(c) for c in columns)


def columns_of(X: Any, name: str) -> list[Column]:
    """Columns of a pandas or polars frame."""
    found: list[Column] = []
    wrong: list[str] = []
    for j, label in enumerate(column_names(X) or ()):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        read = _read(column)
        if read is None:
            held = sorted({type(v).__name__ for v in column.to_list()})
            wrong.append(f"{label!r} ({column.dtype} of {', '.join(held)})")
        else:
            found.append(read)
    if wrong:
        raise ValueError(
            f"{name} has columns that are not numeric, text or categories: {', '.join(wrong)}. "
            "Encode dates, intervals and other objects as numbers first, or convert them to "
            "categories."
        )
    return found


def columns_of_objects(X: np.ndarray, name: str) -> list[Column]:
    """Columns of an array of text or objects, read as those of a frame are."""
    values = np.ma.getdata(X).astype(object)
    values[np.ma.getmaskarray(X)] = None
    return columns_of(pd.DataFrame(values, dtype=object), name)


def _read(column) -> Column | None:
    """One column; None when it holds neither numbers nor levels."""
    dtype = str(column.dtype)
    missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
    if _NUMBERS.match(dtype.lower()):
        return Column(_floats(column, missing), False, dtype=dtype)
    if not _LEVELS.match(dtype.lower()):
        return None
    values = column.to_list()
    cells = np.empty(len(values), dtype=object)
    cells[:] = [None if gone else v for v, gone in zip(values, missing, strict=True)]
    if dtype.lower() == "object" and not all(isinstance(v, str | bool) for v in cells[~missing]):
        if not all(is_real(v) for v in cells[~missing]):
            return None
        return Column(real_array(cells), False, dtype=dtype)
    order = getattr(column.dtype, "categories", None)
    if order is None or not getattr(column.dtype, "ordered", False):
        return Column(cells, True, None, dtype)
    return Column(cells, True, tuple(order), dtype)


def _floats(column, missing) -> np.ndarray:
    """Floats of a column of numbers, NaN where it is missing."""
    kept = column[~missing] if hasattr(column, "iloc") else column.filter(~missing)
    cells = np.full(len(missing), np.nan)
    cells[~missing] = np.asarray(kept.to_numpy(), dtype=float)
    return cells


# ---------------------- Which code a cell of a column of levels has: exact matches, and no guesses
#
# Text matches text, numbers (bools are 0 and 1) match numbers, and other objects those of their
# own type. A number matches text where every text of the column is the plain decimal of a number,
# so that there is one way only to write it: 1 is "1", and neither "01" nor "1.0".


TEXT, NUMBER = "text", "numbers"
_INSIDE = (pymc_trees.__path__[0], pm.__path__[0])


def levels_of(column: Column, label: str) -> tuple:
    """Distinct present cells: in the order given, else sorted."""
    present = set(column.present())
    if not present:
        raise ValueError(f"{label} is missing in every row: leave the column out.")
    if not column.are_levels and max(abs(level) for level in present) >= EXACT:
        raise ValueError(
            f"{label} is split by levels, but holds numbers of 2**53 and more, which floats may "
            "round: convert the column to a category or text."
        )
    if column.order is not None:
        return tuple(level for level in column.order if level in present)
    try:
        return tuple(sorted(present))
    except TypeError:
        return tuple(sorted(present, key=lambda level: (str(type(level)), str(level))))


def codes_of(column: Column, levels: tuple, label: str) -> np.ndarray:
    """Codes of cells as floats; missing cells, and levels that are not known, as `MISSING`.

    A column of which no present cell is known gets a warning, one of another type an error.
    """
    place = {level: float(k) for k, level in enumerate(levels)}
    present = column.present()
    as_level = _reading(column, present, levels, label)
    codes = np.array(
        [
            MISSING if cell is None or cell != cell else place.get(as_level(cell), MISSING)
            for cell in column.cells.tolist()
        ]
    )
    if present and (codes == MISSING).all():
        warnings.warn(
            f"{label.rstrip(',')}: none of the new values {_shown(present, column.dtype)} is one "
            f"of the training levels {_shown(levels)}. They are all treated as missing.",
            UserWarning,
            skip_file_prefixes=_INSIDE,
        )
    return codes


def levels_at(codes: np.ndarray, levels: tuple, label: str) -> Column:
    """Cells of an array of numbers: codes of levels that cannot be mistaken for numbers.

    Where the levels are numbers, these are the levels themselves.
    """
    if _families(levels) == {NUMBER}:
        return Column(codes, False)
    alike = [level for level in levels if is_real(level) or _reads_as_number(level)]
    if alike:
        raise ValueError(
            f"{label} has levels that read as numbers, {_shown(levels)}: numbers in an array "
            "could be levels or their codes 0, 1, .. Give a frame, or an array of text or "
            "objects."
        )
    given = codes[~np.isnan(codes)]
    wrong = given[~np.isin(given, np.arange(len(levels)))]
    if wrong.size:
        raise ValueError(
            f"{label} holds the numbers {_shown(wrong.tolist())}, but the codes of its levels "
            f"{_shown(levels)} are 0 .. {len(levels) - 1}. Give a frame or an array of objects "
            "with the names of the levels, and NaN for a missing cell."
        )
    cells = np.empty(len(codes), dtype=object)
    cells[:] = [None if np.isnan(code) else levels[int(code)] for code in codes]
    return Column(cells, True)


def _reading(column, present, levels, label):
    """How a present cell is looked up among the levels."""
    known, given = _families(levels), _families(present)
    if given <= known and not (NUMBER in given and _is_rounded(column, levels)):
        return lambda cell: cell
    if (known, given) == ({TEXT}, {NUMBER}) and all(_is_plain(level) for level in levels):
        return _plain_text
    if (known, given) == ({NUMBER}, {TEXT}) and all(_is_plain(cell) for cell in present):
        return float
    raise ValueError(
        f"{label} has the training levels {_shown(levels)}, but is given "
        f"{_shown(present, column.dtype)}, which do not match exactly: convert the column to its "
        "type in training."
    )


def _families(values) -> set:
    return {
        TEXT if isinstance(v, str) else NUMBER if is_real(v) else type(v).__name__ for v in values
    }


def _is_rounded(column, levels):
    """Whether cells may have lost digits that tell levels apart."""
    return not column.are_levels and any(is_real(v) and abs(v) >= EXACT for v in levels)


def _plain_text(number) -> str:
    value = float(number)
    return str(int(value)) if value.is_integer() else repr(value)


def _is_plain(text) -> bool:
    return _reads_as_number(text) and abs(float(text)) < EXACT and _plain_text(text) == text


def _reads_as_number(level) -> bool:
    try:
        return isinstance(level, str) and bool(np.isfinite(float(level)))
    except ValueError:
        return False


def _shown(values, dtype: str = "") -> str:
    """First few distinct values and what they are, for messages."""
    distinct = list(dict.fromkeys(values))
    first = [f"{v:.15g}" if isinstance(v, float) else repr(v) for v in distinct[:5]]
    kinds = [*sorted(_families(distinct)), *([dtype] if dtype else [])]
    return f"{', '.join(first)}{', ..' if len(distinct) > 5 else ''} ({', '.join(kinds)})"
