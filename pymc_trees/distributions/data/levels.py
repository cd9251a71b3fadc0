"""Which code a cell of a column of levels has: exact matches, and no guesses.

Text matches text, numbers (bools are 0 and 1) match numbers, and other objects those of their own
type. A number matches text where every text of the column is the plain decimal of a number, so
that there is one way only to write it: 1 is "1", and neither "01" nor "1.0".
"""

import warnings

import numpy as np
import pymc as pm

import pymc_trees
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.distributions.data.columns import Column
from pymc_trees.distributions.data.numbers import EXACT, is_real

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
