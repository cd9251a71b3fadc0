"""Outputs at the training rows of the forests of this thread's step methods.

With many rows the value of a forest does not contain them, and computing them from the value
traverses every tree. The step that updated the forest has them already.
"""

import threading
from weakref import WeakValueDictionary

import numpy as np

from pymc_trees.targets.forest_state import WorkingForest

_here = threading.local()


def _forests() -> WeakValueDictionary:
    if not hasattr(_here, "forests"):
        _here.forests = WeakValueDictionary()
    return _here.forests


def make_known(forest: WorkingForest) -> None:
    """Make the outputs of a forest available to other steps of this thread."""
    _forests()[forest.value_name] = forest


def known_outputs(name: str, value: np.ndarray) -> np.ndarray | None:
    """(n, K) outputs of a forest's value, if a forest of that name has them.

    The value includes a fingerprint of its training inputs: equal values have equal outputs.
    """
    forest = _forests().get(name)
    if forest is None:
        return None
    held = [] if forest.arrays is None else [(forest.arrays.value, forest.arrays.fit)]
    if forest.restored is not None:
        held.append(forest.restored)
    for known, fit in held:
        if known is value or np.array_equal(known, value):
            return fit
    return None
