"""How many draws, after how much tuning, in how many chains, by the size of a table.

A draw of a large table is five sweeps. Chains of a thousand sweeps each, from stumps, taken
together cover f, where one chain of as many sweeps as all of them does not: warm-up decides, and
mixing within a chain takes far longer. So draws are fewer where sweeps take long, down to 200, and
there are four chains at any size.
"""

from typing import NamedTuple

import pymc as pm

from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest

CHAINS, MOST, FEWEST = 4, 1000, 200
"""Chains; draws, and tuning iterations, of each on small tables, and on the largest."""
SWEPT = 2_000_000
"""Rows times trees up to which chains have `MOST` draws; beyond that fewer in proportion."""


class Lengths(NamedTuple):
    """Lengths of the chains of a model."""

    draws: int
    tune: int
    chains: int
    rows: int
    trees: int
    """Of the forest with the most rows times trees, from which they follow."""


def lengths(model: pm.Model) -> Lengths:
    """Draws, tuning and chains that are long enough for most tables of this size.

    Parameters
    ----------
    model : pymc.Model
    """
    layouts = [rv.owner.op.layout for rv in model.free_RVs if is_forest(rv) or is_soft_forest(rv)]
    sizes = [(layout.n_rows * layout.m, layout.n_rows, layout.m) for layout in layouts]
    size, rows, trees = max(sizes, default=(0, 0, 0))
    draws = MOST if size <= SWEPT else max(round(MOST * SWEPT / size), FEWEST)
    return Lengths(draws, draws, CHAINS, rows, trees)
