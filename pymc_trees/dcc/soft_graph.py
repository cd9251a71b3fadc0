"""How the graph of a model with a soft tree is read, what is refused, and its log-densities."""

from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.distributions.discrete import Categorical
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import discrete_dtypes

from pymc_trees.core.soft.topology import STUMP, node_table
from pymc_trees.dcc.soft_ops import SoftCoordinates, SoftGates
from pymc_trees.distributions.forest_inputs import Evaluation, soft_tree_inputs
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree, is_training_inputs
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.targets.choose import refuse_random
from pymc_trees.targets.graph import read_graph

# -------------------------- How the graph of a model with a soft tree is read, and what is refused


class SoftModel(NamedTuple):
    """A model with one soft tree, taken apart."""

    model: pm.Model
    tree: Variable
    others: list[Variable]
    """Free random variables that move with the tree."""
    given: list[Variable]
    """Free random variables that other steps move: numbers for a while."""
    factors: list[Variable]
    """What the tree may be seen by: observed variables and potentials, without ``labels``, what is
    given, and those of ``others`` whose priors depend on the tree."""
    labels: Variable | None
    """Observed classes of a Dirichlet leaf (eq. 8); None for a normal leaf."""


def read_model(model: pm.Model) -> SoftModel:
    """Take a model apart for DCC-Tree, which moves all free variables.

    Raises
    ------
    ValueError, NotImplementedError
        When it has not exactly one soft tree, other free variables that NUTS cannot move, or a
        Dirichlet leaf whose probabilities enter anything but one `pymc.Categorical`.
    """
    model = without_dims(model)
    tree = the_soft_tree(model, "DCC-Tree")
    if tree.owner.op.by_index:
        raise NotImplementedError(
            f"{tree.name} is declared with direction='index', and DCC-Tree needs gradients in "
            "all parameters but the topology: sample it with pymc_trees.RJHMC, which pm.sample() "
            "assigns, or declare it with direction='dirichlet'."
        )
    others = [rv for rv in model.free_RVs if rv is not tree]
    refused = [rv.name for rv in others if rv.dtype in discrete_dtypes or is_tree_variable(rv)]
    if refused:
        raise NotImplementedError(
            f"DCC-Tree samples all free variables jointly by NUTS, but {refused} are discrete, or "
            "forests: leave them out or marginalise them. Beside discrete ones the tree can be "
            "sampled by step=[pymc_trees.RJHMC()]."
        )
    latent = [rv.name for rv in others if any(a is tree for a in ancestors([rv]))]
    if latent:
        raise NotImplementedError(
            f"The priors of {latent} depend on the tree: DCC-Tree must be able to draw all other "
            "free variables before the tree. Marginalise them, observe them, or sample with "
            "step=[pymc_trees.RJHMC()]."
        )
    return separate(model, tree, others)


def the_soft_tree(model: pm.Model, sampler: str) -> Variable:
    """The only soft tree of a model."""
    trees = [rv for rv in model.free_RVs if is_soft_tree(rv)]
    if not trees:
        raise ValueError(
            f"{sampler} needs a model with one SoftDecisionTree; this one has none: declare one, "
            "or leave the step to pm.sample()."
        )
    if len(trees) > 1:
        raise ValueError(
            f"{sampler} needs a model with one SoftDecisionTree; this one has "
            f"{[rv.name for rv in trees]}: several in one model are not supported. A sum of soft "
            "trees is SoftBART."
        )
    return trees[0]


def separate(model: pm.Model, tree: Variable, others: list[Variable]) -> SoftModel:
    """A model whose soft tree moves together with some other variables, given the rest."""
    refuse_random(read_graph(model, tree))
    given = [rv for rv in model.free_RVs if rv is not tree and not any(rv is o for o in others)]
    latent = [rv for rv in others if any(a is tree for a in ancestors([rv]))]
    factors = [*model.observed_RVs, *model.potentials, *given, *latent]
    if tree.owner.op.leaf_type.sampled_in_soft_trees:
        return SoftModel(model, tree, others, given, factors, None)
    seeing = [v for v in factors if any(a is tree for a in ancestors([v]))]
    labels = seeing[0] if len(seeing) == 1 else None
    if labels is None or not _is_categorical_of(labels, tree):
        raise NotImplementedError(
            "The probabilities of a SoftDecisionTree with a DirichletLeaf must be the p of one "
            "observed pm.Categorical and be used nowhere else, but they enter "
            f"{[v.name for v in seeing]}."
        )
    rest = [v for v in factors if v is not labels]
    return SoftModel(model, tree, others, given, rest, labels)


def _is_categorical_of(rv, tree) -> bool:
    if not isinstance(rv.owner.op, Categorical.rv_type):
        return False
    p = rv.owner.inputs[-1]
    while p.owner and isinstance(p.owner.op, ViewOp):  # what a Deterministic is
        [p] = p.owner.inputs
    return any(one.outputs is p for one in evaluations([p], tree))


def check_inputs(soft: SoftModel) -> None:
    """Refuse inputs of the likelihood that are not, at present, those of the declaration."""
    seeing = [*soft.factors, *([] if soft.labels is None else [soft.labels])]
    if not all(is_training_inputs(soft.tree, v.X.eval()) for v in evaluations(seeing, soft.tree)):
        raise ValueError(
            f"{soft.tree.name} is evaluated at inputs other than those it was declared with. "
            "Sampling needs the training inputs: set the data back with pm.set_data, or declare "
            "the model again with the new ones."
        )


def observed_classes(soft: SoftModel) -> np.ndarray:
    """(K, n) indicators of the observed classes."""
    assert soft.labels is not None
    codes = soft.model.rvs_to_values[soft.labels].eval()
    classes = soft.tree.owner.op.n_values
    if codes.ndim != 1 or not np.isin(codes, np.arange(classes)).all():
        raise ValueError(
            f"{soft.labels.name}: the observed classes must be whole numbers from 0 to "
            f"{classes - 1}, one for each row."
        )
    return (np.arange(classes)[:, None] == codes).astype(float)


# ----------- Log-densities of the parameters of one topology, for any topology, as PyTensor graphs
#
# The unconstrained vector q holds, in this order,
#
# ========================= ======================= =====================================
# other free variables      their value variables   PyMC's transforms
# leaf values               L (normal leaf only)    none
# thresholds tau            S                       logit
# weights Delta             S (p - 1)               stick-breaking, 0 for equal weights
# ========================= ======================= =====================================
#
# The topology is a shared node table, so that one compiled function serves every topology. Shared
# too are the corners that weights drawn by index stand at, which are no part of q then, and the
# values of variables that other steps move.


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
