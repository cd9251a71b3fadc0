"""Steps that move a soft tree and what is continuous beside it: which variables they are for."""

import pymc as pm
from pymc.step_methods.compound import Competence

from pymc_trees.dcc.jump_posterior import is_continuous
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree


def model_on_stack() -> pm.Model | None:
    """The model that is being sampled, if it is known."""
    return pm.Model.get_context(error_if_none=False)


def joint_competence(var, by_index: bool) -> Competence:
    """Ideal for a soft tree whose directions are of a kind, and for what moves with it.

    PyMC asks for each variable alone: the others are recognised by the model on the stack.
    """
    model = model_on_stack()
    free = [] if model is None else model.free_RVs
    trees = [var] if is_soft_tree(var) else [rv for rv in free if is_soft_tree(rv)]
    beside = any(var is rv for rv in free) and is_continuous(var)
    if (is_soft_tree(var) or beside) and any(rv.owner.op.by_index == by_index for rv in trees):
        return Competence.IDEAL
    return Competence.INCOMPATIBLE
