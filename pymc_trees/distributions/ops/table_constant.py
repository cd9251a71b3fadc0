"""Training inputs as a constant of the graph, also where they lie in a file."""

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorConstant

from pymc_trees.core.columns.table_file import in_file


class TableConstant(TensorConstant):
    """A table in a file, told from other constants by a number: PyTensor would read it all."""

    stamp: float

    def signature(self):
        """What says of two constants that they are one."""
        return type(self), self.type, self.stamp

    def __copy__(self):
        return stamped(self.data, self.stamp)

    def __deepcopy__(self, memo):
        return stamped(self.data, self.stamp)


def stamped(X: np.ndarray, stamp: float) -> TensorConstant:
    """Constant of (n, p) inputs; ``stamp`` is the fingerprint of a forest that is grown on them."""
    if not in_file(X):
        return pt.constant(X)
    constant = TableConstant(TensorType("float64", shape=X.shape), X)
    constant.stamp = stamp
    return constant
