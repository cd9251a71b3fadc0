"""A rule sends a row the same way wherever it is asked: in the design, evaluated, and by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support import twin

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.leaves.contract import ConstantLeaf
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.forest_inputs import forest_inputs


@st.composite
def inputs(draw):
    """Two columns split by levels and two of numbers, with missing cells."""
    n = draw(st.integers(3, 12))
    levels = st.sampled_from([0.0, 1.0, 2.0, 3.0, MISSING])
    cells = st.sampled_from([MISSING, -1.0, 0.0, 1.0, np.nextafter(1.0, 2.0)]) | st.floats(-9, 9)
    columns = [draw(st.lists(c, min_size=n, max_size=n)) for c in (levels, levels, cells, cells)]
    X = np.array(columns).T
    X[0], X[1, 2] = [3.0, 0.0, -1.0, 1.0], MISSING  # every column has a present cell, one a gap
    return X


RULES = ["subset", "onehot", "continuous", "continuous"]


@given(inputs(), st.sampled_from([None, 2, 9]), st.integers(0, 2**32))
def test_every_row_goes_one_way(X, n_cuts, seed):
    forest = pmt.Forest.dist(
        np.where(X == MISSING, np.nan, X),
        m=2,
        alpha=0.95,
        beta=0.3,
        leaf=pmt.NormalLeaf(0.0, 1.0),
        split_rules=RULES,
        n_cuts=n_cuts,
        max_nodes=46,
    )
    op, known = forest.owner.op, forest_inputs(forest)
    arrays = [v.eval() if v.owner else v.data for v in (*known[:-1], *known.leaf)]
    X_train, stamp = known.X.data, float(known.fingerprint.data)
    value = op.rng_fn(np.random.default_rng(seed), *arrays, None)
    rows = np.ascontiguousarray(np.vstack([X_train[::-1], X_train[:1]]))
    walked = evaluate(value, rows, X_train, ConstantLeaf(1), sizes(op.layout), stamp)[:, 0]
    by_hand = twin.f(twin.read_trees(value, op.layout), rows, True)[:, 0]
    np.testing.assert_allclose(walked, by_hand, atol=1e-12)
    fitted = evaluate(value, X_train, X_train, ConstantLeaf(1), sizes(op.layout), stamp)[:, 0]
    np.testing.assert_array_equal(walked[:-1][::-1], fitted)
    assert walked[-1] == walked[-2]
