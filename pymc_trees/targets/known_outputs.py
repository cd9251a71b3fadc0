"""Outputs at the training rows of the forests that step methods of this thread hold.

On many rows the value of a forest does not hold them, and whoever has the value alone walks every
tree. The step that moved the forest knows them already.
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
    """Let other steps of this thread ask a forest for its outputs."""
    _forests()[forest.value_name] = forest


def known_outputs(name: str, value: np.ndarray) -> np.ndarray | None:
    """(n, K) outputs of a forest's value, where a forest of that name holds them.

    The value carries a fingerprint of its training inputs: of equal values the outputs are equal.
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
