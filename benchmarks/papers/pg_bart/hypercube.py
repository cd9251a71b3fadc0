"""Hypercube-D (section 4.1): ten points near each vertex, and a value for each vertex."""

from dataclasses import dataclass

import numpy as np

BETA = {2: 1.0, 3: 0.5, 4: 0.4, 5: 0.3, 7: 0.25}
"""beta of the tree prior, footnote 5: about 2^D leaves beforehand."""

POINTS = 10
SD_X, SD_F, SD_Y = 0.1, 3.0, 0.01


@dataclass(frozen=True)
class Data:
    """Training and test rows; ``f`` where it is known."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    f: np.ndarray | None = None


def hypercube(D, seed):
    """As many test rows as training rows, with the same vertex values."""
    rng = np.random.default_rng([D, seed])
    vertices = np.stack(np.meshgrid(*[[-1.0, 1.0]] * D, indexing="ij"), axis=-1).reshape(-1, D)
    f = np.repeat(rng.normal(0, SD_F, len(vertices)), POINTS)
    centres = np.repeat(vertices, POINTS, axis=0)
    X, X_test = (centres + rng.normal(0, SD_X, centres.shape) for _ in range(2))
    y, y_test = (f + rng.normal(0, SD_Y, len(f)) for _ in range(2))
    return Data(X, y, X_test, y_test, f)
