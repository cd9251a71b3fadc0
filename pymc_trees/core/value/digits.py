"""Numbers in words, with as many digits as tell them apart."""

from collections.abc import Iterable, Sequence

import numpy as np

LEAST, MOST = 4, 17
"""Significant digits: of every number, and those that say a float exactly."""


def cut_text(cut: float, cells: np.ndarray | None = None) -> str:
    """The fewest digits with which a cut sorts cells as it does.

    Parameters
    ----------
    cut : float
        Cells at most as large go left.
    cells : (k,) array, optional
        What the column holds, distinct and sorted. Default: nothing, which 4 digits sort.
    """
    if cells is None:
        return _shown(cut, LEAST)
    left = np.searchsorted(cells, cut, side="right")
    texts = (_shown(cut, digits) for digits in range(LEAST, MOST))
    same = (t for t in texts if np.searchsorted(cells, float(t), side="right") == left)
    return next(same, _shown(cut, MOST))


def number_labels(values: Iterable[float]) -> list[str]:
    """The fewest digits, 4 or more, with which different numbers read differently.

    NaN reads "missing".
    """
    numbers = np.array(list(values), dtype=np.float64)
    several = np.unique(numbers).size
    for digits in range(LEAST, MOST + 1):
        texts = ["missing" if np.isnan(x) else _shown(x, digits) for x in numbers]
        if len(set(texts)) == several:
            break
    return texts


def level_words(levels: Sequence) -> list[str]:
    """Levels as they are written: numbers as short as they can be."""
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in levels):
        return number_labels(levels)
    return [str(one) for one in levels]


def _shown(number: float, digits: int) -> str:
    """So many significant digits, without an exponent where that is no longer."""
    text = f"{number:.{digits}g}"
    if "e" not in text:
        return text
    return min(np.format_float_positional(float(text), trim="-"), text, key=len)
