"""What the columns of a forest's inputs are: names, numbers or levels, and how they are split."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.mixed import MAX_LEVELS, MISSING
from pymc_trees.core.columns.table_file import row_blocks
from pymc_trees.distributions.data.levels import levels_of

CONTINUOUS, SUBSET, ONEHOT = "continuous", "subset", "onehot"
RULES = (CONTINUOUS, SUBSET, ONEHOT)


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


def known_columns(schema: Schema | None, p: int) -> list:
    """Names of p columns, or their numbers where they have none."""
    return list(range(p)) if schema is None or schema.names is None else list(schema.names)


def given_columns(given: Any) -> list:
    """What was given to name columns, as a list: one name or number, or several of any kind."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    if isinstance(given, np.ndarray):
        return given.ravel().tolist()
    return [one.item() if isinstance(one, np.generic) else one for one in given]


def place_of(column: Any, known: list) -> int | None:
    """Place of a column given by name or number, or as "x0", where columns have no names.

    None where there is no such column.

    Raises
    ------
    ValueError
        For a number that is the name of another column.
    """
    if isinstance(column, np.ndarray | np.generic) and np.ndim(column) == 0:
        column = column.item()
    named = not all(isinstance(one, int) for one in known)
    if isinstance(column, str):
        words = known if named else [f"x{one}" for one in known]
        return words.index(column) if column in words else None
    if isinstance(column, bool) or not isinstance(column, int):
        return None
    inside = 0 <= column < len(known)
    # 1 may be meant as the column named "1", and is the second one
    if named and str(column) in known and not (inside and known[column] == str(column)):
        place = f"the number of the column {known[column]!r}" if inside else "no number of one"
        raise ValueError(
            f"{column} is the name of a column of X, and {place}: give the name as text, "
            f"{str(column)!r}" + (f" or {known[column]!r}." if inside else ".")
        )
    return column if inside else None


def by_place(argument: str, given: Mapping, known: list) -> dict[int, Any]:
    """What a dict by column holds, by the places of the columns."""
    places = {key: place_of(key, known) for key in given}
    if unknown := [key for key, place in places.items() if place is None]:
        raise ValueError(
            f"{argument} names the columns {unknown}, which X does not have: they are {known}."
        )
    if len(set(places.values())) < len(places):
        raise ValueError(f"{argument}={dict(given)} names a column twice: give each once.")
    return {place: given[key] for key, place in places.items() if place is not None}


def check_rules(split_rules, names: Sequence[str] | None, p: int) -> list[str | None]:
    """Rule of each column as given; None where nothing is."""
    if split_rules is None:
        return [None] * p
    if isinstance(split_rules, str):
        split_rules = [split_rules] * p
    if isinstance(split_rules, Mapping):
        chosen = by_place("split_rules", split_rules, list(range(p) if names is None else names))
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


def read_schema(columns, names, rules: list[str | None], name: str) -> Schema:
    """Schema of training columns."""
    schema = Schema(names, (CONTINUOUS,) * len(columns), (None,) * len(columns))
    found_rules, found_levels = [], []
    for j, column in enumerate(columns):
        by_sets = column.are_levels and column.order is None
        rule = rules[j] or (SUBSET if by_sets else CONTINUOUS)
        as_levels = column.are_levels or rule != CONTINUOUS
        label = f"{name}, column {schema.label(j)},"
        found_levels.append(levels_of(column, label) if as_levels else None)
        found_rules.append(rule)
    return Schema(names, tuple(found_rules), tuple(found_levels))


def kinds_of(
    X: np.ndarray, schema: Schema | None, rules: list[str | None], excluded: np.ndarray
) -> np.ndarray:
    """Kinds of the columns for `MixedDesign`; empty when all are numbers without missing cells.

    A column that is excluded from splits may have any number of levels: its codes pass for numbers.
    """
    kinds = np.zeros(X.shape[1], dtype=np.int64)
    for j in range(X.shape[1]):
        rule = rules[j] or (schema.rules[j] if schema is not None else CONTINUOUS)
        if rule == CONTINUOUS:
            continue
        levels = () if schema is None else schema.levels[j] or ()
        if len(levels) > MAX_LEVELS and excluded[j]:
            continue
        label = schema.label(j) if schema is not None else j
        if len(levels) > MAX_LEVELS:
            raise ValueError(
                f"X, column {label}, has {len(levels)} levels, but at most {MAX_LEVELS} can be "
                "split by levels: merge rare levels, leave the column out or give it the weight 0 "
                "in split_prior, or encode it as numbers."
            )
        present = X[:, j][X[:, j] != MISSING]
        whole = present.size and present.min() >= 0 and (present == np.floor(present)).all()
        if not whole or present.max() >= MAX_LEVELS:
            raise ValueError(
                f"split_rules: column {label} of X is split by levels, so model data must hold "
                f"level numbers 0, 1, .. below {MAX_LEVELS} there. Make it with pymc_trees.Data, "
                "or give X itself to BART, which accepts any values."
            )
        n_levels = int(present.max()) + 1
        kinds[j] = n_levels if rule == SUBSET else -n_levels
    mixed = kinds.any() or any((rows == MISSING).any() for _, rows in row_blocks(X))
    return kinds if mixed else kinds[:0]
