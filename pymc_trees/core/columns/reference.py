"""Training rows whose cells move, and reference rows, on which the rules of the trees rest.

Where a column of X is a random variable, a prior that is conditioned on the rows would change with
it. It is conditioned on *reference rows* instead, which are fixed at the declaration: a column is a
candidate in a node, and a cut has its density there, by the reference rows of the node. The rows
themselves follow the rules, and carry the likelihood; a leaf may have none of them.

Sets of rows (`row_set`) hold both. The words of the reference rows come first, `first_word` of
them, filled up with copies of the last one; so either part is a slice. `RowSet.n`, `Trees.count`
and `Trees.leaf_of` are those of the rows themselves.
"""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.columns.design import Design, draw_cut, make_design, varying
from pymc_trees.core.columns.mixed import MixedDesign, column_of, rule_from_prior
from pymc_trees.core.columns.row_set import (
    RowIndex,
    RowSet,
    any_varies_in_set,
    count_rows,
    left_rows,
    make_row_index,
    own_words,
    varies_in_set,
    words_of,
)
from pymc_trees.core.columns.rules import draw_set_rule, log_set_rule
from pymc_trees.core.columns.search import write_codes
from pymc_trees.core.columns.steps import step_rule
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.dispatch import register
from pymc_trees.core.compile.pointer import by_pointer


@by_pointer
class ReferencedDesign(NamedTuple):
    """Reference rows, and the rows themselves; on a grid."""

    rules: Design | MixedDesign
    """The reference rows."""
    both: Design | MixedDesign
    """The reference rows, and the rows behind them; their cells are changed in place."""
    index: RowIndex
    """Of the reference rows."""

    @property
    def n_reference(self) -> int:
        """Reference rows, with the copies."""
        return self.rules.columns.shape[1]


def make_referenced(reference: np.ndarray, X: np.ndarray, grid, kinds) -> ReferencedDesign:
    """Design of (n, p) rows on (n_0, p) reference rows; ``grid`` and ``kinds`` as of `make_design`.

    Cells of a column that has levels or missing cells must be among those of the reference rows.
    """
    n = len(reference)
    at = np.minimum(np.arange(-(-n // 64) * 64), n - 1)
    reference = reference[at]
    rules = make_design(reference, grid, kinds)
    return ReferencedDesign(
        rules, make_design(np.concatenate([reference, X]), grid, kinds), make_row_index(rules)
    )


def make_both_index(design: ReferencedDesign) -> RowIndex:
    """Index of both."""
    return make_row_index(design.both)._replace(first_word=design.n_reference // 64)


def move_column(design: ReferencedDesign, column: int, cells: np.ndarray, cuts: np.ndarray) -> None:
    """Write the cells of a column of the rows, numbers or levels."""
    codes = design.both.columns[column, design.n_reference :]
    if isinstance(design.both, MixedDesign) and design.both.kinds[column]:
        codes[:] = cells
    else:
        write_codes(cuts, np.ascontiguousarray(cells), codes)


def move_level_sets(design: ReferencedDesign, index: RowIndex, column: int) -> None:
    """Write the sets of the rows by the levels of a column, if it has any (`RowIndex`)."""
    first = index.first_level_set[column]
    if first < 0 or not isinstance(design.both, MixedDesign):
        return
    cells = design.both.columns[column]
    index.level_sets[first] = words_of(cells == design.both.missing)
    for level in range(abs(design.both.kinds[column])):
        index.level_sets[first + 1 + level] = words_of(cells == level)


# ------------------------------------------------- What rules ask of a design: the reference rows


@njit(cache=True)
def reference_rows(design, rows):
    """`RowSet` of the reference rows."""
    words = rows.words[: rows.index.first_word]
    return RowSet(words, count_rows(words), design.index)


@njit(cache=True)
def _column_of(design, code):
    return column_of(design.rules, code)


@njit(cache=True)
def _rule_from_prior(design, column):
    return rule_from_prior(design.rules, column)


@njit(cache=True)
def _varying(design):
    return varying(design.rules)


@njit(cache=True)
def _draw_cut(rng, design, low, high):
    return draw_cut(rng, design.rules, low, high)


@njit(cache=True)
def _varies(design, column, rows):
    return varies_in_set(design.rules, column, reference_rows(design, rows))


@njit(cache=True)
def _any_varies(design, rows):
    return any_varies_in_set(design.rules, reference_rows(design, rows))


@njit(cache=True)
def _draw_set_rule(rng, design, column, rows):
    return draw_set_rule(rng, design.rules, column, reference_rows(design, rows))


@njit(cache=True)
def _log_set_rule(design, code, cut, rows):
    return log_set_rule(design.rules, code, cut, reference_rows(design, rows))


@njit(cache=True)
def _step_rule(rng, design, code, cut, largest, rows):
    return step_rule(rng, design.rules, code, cut, largest, reference_rows(design, rows))


@njit(cache=True)
def _left_rows(design, code, cut, rows, out):
    left_rows(design.both, code, cut, rows, out)
    return count_rows(own_words(out, rows.index))


register(
    ReferencedDesign,
    column_of=_column_of,
    rule_from_prior=_rule_from_prior,
    varying=_varying,
    draw_cut=_draw_cut,
    varies_in_set=_varies,
    any_varies_in_set=_any_varies,
    draw_set_rule=_draw_set_rule,
    log_set_rule=_log_set_rule,
    step_rule=_step_rule,
    left_rows=_left_rows,
)
