"""Formatted numbers, with as many digits as needed to distinguish them."""

from collections.abc import Iterable, Sequence

import numpy as np

LEAST, MOST = 4, 17
"""Significant digits: the minimum, and those that determine a float exactly."""


def cut_text(cut: float, cells: np.ndarray | None = None) -> str:
    """Fewest digits with which a cut gives the same partition of cells.

    Parameters
    ----------
    cut : float
        Cells at most as large go left.
    cells : (k,) array, optional
        Distinct cells of the column, sorted. Default: none, which gives 4 digits.
    """
    if cells is None:
        return _shown(cut, LEAST)
    left = np.searchsorted(cells, cut, side="right")
    texts = (_shown(cut, digits) for digits in range(LEAST, MOST))
    same = (t for t in texts if np.searchsorted(cells, float(t), side="right") == left)
    return next(same, _shown(cut, MOST))


def number_labels(values: Iterable[float]) -> list[str]:
    """Fewest digits, 4 or more, with which different numbers are printed differently.

    NaN is printed as "missing".
    """
    numbers = np.array(list(values), dtype=np.float64)
    several = np.unique(numbers).size
    for digits in range(LEAST, MOST + 1):
        texts = ["missing" if np.isnan(x) else _shown(x, digits) for x in numbers]
        if len(set(texts)) == several:
            break
    return texts


def level_words(levels: Sequence) -> list[str]:
    """Text of levels; numbers as short as possible."""
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in levels):
        return number_labels(levels)
    return [str(one) for one in levels]


def _shown(number: float, digits: int) -> str:
    """Text with a number of significant digits, without an exponent if that is not longer."""
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    return min(np.format_float_positional(float(text), trim="-"), text, key=len)
