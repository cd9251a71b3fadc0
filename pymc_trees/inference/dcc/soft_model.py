"""How the graph of a model with a soft tree is read, and what is refused."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pymc.distributions.discrete import Categorical
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import discrete_dtypes

from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree, is_training_inputs
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.targets.random_likelihood import refuse_random


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
    refuse_random(model, tree)
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
