"""Small steps of a rule: symmetric, and a chain without one part of the ratio is found out.

Steps. On a finite set of rules the numbers of steps there and back, of 8,000 from each, differ by
less than 5.5 binomial standard errors; some 3,000 pairs, one chance failure in 8,000 fresh runs.
Chains are compared with the listed posterior as in `test_exact_posterior`.

Among the moves of this package the choice ratio is 1: a leaf can split unless its rows are all
alike, so that none can exactly when there are as many leaves as different rows, and a step changes
neither number. It counts beside a move that asks for more, such as `Rest`.
"""

from itertools import product

import numpy as np
import pytest
from numba import njit
from scipy import stats
from support.chains import design_of, make_setup, run_chain
from support.laws.exact import compare
from support.laws.mistaken_moves import MISTAKES, Mistaken, Rest
from support.naive.laws import EVERY
from support.tiers import tiers

from pymc_trees.core.columns.mixed import MAX_CUT as EVERY_CELL
from pymc_trees.core.columns.row_set import RowSet, make_row_index, words_of
from pymc_trees.core.columns.rules import log_rule
from pymc_trees.core.columns.steps import step_rule
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import make_weighted_moves
from pymc_trees.core.moves.perturb import Perturb

STEPS = 8_000


@njit(cache=True)
def densities(design, codes, cuts, rows):
    out = np.empty(codes.size)
    for k in range(codes.size):
        out[k] = log_rule(design, codes[k], cuts[k], rows, 0, rows.size)
    return out


@njit(cache=True)
def steps(rng, design, code, cut, rows, largest, n):
    codes, cuts = np.empty(n, dtype=np.int64), np.empty(n)
    for k in range(n):
        codes[k], cuts[k] = step_rule(rng, design, code, cut, largest, rows)
    return codes, cuts


def set_of(design, rows):
    inside = np.isin(np.arange(design.columns.shape[1]), rows)
    return RowSet(words_of(inside), len(rows), make_row_index(design))


def every_rule(design, column):
    """All rules of a column of levels or of grid codes, possible or not."""
    p = len(design.columns)
    kind = design.kinds[column] if hasattr(design, "kinds") else None
    if kind is None:
        return [(column, float(c)) for c in range(8)]
    if kind != 0:
        return list(product([column + 2 * p, column + 3 * p], map(float, range(2 ** abs(kind)))))
    ways = [column, column + p]
    return [*product(ways, map(float, range(8))), (ways[0], EVERY_CELL), (ways[1], -EVERY_CELL)]


def possible_rules(design, column, rows):
    rules = every_rule(design, column)
    codes, cuts = np.array([r[0] for r in rules]), np.array([r[1] for r in rules])
    able = densities(design, codes, cuts, rows) > -np.inf
    return [rule for rule, possible in zip(rules, able) if possible]


DISCRETE = [("grid", 0), ("grid", 1), ("levels", 0), ("onehot", 0), ("mixed_grid", 0)]
DISCRETE += [("mixed_grid", 1)]


@pytest.mark.parametrize("name, column", DISCRETE)
def test_a_step_there_is_as_probable_as_the_step_back(name, column, rng):
    design = design_of(EVERY[name])
    n, moving = design.columns.shape[1], 0
    for size in (n, n, n - 1, n - 2, n - 3):
        rows = np.sort(rng.choice(n, size, replace=False)).astype(np.uint32)
        rules, as_set = possible_rules(design, column, rows), set_of(design, rows)
        place = {rule: k for k, rule in enumerate(rules)}
        counts = np.zeros((len(rules), len(rules)))
        for k, rule in enumerate(rules):
            found = zip(*map(np.ndarray.tolist, steps(rng, design, *rule, as_set, 1.0, STEPS)))
            for key in found:
                if key in place:
                    counts[k, place[key]] += 1
        share = (counts + counts.T) / (2 * STEPS)
        se = np.sqrt(2 * STEPS * share * (1 - share))
        assert (np.abs(counts - counts.T) <= 5.5 * np.maximum(se, 1e-9)).all()
        moving += (counts - np.diag(np.diag(counts))).sum()
    assert moving > STEPS


@pytest.mark.parametrize("largest", [0.3, 1.0])
def test_steps_of_a_cut_have_one_law_at_every_cut(largest, rng):
    """Kolmogorov-Smirnov of 4,000 steps at p > 1e-5: from two cuts, and turned round."""
    design = design_of(EVERY["gaps"])
    rows = set_of(design, np.arange(6))
    away = [steps(rng, design, 0, cut, rows, largest, 4000)[1] - cut for cut in (0.05, 6.5)]
    assert stats.ks_2samp(*away).pvalue > 1e-5
    assert stats.ks_2samp(away[0], -away[1]).pvalue > 1e-5
    assert np.abs(away).max() <= 7.0 * largest
    assert len(np.unique(away[0])) == 4000


WITHOUT_REST = np.array([0.15, 0.05, 0.0, 0.0, 0.8, 0.0])
WITH_REST = np.array([0.1, 0.05, 0.0, 0.0, 0.25, 0.6])


def chain_with(move, name, weights):
    moves = make_weighted_moves((*MOVES, move, Rest()), weights)
    return run_chain(5, make_setup(EVERY[name], "normal"), moves, 240_000, keep_fits=True)


CASES = [
    ("the choice of the move is left out", "gaps", WITH_REST),
    ("the prior of the nodes below is left out", "deep", WITHOUT_REST),
    ("steps grow with the cut", "gaps", WITHOUT_REST),
    (
        "a set of levels is replaced by any other, whatever its density",
        "mixed_grid",
        WITHOUT_REST,
    ),
]


@pytest.mark.parametrize("mistake, name, weights", tiers(CASES, quick=CASES[:3]))
def test_a_wrong_ratio_is_found(mistake, name, weights):
    with pytest.raises(AssertionError):
        compare(chain_with(Mistaken(MISTAKES[mistake]), name, weights), name, "normal")


@pytest.mark.parametrize("name", tiers(["gaps", "deep", "mixed_grid"], quick=["gaps", "deep"]))
@pytest.mark.parametrize("weights", [WITHOUT_REST, WITH_REST])
def test_the_same_chain_without_a_mistake_is_right(name, weights):
    """By the kernels of the chains with one."""
    compare(chain_with(Mistaken(0), name, weights), name, "normal")


@pytest.mark.full
def test_the_move_itself_beside_one_that_asks_for_more():
    """Where the choice ratio counts; without `Rest` the move is in `test_exact_posterior`."""
    compare(chain_with(Perturb(), "gaps", WITH_REST), "gaps", "normal")
