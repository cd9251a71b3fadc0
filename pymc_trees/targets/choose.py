"""Choice of the target of a forest: the fastest that treats its likelihood exactly."""

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.targets.conjugate.target import ConjugateTarget
from pymc_trees.targets.contract import Refusal, Target
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.latent.target import LatentTarget
from pymc_trees.targets.laws.target import LawTarget
from pymc_trees.targets.random_likelihood import refuse_random
from pymc_trees.targets.rowwise.target import RowwiseTarget

TARGETS: list[type[Target]] = [
    ConjugateTarget,
    LatentTarget,
    LawTarget,
    RowwiseTarget,
    JointTarget,
]
"""Kinds of targets, fastest first."""


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
    refuse_random(model, forest)
    refusals = []
    for kind in TARGETS:
        found = kind.read(model, forest)
        if not isinstance(found, Refusal):
            return found
        refusals.append(found)
    raise refusals[0].error
