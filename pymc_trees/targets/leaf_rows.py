"""How the leaves of a forest read Gaussian rows: the leaf model of each kind, and the function.

Under likelihoods that are not Normal themselves, rows are Gaussian given latent variables
(`conjugate.LatentTarget`), or approximated by Gaussian rows (`rowwise`). Either way the values of a
leaf integrate out of those, by the leaf model that the leaf has under a Normal.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph

from pymc_trees.core.leaves.coefficients import make_basis, make_linear
from pymc_trees.core.leaves.contract import n_stats
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.vector_lines import make_vector_lines
from pymc_trees.distributions.ops.forest_rv import leaf_at
from pymc_trees.targets.graph import ForestGraph, LeafNotProposedError
from pymc_trees.targets.settings import Settings


class LeafRows:
    """Leaves of one value, which is their output at every row.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model.
    outputs : Variable
        As opened for an expression (`graph.open_forest`).
    """

    is_constant = True
    """Whether the outputs of a leaf are its values."""

    def __init__(self, graph: ForestGraph, outputs: Variable):
        self.layout = graph.layout
        self.wanted: list[Variable] = []
        """Expressions whose numbers the methods take."""

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        return 2

    def function(self, fit: np.ndarray, numbers: Sequence[np.ndarray]) -> np.ndarray:
        """(n, K) function that the likelihood sees, at (n, outputs) of the forest."""
        return fit.copy()

    def leaf_data(self, settings: Settings, numbers, r, w, latent=None) -> Any:
        """Leaf model of a residual and precisions."""
        mean, sd = settings.leaf
        return make_normal(mean, sd, r, w, self.layout.max_nodes, latent)

    def typical(self, settings: Settings, numbers) -> tuple:
        """Mean and sd of the function of one tree, as scales for searches."""
        return tuple(settings.leaf)


class LinearRows(LeafRows):
    """Leaves with slopes."""

    is_constant = False

    def __init__(self, graph, outputs):
        super().__init__(graph, outputs)
        self.reads = leaf_at(graph.rv)

    @property
    def n_stats(self):
        """Moments of the regressors, and the path."""
        return n_stats(self.reads)

    def leaf_data(self, settings, numbers, r, w, latent=None):
        """Intercepts and slopes."""
        mean, sd, slope_sd, share = settings.leaf
        return make_linear(mean, sd, slope_sd, share, self.reads, r, w, latent)

    def typical(self, settings, numbers):
        """Of the intercept."""
        return tuple(settings.leaf[:2])


class CombinedRows(LeafRows):
    """Leaves of K values, of which the likelihood sees one combination ``b_i . f_i`` a row."""

    is_constant = False

    def __init__(self, graph, outputs):
        super().__init__(graph, outputs)
        combined, inner = outputs.tag.pymc_trees_combination
        factors = pt.grad(combined.sum(), inner)
        # of the outputs they take the shape at most
        [factors] = clone_replace([factors], {inner: pt.zeros(inner.type.shape)})
        self.wanted = [rewrite_graph(factors, include=("canonicalize",), clone=True)]

    @property
    def n_stats(self):
        """Lower triangle of a matrix, and a vector."""
        k = self.layout.n_values
        return k * (k + 1) // 2 + k

    def basis(self, numbers) -> np.ndarray:
        """(n, K) factors b."""
        [factors] = numbers
        basis = np.array(np.broadcast_to(factors, (self.layout.n_rows, self.layout.n_values)))
        if not np.isfinite(basis).all():
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        return basis

    def function(self, fit, numbers):
        """Their combination."""
        return np.einsum("ik,ik->i", self.basis(numbers), fit)[:, None]

    def leaf_data(self, settings, numbers, r, w, latent=None):
        """Coefficients of the factors."""
        mean, sd = settings.leaf
        return make_basis(mean, sd, self.basis(numbers), r, w, latent)

    def typical(self, settings, numbers):
        """Means over the rows."""
        mean, sd = settings.leaf
        basis = self.basis(numbers)
        return (basis @ mean).mean(), np.sqrt((basis**2 @ sd**2).mean())


class VectorLinesRows(LeafRows):
    """Leaves with slopes for each of K outputs."""

    is_constant = False

    def __init__(self, graph, outputs):
        super().__init__(graph, outputs)
        self.reads = leaf_at(graph.rv)

    @property
    def n_stats(self):
        """Moments of the regressors and outputs, and the path."""
        return n_stats(self.reads)

    def leaf_data(self, settings, numbers, r, w, latent=None):
        """Intercepts and slopes; rows have a matrix each, so that r and w are not used."""
        mean, sd, slope_sd, share = settings.leaf
        return make_vector_lines(mean, sd, slope_sd, share, self.reads, self.layout.n_rows)

    def typical(self, settings, numbers):
        """Of the intercepts."""
        return tuple(settings.leaf[:2])


OF_LEAVES = {
    "normal": LeafRows,
    "monotone": LeafRows,
    "linear": LinearRows,
    "linear_vector": VectorLinesRows,
}
"""By the name of a leaf prior."""


def leaf_rows(graph: ForestGraph, outputs: Variable) -> LeafRows | None:
    """How the leaves of a forest read Gaussian rows; None for several values that stay apart.

    Raises
    ------
    LeafNotProposedError
        For leaves whose values nothing proposes.
    """
    leaf = graph.rv.owner.op.leaf_type
    if graph.combines:
        return CombinedRows(graph, outputs)
    if leaf.name in OF_LEAVES:
        return OF_LEAVES[leaf.name](graph, outputs)
    if leaf.any_likelihood and leaf.is_constant():
        return None if graph.layout.n_values > 1 else LeafRows(graph, outputs)
    raise LeafNotProposedError(f"Nothing proposes the values of a {leaf.__name__}.")
