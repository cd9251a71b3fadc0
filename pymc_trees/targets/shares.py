"""Target of a forest in a proportion p of which the likelihood of each row is affine.

Such is a mixture of two that is written as an expression, as in ``log(1 - p + p S)`` of a row that
may be cured: L_i = (1 - p_i) exp(a_i) + p_i exp(b_i), where p is the logistic or probit function of
f. That log L_i is the logarithm of something affine in p_i is read from the Ops between the two;
then a_i and b_i are log L_i where p is 0 and where it is 1. Given which of the two a row belongs
to, the forest sees a Bernoulli, as in a `pm.Mixture` (`likelihoods.mixtures`).
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.special import LogAddExp

from pymc_trees.targets.conjugate import LatentTarget
from pymc_trees.targets.graph import (
    ForestGraph,
    NotRecognisedError,
    dependent_on,
    passes_through,
)
from pymc_trees.targets.leaf_rows import leaf_rows
from pymc_trees.targets.likelihoods.expressions import read_affine
from pymc_trees.targets.likelihoods.mixtures import LogitOfShare, ProbitOfShare, Share
from pymc_trees.targets.settings import PointFunction
from pymc_trees.targets.terms import likelihood_terms


class ShareTarget(LatentTarget):
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model, of which the likelihood sees one function.

    Raises
    ------
    NotRecognisedError
        When the likelihood is not known to be affine in a proportion, row by row.
    LeafNotProposedError
        For leaves that do not read Gaussian rows.
    """

    def __init__(self, graph: ForestGraph):
        self.layout = graph.layout
        n = graph.layout.n_rows
        if n == 1 or not (graph.combines or graph.layout.n_outputs == 1):
            raise NotRecognisedError("a single row, or several outputs")
        terms, outputs = likelihood_terms(graph)
        if len(terms) != 1 or terms[0].conditions or terms[0].value.type.shape != (n,):
            raise NotRecognisedError("not one term of the rows")
        leaves = leaf_rows(graph, outputs)
        if leaves is None:
            raise NotRecognisedError("several outputs")
        likelihood, p, eta = _proportion(terms[0].value, outputs)
        share = pt.vector("share", dtype="float64", shape=(n,))
        [value] = clone_replace([terms[0].value], {p: share}, rebuild_strict=False)
        if value in dependent_on([value], outputs):
            raise NotRecognisedError("a forest that enters in other ways than through a proportion")
        _Reader(share, dependent_on([value], share)).log(value)
        ends = [clone_replace(value, {share: pt.constant(np.full(n, end))}) for end in (1.0, 0.0)]
        self.leaves, self.likelihood, self.augmentation = (
            leaves,
            likelihood,
            likelihood.augmentation,
        )
        self._is_component, self.is_of_weights = False, True
        affine = read_affine(eta, outputs)
        self._n_others, self._n_affine, self._n_parameters = 0, len(affine), 2
        wanted = [pt.zeros(n), *affine, *ends, *leaves.wanted]
        self._numbers_at = PointFunction(graph.model, graph.rv, wanted, outputs, self._rows)
        self._check(graph, wanted[1 + len(affine) : 3 + len(affine)], outputs)

    def _check(self, graph, ends, outputs) -> None:
        """Raise an error where the likelihood is not one at an end of p, as of log(p - 0.1)."""
        numbers = PointFunction(graph.model, graph.rv, ends, outputs, list)
        _, found = numbers(graph.model.initial_point())
        if any(np.isnan(one).any() for one in found):
            raise NotRecognisedError("no likelihood at an end of the proportion")


def _proportion(value: Variable, outputs: Variable) -> tuple[Share, Variable, Variable]:
    """The proportion that an expression sees: its likelihood, itself, and its linear predictor."""
    dependent = dependent_on([value], outputs)
    for node in toposort([value]):
        p = node.outputs[0]
        if p not in dependent or p.ndim != 1 or passes_through(p) is not None:
            continue
        for kind in (LogitOfShare, ProbitOfShare):
            likelihood = kind()
            try:
                eta = likelihood.argument(p, outputs)
                read_affine(eta, outputs)
            except NotRecognisedError:
                continue
            return likelihood, p, eta
    raise NotRecognisedError("no proportion")


class _Reader:
    """Checks that an expression is affine in a vector, row by row, or the logarithm of such."""

    def __init__(self, share: Variable, dependent: set[Variable]):
        self.share, self.dependent = share, dependent

    def _open(self, e: Variable):
        """The function of numbers that an expression is of its inputs, all of them vectors."""
        while (inner := passes_through(e)) is not None:
            e = inner
        op = e.owner.op if e.owner else None
        inputs = list(e.owner.inputs) if e.owner else []
        if e is self.share:
            return e, None, []
        kind = op.scalar_op if isinstance(op, Elemwise) else op
        if not isinstance(op, Elemwise | LogAddExp) or e.type.shape != self.share.type.shape:
            raise NotRecognisedError(str(op))
        return e, kind, inputs

    def affine(self, e: Variable) -> None:
        """An affine function of the entry of the row."""
        if e not in self.dependent:
            return
        e, kind, inputs = self._open(e)
        bound = [v for v in inputs if v in self.dependent]
        if isinstance(kind, scalars.Mul) and len(bound) > 1:
            raise NotRecognisedError("a product of two that depend on the proportion")
        is_affine = isinstance(kind, scalars.Add | scalars.Sub | scalars.Neg | scalars.Mul)
        is_affine |= isinstance(kind, scalars.TrueDiv) and inputs[1] not in self.dependent
        is_affine |= isinstance(kind, scalars.Switch) and inputs[0] not in self.dependent
        if isinstance(kind, scalars.Exp):
            self.log(inputs[0])
        elif is_affine or e is self.share:
            for v in bound:
                self.affine(v)
        else:
            raise NotRecognisedError(str(kind))

    def log(self, e: Variable) -> None:
        """The logarithm of one."""
        if e not in self.dependent:
            return
        e, kind, inputs = self._open(e)
        bound = [v for v in inputs if v in self.dependent]
        if isinstance(kind, scalars.Log | scalars.Log1p):
            self.affine(inputs[0])
        elif isinstance(kind, scalars.Add) and len(bound) == 1:
            self.log(bound[0])
        elif isinstance(kind, scalars.Sub) and bound == [inputs[0]]:
            self.log(bound[0])
        elif isinstance(kind, scalars.Switch) and inputs[0] not in self.dependent:
            for v in bound:
                self.log(v)
        elif isinstance(kind, LogAddExp):
            for v in bound:
                self.log(v)
        else:
            raise NotRecognisedError(str(kind))
