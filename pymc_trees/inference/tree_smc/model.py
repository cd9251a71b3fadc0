"""How top-down SMC reads a model with one decision tree, and what it refuses."""

import numpy as np
import pymc as pm
from pytensor.graph.traversal import ancestors

from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.contract import log_constant, n_stats
from pymc_trees.core.moves.problem import Problem
from pymc_trees.core.samplers.top_down import p_in_order
from pymc_trees.distributions.capacity import ForestTooLargeError
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.inference.tree_smc.run import TreeModel
from pymc_trees.targets.choose import refuse_random
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.forest_state import ForestData
from pymc_trees.targets.graph import NotConjugateError, read_graph


def read_tree(model: pm.Model) -> tuple[ForestData, TreeModel, float]:
    """The tree of a model, its numbers for `run_island`, and the constant of its evidence.

    The constant is what the marginal likelihoods of leaves leave out, and the log-probability of
    everything observed that the tree does not enter.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        When the model is not one `DecisionTree` whose leaf values integrate out, and nothing else
        to infer.
    """
    trees = [rv for rv in model.free_RVs if is_forest(rv)]
    soft = [tree for tree in tree_variables(model) if tree.is_soft]
    if soft:
        raise NotImplementedError(
            "sample_tree_smc grows trees with hard splits; for a "
            f"{soft[0].declared_by} use {soft[0].sampled_by}."
        )
    if len(trees) != 1:
        raise ValueError(
            f"sample_tree_smc needs a model with one DecisionTree; this one has {len(trees)}. "
            "Several trees or forests are sampled by pm.sample()."
        )
    [tree] = trees
    if tree.owner.op.layout.m != 1:
        raise NotImplementedError(
            f"{tree.name} is a sum of {tree.owner.op.layout.m} trees, but sample_tree_smc grows "
            "one: declare a DecisionTree, or sample the sum by pm.sample() with "
            "pymc_trees.ParticleGibbs."
        )
    others = [rv.name for rv in model.free_RVs if rv is not tree]
    if others:
        raise NotImplementedError(
            f"sample_tree_smc samples the tree only, but {others} would have to be sampled too. "
            "Observe them or give numbers instead (compare candidate numbers by the "
            "log_marginal_likelihood of a run with each), or sample the model by pm.sample() "
            "with pymc_trees.ParticleGibbs."
        )
    graph = read_graph(model, tree)
    refuse_random(graph)
    try:
        ConjugateTarget(graph)
    except NotConjugateError as error:
        raise NotConjugateError(
            f"sample_tree_smc needs leaf values that integrate out. {error} pm.sample() "
            "samples a NormalLeaf tree under any likelihood."
        ) from None
    forest = ForestData(model, tree)
    point = model.initial_point()
    settings, seen = forest.target.at(point)
    no_fit = np.zeros((forest.layout.n_rows, forest.layout.n_outputs))
    leaf, _ = forest.target.leaf_data(settings, seen, no_fit)
    constant = log_constant(leaf) + forest.target.log_scale(seen) + _other_terms(model, tree, point)
    problem = TreeModel(
        forest.design,
        forest.prior(settings),
        leaf,
        forest.sizes,
        forest.fingerprint,
        forest.directions,
    )
    return forest, problem, constant


def _other_terms(model, tree, point) -> float:
    others = [
        term
        for term in [*model.observed_RVs, *model.potentials]
        if not any(a is tree for a in ancestors([term]))
    ]
    return float(model.compile_logp(vars=others)(point)) if others else 0.0


def log_share_in_order(rng: np.random.Generator, problem: TreeModel, n_draws: int) -> float:
    """Log of the share of the prior's trees that are in order; 0 where there is no order.

    From independent draws: the standard error of the share is at most ``sqrt(share / n_draws)``.
    """
    if problem.directions is None:
        return 0.0
    sizes, leaf = problem.sizes, problem.leaf
    trees = make_trees(1, sizes.max_nodes, sizes.n_values, sizes.n_rows)
    order = problem.directions.with_room(sizes.max_nodes, sizes.n_rows, n_stats(leaf))
    weights = np.empty(n_draws)
    forest = Problem(trees, problem.design, problem.prior, leaf)
    with deferred_interrupts():
        if not p_in_order(rng, forest, order, weights):
            raise ForestTooLargeError(
                "A tree drawn from the prior has more nodes than max_nodes: declare the tree "
                "with a larger max_nodes, or with a prior that favours smaller trees."
            )
    return float(np.log(weights.mean()))
