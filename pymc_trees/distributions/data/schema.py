"""Columns that users name, their split rules, and the schema of training columns."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pymc_trees.predictors.columns import CONTINUOUS, EXACT, RULES, SUBSET, Column, Schema

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


def with_rules(schema: Schema, split_rules) -> Schema:
    """A schema with the rules that a declaration gives, in place of its own."""
    chosen = check_rules(split_rules, schema.labels)
    return schema._replace(rules=tuple(new or old for new, old in zip(chosen, schema.rules)))


# ----------------------------------------------------------- The schema of training columns


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


MOST_CUTS = 65_534
"""Codes are 16-bit: one for each side of every cut, and the largest for a missing cell."""


def check_number_of_cuts(n_cuts: int, what: str) -> None:
    """Raise an error for more cuts of a column than there are codes."""
    if n_cuts > MOST_CUTS:
        raise ValueError(f"{what}: at most {MOST_CUTS:,} cuts fit a 16-bit code.")
