"""Log-densities of the parameters of one topology, for any topology, as PyTensor graphs.

The unconstrained vector q holds, in this order,

========================= ======================= =====================================
other free variables      their value variables   PyMC's transforms
leaf values               L (normal leaf only)    none
thresholds tau            S                       logit
weights Delta             S (p - 1)               stick-breaking, 0 for equal weights
========================= ======================= =====================================

The topology is a shared node table, so that one compiled function serves every topology. Shared too
are the corners that weights drawn by index stand at, which are no part of q then, and the values of
variables that other steps move.
"""

from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors

from pymc_trees.core.soft.topology import STUMP, node_table
from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.distributions.forest_inputs import Evaluation, soft_tree_inputs
from pymc_trees.distributions.ops.soft_coordinates import SoftCoordinates
from pymc_trees.distributions.ops.soft_gates import SoftGates
from pymc_trees.inference.dcc.soft_model import SoftModel, observed_classes


class Parameters(NamedTuple):
    """One topology's parameters as functions of q."""

    others: list[Variable]
    """Value variables of the other free variables."""
    values: Variable
    """(L, 1) leaf values, or None with a Dirichlet leaf."""
    tau: Variable
    """(S,)"""
    delta: Variable
    """(S, p)"""
    log_jacobian: Variable
    """Of tau and Delta."""


class SoftGraph:
    """Graphs of q, a vector, that depend on the shared ``table`` and ``h``."""

    def __init__(self, soft: SoftModel):
        self.soft = soft
        op = soft.tree.owner.op
        self.table = pytensor.shared(node_table(STUMP), "node_table")
        self.h = pytensor.shared(np.float64(op.h[1]), "h")
        self.corners = pytensor.shared(np.zeros((0, op.p)), "corners")
        self.q = pt.vector("q", dtype="float64")
        point = soft.model.initial_point()
        self.values = [soft.model.rvs_to_values[rv] for rv in soft.others]
        self.shapes = [np.shape(point[v.name]) for v in self.values]
        given = [soft.model.rvs_to_values[rv] for rv in soft.given]
        self.given = {
            value: pytensor.shared(point[value.name], value.name, shape=value.type.shape)
            for value in given
        }
        self.parameters = self._read(op)
        self.classes = None if soft.labels is None else observed_classes(soft)
        self.log_prior, self.log_likelihood = self._densities(op)

    def _read(self, op) -> Parameters:
        q, at = self.q, 0
        others = []
        for value, shape in zip(self.values, self.shapes, strict=True):
            size = int(np.prod(shape))
            piece = q[at : at + size].reshape(shape)
            others.append(pt.specify_broadcastable(piece) if value.type.ndim == 0 else piece)
            at += size
        n_split = self.table.shape[0] // 2
        start = pt.constant(at, dtype="int64")
        leaf_values = None
        if op.leaf_type.sampled_in_soft_trees:
            leaf_values = q[start : start + n_split + 1].reshape((-1, 1))
            start = start + n_split + 1
        # an index is a corner, not a part of q: its thresholds are those of gates of one input
        tau, delta, log_jacobian = SoftCoordinates(1 if op.by_index else op.p)(q[start:])
        delta = self.corners if op.by_index else delta
        return Parameters(others, leaf_values, tau, delta, log_jacobian)

    def routed(self, evaluation: Evaluation) -> Variable:
        """(L, n) leaf probabilities in place of an evaluation of the tree."""
        low, span, *_ = evaluation.rest
        scaled = np.ascontiguousarray(((evaluation.X.eval() - low.data) / span.data).T)
        parameters = self.parameters
        return SoftGates()(
            parameters.delta, parameters.tau, pt.constant(scaled), self.h, self.table
        )[0]

    def localise(self, graphs: list[Variable], tree: Variable, replace=()) -> list[Variable]:
        """Graphs with the evaluations of a tree (its variable or value) written in terms of q."""
        replace = dict(replace)
        for found in evaluations(graphs):
            if found.tree is not tree:
                raise NotImplementedError(
                    f"{tree.name} is used in another form: use the function that SoftDecisionTree "
                    "returns."
                )
            if found.outputs not in replace:
                # A sum, not a product by BLAS: the same bits in every process.
                each = self.routed(found) * self.parameters.values
                replace[found.outputs] = pt.sum(each, axis=0)[:, None]
        if not replace:
            return graphs
        local = graph_replace(graphs, replace, strict=False)
        if any(v is tree for v in ancestors(local)):
            raise NotImplementedError(
                "A variable of the model depends on the encoded tree itself. Soft trees support "
                "only variables that depend on the function returned by SoftDecisionTree."
            )
        return local

    def _densities(self, op):
        soft, parameters = self.soft, self.parameters
        model = soft.model
        drawn = [rv for rv in soft.others if not any(rv is v for v in soft.factors)]
        priors = model.logp(vars=drawn, sum=False) if drawn else []
        factors = model.logp(vars=soft.factors, sum=False) if soft.factors else []
        prior = parameters.log_jacobian
        prior += (self.table.shape[0] // 2) * op.log_density_of_direction  # that of tau is 1
        settings = model.replace_rvs_by_values(list(soft_tree_inputs(soft.tree).leaf))
        if op.leaf_type.sampled_in_soft_trees:
            prior += pt.sum(op.leaf_type.logp(parameters.values, *settings))
        likelihood = pt.constant(0.0)
        if soft.labels is not None:
            likelihood, concentrations = self._class_counts(settings[0] / op.n_values)
        prior = sum((pt.sum(term) for term in priors), prior)
        likelihood = sum((pt.sum(term) for term in factors), likelihood)
        value = model.rvs_to_values[soft.tree]
        replace = [*zip(self.values, parameters.others, strict=True), *self.given.items()]
        if soft.labels is not None:
            [self.concentrations] = self.localise([concentrations], value, replace)
        prior, likelihood = self.localise([prior, likelihood], value, replace)
        return prior, likelihood

    def _class_counts(self, alpha):
        """Log of eq. 8, and the (K, L) parameters of the leaves' Dirichlet conditionals.

        ``alpha`` is that of one class; the constant of a leaf has a factor per class too.
        """
        [evaluation] = evaluations([self.soft.labels])
        shown = pt.constant(self.classes)  # (K, n)
        counts = pt.sum(shown[:, None, :] * self.routed(evaluation)[None, :, :], axis=2)
        classes = self.soft.tree.owner.op.n_values
        total = classes * alpha
        per_leaf = pt.gammaln(total) - pt.gammaln(counts.sum(axis=0) + total)
        per_class = pt.gammaln(counts + alpha) - pt.gammaln(alpha)
        return pt.sum(per_leaf) + pt.sum(per_class), counts + alpha
