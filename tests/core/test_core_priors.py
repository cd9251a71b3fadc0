"""The prior's numbers, the law of a drawn column, and the choice among moves and candidates.

Frequencies of 20,000 draws by chi-square at p > 1e-5.
"""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_trees.core.columns.design import make_design
from pymc_trees.core.columns.rules import log_column_probability
from pymc_trees.core.moves.catalogue import standard_moves
from pymc_trees.core.moves.contract import available_weight, choose_move
from pymc_trees.core.moves.problem import NodeCounts
from pymc_trees.core.priors.cgm import draw_column, make_prior
from pymc_trees.core.priors.contract import NodeContext, log_split, log_stop
from pymc_trees.core.random import accepts, pick

DRAWS = 20_000
# Column 0 constant in the first four rows, column 2 constant everywhere.
X = np.array([[1, 0, 5, 0], [1, 1, 5, 2], [1, 0, 5, 1], [1, 3, 5, 0], [2, 3, 5, 0]], dtype=float)


def agrees(counts, probabilities):
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    assert (counts[probabilities == 0] == 0).all()
    some = probabilities > 0
    expected = probabilities[some] * counts.sum()
    return stats.chisquare(counts[some], expected).pvalue > 1e-5 if some.sum() > 1 else True


@pytest.mark.parametrize("alpha, beta", [(0.95, 2.0), (0.5, 0.0), (0.999, 0.1)])
def test_split_and_stop_probabilities(alpha, beta):
    prior = make_prior(alpha, beta, np.ones(2))
    for depth in (0, 1, 2, 7, 63, 64, 65, 200):
        p = alpha * (1 + depth) ** -beta
        place = NodeContext(depth, 0.0, 0.0, False)
        assert log_split(prior, place) == pytest.approx(math.log(p), abs=1e-12)
        assert log_stop(prior, place) == pytest.approx(math.log1p(-p), abs=1e-12)
        assert log_stop(prior, place._replace(unsplittable=True)) == 0.0


@pytest.mark.parametrize("stop", [4, 5])
@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 1.0, 1.0, 1.0],
        [0.1, 0.6, 0.2, 0.1],
        [0.3, 0.0, 0.3, 0.4],
        [1e-9, 1e-9, 1.0, 2e-9],  # refused again and again: the list of columns is used
        [3.0, 5.0, 0.0, 0.0],
    ],
)
def test_columns_are_drawn_by_weight_among_those_that_vary(weights, stop, rng):
    weights = np.array(weights)
    design = make_design(X)
    design = design._replace(varies=design.varies & (weights > 0))
    prior = make_prior(0.9, 1.0, weights)
    rows = np.arange(5, dtype=np.uint32)
    able = np.array([stop == 5, True, False, True]) & (weights > 0)
    exact = np.where(able, weights, 0) / weights[able].sum()
    columns = [draw_column(rng, prior, design, rows, 0, stop) for _ in range(DRAWS)]
    assert agrees(np.bincount(columns, minlength=4), exact)
    for j in np.flatnonzero(able):
        found = log_column_probability(design, weights, j, rows, 0, stop)
        assert found == pytest.approx(math.log(exact[j]), abs=1e-12)


@pytest.mark.parametrize(
    "census, able",
    [
        (NodeCounts(1, 1, 0, 0), [1, 0, 0, 0]),
        (NodeCounts(1, 0, 0, 0), [0, 0, 0, 0]),
        (NodeCounts(3, 0, 1, 1), [0, 1, 1, 0]),
        (NodeCounts(3, 2, 1, 1), [1, 1, 1, 0]),
        (NodeCounts(7, 0, 3, 2), [0, 1, 1, 1]),
        (NodeCounts(7, 2, 3, 2), [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("weights", [[0.25, 0.25, 0.4, 0.1], [0.5, 0.5, 0, 0], [0.2, 0.3, 0, 0.5]])
def test_moves_are_chosen_by_weight_among_those_there_are(census, able, weights, rng):
    weights = np.array(weights)
    offered = weights * able
    moves = standard_moves(weights)
    total = available_weight(moves, census)
    assert total == pytest.approx(offered.sum(), abs=1e-15)
    if offered.sum() == 0:
        assert choose_move(rng, moves, census) == -1
        return
    kinds = [choose_move(rng, moves, census) for _ in range(DRAWS)]
    assert agrees(np.bincount(kinds, minlength=4), offered / offered.sum())


def test_candidates_are_picked_uniformly(rng):
    assert agrees(np.bincount([pick(rng, 7) for _ in range(DRAWS)], minlength=7), np.full(7, 1 / 7))
    assert {pick(rng, 1) for _ in range(100)} == {0}


def test_acceptance(rng):
    accepted = [accepts(rng, math.log(0.3)) for _ in range(DRAWS)]
    assert agrees([DRAWS - sum(accepted), sum(accepted)], [0.7, 0.3])
    assert all(accepts(rng, 0.0) and accepts(rng, np.inf) for _ in range(100))
    assert not any(accepts(rng, np.nan) or accepts(rng, -np.inf) for _ in range(100))
