"""Which target a forest has: the quickest that treats its likelihood exactly."""

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.targets.compiled import Target
from pymc_trees.targets.graph import NotConjugateError
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise.reading import NotRowwiseError
from pymc_trees.targets.rowwise.target import RowwiseTarget

NORMAL = ("normal", "normal_vector")
"""Kinds of leaves that any likelihood can have."""


def read_target(model: pm.Model, forest: Variable):
    """Target of a forest.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : TensorVariable
        A forest of it.

    Raises
    ------
    NotConjugateError
        When no sampler can treat the likelihood, with what to use instead.
    """
    try:
        return Target(model, forest)
    except NotConjugateError:
        if forest.owner.op.leaf not in NORMAL:
            raise
    try:
        return RowwiseTarget(model, forest)
    except NotRowwiseError:
        pass
    return JointTarget(model, forest)
