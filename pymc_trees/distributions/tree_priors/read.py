"""Prior of the trees of a forest, as read from its settings."""

from dataclasses import fields
from typing import Any, NamedTuple, cast

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.numbers import is_random
from pymc_trees.distributions.data.variables import TrainingInputs
from pymc_trees.distributions.declaration import check_depth_prior
from pymc_trees.distributions.tree_priors.contract import TreePrior
from pymc_trees.distributions.tree_priors.depth import DepthPrior
from pymc_trees.distributions.tree_priors.grid import make_grid
from pymc_trees.distributions.tree_priors.split_weights import read_split_prior

DEPTH_DEFAULTS = ((0.95, 2.0), (0.95, 1.0))
"""``alpha, beta`` of the front-ends, when nobody gave any."""


class DeclaredPrior(NamedTuple):
    """All that says how trees over some rows are split, checked."""

    trees: TreePrior
    weights: Variable
    """(p,) split weights."""
    weights_stamp: np.ndarray | str
    """What a forest's fingerprint is to know of them."""
    cuts: np.ndarray
    """Grid cuts of all columns, one after another; empty for cuts anywhere."""
    offsets: np.ndarray
    """(p + 1,) where those of each column begin; empty likewise."""

    def check_fixed(self) -> None:
        """Refuse settings that are to be inferred, where leaf values have an order."""
        trees = {f.name: getattr(self.trees, f.name) for f in fields(cast(Any, self.trees))}
        for name, setting in (trees | {"split_prior": self.weights}).items():
            if isinstance(setting, Variable) and is_random(setting):
                raise NotImplementedError(
                    f"{name} is a random variable, but a forest with monotone columns needs a "
                    "number there: its conditional needs the prior probability of monotone trees "
                    "at each value. Only mean and sd of the leaf may be random: give a number."
                )


def read_tree_prior(
    tree_prior, depth, split_prior, n_cuts, inputs: TrainingInputs, kinds: np.ndarray
) -> DeclaredPrior:
    """Prior of trees over some rows, or an error; ``depth`` is the pair of alpha and beta."""
    alpha, beta = check_depth_prior(*depth)
    X, schema = inputs
    trees = DepthPrior(alpha, beta) if tree_prior is None else _check(tree_prior, alpha, beta)
    trees.check_data(X, kinds, split_prior, n_cuts)
    names = None if schema is None else schema.names
    weights, stamp = read_split_prior(split_prior, X.shape[1], names)
    grid = make_grid(X, n_cuts, kinds)
    cuts = np.concatenate(grid) if grid else np.empty(0)
    offsets = np.cumsum([0] + [len(g) for g in grid]) if grid else np.empty(0, dtype=np.int64)
    return DeclaredPrior(trees, weights, stamp, cuts, offsets.astype(np.int64))


def _check(tree_prior, alpha, beta) -> TreePrior:
    """A tree prior other than that of alpha and beta, alone."""
    if isinstance(tree_prior, type) and issubclass(tree_prior, TreePrior):
        name = tree_prior.__name__
        raise TypeError(f"tree_prior is the class {name}: give {name}(...), with its settings.")
    if not isinstance(tree_prior, TreePrior):
        raise TypeError(
            f"tree_prior={tree_prior!r}: must be None, for the prior of alpha and beta, or "
            "pymc_trees.MondrianPrior(lifetime)."
        )
    given = [v for v in (alpha, beta) if isinstance(v, Variable)]
    if given or (alpha, beta) not in DEPTH_DEFAULTS:
        raise ValueError(
            "alpha and beta belong to the default tree prior: leave them out with "
            f"tree_prior={type(tree_prior).__name__}(...), which has its own settings."
        )
    return tree_prior
