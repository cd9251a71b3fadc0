"""Derivatives of a log-likelihood with respect to the forest's outputs, for proposals only."""

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import NullTypeGradError, grad
from pytensor.graph.basic import Variable
from pytensor.graph.utils import MethodNotDefined


def slope(total: Variable, outputs: Variable, missing: float = np.nan) -> Variable:
    """Gradient of a scalar, or numbers ``missing`` where PyTensor has none.

    Kernels replace NaN by differences (`core.leaves.nonconjugate.slopes`), and ignore 0. Proposals
    are corrected by acceptance: a poor derivative makes them less efficient, never wrong.
    """
    try:
        return grad(total, outputs, disconnected_inputs="ignore")
    except (NotImplementedError, MethodNotDefined, NullTypeGradError):
        return pt.full_like(outputs, missing)
