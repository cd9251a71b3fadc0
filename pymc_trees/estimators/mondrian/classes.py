"""Classes and their numbers."""

import numpy as np

from pymc_trees.estimators.mondrian.inputs import unmasked


def known_classes(classes):
    """All classes there will be, in ascending order."""
    if classes is None:
        raise ValueError(
            "classes must be passed on the first call to partial_fit: all classes that will ever "
            "occur, since a new class would change every prediction."
        )
    known = np.unique(unmasked("classes", classes))
    if (
        np.ndim(classes) != 1
        or not known.size
        or (known.dtype.kind == "f" and not np.isfinite(known).all())
    ):
        raise ValueError(
            f"classes must be a list of labels, at least one of them, got {classes!r}."
        )
    return known


def check_same_classes(classes, known):
    """Refuse other classes than those of the first call."""
    if classes is not None and not np.array_equal(np.unique(classes), known):
        raise ValueError(
            f"classes={classes!r} differ from those of the first call of partial_fit, {known!r}: "
            "leave them out, or fit a new forest."
        )


def codes_of(y, classes):
    """Position of each label among the classes."""
    codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
    strange = classes[codes] != y
    if strange.any():
        raise ValueError(
            f"y has classes {np.unique(y[strange])!r} that are not in classes_, "
            f"{classes!r}: give all of them as classes at the first partial_fit."
        )
    return codes.astype(np.int64)
