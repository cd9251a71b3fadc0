"""Columns of a table: what they are, the cells of frames, and the codes of levels.

Needs numpy alone: a file of a fitted forest (`predictors.file`) reads rows where nothing else is
installed.
"""

import re
import sys
import warnings
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MISSING

# --------------------- Real numbers from arrays and frames; all else is an error. Needs numpy alone


EXACT = 2.0**53
"""Whole numbers below this are all floats."""


def is_real(value: Any) -> bool:
    """Whether one entry is a real number; a bool is 0 or 1, a date or text is none."""
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def is_masked(value: Any) -> bool:
    """Whether it is a masked array; where there are none, their module is not loaded."""
    return "numpy.ma" in sys.modules and np.ma.isMaskedArray(value)


def is_missing(cell: Any) -> bool:
    """Whether an entry of an array of objects is None, NaN, NaT or NA."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # pandas' NA, an array
        return type(cell).__name__ == "NAType"


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame that gives its rows in batches."""
    return hasattr(X, "collect_batches") and hasattr(X, "collect_schema")


def check_held(X: Any, name: str) -> None:
    """Raise an error for what holds no table of cells in memory."""
    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise TypeError(f"{name} is a {type(X).__name__}, which holds no rows: give .collect().")
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(f"{name} is a sparse {type(X).__name__}: give {name}.toarray().")


def real_array(value: Any) -> np.ndarray:
    """Float64 copy of an array, series or list, NaN where it is masked or missing.

    Raises
    ------
    TypeError
        With what it holds, when that is anything but real numbers.
    """
    masked = np.ma.getmaskarray(value) if is_masked(value) else None
    value = value.data if is_masked(value) else value
    values = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    kind = values.dtype.kind
    if kind == "O":
        missing = np.array([is_missing(v) for v in values.flat], dtype=bool)
        missing = missing.reshape(values.shape)
        other = next((v for v in values[~missing].flat if not is_real(v)), None)
        if other is not None:
            raise TypeError(f"it holds {other!r} of type {type(other).__name__}")
        values = np.where(missing, np.nan, values)
    elif kind == "c":
        raise TypeError("complex numbers have no order")
    elif kind not in "biuf":
        raise TypeError(f"its entries are of type {values.dtype}")
    values = np.array(values, dtype=np.float64, order="C")
    if masked is not None:
        values[masked] = np.nan
    return values


def matrix_of_reals(value: Any, name: str) -> np.ndarray:
    """`real_array`, or an error that names it."""
    try:
        return real_array(value)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers only, but could not be read as floats ({error}). "
            "Encode text and dates as numbers; text can stay as it is in a pandas or polars frame "
            "for a model that takes levels, such as BART."
        ) from error


def check_finite(values: np.ndarray, name: str, columns=None) -> None:
    """Raise an error for infinite numbers in a matrix, naming the columns."""
    infinite = np.isinf(values)
    if infinite.any():
        indices = np.flatnonzero(infinite.any(axis=0)).tolist()
        named = [columns[j] for j in indices] if columns else indices
        raise ValueError(
            f"{name} holds infinite values in columns {named}: remove or impute those rows, or "
            "use NaN for a missing cell if the model takes these, as BART does."
        )


# -------------------------------------------------------------------------------------------------


CONTINUOUS, SUBSET, ONEHOT = "continuous", "subset", "onehot"
RULES = (CONTINUOUS, SUBSET, ONEHOT)


class Schema(NamedTuple):
    """What p columns are."""

    names: tuple[str, ...] | None
    """Names of a frame's columns; None for an array."""
    rules: tuple[str, ...]
    """One of `RULES` for each column."""
    levels: tuple[tuple | None, ...]
    """Levels of each column, by their code; None for numbers."""
    complete: bool = False
    """Whether missing cells are refused."""

    @classmethod
    def of_numbers(cls, p: int, names: tuple[str, ...] | None = None) -> "Schema":
        """Of p columns of numbers."""
        return cls(names, (CONTINUOUS,) * p, (None,) * p)

    @property
    def labels(self) -> list:
        """Names of the columns, or their numbers where they have no names."""
        return list(range(len(self.rules))) if self.names is None else list(self.names)

    def label(self, j: int) -> str:
        """Name of a column for messages."""
        return repr(self.labels[j])

    @property
    def are_levels(self) -> np.ndarray:
        """(p,) whether the cells of a column are codes of levels."""
        return np.array([levels is not None for levels in self.levels], dtype=bool)

    def with_numbers(self, names: Iterable[str], first: bool = False) -> "Schema":
        """With columns of numbers after the others, or before them."""
        added = Schema.of_numbers(len(names := tuple(names)))
        left, right = (added, self) if first else (self, added)
        if self.names is not None:
            joined = (*names, *self.names) if first else (*self.names, *names)
        else:
            joined = None
        return Schema(joined, left.rules + right.rules, left.levels + right.levels, self.complete)


# ---------------- What the columns of a frame hold: numbers, or levels such as text and categories


_NUMBERS = re.compile(r"(sparse\[)?(u?int\d|float|halffloat|double|decimal|bool)")
_LEVELS = re.compile(r"category|categorical|enum|dictionary<|str(?!uct)|large_string|utf8|object")


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
    labels = column_names(X) or ()
    series = (X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(len(labels)))
    return _those_read(labels, series, name)


def _those_read(labels: Iterable[str], all_series: Iterable, name: str) -> list[Column]:
    columns: list[Column] = []
    wrong: list[str] = []
    for label, series in zip(labels, all_series, strict=True):
        column = _read_column(series)
        if column is None:
            types = sorted({type(v).__name__ for v in series.to_list()})
            wrong.append(f"{label!r} ({series.dtype} of {', '.join(types)})")
        else:
            columns.append(column)
    _refuse(wrong, name)
    return columns


def _refuse(wrong: list[str], name: str) -> None:
    if wrong:
        raise ValueError(
            f"{name} has columns that are not numeric, text or categories: {', '.join(wrong)}. "
            "Encode dates, intervals and other objects as numbers first, or convert them to "
            "categories."
        )


def check_types(schema: Any, name: str) -> None:
    """Raise an error for times in a lazy frame, which beside numbers would pass for numbers."""
    times = ("date", "time", "duration")
    wrong = [(label, str(dtype)) for label, dtype in schema.items()]
    _refuse([f"{label!r} ({d})" for label, d in wrong if d.lower().startswith(times)], name)


def columns_of_objects(X: np.ndarray, name: str) -> list[Column]:
    """Columns of an array of text or objects, read as those of a frame are."""
    values = np.asarray(X).astype(object)
    if is_masked(X):
        values[np.ma.getmaskarray(X)] = None
    labels = [str(j) for j in range(values.shape[1])]
    return _those_read(labels, [CellsOfColumn(cells) for cells in values.T], name)


class CellsOfColumn:
    """A column of an array of objects, as far as a frame's is asked."""

    dtype = "object"

    def __init__(self, cells: np.ndarray):
        self.cells = cells

    def isna(self) -> list[bool]:
        """Whether each cell is missing."""
        return [is_missing(cell) for cell in self.cells.tolist()]

    def to_list(self) -> list:
        """The cells."""
        return self.cells.tolist()


def _read_column(series) -> Column | None:
    """One column of a frame; None when it holds neither numbers nor levels."""
    dtype = str(series.dtype)
    missing = series.isna() if hasattr(series, "isna") else series.is_null()
    missing = np.asarray(missing, dtype=bool)
    if _NUMBERS.match(dtype.lower()):
        return Column(_floats(series, missing), False, dtype=dtype)
    if not _LEVELS.match(dtype.lower()):
        return None
    cells = np.empty(len(missing), dtype=object)
    cells[:] = series.to_list()
    cells[missing] = None
    if dtype.lower() == "object" and not all(isinstance(v, str | bool) for v in cells[~missing]):
        if not all(is_real(v) for v in cells[~missing]):
            return None
        return Column(real_array(cells), False, dtype=dtype)
    order = getattr(series.dtype, "categories", None)
    if order is None or not getattr(series.dtype, "ordered", False):
        return Column(cells, True, None, dtype)
    return Column(cells, True, tuple(order), dtype)


def _floats(series, missing) -> np.ndarray:
    """Floats of a column of numbers, NaN where it is missing."""
    present = series[~missing] if hasattr(series, "iloc") else series.filter(~missing)
    cells = np.full(len(missing), np.nan)
    cells[~missing] = np.asarray(present.to_numpy(), dtype=float)
    return cells


# ---------------------- Which code a cell of a column of levels has: exact matches, and no guesses
#
# Text matches text, numbers (bools are 0 and 1) match numbers, and other objects those of their
# own type. A number matches text where every text of the column is the plain decimal of a number,
# so that there is one way only to write it: 1 is "1", and neither "01" nor "1.0".


TEXT, NUMBER = "text", "numbers"
_PACKAGE = str(Path(__file__).parents[1])


def _packages() -> tuple[str, ...]:
    """Folders of the package and of PyMC, whose lines no warning points to."""
    pymc = getattr(sys.modules.get("pymc"), "__path__", [_PACKAGE])
    return _PACKAGE, *pymc


def codes_of(column: Column, levels: tuple, label: str) -> np.ndarray:
    """Codes of cells as floats; missing cells, and levels that no training row had, as `MISSING`.

    A column none of whose cells is a training level gets a warning, one of another type an error.
    """
    code = {level: float(k) for k, level in enumerate(levels)}
    present = column.present()
    as_level = _matching(column, present, levels, label)
    codes = np.array(
        [
            MISSING if cell is None or cell != cell else code.get(as_level(cell), MISSING)
            for cell in column.cells.tolist()
        ]
    )
    if present and (codes == MISSING).all():
        warnings.warn(
            f"{label.rstrip(',')}: none of the new values {_shown(present, column.dtype)} is one "
            f"of the training levels {_shown(levels)}. They are all treated as missing.",
            UserWarning,
            skip_file_prefixes=_packages(),
        )
    return codes


def decoded(codes: np.ndarray, levels: tuple, label: str) -> Column:
    """Column of levels from their codes in an array, where these cannot be mistaken for levels.

    Where the levels are numbers, the numbers of the array are levels themselves.
    """
    if _types(levels) == {NUMBER}:
        return Column(codes, False)
    if any(is_real(level) or _reads_as_number(level) for level in levels):
        raise ValueError(
            f"{label} has levels that read as numbers, {_shown(levels)}: numbers in an array "
            "could be levels or their codes 0, 1, .. Give a frame, or an array of text or "
            "objects."
        )
    present = codes[~np.isnan(codes)]
    wrong = present[~np.isin(present, np.arange(len(levels)))]
    if wrong.size:
        raise ValueError(
            f"{label} holds the numbers {_shown(wrong.tolist())}, but the codes of its levels "
            f"{_shown(levels)} are 0 .. {len(levels) - 1}. Give a frame or an array of objects "
            "with the names of the levels, and NaN for a missing cell."
        )
    cells = np.empty(len(codes), dtype=object)
    cells[:] = [None if np.isnan(code) else levels[int(code)] for code in codes]
    return Column(cells, True)


def _matching(column, present, levels, label):
    """Function from a cell that is not missing to the level that it may be."""
    training, new = _types(levels), _types(present)
    if new <= training and not (NUMBER in new and _is_rounded(column, levels)):
        return lambda cell: cell
    if (training, new) == ({TEXT}, {NUMBER}) and all(_is_plain(level) for level in levels):
        return _plain_text
    if (training, new) == ({NUMBER}, {TEXT}) and all(_is_plain(cell) for cell in present):
        return float
    raise ValueError(
        f"{label} has the training levels {_shown(levels)}, but is given "
        f"{_shown(present, column.dtype)}, which do not match exactly: convert the column to its "
        "type in training."
    )


def _types(values) -> set:
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
    kinds = [*sorted(_types(distinct)), *([dtype] if dtype else [])]
    return f"{', '.join(first)}{', ..' if len(distinct) > 5 else ''} ({', '.join(kinds)})"
