"""Derivatives of a log-likelihood by the forest's outputs, for proposals alone."""

import pytensor.tensor as pt
from pytensor.gradient import NullTypeGradError, grad
from pytensor.graph.basic import Variable
from pytensor.graph.utils import MethodNotDefined


def slope(total: Variable, outputs: Variable) -> Variable:
    """Gradient of a scalar, or zeros where PyTensor has none.

    Proposals are corrected for: a derivative that is missing makes them worse, never wrong.
    """
    try:
        return grad(total, outputs, disconnected_inputs="ignore")
    except (NotImplementedError, MethodNotDefined, NullTypeGradError):
        return pt.zeros_like(outputs)
