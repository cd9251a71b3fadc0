"""Ragged trees at rows against the kernels of encoded forests, for generated trees of all rules."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated_forests import FINGERPRINT, forest, rows_of

from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import sizes
from pymc_trees.predictors import hard


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
