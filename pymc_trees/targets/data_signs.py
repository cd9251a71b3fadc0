"""Expressions that do not depend on a forest: are they data, and may they be negative?"""

import numpy as np
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.scalar import basic as scalars
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape
from pytensor.tensor.special import Softmax
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.targets.graph import passes_through


def is_positive(e: Variable) -> bool:
    """Whether an expression that does not depend on f is known to have no negative entry.

    Numbers of data are looked at; a variable of the model must have passed a positive function.
    """
    while (inner := passes_through(e)) is not None:
        e = inner
    if is_data(e):
        return bool((data_of(e) >= 0).all())
    if e.owner is None:
        return False
    op, inputs = e.owner.op, e.owner.inputs
    if isinstance(op, Elemwise):
        if isinstance(op.scalar_op, ALWAYS_POSITIVE):
            return True
        if isinstance(op.scalar_op, KEEPS_SIGN):
            return all(is_positive(v) for v in inputs)
        if isinstance(op.scalar_op, scalars.Switch):
            return all(is_positive(v) for v in inputs[1:])
        if isinstance(op.scalar_op, scalars.Second):
            return is_positive(inputs[1])
    if isinstance(op, Softmax):
        return True
    if isinstance(op, DimShuffle | Reshape | Subtensor | AdvancedSubtensor | Alloc):
        return is_positive(inputs[0])
    return (
        isinstance(op, CAReduce)
        and isinstance(op.scalar_op, scalars.Add)
        and is_positive(inputs[0])
    )


ALWAYS_POSITIVE = (scalars.Exp, scalars.Sqr, scalars.Abs, Sigmoid, Softplus)
KEEPS_SIGN = (scalars.Add, scalars.Mul, scalars.TrueDiv, scalars.Sqrt, scalars.Pow)


def is_data(e: Variable) -> bool:
    """Whether an expression depends on data alone."""
    return not any(True for _ in explicit_graph_inputs([e]))


def data_of(e: Variable) -> np.ndarray:
    """Numbers of an expression of data."""
    if isinstance(e, Constant):
        return np.asarray(e.data)
    return np.asarray(e.get_value() if e.owner is None else e.eval(mode="FAST_COMPILE"))
