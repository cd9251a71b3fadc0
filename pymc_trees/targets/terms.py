"""Log-likelihood terms of a model that see a forest, as functions of its outputs."""

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Sum

from pymc_trees.targets.affine import passes_through
from pymc_trees.targets.graph import ForestGraph, dependent_on, open_forest


def likelihood_terms(model: pm.Model, graph: ForestGraph) -> tuple[list[Variable], Variable]:
    """Every summand of the model's log-probability that sees a forest.

    Observed variables, Potentials and unobserved variables alike, Jacobians included.

    Returns
    -------
    terms : list of variables
        Their sum over all entries is the log-likelihood of the forest, but for a constant.
    outputs : (n, K) matrix variable
        The forest's outputs, an input of the terms.
    """
    seen = [*graph.terms, *graph.potentials]
    terms, outputs = open_forest(model, graph, model.logp(vars=seen, sum=False))
    seeing = dependent_on(terms, outputs)
    return [s for term in terms for s in _summands(term, seeing)], outputs


def _summands(term: Variable, seeing: set[Variable]) -> list[Variable]:
    """Terms whose entries add up to those of ``term``, without what does not see the forest."""
    if term not in seeing:
        return []
    inner = passes_through(term)
    if inner is not None:
        return _summands(inner, seeing)
    if term.owner and isinstance(term.owner.op, Sum):
        return _summands(term.owner.inputs[0], seeing)
    if term.ndim == 0 and term.owner and isinstance(term.owner.op, Elemwise):
        kind = term.owner.op.scalar_op
        if isinstance(kind, scalars.Add):
            return [s for part in term.owner.inputs for s in _summands(part, seeing)]
        if isinstance(kind, scalars.Neg):
            return [-s for s in _summands(term.owner.inputs[0], seeing)]
    return [term]
