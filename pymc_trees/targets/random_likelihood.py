"""Likelihoods that no sampler of trees is exact under: they are drawn anew at each evaluation."""

import pymc as pm
from pymc.distributions.simulator import SimulatorRV
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.variables import no_batch, sees_batch
from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.targets.errors import UnsupportedModelError
from pymc_trees.targets.graph import read_graph


def refuse_random(model: pm.Model, tree: Variable) -> None:
    """Raise an error where a likelihood takes a `Minibatch` or other trees, or is simulated."""
    graph = read_graph(model, tree)
    blockers = set(model.basic_RVs)
    for potential in model.potentials:
        # PyMC builds the logp of some distributions on copies of their parameters.
        copies = [one.tree for one in evaluations([potential], blockers=blockers)]
        for copy in (v for v in copies if v not in blockers):
            raise UnsupportedModelError(
                f"{potential.name} evaluates a copy of the trees {copy.name}, which is no variable "
                "of the model and never moves. Declare the distribution whose pm.logp it is as a "
                "variable, with observed=, or write its log density as an expression."
            )
    for term in (*graph.terms, *graph.potentials):
        if term.owner is not None and isinstance(term.owner.op, SimulatorRV):
            raise UnsupportedModelError(
                f"{term.name} is a pm.Simulator, whose likelihood of {tree.name} is simulated "
                "anew at each evaluation: trees need one that can be computed. Declare it as a "
                "distribution that has a density, for example pm.Normal of what it is compared "
                "with, or pm.CustomDist(..., logp=...)."
            )
        inputs = [] if term.owner is None else term.owner.inputs
        value = [model.rvs_to_values[term]] if term in blockers else []
        if sees_batch([*inputs, *value], blockers):
            raise UnsupportedModelError(no_batch(term.name))
