"""Where the boxes of a tree stand: leaves side by side, every split above its two sides.

Lengths are dots at the size of the text, so that a figure of as many dots fits it.
"""

from typing import NamedTuple

import numpy as np

TEXT = 13.0
"""Height of the text."""
LETTER, LINE = 0.61 * TEXT, 1.35 * TEXT
"""Mean width of a letter, and height of a line."""
PADDING = 0.6 * TEXT
BESIDE, BELOW = 18.0, 46.0
"""Gaps between boxes: side by side, and from a split to what is below it, with yes or no."""


class Boxes(NamedTuple):
    """Boxes of the nodes of a tree, by number; y falls from 0 at the upper edge."""

    x: np.ndarray
    """Centres."""
    y: np.ndarray
    """Centres."""
    width: np.ndarray
    height: np.ndarray
    size: tuple[float, float]
    """Width and height of them all."""

    @property
    def edges(self) -> np.ndarray:
        """(box, 4) left, right, lower and upper edge."""
        half, tall = self.width / 2, self.height / 2
        edges = [self.x - half, self.x + half, self.y - tall, self.y + tall]
        return np.column_stack(edges)


def boxes_of(texts: list[str], children: list[tuple[int, ...]], depth: list[int]) -> Boxes:
    """Boxes that hold these texts, of nodes in preorder."""
    lines = [text.split("\n") for text in texts]
    width = np.array([max(map(len, one)) * LETTER for one in lines]) + 2 * PADDING
    height = np.array([len(one) * LINE for one in lines]) + 2 * PADDING
    spread = width.copy()
    for k in reversed(range(len(texts))):
        if children[k]:
            spread[k] = max(width[k], _below(spread, children[k]))
    x = _centres(children, width, spread)
    levels = np.asarray(depth)
    tall = np.array([height[levels == d].max() for d in range(levels.max() + 1)])
    upper = np.concatenate([[0.0], np.cumsum(tall + BELOW)[:-1]])
    y = -(upper + tall / 2)[levels]
    return Boxes(x, y, width, height, (float(spread[0]), float(upper[-1] + tall[-1])))


def _below(spread: np.ndarray, pair: tuple[int, ...]) -> float:
    """Width of what is below a split."""
    return float(sum(spread[child] for child in pair)) + BESIDE


def _centres(children, width, spread) -> np.ndarray:
    """A split stands between its children, as far as the width that is its own allows."""
    start = np.zeros(len(children))
    for k, pair in enumerate(children):
        if pair:
            left, right = pair
            start[left] = start[k] + (spread[k] - _below(spread, pair)) / 2
            start[right] = start[left] + spread[left] + BESIDE
    x = start + spread / 2
    for k in reversed(range(len(children))):
        if children[k]:
            half = width[k] / 2
            between = x[list(children[k])].mean()
            x[k] = np.clip(between, start[k] + half, start[k] + spread[k] - half)
    return x
