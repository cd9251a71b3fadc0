"""Subexpressions that do not depend on one of the variables, cut off and computed once."""

import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort

from pymc_trees.targets.graph import dependent_on


def cut_free(
    total: Variable, changing: Variable
) -> tuple[Variable, list[Variable], list[Variable]]:
    """Replace subexpressions that do not depend on a variable by inputs.

    Returns
    -------
    total : Variable
        The expression as a function of ``changing`` and of ``free``.
    expressions : list of Variable
        Values of the inputs, as expressions: float64, of at least one dimension.
    free : list of Variable
        The inputs.
    """
    seeing = dependent_on([total], changing)
    replaced: dict[Variable, Variable] = {}
    expressions: list[Variable] = []
    free: list[Variable] = []
    for node in toposort([total]):
        if not any(v in seeing for v in node.outputs):
            continue
        for v in (t for u in node.inputs if u not in seeing for t in _tensors(u)):
            if v in replaced or (isinstance(v, Constant) and v.data.size == 1):
                continue
            new = pt.tensor(f"free_{len(free)}", dtype="float64", shape=v.type.shape or (1,))
            inside = new if v.ndim else new[0]
            inside = pt.neq(inside, 0.0) if v.dtype == "bool" else inside.astype(v.dtype)
            replaced[v] = pt.specify_shape(inside, v.type.shape)
            expressions.append((v if v.ndim else v[None]).astype("float64"))
            free.append(new)
    [total] = clone_replace([total], replaced, rebuild_strict=False)
    return total, expressions, free


def _tensors(var):
    """The variable, or the tensors of which another type was built."""
    if isinstance(var.type, pt.TensorType):
        yield var
    elif var.owner:
        for v in var.owner.inputs:
            yield from _tensors(v)
