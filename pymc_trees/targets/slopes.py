"""Derivatives of a log-likelihood with respect to the forest's outputs, for proposals only."""

import pytensor.tensor as pt
from pytensor.gradient import NullTypeGradError, grad
from pytensor.graph.basic import Variable
from pytensor.graph.utils import MethodNotDefined


def slope(total: Variable, outputs: Variable) -> Variable:
    """Gradient of a scalar, or zeros where PyTensor has none.

    Proposals are corrected by acceptance: a missing derivative makes them less efficient, never
    wrong.
    """
    try:
        return grad(total, outputs, disconnected_inputs="ignore")
    except (NotImplementedError, MethodNotDefined, NullTypeGradError):
        return pt.zeros_like(outputs)
