"""Whether an expression is linear in what trees return, plus a constant: read from its Ops."""

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.targets.affine import passes_through
from pymc_trees.targets.graph import dependent_on

ARRANGING = (DimShuffle, Reshape, Alloc, Subtensor, AdvancedSubtensor)
"""Ops that put the entries of their first input elsewhere."""


def is_linear(var: Variable, outputs: list[Variable]) -> bool:
    """Whether an expression is certainly linear in some variables, plus a constant.

    What is not known to be counts as curved.
    """
    return _is_linear(var, _seeing(var, outputs), outputs)


def _seeing(var, outputs):
    return set().union(*(dependent_on([var], one) for one in outputs))


def _is_linear(var, seeing, outputs):
    if var not in seeing or any(var is one for one in outputs):
        return True
    inner = passes_through(var)
    if inner is not None:
        return _is_linear(inner, seeing, outputs)
    node, op = var.owner, var.owner.op
    if isinstance(op, OpFromGraph):
        inside = op.fgraph.bind(node.inputs)[node.outputs.index(var)]
        return _is_linear(inside, seeing | _seeing(inside, outputs), outputs)
    if not _keeps_lines(op, [v in seeing for v in node.inputs]):
        return False
    return all(_is_linear(v, seeing, outputs) for v in node.inputs)


def _keeps_lines(op, bound: list[bool]) -> bool:
    """Whether an Op is linear in the inputs that are bound to the variables, together."""
    if isinstance(op, ARRANGING):
        return not any(bound[1:])
    if isinstance(op, Join):
        return True
    if isinstance(op, CAReduce):
        return isinstance(op.scalar_op, scalars.Add)
    if isinstance(op, CumOp):
        return op.mode == "add"
    if isinstance(getattr(op, "core_op", op), Dot) and isinstance(op, Blockwise | Dot):
        return sum(bound) == 1
    if not isinstance(op, Elemwise):
        return False
    kind = op.scalar_op
    if isinstance(kind, scalars.Mul):
        return sum(bound) == 1
    if isinstance(kind, scalars.TrueDiv):
        return not bound[1]
    if isinstance(kind, scalars.Switch):
        return not bound[0]
    return isinstance(kind, scalars.Add | scalars.Sub | scalars.Neg | scalars.Second)
