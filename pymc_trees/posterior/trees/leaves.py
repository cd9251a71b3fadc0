"""What the values of a leaf are, and how they read."""

from collections.abc import Callable
from functools import partial

import numpy as np

from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.leaves.contract import LeafPrior
from pymc_trees.distributions.leaves.dirichlet import DirichletLeaf
from pymc_trees.posterior.reading.forests import ForestDraws


def kind_of_values(leaf: type[LeafPrior], n_values: int) -> str:
    """What a leaf holds: "number", "classes", "parameters" by name, or "outputs" by number."""
    if issubclass(leaf, DirichletLeaf):
        return "classes"
    if n_values == 1:
        return "number"
    return "parameters" if len(leaf.suffixes) == n_values else "outputs"


def words_of(draws: ForestDraws) -> Callable[[np.ndarray], list[str]]:
    """What turns the values of a leaf of a forest into phrases."""
    variable = draws.variable
    constants, columns = declared(variable).constants, draws.names
    return partial(leaf_words, variable.owner.op.leaf_type, constants=constants, columns=columns)


def leaf_words(
    leaf: type[LeafPrior], values: np.ndarray, constants: np.ndarray, columns: list[str]
) -> list[str]:
    """A phrase for each value: the number, with what it is of where there are several."""
    own = leaf.words(values, constants, columns)
    if own is not None:
        return own
    kind, numbers = kind_of_values(leaf, len(values)), [f"{value:.4g}" for value in values]
    if kind == "number":
        return numbers
    names = {
        "classes": [f"P({k})" for k in range(len(values))],
        "parameters": [suffix.removeprefix("_") or "mu" for suffix in leaf.suffixes],
        "outputs": [f"output {k}" for k in range(len(values))],
    }[kind]
    return [f"{name} = {number}" for name, number in zip(names, numbers, strict=True)]
