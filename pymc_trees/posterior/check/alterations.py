"""Traces that saving or editing leaves in the draws of any trees."""

import numpy as np

ALTERED = "the draws were altered (for example rounded, or saved in another precision)"


def alteration(values: list[np.ndarray]) -> str | None:
    """What was done to draws of the right shape, none of which is intact, as far as they show."""
    if is_rounded(values):
        return "they were altered, rounded to float32"
    if not all(np.isfinite(value).all() for value in values):
        return "they were altered, and hold NaN or infinite values"
    return None


def is_rounded(values: list[np.ndarray]) -> bool:
    """Whether draws were in single precision once, and are not all zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        return all(value.any() for value in values) and all(
            np.array_equal(value.astype(np.float32), value) for value in values
        )
