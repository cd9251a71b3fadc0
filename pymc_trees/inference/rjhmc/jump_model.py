"""What RJHMC reads off a model, and what it refuses."""

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.tensor.type import discrete_dtypes

from pymc_trees.arguments import check_choice
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.distributions.without_dims import counterpart, without_dims
from pymc_trees.inference.dcc.soft_model import SoftModel, separate, the_soft_tree

VARIANTS = {"DF": "index", "DFI": "dirichlet"}
"""Names of the paper, and the directions that a tree of theirs is declared with."""


def is_continuous(rv: Variable) -> bool:
    """Whether HMC can move a free variable."""
    return rv.dtype not in discrete_dtypes and not is_tree_variable(rv)


def read_jump_model(model: pm.Model, chosen: list[Variable] | None) -> SoftModel:
    """A model with one soft tree, which moves together with continuous variables.

    Parameters
    ----------
    chosen : list of random variables, optional
        The tree and what moves with it; by default the tree and all continuous variables.

    Raises
    ------
    ValueError, NotImplementedError
        For a model without exactly one soft tree, with other trees, or other variables than these.
    """
    if chosen is not None:
        chosen = [counterpart(model, rv) for rv in chosen]
    model = without_dims(model)
    tree = the_soft_tree(model, "RJHMC")
    rest = [rv for rv in model.free_RVs if rv is not tree]
    forests = [rv.name for rv in rest if is_tree_variable(rv)]
    if forests:
        raise NotImplementedError(
            f"RJHMC moves the tree of a model with one SoftDecisionTree, but {forests} are trees "
            "too: leave them out of the model."
        )
    if chosen is None:
        return separate(model, tree, [rv for rv in rest if is_continuous(rv)])
    if not any(rv is tree for rv in chosen):
        names = [rv.name for rv in chosen]
        raise ValueError(
            f"vars: RJHMC needs the tree among the variables it moves: add {tree.name}. If another "
            f"step has the tree, let it move {names} too, or give them a step of their own, for "
            "example step=[pymc_trees.RJHMC([mu]), pm.NUTS([sigma])]."
        )
    discrete = [rv.name for rv in chosen if rv is not tree and not is_continuous(rv)]
    if discrete:
        raise ValueError(
            f"vars: RJHMC moves continuous variables with the tree, but {discrete} are discrete: "
            "leave them to another step."
        )
    return separate(model, tree, [rv for rv in rest if any(rv is c for c in chosen)])


def check_variant(variant: str | None, tree: Variable) -> None:
    """Refuse a variant whose directions are not those that the tree is declared with."""
    if variant is None:
        return
    variant = check_choice("variant", variant, VARIANTS)
    op = tree.owner.op
    if op.p > 1 and op.direction != VARIANTS[variant]:
        raise ValueError(
            f"variant={variant!r} is for a SoftDecisionTree with direction={VARIANTS[variant]!r}, "
            f"but {tree.name} has direction={op.direction!r}, another posterior: declare it with "
            "the other direction, or leave variant out."
        )
