"""What the columns of a forest's inputs are: names, numbers or levels, and how they are split."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.forest.mixed import MISSING, MOST_LEVELS

CONTINUOUS, SUBSET, ONEHOT = "continuous", "subset", "onehot"
RULES = (CONTINUOUS, SUBSET, ONEHOT)
_TEXT = ("category", "object", "string", "str", "String", "Utf8", "Categorical", "Enum")
_NUMBERS = ("int", "float", "bool", "decimal", "double")


class Schema(NamedTuple):
    """Of p columns."""

    names: tuple[str, ...] | None
    """Names of a frame's columns; None for an array."""
    rules: tuple[str, ...]
    """One of `RULES` for each column."""
    levels: tuple[tuple | None, ...]
    """Levels of each column, by their code; None for numbers."""
    complete: bool = False
    """Whether missing cells are refused."""

    def label(self, j: int) -> str:
        """Name of a column for messages."""
        return repr(self.names[j]) if self.names else str(j)


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None for an array."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(c) for c in columns)


def check_rules(split_rules, names: Sequence[str] | None, p: int) -> list[str | None]:
    """Rule of each column as given; None where nothing is."""
    if split_rules is None:
        return [None] * p
    if isinstance(split_rules, str):
        split_rules = [split_rules] * p
    if isinstance(split_rules, Mapping):
        unknown = [key for key in split_rules if key not in (names or ())]
        if unknown:
            raise ValueError(
                f"split_rules names the columns {unknown}, which X does not have"
                + (f": they are {list(names)}." if names else "; give one rule per column.")
            )
        rules = [split_rules.get(name) for name in names or ()]
    else:
        rules = list(split_rules)
    if len(rules) != p:
        raise ValueError(f"split_rules has {len(rules)} entries, but X has {p} columns.")
    wrong = [rule for rule in rules if rule is not None and rule not in RULES]
    if wrong:
        raise ValueError(f"split_rules: {wrong[0]!r} is no rule; choose from {list(RULES)}.")
    return rules


def columns_of(X: Any, name: str) -> list[tuple[np.ndarray, bool, tuple | None]]:
    """Of each column of a frame: cells, whether they are levels, and the order of the levels.

    Cells are float64 with NaN for missing ones, or objects with None for missing ones.
    """
    names = column_names(X) or ()
    found: list[tuple[np.ndarray, bool, tuple | None]] = []
    wrong: list[str] = []
    for j, label in enumerate(names):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        kind = str(column.dtype)
        missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null())
        if kind.startswith(_TEXT):
            values = column.to_list()
            cells = np.empty(len(values), dtype=object)
            cells[:] = [None if gone else v for v, gone in zip(values, missing, strict=True)]
            given = {type(v) for v in cells if v is not None}
            if kind == "object" and given and not given <= {str, bool}:
                try:
                    found.append((_floats(cells, missing), False, None))
                except (TypeError, ValueError):
                    wrong.append(label)
                continue
            order = getattr(column.dtype, "categories", None)
            is_ordered = bool(getattr(column.dtype, "ordered", False))
            found.append((cells, True, tuple(order) if is_ordered and order is not None else None))
        elif any(part in kind.lower() for part in _NUMBERS):
            found.append((_floats(column, missing), False, None))
        else:
            wrong.append(label)
    if wrong:
        raise ValueError(
            f"{name} has columns that are not numeric, text or categories: {wrong}. Encode dates "
            "and other objects as numbers first."
        )
    return found


def _floats(values, missing) -> np.ndarray:
    """Floats of a list or column, NaN where it is missing."""
    if isinstance(values, np.ndarray):
        kept = values[~missing]
    else:
        kept = values[~missing] if hasattr(values, "iloc") else values.filter(~missing)
    cells = np.full(len(missing), np.nan)
    cells[~missing] = np.asarray(
        kept.to_numpy() if hasattr(kept, "to_numpy") else kept, dtype=float
    )
    return cells


def _is_missing(cell) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell))


def levels_of(cells, order, name: str) -> tuple:
    """Distinct present cells: in the order given, else sorted; an error when too many."""
    present = {cell for cell in cells if not _is_missing(cell)}
    if len(present) > MOST_LEVELS:
        raise ValueError(
            f"{name} has {len(present)} levels, but at most {MOST_LEVELS} can be split by levels: "
            "merge rare levels, leave the column out, or encode it as numbers."
        )
    if not present:
        raise ValueError(f"{name} is missing in every row: leave the column out.")
    if order is not None:
        return tuple(level for level in order if level in present)
    try:
        return tuple(sorted(present))
    except TypeError:
        return tuple(sorted(present, key=lambda level: (str(type(level)), str(level))))


def codes_of(cells, levels: tuple) -> np.ndarray:
    """Codes of cells as floats; missing cells, and levels that are not known, as `MISSING`."""
    place = {level: float(k) for k, level in enumerate(levels)}
    return np.array([place.get(cell, MISSING) for cell in cells])


def read_schema(columns, names, rules: list[str | None], name: str) -> Schema:
    """Schema of training columns, from `columns_of` or with plain numbers."""
    schema = Schema(names, (CONTINUOUS,) * len(columns), (None,) * len(columns))
    found_rules, found_levels = [], []
    for j, (cells, are_levels, order) in enumerate(columns):
        rule = rules[j] or (SUBSET if are_levels and order is None else CONTINUOUS)
        as_levels = are_levels or rule != CONTINUOUS
        label = f"{name}, column {schema.label(j)},"
        found_levels.append(levels_of(cells.tolist(), order, label) if as_levels else None)
        found_rules.append(rule)
    return Schema(names, tuple(found_rules), tuple(found_levels))


def kinds_of(X: np.ndarray, schema: Schema | None, rules: list[str | None]) -> np.ndarray:
    """Kinds of the columns for `MixedDesign`; empty when all are numbers without missing cells."""
    kinds = np.zeros(X.shape[1], dtype=np.int64)
    for j in range(X.shape[1]):
        rule = rules[j] or (schema.rules[j] if schema is not None else CONTINUOUS)
        if rule == CONTINUOUS:
            continue
        present = X[:, j][X[:, j] != MISSING]
        whole = present.size and present.min() >= 0 and (present == np.floor(present)).all()
        if not whole or present.max() >= MOST_LEVELS:
            label = schema.label(j) if schema is not None else j
            raise ValueError(
                f"split_rules: column {label} of X is split by levels, so that model data must "
                f"hold level numbers 0, 1, .. below {MOST_LEVELS} there. Make it with "
                "pymc_trees.Data, or give X to BART as it is, and any values will do."
            )
        n_levels = int(present.max()) + 1
        kinds[j] = n_levels if rule == SUBSET else -n_levels
    return kinds if kinds.any() or (X == MISSING).any() else kinds[:0]
