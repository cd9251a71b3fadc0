"""Likelihoods that are drawn anew at each evaluation, which no sampler of trees is exact under."""

import pymc as pm
from pymc.distributions.simulator import SimulatorRV
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.variables import no_batch, sees_batch
from pymc_trees.targets.errors import UnsupportedModelError
from pymc_trees.targets.graph import read_graph


def refuse_random(model: pm.Model, tree: Variable) -> None:
    """Raise an error where the likelihood of trees takes a `pymc.Minibatch`, or is simulated."""
    graph = read_graph(model, tree)
    blockers = set(model.basic_RVs)
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
