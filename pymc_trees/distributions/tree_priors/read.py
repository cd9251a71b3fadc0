"""Prior of the trees of a forest, as read from its settings."""

from typing import Any, NamedTuple

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.variables import TrainingInputs
from pymc_trees.distributions.declaration import check_depth_prior
from pymc_trees.distributions.tree_priors.grid import make_grid
from pymc_trees.distributions.tree_priors.mondrian import MondrianPrior, check_tree_prior
from pymc_trees.distributions.tree_priors.split_weights import read_split_prior


class TreePrior(NamedTuple):
    """Settings, checked; for a Mondrian process ``alpha`` is its lifetime and ``beta`` is 0."""

    alpha: Any
    beta: Any
    process: MondrianPrior | None
    weights: Variable
    """(p,) split weights."""
    weights_stamp: np.ndarray | str
    """What a forest's fingerprint is to know of them."""
    cuts: np.ndarray
    """Grid cuts of all columns, one after another; empty for cuts anywhere."""
    offsets: np.ndarray
    """(p + 1,) where those of each column begin; empty likewise."""


def read_tree_prior(
    tree_prior, depth, split_prior, n_cuts, inputs: TrainingInputs, kinds: np.ndarray
) -> TreePrior:
    """Prior of trees over some rows, or an error; ``depth`` is the pair of alpha and beta."""
    alpha, beta = check_depth_prior(*depth)
    X, schema = inputs
    process = check_tree_prior(tree_prior, alpha, beta, split_prior, n_cuts, X, kinds)
    if process is not None:
        alpha, beta = process.lifetime, 0.0
    names = None if schema is None else schema.names
    weights, stamp = read_split_prior(split_prior, X.shape[1], names)
    grid = make_grid(X, n_cuts, kinds)
    cuts = np.concatenate(grid) if grid else np.empty(0)
    offsets = np.cumsum([0] + [len(g) for g in grid]) if grid else np.empty(0, dtype=np.int64)
    return TreePrior(alpha, beta, process, weights, stamp, cuts, offsets.astype(np.int64))
