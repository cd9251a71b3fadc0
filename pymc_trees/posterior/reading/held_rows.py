"""Rows with some columns held at one point after another."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HeldRows:
    """All rows at the first point, then all at the second, ...; made when they are sliced."""

    rows: np.ndarray
    """(n, p)"""
    columns: list[int]
    points: np.ndarray
    """(points, held columns)"""

    def __len__(self) -> int:
        return len(self.rows) * len(self.points)

    def __getitem__(self, which: slice) -> np.ndarray:
        point, row = np.divmod(np.arange(len(self))[which], len(self.rows))
        held = self.rows[row]
        held[:, self.columns] = self.points[point]
        return held
