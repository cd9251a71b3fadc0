"""Choice of the target of a forest: the fastest that treats its likelihood exactly."""

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.table import no_batch, sees_batch
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.targets.combination import as_combination
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import ForestGraph, ForestUseError, UnsupportedModelError, read_graph
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget
from pymc_trees.targets.separate import SeparateTarget
from pymc_trees.targets.shares import ShareTarget
from pymc_trees.targets.strata import StrataTarget

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
