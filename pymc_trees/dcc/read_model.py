"""What DCC-Tree and RJHMC read from a model with a soft tree, and what they refuse."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pymc.distributions.discrete import Categorical
from pymc.step_methods.compound import Competence
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import discrete_dtypes

from pymc_trees.arguments import check_choice
from pymc_trees.dcc.soft_tree_rv import is_soft_tree, is_training_inputs
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.distributions.without_dims import counterpart, without_dims
from pymc_trees.targets.choose import refuse_random
from pymc_trees.targets.graph import read_graph


class SoftModel(NamedTuple):
    """A model with one soft tree, taken apart."""

    model: pm.Model
    tree: Variable
    others: list[Variable]
    """Free random variables that move with the tree."""
    fixed: list[Variable]
    """Free random variables that other steps move, held fixed meanwhile."""
    factors: list[Variable]
    """Factors of the model that may depend on the tree: observed variables except ``labels``,
    potentials, ``fixed``, and those of ``others`` whose priors depend on the tree."""
    labels: Variable | None
    """Observed classes of a Dirichlet leaf (eq. 8); None for a normal leaf."""


def read_model(model: pm.Model) -> SoftModel:
    """Take a model apart for DCC-Tree, which moves all free variables.

    Raises
    ------
    ValueError, NotImplementedError
        Unless it has exactly one soft tree, all other free variables can be moved by NUTS, and the
        probabilities of a Dirichlet leaf enter one `pymc.Categorical` only.
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
    fixed = [rv for rv in model.free_RVs if rv is not tree and not any(rv is o for o in others)]
    latent = [rv for rv in others if any(a is tree for a in ancestors([rv]))]
    factors = [*model.observed_RVs, *model.potentials, *fixed, *latent]
    if tree.owner.op.leaf_type.sampled_in_soft_trees:
        return SoftModel(model, tree, others, fixed, factors, None)
    dependent = [v for v in factors if any(a is tree for a in ancestors([v]))]
    labels = dependent[0] if len(dependent) == 1 else None
    if labels is None or not _is_categorical_of(labels, tree):
        raise NotImplementedError(
            "The probabilities of a SoftDecisionTree with a DirichletLeaf must be the p of one "
            "observed pm.Categorical and be used nowhere else, but they enter "
            f"{[v.name for v in dependent]}."
        )
    rest = [v for v in factors if v is not labels]
    return SoftModel(model, tree, others, fixed, rest, labels)


def _is_categorical_of(rv, tree) -> bool:
    if not isinstance(rv.owner.op, Categorical.rv_type):
        return False
    p = rv.owner.inputs[-1]
    while p.owner and isinstance(p.owner.op, ViewOp):  # what a Deterministic is
        [p] = p.owner.inputs
    return any(one.outputs is p for one in evaluations([p], tree))


def check_inputs(soft: SoftModel) -> None:
    """Refuse a likelihood whose current inputs differ from those of the declaration."""
    factors = [*soft.factors, *([] if soft.labels is None else [soft.labels])]
    if not all(is_training_inputs(soft.tree, v.X.eval()) for v in evaluations(factors, soft.tree)):
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


# ---------------------------------------------------------------------------- The model for RJHMC


VARIANTS = {"DF": "index", "DFI": "dirichlet"}
"""Variants of the paper, by the ``direction`` of their trees."""


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
        For a model without exactly one soft tree, with other trees, or if ``chosen`` has variables
        that HMC cannot move.
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
    """Refuse a variant for trees with another ``direction``."""
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


# ------------------------------------------- Which variables `pymc.sample` assigns to the two steps


def model_on_stack() -> pm.Model | None:
    """The model on the context stack, if there is one."""
    return pm.Model.get_context(error_if_none=False)


def joint_competence(var, by_index: bool) -> Competence:
    """Ideal for a soft tree of one kind of directions, and for the variables that move with it.

    PyMC asks about one variable at a time; the model on the context stack shows the others.
    """
    model = model_on_stack()
    free = [] if model is None else model.free_RVs
    trees = [var] if is_soft_tree(var) else [rv for rv in free if is_soft_tree(rv)]
    beside = any(var is rv for rv in free) and is_continuous(var)
    if (is_soft_tree(var) or beside) and any(rv.owner.op.by_index == by_index for rv in trees):
        return Competence.IDEAL
    return Competence.INCOMPATIBLE
