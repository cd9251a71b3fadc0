"""Invariants of the encoded value and of the working arrays, one small function each.

Slow and plain on purpose: nothing here is shared with the kernels but the specification and the
checksum, so that tests can hold the kernels against it. A check returns a sentence that says what
is wrong, or None.
"""

from collections.abc import Callable

import numpy as np

from pymc_trees.core.columns.cells import MAX_CUT, MISSING
from pymc_trees.core.value.fields import (
    BITS,
    CHECKSUM,
    LEAF,
    LOG_COLUMNS,
    LOG_CUTS,
    TIME_TERMS,
    UNSPLITTABLE,
    UNUSED,
    Layout,
    compute_checksum,
)
from pymc_trees.core.value.text import Encoded, Node, expect, sent_left, tree_starts, walk

FORM_CHECKS: list[Callable[[Encoded], str | None]] = []
"""Whether the value can be walked at all."""
VALUE_CHECKS: list[Callable[[Encoded, list[Node]], str | None]] = []
"""Whether what the walk meets is right; run only when every form check passed."""


def check_value(
    value: np.ndarray,
    X_train: np.ndarray,
    layout: Layout,
    fingerprint: float,
    grid: list[np.ndarray] | None = None,
    weights: np.ndarray | None = None,
    kinds: np.ndarray | None = None,
) -> list[str]:
    """Everything that is wrong with an encoded forest; empty for a valid one.

    Parameters
    ----------
    value : array
        Encoded forest.
    X_train : (n, p) array
        Training inputs.
    layout : Layout
        Sizes of the encoding.
    fingerprint : float
        Of the declaration, as `checksum.fingerprint` made it.
    grid : list of p increasing arrays, optional
        Cut values of each column; None when cuts may lie anywhere.
    weights : (p,) array, optional
        Split weights that the value was made with; default equal.
    kinds : (p,) array of int, optional
        Kinds of the columns of a mixed layout, as in `mixed`; default numbers.
    """
    X = np.asarray(X_train, dtype=np.float64)
    weights = np.ones(X.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    kinds = np.zeros(X.shape[1], dtype=int) if kinds is None or not len(kinds) else kinds
    encoded = Encoded(value, X, Layout(*layout), fingerprint, grid, weights, kinds)
    for check in FORM_CHECKS:  # each presupposes those before it
        sentence = check(encoded)
        if sentence is not None:
            return [sentence]
    nodes = walk(encoded)
    return sentences(check(encoded, nodes) for check in VALUE_CHECKS)


def sentences(results) -> list[str]:
    """The sentences among the results of checks."""
    return [sentence for sentence in results if sentence is not None]


def value_check(check):
    """Register a check of `VALUE_CHECKS`."""
    VALUE_CHECKS.append(check)
    return check


def form_check(check):
    """Register a check of `FORM_CHECKS`."""
    FORM_CHECKS.append(check)
    return check


@form_check
def check_array(encoded):
    """A C-contiguous float64 array of the layout's shape."""
    value, shape = encoded.value, encoded.layout.shape
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return "The value is not a float64 array."
    if value.shape != shape:
        return f"The value has shape {value.shape}, but its layout asks for {shape}."
    if not value.flags.c_contiguous:
        return "The value is not C-contiguous."
    if encoded.X.shape[0] != encoded.layout.n_rows:
        return f"X_train has {encoded.X.shape[0]} rows, the layout {encoded.layout.n_rows}."
    return None


@form_check
def check_structure(encoded):
    """Complete trees in preorder, m of them."""
    try:
        tree_starts(encoded.value, encoded.layout)
    except ValueError as error:
        return f"The node rows are not {encoded.layout.m} trees in preorder: {error}"
    return None


@form_check
def check_columns(encoded):
    """Field 0 of a split: a whole number below p, or 4 p where there are levels or sides."""
    stop = tree_starts(encoded.value, encoded.layout)[-1]
    p = encoded.X.shape[1] * (4 if encoded.layout.mixed else 1)
    for row, kind in enumerate(encoded.value[:stop, 0]):
        if kind != LEAF and not (kind < p and kind == np.floor(kind)):
            return f"Row {row}: split column {kind:g} is not a whole number from 0 to {p - 1}."
    return None


@value_check
def check_unused(encoded, nodes):
    """After the last tree: `UNUSED`, then zeros."""
    for row in range(len(nodes), encoded.layout.max_nodes):
        fields = encoded.value[row]
        if fields[0] != UNUSED or (fields[1:] != 0).any():
            return f"Row {row} follows the last tree, but is not {UNUSED}, 0, ..., 0."
    return None


def parts_rows(encoded, node):
    """Whether both children have rows, and the cut is one the prior can draw."""
    x = encoded.X[node.rows, node.column]
    left = sent_left(x, node.rule_kind, node.cut)
    present = x[x != MISSING]
    if not (left.any() and not left.all() and present.size):
        return False
    apart = len(set(sent_left(present, node.rule_kind, node.cut))) == 1
    if node.rule_kind >= 2:
        every = 2.0 ** abs(encoded.kinds[node.column]) - 1
        return 0 <= node.cut <= every and (not apart or node.cut in (0.0, every))
    return not apart or abs(node.cut) == MAX_CUT


@value_check
def check_cuts(encoded, nodes):
    """Both children of every split have training rows; a grid's cuts are on it."""
    for node in nodes:
        if node.column < 0:
            continue
        if not parts_rows(encoded, node):
            return (
                f"Row {node.row}: cut {node.cut:g} of column {node.column} is not within [min, max)"
                " of the training rows in the node."
            )
        if (node.rule_kind >= 2) != (encoded.kinds[node.column] != 0):
            return f"Row {node.row}: column {node.column} is split by the rule of another kind."
        if (
            encoded.grid is not None
            and node.rule_kind < 2
            and abs(node.cut) != MAX_CUT
            and node.cut not in encoded.grid[node.column]
        ):
            return f"Row {node.row}: cut {node.cut:g} is not a grid cut of column {node.column}."
        if encoded.weights[node.column] <= 0:
            return f"Row {node.row}: column {node.column} has split weight 0."
    return None


@value_check
def check_leaf_values(encoded, nodes):
    """Finite leaf values; zeros behind them and behind the cut of a split."""
    for node in nodes:
        if node.column < 0 and not np.isfinite(node.leaf_values).all():
            return f"Row {node.row}: a leaf value is not finite."
        if (node.rest != 0).any():
            return f"Row {node.row}: the fields after the cut or the leaf values are not 0."
    return None


@value_check
def check_closed_bits(encoded, nodes):
    """Bit of each leaf: set when its training rows are all alike."""
    layout, certificate = encoded.layout, encoded.certificate
    leaves = [node for node in nodes if node.column < 0]
    expected = np.zeros(layout.unsplittable_words)
    for k, node in enumerate(leaves):
        if len(node.rows) == 0:
            return None  # check_cuts reports the split above
        if expect(encoded, node.rows, None).unsplittable:
            expected[k // BITS] += 2.0 ** (k % BITS)
    stored = certificate[UNSPLITTABLE : UNSPLITTABLE + layout.unsplittable_words]
    if not np.array_equal(stored, expected):
        return "The unsplittable bits are not those of the leaves whose rows are all alike."
    return None


@value_check
def check_sums(encoded, nodes):
    """Certificate's log densities of the cuts and log probabilities of the columns."""
    log_cuts, log_columns = 0.0, 0.0
    for node in nodes:
        if node.column < 0:
            continue
        if not parts_rows(encoded, node):
            return None  # check_cuts reports it
        terms = expect(encoded, node.rows, node)
        log_cuts += terms.log_cut
        log_columns += terms.log_column
    for name, entry, expected in (
        ("log_cuts", LOG_CUTS, log_cuts),
        ("log_columns", LOG_COLUMNS, log_columns),
    ):
        stored = encoded.certificate[entry]
        if not np.isclose(stored, expected, rtol=1e-9, atol=1e-9):
            return f"The certificate has {name} = {stored:g}, but the nodes add up to {expected:g}."
    return None


@value_check
def check_times(encoded, nodes):
    """Splits follow their parents', and the certificate knows what their times add."""
    layout = encoded.layout
    if not layout.timed:
        return None
    first = last = rates = 0.0
    for node in nodes:
        if len(node.rows) == 0:
            return None  # check_cuts reports it
        rate = np.ptp(encoded.X[node.rows], axis=0).sum()
        if node.column < 0:
            first, rates = first + rate * node.start, rates + rate
            continue
        if not (node.start <= node.time < np.inf):
            return f"Row {node.row}: time {node.time:g} of a split whose parent has {node.start:g}."
        if rate > 0:  # or check_cuts reports it
            first += np.log(rate) - rate * (node.time - node.start)
        last = max(last, node.time)
    stored = encoded.certificate[layout.stop - TIME_TERMS : layout.stop]
    if not np.allclose(stored, (first, rates, last), rtol=1e-9, atol=1e-9):
        return f"The certificate's time terms {stored} should be {(first, rates, last)}."
    return None


@value_check
def check_padding(encoded, nodes):
    """Zeros after the last entry of the certificate."""
    layout = encoded.layout
    if (encoded.certificate[layout.stop :] != 0).any():
        return "The entries after the certificate are not 0."
    return None


@value_check
def check_checksum(encoded, nodes):
    """Checksum of the fingerprint and of every other entry."""
    expected = compute_checksum(encoded.value, encoded.layout.max_nodes, encoded.fingerprint)
    if encoded.certificate[CHECKSUM] != expected:
        return (
            "The checksum does not match: the value was altered, or belongs to another declaration "
            "(training inputs, split weights, grid or layout)."
        )
    return None
