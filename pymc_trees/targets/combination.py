"""Several outputs of a forest of which a likelihood sees one combination a row.

Such are the coefficients of a `BasisLeaf`, and shared trees in ``f[0] + f[1] * x``: however the
likelihood continues, row i depends on the K outputs f_i through ``b_i . f_i`` alone. It is then a
likelihood of that single function, and the readers of such likelihoods apply.
"""

from dataclasses import replace

import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise

from pymc_trees.targets.graph import ForestGraph, NotRecognisedError, dependent_on
from pymc_trees.targets.likelihoods.expressions import rows_axis


def as_combination(graph: ForestGraph) -> ForestGraph | None:
    """The graph of the combination; None where a forest cannot have one."""
    leaf, layout = graph.rv.owner.op.leaf_type, graph.layout
    has_several = leaf.any_likelihood and leaf.is_constant() and layout.n_values > 1
    # a single row could be broadcast to several
    if not has_several or layout.n_rows == 1:
        return None
    return replace(graph, reduce=combined, readings={})


def combined(expressions: list[Variable], inner: Variable) -> tuple[list[Variable], Variable]:
    """Expressions as functions of an (n, 1) variable in place of the (n, K) outputs.

    What it is of the outputs is in ``tag.pymc_trees_combination``, with the outputs.

    Raises
    ------
    NotRecognisedError
        If they depend on the outputs in other ways than through one combination.
    """
    dependent = dependent_on(expressions, inner)
    outputs = pt.tensor("outputs", dtype="float64", shape=(inner.type.shape[0], 1))
    for node in toposort(expressions):
        for var in node.outputs:
            if var not in dependent or getattr(var, "ndim", 0) != 1:  # a generator has none
                continue
            if not _is_combination(var, inner, dependent):
                continue
            reduced = clone_replace(expressions, {var: outputs[:, 0]}, rebuild_strict=False)
            if any(v is inner for v in ancestors(reduced)):
                continue
            outputs.tag.pymc_trees_combination = var, inner
            return reduced, outputs
    if inner not in set(ancestors(expressions)):
        outputs.tag.pymc_trees_combination = inner[:, 0], inner
        return expressions, outputs
    raise NotRecognisedError("outputs that enter in several ways")


def _is_combination(var: Variable, inner: Variable, dependent: set[Variable]) -> bool:
    """Whether a vector is ``b_i . f_i``, row by row, b free of the outputs."""
    try:
        if rows_axis(var, inner, dependent) != 0:
            return False
    except NotRecognisedError:
        return False
    between = [v for v in ancestors([var], blockers=[inner]) if v in dependent and v is not inner]
    return not any(_adds_others(v, dependent) for v in between)


def _adds_others(var: Variable, dependent: set[Variable]) -> bool:
    """Whether a sum has terms that are free of the outputs."""
    op = var.owner.op
    is_sum = isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Add | scalars.Sub)
    return is_sum and any(v not in dependent for v in var.owner.inputs)
