"""Ragged trees at rows against the kernels of encoded forests, for generated trees of all rules."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pymc_trees.core.columns.cells import MAX_CUT, MISSING
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import Layout, compute_checksum, sizes
from pymc_trees.posterior.exporting.trees import levels_of_rules, packed_values
from pymc_trees.predictors import hard
from pymc_trees.predictors.packed import PackedForest

P, N_LEVELS, FINGERPRINT = 3, 5, 12345.0
LEVELS = P - 1
"""The column of levels."""
CELLS = np.array([-1.0, 0.0, 0.25, 0.5, np.nextafter(0.5, 1.0), 1.0, 7.5])


def rows_of(rng, n, mixed, new=False):
    X = rng.choice(CELLS, (n, P))
    if mixed:
        X[:, LEVELS] = rng.integers(0, N_LEVELS + 2 * new, n)
    if mixed or new:
        X[rng.random((n, P)) < 0.15] = MISSING
    return X


def rule(rng, mixed):
    """Column, with the kind of rule, and cut or set of levels."""
    column, side = int(rng.integers(P)), int(rng.integers(2))
    if mixed and column == LEVELS:
        return column + P * (2 + side), float(rng.integers(0, 2**N_LEVELS))
    cut = rng.choice([*CELLS, -MAX_CUT, MAX_CUT]) if mixed else rng.choice(CELLS)
    return column + P * side * mixed, float(cut)


def tree(rng, depth, p_split, mixed, n_values):
    """Preorder rows of a tree."""
    if depth == 0 or rng.random() > p_split:
        return [[-1.0, *rng.normal(size=n_values)]]
    below = [tree(rng, depth - 1, p_split, mixed, n_values) for _ in range(2)]
    return [[*rule(rng, mixed), *[0.0] * (n_values - 1)], *below[0], *below[1]]


def forest(seed, m, n_draws, depth, mixed, n_values):
    """Encoded draws, their layout, and the same as ragged trees."""
    rng = np.random.default_rng(seed)
    X = rows_of(rng, 20, mixed)
    X[0, LEVELS] = N_LEVELS - 1.0 if mixed else X[0, LEVELS]
    draws = [
        [row for _ in range(m) for row in tree(rng, depth, 0.8, mixed, n_values)]
        for _ in range(n_draws)
    ]
    layout = Layout(m, max(map(len, draws)) + 1, n_values, len(X), mixed)
    values = []
    for rows in draws:
        value = np.zeros(layout.shape)
        value[: layout.max_nodes, 0] = -2.0
        value[: len(rows)] = rows
        value[layout.max_nodes, 0] = compute_checksum(value, layout.max_nodes, FINGERPRINT)
        values.append(value)
    arrays = packed_values(values, layout.max_nodes, n_values)
    if mixed:
        arrays["levels"] = levels_of_rules(X, arrays["rules"])
    else:
        seeds = [value[layout.max_nodes, 0] for value in values]
        arrays["seeds"] = np.array(seeds).astype(np.uint64)
    about = {"kind": "constant", "draws": n_draws, "trees": m, "columns": P, "mixed": mixed}
    return values, X, layout, PackedForest(arrays, about | {"outputs": n_values})


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 6),
    n_draws=st.integers(1, 3),
    depth=st.integers(0, 6),
    mixed=st.booleans(),
    n_values=st.integers(1, 3),
)
def test_ragged_trees_are_the_encoded_ones(seed, m, n_draws, depth, mixed, n_values):
    values, X, layout, packed = forest(seed, m, n_draws, depth, mixed, n_values)
    rows = rows_of(np.random.default_rng(seed + 1), 25, mixed, new=True)
    leaf = ConstantLeaf(n_values)
    expected = [evaluate(v, rows, X, leaf, sizes(layout), FINGERPRINT) for v in values]
    few, small = hard.FEW, hard.SMALL
    try:
        for hard.FEW, hard.SMALL in ((few, small), (0, small), (0, 1)):
            found = hard.evaluate(packed, rows)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    finally:
        hard.FEW, hard.SMALL = few, small
    again = packed.thinned(np.array([n_draws - 1]))
    np.testing.assert_allclose(hard.evaluate(again, rows)[0], expected[-1], rtol=1e-12, atol=1e-12)
