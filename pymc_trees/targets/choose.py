"""Choice of the target of a forest: the fastest that treats its likelihood exactly."""

from dataclasses import replace

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort
from pytensor.scalar import basic as scalars
from pytensor.tensor.basic import Join
from pytensor.tensor.elemwise import Elemwise

from pymc_trees.distributions.data.table import no_batch, sees_batch
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import (
    ForestGraph,
    ForestUseError,
    NotRecognisedError,
    UnsupportedModelError,
    dependent_on,
    read_graph,
)
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.likelihoods.expressions import rows_axis
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget
from pymc_trees.targets.separate import SeparateTarget
from pymc_trees.targets.shares import ShareTarget
from pymc_trees.targets.strata import StrataTarget

# --------------------- Several outputs of a forest of which a likelihood sees one combination a row
#
# Such are the coefficients of a `BasisLeaf`, and shared trees in ``f[0] + f[1] * x``: however the
# likelihood continues, row i depends on the K outputs f_i through ``b_i . f_i`` alone. It is then a
# likelihood of that single function, and the readers of such likelihoods apply.


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
    """Whether a sum, or what is joined and perhaps summed later, has parts free of the outputs."""
    op = var.owner.op
    is_sum = isinstance(op, Elemwise) and isinstance(op.scalar_op, scalars.Add | scalars.Sub)
    adds = is_sum or isinstance(op, Join)
    return adds and any(v not in dependent for v in var.owner.inputs)


TARGETS: list[type[Target]] = [
    ConjugateTarget,
    LatentTarget,
    KernelTarget,
    ShareTarget,
    SeparateTarget,
    RowwiseTarget,
    StrataTarget,
    JointTarget,
]
"""Kinds of targets, fastest first; the first that supports a likelihood is used."""
OF_COMBINATIONS: list[type[Target]] = [LatentTarget, KernelTarget, RowwiseTarget, StrataTarget]
"""Those that are tried, after the first, where a likelihood may see one combination of outputs."""


def read_target(model: pm.Model, forest: Variable) -> Target:
    """Target of a forest.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : TensorVariable
        A forest of it.

    Raises
    ------
    UnsupportedModelError
        If no sampler can treat the likelihood; the message names alternatives.
    """
    graph = read_graph(model, forest)
    refuse_random(graph)
    reasons, reduced = [], as_combination(graph)
    choices = [(kind, graph) for kind in TARGETS]
    choices[1:1] = [(kind, reduced) for kind in OF_COMBINATIONS if reduced is not None]
    for kind, seen in choices:
        try:
            return kind(seen)
        except ForestUseError:
            raise
        except UnsupportedModelError as reason:
            reasons.append(reason)
    raise reasons[0]


# --------------------------------------------------------------------------------------------------
# Likelihoods that no sampler of trees is exact under: they are drawn anew at each evaluation.


def refuse_random(graph: ForestGraph) -> None:
    """Raise an error where a likelihood takes a `Minibatch` or other trees, or is simulated."""
    model, blockers = graph.model, set(graph.model.basic_RVs)
    for potential in model.potentials:
        # PyMC builds the logp of some distributions on copies of their parameters.
        trees = [evaluation.tree for evaluation in evaluations([potential], blockers=blockers)]
        for copy in (v for v in trees if v not in blockers):
            raise UnsupportedModelError(
                f"{potential.name} evaluates a copy of the trees {copy.name}, which is not a "
                "variable of the model and never moves. Declare the distribution whose pm.logp it "
                "is as a variable, with observed=, or write its log density as an expression."
            )
    for term in (*graph.terms, *graph.potentials):
        if term.owner is not None and isinstance(term.owner.op, pm.Simulator.rv_type):
            raise UnsupportedModelError(
                f"{term.name} is a pm.Simulator, whose likelihood of {graph.rv.name} is simulated "
                "anew at each evaluation: trees need one that can be computed. Declare it as a "
                "distribution that has a density, for example pm.Normal of what it is compared "
                "with, or pm.CustomDist(..., logp=...)."
            )
        inputs = [] if term.owner is None else term.owner.inputs
        value = [model.rvs_to_values[term]] if term in blockers else []
        if sees_batch([*inputs, *value], blockers):
            raise UnsupportedModelError(no_batch(term.name))
