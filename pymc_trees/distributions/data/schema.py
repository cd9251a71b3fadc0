"""What the columns of a table are: names, numbers or levels, split rules, codes of levels."""

import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.distributions.data.numbers import EXACT, is_lazy, is_real, real_array

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

    def with_rules(self, split_rules) -> "Schema":
        """With the rules that a declaration gives, in place of its own."""
        chosen = check_rules(split_rules, self.labels)
        return self._replace(rules=tuple(new or old for new, old in zip(chosen, self.rules)))

    def with_numbers(self, names: Iterable[str], first: bool = False) -> "Schema":
        """With columns of numbers after the others, or before them."""
        added = Schema.of_numbers(len(names := tuple(names)))
        left, right = (added, self) if first else (self, added)
        if self.names is not None:
            joined = (*names, *self.names) if first else (*self.names, *names)
        else:
            joined = None
        return Schema(joined, left.rules + right.rules, left.levels + right.levels, self.complete)


# --------------------------------------------------- Columns that users name, and rules of columns


def listed_columns(columns: Any) -> list:
    """Columns that an argument names, as a list: one name or number, or several of any kind."""
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        return [columns]
    if isinstance(columns, np.ndarray):
        return columns.ravel().tolist()
    return [c.item() if isinstance(c, np.generic) else c for c in columns]


def column_index(column: Any, labels: list) -> int | None:
    """Index of a column given by name or number, or as "x0", where columns have no names.

    None where there is no such column.

    Raises
    ------
    ValueError
        For a number that is the name of another column.
    """
    if isinstance(column, np.ndarray | np.generic) and np.ndim(column) == 0:
        column = column.item()
    named = not all(isinstance(label, int) for label in labels)
    if isinstance(column, str):
        words = labels if named else [f"x{label}" for label in labels]
        return words.index(column) if column in words else None
    if isinstance(column, bool) or not isinstance(column, int):
        return None
    inside = 0 <= column < len(labels)
    # 1 may be meant as the column named "1", and is the second one
    if named and str(column) in labels and not (inside and labels[column] == str(column)):
        other = "but not the number of a column"
        if inside:
            other = f"and also the number of the column {labels[column]!r}"
        raise ValueError(
            f"{column} is the name of a column of X, {other}: give the name as text, "
            f"{str(column)!r}" + (f" or {labels[column]!r}." if inside else ".")
        )
    return column if inside else None


def by_index(argument: str, settings: Mapping, labels: list) -> dict[int, Any]:
    """Settings of columns, by the index of the column."""
    indices = {key: column_index(key, labels) for key in settings}
    if unknown := [key for key, index in indices.items() if index is None]:
        raise ValueError(
            f"{argument} names the columns {unknown}, which X does not have: they are {labels}."
        )
    if len(set(indices.values())) < len(indices):
        raise ValueError(f"{argument}={dict(settings)} names a column twice: give each once.")
    return {index: settings[key] for key, index in indices.items() if index is not None}


def check_rules(split_rules, labels: list) -> list[str | None]:
    """Rule of each column as given; None where nothing is."""
    p = len(labels)
    if split_rules is None:
        return [None] * p
    if isinstance(split_rules, str):
        split_rules = [split_rules] * p
    if isinstance(split_rules, Mapping):
        chosen = by_index("split_rules", split_rules, labels)
        rules = [chosen.get(j) for j in range(p)]
    elif isinstance(split_rules, Iterable):
        rules = list(split_rules)
    else:
        raise TypeError(
            f"split_rules={split_rules!r}: give one of {list(RULES)}, one for each column, or a "
            "dict from column name to rule."
        )
    if len(rules) != p:
        raise ValueError(f"split_rules has {len(rules)} entries, but X has {p} columns.")
    wrong = [rule for rule in rules if rule is not None and rule not in RULES]
    if wrong:
        raise ValueError(f"split_rules: {wrong[0]!r} is not a rule; choose from {list(RULES)}.")
    return rules


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
    columns: list[Column] = []
    wrong: list[str] = []
    for j, label in enumerate(column_names(X) or ()):
        series = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        column = _read_column(series)
        if column is None:
            types = sorted({type(v).__name__ for v in series.to_list()})
            wrong.append(f"{label!r} ({series.dtype} of {', '.join(types)})")
        else:
            columns.append(column)
    if wrong:
        raise ValueError(
            f"{name} has columns that are not numeric, text or categories: {', '.join(wrong)}. "
            "Encode dates, intervals and other objects as numbers first, or convert them to "
            "categories."
        )
    return columns


def columns_of_objects(X: np.ndarray, name: str) -> list[Column]:
    """Columns of an array of text or objects, read as those of a frame are."""
    values = np.ma.getdata(X).astype(object)
    values[np.ma.getmaskarray(X)] = None
    return columns_of(pd.DataFrame(values, dtype=object), name)


def _read_column(series) -> Column | None:
    """One column of a frame; None when it holds neither numbers nor levels."""
    dtype = str(series.dtype)
    missing = np.asarray(series.isna() if hasattr(series, "isna") else series.is_null())
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


def read_schema(columns: list[Column], names, rules: list[str | None], name: str) -> Schema:
    """Schema of training columns."""
    numbers = Schema.of_numbers(len(columns), names)
    all_rules, all_levels = [], []
    for j, (column, rule) in enumerate(zip(columns, rules, strict=True)):
        by_subsets = column.are_levels and column.order is None
        rule = rule or (SUBSET if by_subsets else CONTINUOUS)
        label = f"{name}, column {numbers.label(j)},"
        has_levels = column.are_levels or rule != CONTINUOUS
        all_rules.append(rule)
        all_levels.append(levels_of(column, label) if has_levels else None)
    return Schema(names, tuple(all_rules), tuple(all_levels))


# ---------------------- Which code a cell of a column of levels has: exact matches, and no guesses
#
# Text matches text, numbers (bools are 0 and 1) match numbers, and other objects those of their
# own type. A number matches text where every text of the column is the plain decimal of a number,
# so that there is one way only to write it: 1 is "1", and neither "01" nor "1.0".


TEXT, NUMBER = "text", "numbers"
_PACKAGES = (pymc_trees.__path__[0], pm.__path__[0])


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
            skip_file_prefixes=_PACKAGES,
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
