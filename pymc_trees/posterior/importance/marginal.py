"""A function of a model when only some columns of its rows are known, draw by draw."""

from threading import Lock

import numpy as np
import pymc as pm
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix

from pymc_trees.core.value.marginal import marginal
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.reading.functions import Function


class MarginalFunction:
    """A function of the rows of X under the draws of a model, at any subset of the columns.

    What each forest says is averaged over the columns that are not known (`core.value.marginal`);
    what the function makes of the forests comes after that.

    Parameters
    ----------
    idata, model, var_name
        As for `Function`.

    Raises
    ------
    ValueError
        When the function uses columns other than through splits of hard trees.
    """

    def __init__(self, idata, model: pm.Model, var_name: str | None = None):
        self.function = Function(idata, model, var_name)
        name, found, others = self.function.name, self.function.found, self.function.others
        if not all(is_forest(one.tree) for one in found):
            raise ValueError(
                f"{name} is a function of soft trees, where every row is in every leaf: no column "
                "can be left out. Use permutation_importance."
            )
        self.forests = [ForestDraws(idata, model, one.tree.name) for one in found]
        inputs = [matrix(f"outputs of {one.name}", dtype="float64") for one in self.forests]
        numbers = [rv.type() for rv in others]
        replaced = {one.outputs: given for one, given in zip(found, inputs, strict=True)}
        replaced |= dict(zip(others, numbers, strict=True))
        [whole] = clone_replace([self.function.variable], replaced, rebuild_strict=False)
        by_row = any(one.layout.own_outputs is not None for one in self.forests)
        beside = not self.function.at_own_rows or set(ancestors([whole])) & set(self.function.bases)
        if by_row or beside:
            raise ValueError(
                f"{name} uses columns of X outside the splits of its trees: choose a function of "
                "trees alone by var_name, or use permutation_importance."
            )
        self._whole = pm.compile([*inputs, *numbers], whole, on_unused_input="ignore")
        self._lock = Lock()

    def at(self, chain: int, draw: int, X: np.ndarray, known: np.ndarray) -> np.ndarray:
        """(S, *outputs, n) values in a draw at the rows of X, for S sets of known columns."""
        answers = []
        for forest in self.forests:
            value = forest.value(chain, draw)
            answers.append(marginal(value, X, forest.X_train, forest.sizes, known))
        numbers = self.function.others_at(chain, draw)
        with self._lock:  # a compiled function of PyTensor serves one thread at a time
            found = [self._whole(*outputs, *numbers) for outputs in zip(*answers, strict=True)]
        return np.stack([np.moveaxis(one, self.function.axis, -1) for one in found])
