"""Log-likelihood terms of a model that depend on a forest, as functions of its outputs."""

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.gradient import NullTypeGradError, grad
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort
from pytensor.graph.utils import MethodNotDefined
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import All, Sum

from pymc_trees.targets.graph import (
    ForestGraph,
    Term,
    dependent_on,
    log_indicator,
    open_forest,
    passes_through,
    read_once,
)


@read_once
def likelihood_terms(graph: ForestGraph) -> tuple[list[Term], Variable]:
    """Every summand of the model's log-probability that depends on a forest.

    Observed variables, Potentials and unobserved variables alike, Jacobians included.

    Returns
    -------
    terms : list of Term
        Together the log-likelihood of the forest, up to a constant.
    outputs : (n, K) matrix variable
        The forest's outputs, an input of the terms.
    """
    dependent = [*graph.terms, *graph.potentials]
    whole, outputs = open_forest(graph, graph.model.logp(vars=dependent, sum=False))
    return summands(whole, outputs), outputs


def summands(expressions: list[Variable], outputs: Variable) -> list[Term]:
    """Terms that add up to expressions, without those that do not depend on ``outputs``."""
    terms = []
    for one in expressions:
        value, conditions = _without_checks(one, outputs)
        parts = [Term(v) for v in _summands(value, dependent_on([value], outputs))]
        if parts:
            parts[0].conditions = conditions
        terms += parts or [log_indicator(c) for c in conditions]
    return terms


def _without_checks(term: Variable, outputs: Variable) -> tuple[Variable, list[Variable]]:
    """A term without the checks that depend on the forest, and the conditions of these checks.

    If a check fails the likelihood is 0, whatever is done with the checked number afterwards: a
    minus sign must not turn it into infinity. Checks of other variables than the forest give -inf
    in their place, as in PyMC.
    """
    conditions: list[Variable] = []
    while True:
        dependent = dependent_on([term, *conditions], outputs)
        checks = (
            n for n in toposort([term, *conditions]) if _checks(n) and n.outputs[0] in dependent
        )
        node = next(checks, None)
        if node is None:
            return term, conditions
        if isinstance(node.op, OpFromGraph):
            inside = node.op.fgraph.bind(node.inputs)
            replaced = dict(zip(node.outputs, inside, strict=True))
        else:
            value, *checked = node.inputs
            for condition in _conjuncts(checked):
                if condition in dependent:
                    conditions.append(condition)
                else:
                    safe = pt.switch(pt.all(condition), value, -np.inf)
                    value = safe.astype(value.type.dtype)
            replaced = {node.outputs[0]: value}
        term, *conditions = clone_replace([term, *conditions], replaced, rebuild_strict=False)


def _checks(node: Apply) -> bool:
    if isinstance(node.op, OpFromGraph):
        return any(_checks(inner) for inner in node.op.fgraph.apply_nodes)
    return isinstance(node.op, CheckAndRaise)


def _conjuncts(conditions):
    """Conditions that together are equivalent to one condition."""
    for condition in conditions:
        op = condition.owner.op if condition.owner else None
        if isinstance(op, All | MakeVector | ScalarFromTensor | TensorFromScalar):
            yield from _conjuncts(condition.owner.inputs)
        elif isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.AND):
            yield from _conjuncts(condition.owner.inputs)
        elif isinstance(op, DimShuffle) and condition.owner.inputs[0].ndim == 0:
            yield from _conjuncts(condition.owner.inputs)
        else:
            yield condition


def _summands(term: Variable, dependent: set[Variable]) -> list[Variable]:
    """Terms that sum to ``term``, without summands that do not depend on the forest."""
    if term not in dependent:
        return []
    inner = passes_through(term)
    if inner is not None:
        return _summands(inner, dependent)
    if term.owner and isinstance(term.owner.op, Sum):
        return _summands(term.owner.inputs[0], dependent)
    if term.ndim == 0 and term.owner and isinstance(term.owner.op, Elemwise):
        kind = term.owner.op.scalar_op
        if isinstance(kind, scalars.Add):
            return [s for part in term.owner.inputs for s in _summands(part, dependent)]
        if isinstance(kind, scalars.Sub):
            left, right = (_summands(part, dependent) for part in term.owner.inputs)
            return [*left, *(-s for s in right)]
        if isinstance(kind, scalars.Neg):
            return [-s for s in _summands(term.owner.inputs[0], dependent)]
    return [term]


# -------- Derivatives of a log-likelihood with respect to the forest's outputs, for proposals only


def slope(total: Variable, outputs: Variable, missing: float = np.nan) -> Variable:
    """Gradient of a scalar, or numbers ``missing`` where PyTensor has none.

    Kernels replace NaN by differences (`core.leaves.nonconjugate.native`), and ignore 0. Proposals
    are corrected by acceptance: a poor derivative makes them less efficient, never wrong.
    """
    try:
        return grad(total, outputs, disconnected_inputs="ignore")
    except (NotImplementedError, MethodNotDefined, NullTypeGradError):
        return pt.full_like(outputs, missing)
