"""Perturb: a split node keeps its column, and its rule moves a little (Pratola 2016).

The node is uniform among the split nodes, whose number stays. The step of its rule is symmetric:
its distribution depends on the node's rows and column only (`columns.steps`), which a new rule does
not change. Its probability therefore cancels, and with p the prior and likelihood of `subtree`,

    ratio = p(subtree') / p(subtree) * choice,

``choice`` being the ratio of the probabilities of trying this kind of move: splits stay, but more
or fewer leaves may be able to split. (Never from some to none: none can when there are as many
leaves as distinct rows. So with the moves of this package it is 1.) In p(subtree):

- the node's own rule keeps its density, unless the old one or the new one splits missing
  from present rows; outside ``[min, max)`` of its rows it has none;
- every node below has new rows, so all its terms are recomputed: split or stop, the column among
  those that vary, the cut's density ``1 / (max - min)``, or 0 if the cut is outside that interval
  or a child has no rows, and the likelihood of a leaf.

In a Mondrian process all times stay: that of a split lies between those of its parent and of its
children, whatever the boxes. The rates below are those of new boxes. A split at t below one at s
has ``R exp(-R (t - s))``, times ``1 / R`` for column and cut together; a leaf ``exp(-R (L - s))``.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.mixed import column_of, rule_from_prior
from pymc_trees.core.columns.steps import step_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.moves.change import Rule, replace_rule
from pymc_trees.core.moves.contract import Needs, register
from pymc_trees.core.moves.problem import SPLIT, draw_node, rows_of
from pymc_trees.core.moves.subtree import load_subtree
from pymc_trees.core.priors.contract import log_set_split


class Perturb(NamedTuple):
    """The rule of a split node moves a little."""

    largest: float = 0.3
    """Largest step of a cut, as a share of its column's range."""


@njit(cache=True)
def perturb(move, rng, problem, tree, moves, node_counts, work):
    """Propose a rule near that of a random split node; 1 when accepted, else 0."""
    trees, design, prior = problem.trees, problem.design, problem.prior
    top = draw_node(rng, trees, work.nodes, 0, node_counts.n_nodes, SPLIT, node_counts.splits)
    subtree = load_subtree(trees, top, work)
    rows = rows_of(trees, top, work)
    old_code, old_cut = trees.column[top], trees.cut[top]
    code, cut = step_rule(rng, design, old_code, old_cut, move.largest, rows)
    log_cut, log_p_column, log_gain = trees.log_cut[top], trees.log_column[top], 0.0
    if code == old_code and cut == old_cut:
        return 0
    # A real-valued cut has the same density anywhere between the extremes of the rows.
    if rule_from_prior(design, column_of(design, code)):
        log_cut, log_p_column = log_set_split(prior, design, code, cut, trees.rate[top], rows)
        if log_cut == -np.inf:
            return 0
        log_gain = log_cut + log_p_column - trees.log_cut[top] - trees.log_column[top]
    rule = Rule(np.int64(code), cut, log_gain)
    changed = replace_rule(rng, problem, tree, moves, node_counts, work, subtree, rule)
    if changed == 1:
        trees.log_cut[top], trees.log_column[top] = log_cut, log_p_column
    return changed


register("perturb", Perturb, needs=Needs(splits=1), uses=(step_rule,), propose=perturb)
