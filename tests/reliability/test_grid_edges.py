"""Grids at the edges of floating-point numbers: every pair of values can be parted, no code twice.

The chain of the exact posterior is compared by batch means over 60 batches; a dozen averages at 6.0
standard errors (t law, 59 degrees of freedom): one run in a million fails by chance.
"""

import numpy as np
import pymc as pm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains import CGM, make_setup, partition_of, run_chain, with_float_cells
from support.naive.batches import frequencies, law_gap
from support.naive.laws import partition_posterior
from support.oracle import Problem

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import cut_code, cut_value, make_design
from pymc_trees.distributions.data.schema import MOST_CUTS
from pymc_trees.distributions.tree_priors.read import make_grid

EPS = np.spacing(1.0)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def tiny_problem(x, cuts):
    """Five rows of one column whose posterior is spread over many trees."""
    y = np.array([-1.0, -0.6, 0.9, 0.7, -0.4])
    labels = np.zeros(5, dtype=int)
    return Problem(np.reshape(x, (-1, 1)), y, labels, {"alpha": 0.8, "beta": 0.7, "cuts": cuts})


@pytest.mark.full
def test_exact_posterior_of_adjacent_floats():
    """That of the ranks 0 .. 4, whose cuts are all alike too, listed by the oracle."""
    x = 1.0 + EPS * np.arange(5.0)
    assert (np.nextafter(x[:-1], 2.0) == x[1:]).all()
    problem = tiny_problem(x, make_grid(x[:, None], 100))
    exact = partition_posterior(tiny_problem(np.arange(5.0), [np.arange(4.0)]), "normal")
    assert len(exact) == 16 and max(exact.values()) < 0.5
    chain = run_chain(5, with_float_cells(make_setup(problem, "normal")), CGM, 60_000)
    codes, shares = frequencies(chain.codes[:, 0], 60)
    found = law_gap([partition_of(code, 5) for code in codes], shares, exact, len(chain.codes))
    assert found.within(6.0, 0.03), found


@given(st.lists(FLOATS, min_size=2, max_size=30))
def test_every_pair_of_values_has_a_cut_and_codes_keep_their_order(values):
    x = np.sort(values)
    [cuts] = make_grid(x[:, None], 100)
    assert np.isfinite(cuts).all() and (np.diff(cuts) > 0).all()
    design = make_design(x[:, None], [cuts])
    codes = design.columns[0]
    np.testing.assert_array_equal(np.diff(codes.astype(int)) > 0, x[1:] > x[:-1])
    for k, cut in enumerate(cuts):
        np.testing.assert_array_equal(codes <= k, x <= cut)
        assert cut_value(design, 0, float(k)) == cut and cut_code(design, 0, cut) == k


@given(st.lists(FLOATS, min_size=2, max_size=60), st.integers(1, 8))
def test_a_coarse_grid_has_rows_on_both_sides_of_every_cut(values, n_cuts):
    x = np.array(values)
    [cuts] = make_grid(x[:, None], n_cuts)
    assert len(cuts) <= n_cuts
    assert (len(cuts) > 0) == (len(set(values)) > 1)
    assert all((x <= cut).any() and (x > cut).any() for cut in cuts)


def test_numbers_near_the_largest():
    [cuts] = make_grid(np.array([[1.0e308], [1.5e308], [1.7e308]]), 10)
    np.testing.assert_allclose(cuts, [1.25e308, 1.6e308], rtol=1e-15)


def test_missing_cells_have_a_code_of_their_own_beside_the_longest_grid():
    x = np.append(np.arange(MOST_CUTS + 1.0), MISSING)[:, None]
    cuts = make_grid(x, MOST_CUTS)
    assert len(cuts[0]) == MOST_CUTS
    design = make_design(x, cuts, np.zeros(1, dtype=np.int64))
    assert design.columns.dtype == np.uint16
    assert len(set(design.columns[0].tolist())) == len(x)
    assert (design.columns[0] == design.missing).tolist() == [False] * (MOST_CUTS + 1) + [True]


@pytest.mark.parametrize("n_cuts", [MOST_CUTS + 1, 10**9])
def test_more_cuts_than_codes_are_refused(n_cuts):
    with pm.Model(), pytest.raises(ValueError, match=f"n_cuts={n_cuts}: at most 65,534"):
        pmt.BART("mu", np.arange(3.0)[:, None], np.arange(3.0), n_cuts=n_cuts)
