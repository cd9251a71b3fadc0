"""Levels, missing cells and ties: every sampler finds the listed posterior, the rules their law.

Averages of chains are compared as in `test_exact_posterior` (60 batches, 6.0 standard errors): some
1,500 averages. The density of a rule is summed over all rules there are, which must give 1 to
rounding; draws of rules are compared with it by chi-square at p > 1e-5, some 40 tests.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import njit
from scipy import stats
from support.chains import ALL_MOVES, design_of, make_setup, run_chain, with_float_cells
from support.laws.exact import Z, chain_of, compare, compare_particles, partition_shares
from support.naive import slow
from support.naive.batches import law_gap
from support.naive.laws import EVERY, law, partition_posterior
from support.oracle import partition_prior
from support.tiers import tiers

from pymc_trees.core.columns.mixed import MAX_CUT as EVERY_CELL
from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.core.columns.rules import draw_rule, log_rule

# Every move, and every kind of columns with half of them.
MOVED = [("levels", "cgm"), ("levels", "all_moves"), ("levels", "restructure")]
MOVED += [("levels", "perturb"), ("onehot", "perturb"), ("onehot", "cgm"), ("onehot", "rotate")]
MOVED += [("missing", "grow_prune"), ("missing", "restructure"), ("missing", "rotate")]
MOVED += [("mixed_grid", moves) for moves in ("cgm", "change_swap", "rotate", "all_moves")]


@pytest.mark.parametrize(
    "name, moves",
    tiers(
        MOVED,
        quick=[
            ("levels", "all_moves"),
            ("mixed_grid", "rotate"),
            ("onehot", "perturb"),
            ("missing", "restructure"),
        ],
    ),
)
def test_moves_agree_with_the_enumeration(name, moves):
    compare(chain_of(name, "normal", moves), name, "normal")


@pytest.mark.full
@pytest.mark.parametrize(
    "name, particles, proposal, scheme, share",
    [
        ("levels", 2, "optimal", "multinomial", 1.0),
        ("levels", 10, "empirical", "systematic", 1.0),
        ("missing", 10, "prior", "multinomial", 1.0),
        ("onehot", 3, "optimal", "stratified", 0.6),
        ("mixed_grid", 10, "optimal", "multinomial", 0.5),
        ("missing", 2, "optimal", "multinomial", 1.0),
    ],
)
def test_whole_trees_agree_with_the_enumeration(name, particles, proposal, scheme, share):
    compare_particles(name, "normal", particles, proposal, scheme, share)


@pytest.mark.parametrize("name", tiers(["levels", "mixed_grid"], quick=["mixed_grid"]))
def test_the_order_of_rows_columns_and_levels_does_not_matter(name):
    """A chain on the table turned round, its levels renamed, finds the law of the table itself."""
    problem = EVERY[name]
    order = np.random.default_rng(4).permutation(problem.n)
    X = problem.X[order][:, ::-1].copy()
    kinds = problem.prior["kinds"][::-1]
    j = kinds.index("subset")
    X[:, j] = np.nanmax(X[:, j]) - X[:, j]
    prior = problem.prior | {"kinds": kinds}
    if "cuts" in prior:
        prior["cuts"] = prior["cuts"][::-1]
    turned = replace(problem, X=X, y=problem.y[order], prior=prior)
    chain = run_chain(7, with_float_cells(make_setup(turned, "normal")), ALL_MOVES, 80_000)
    states, shares = partition_shares(chain, problem.n)
    states = [frozenset(frozenset(int(order[i]) for i in leaf) for leaf in s) for s in states]
    found = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert found.within(Z, 0.03), found


@njit(cache=True)
def density(design, codes, cuts, rows):
    out = np.empty(codes.size)
    for k in range(codes.size):
        out[k] = log_rule(design, codes[k], cuts[k], rows, 0, rows.size)
    return out


@njit(cache=True)
def rules(rng, design, column, rows, draws):
    codes, cuts, logs = np.empty(draws, dtype=np.int64), np.empty(draws), np.empty(draws)
    for k in range(draws):
        codes[k], cuts[k], logs[k] = draw_rule(rng, design, column, rows, 0, rows.size)
    return codes, cuts, logs


def every_set(design, column):
    """All rules of a column of levels, possible or not."""
    p, every = len(design.columns), 2 ** abs(design.kinds[column])
    ways = np.repeat([2, 3], every) * p + column
    return ways, np.tile(np.arange(every, dtype=float), 2)


def some_rows(rng, n):
    return np.sort(rng.choice(n, int(rng.integers(2, n + 1)), replace=False)).astype(np.uint32)


@pytest.mark.parametrize(
    "name", tiers(["levels", "onehot", "mixed_grid"], quick=["levels", "onehot"])
)
def test_the_density_of_sets_of_levels(name, rng):
    """Equal to the text of the prior, sums to 1, and draws follow it."""
    design = design_of(EVERY[name])
    cells = slow.cells_of(design)
    column = [j for j in range(len(design.columns)) if design.kinds[j] != 0][0]
    codes, cuts = every_set(design, column)
    tried = 0
    for _ in range(12):
        rows = some_rows(rng, cells.shape[0])
        if len({cells[i, column] for i in rows}) == 1:
            assert (density(design, codes, cuts, rows) == -np.inf).all()
            continue
        logs = density(design, codes, cuts, rows)
        exact = [slow.log_mixed_rule(cells, rows, *rule) for rule in zip(codes, cuts)]
        np.testing.assert_allclose(logs, exact, atol=1e-12)
        assert math.fsum(np.exp(logs)) == pytest.approx(1.0, abs=1e-12)
        found = rules(rng, design, column, rows, 20_000)
        np.testing.assert_allclose(density(design, *found[:2], rows), found[2], atol=1e-12)
        keys = [*zip(codes.tolist(), cuts.tolist())]
        place = {key: k for k, key in enumerate(keys)}
        counts = np.bincount(
            [place[k] for k in zip(*map(np.ndarray.tolist, found[:2]))], minlength=len(keys)
        )
        able = np.exp(logs) > 0
        assert counts[~able].sum() == 0
        if able.sum() > 1:
            assert stats.chisquare(counts[able], 20_000 * np.exp(logs[able])).pvalue > 1e-5
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("name", ["missing", "mixed_grid"])
def test_the_density_of_cuts_beside_missing_cells(name, rng):
    """Missing against present as often as stated, sides by a coin, cuts uniform where they are."""
    design = design_of(EVERY[name])
    cells = slow.cells_of(design)
    p, tried = cells.shape[1], 0
    for _ in range(14):
        rows = some_rows(rng, len(cells))
        present = sorted({cells[i, 0] for i in rows} - {MISSING})
        any_missing = any(cells[i, 0] == MISSING for i in rows)
        if len(present) + any_missing < 2 or not present:
            continue
        codes, cuts, logs = rules(rng, design, 0, rows, 20_000)
        exact = [slow.log_mixed_rule(cells, rows, *rule) for rule in zip(codes[:300], cuts[:300])]
        np.testing.assert_allclose(logs[:300], exact, atol=1e-12)
        np.testing.assert_allclose(
            density(design, codes[:300], cuts[:300], rows), exact, atol=1e-12
        )
        left = codes >= p
        assert stats.binomtest(int(left.sum()), len(left)).pvalue > 1e-5
        apart = cuts == np.where(left, -EVERY_CELL, EVERY_CELL)
        chance = 0.0 if not any_missing else 1 / (1 + len(present)) if len(present) > 1 else 1.0
        assert stats.binomtest(int(apart.sum()), len(apart), chance).pvalue > 1e-5
        if len(present) > 1:
            where = (cuts[~apart] - present[0]) / (present[-1] - present[0])
            assert (where >= 0).all() and (where < 1).all()
            if not design.is_grid:
                assert stats.kstest(where, "uniform").pvalue > 1e-5
        tried += 1
    assert tried > 5


def test_rules_that_are_none(rng):
    """Sets that are no whole number, too large, or of the wrong kind of column."""
    design = design_of(EVERY["levels"])
    rows = np.arange(7, dtype=np.uint32)
    codes = np.array([4, 4, 4, 4, 0, 5, 1])
    cuts = np.array([1.5, 16.0, -1.0, np.nan, 1.0, 1.0, np.nan])
    assert (density(design, codes, cuts, rows) == -np.inf).all()
    assert density(design, np.array([1]), np.array([0.5]), rows)[0] == pytest.approx(
        math.log(0.5 / 2.5)
    )


@pytest.mark.parametrize("name, mistake", [("levels", "onehot"), ("missing", "apart")])
def test_the_comparison_rejects_another_prior(name, mistake):
    """One-hot for subsets; every gap beside missing rows in place of 1 / (1 + d)."""
    problem = EVERY[name]
    chain = chain_of(name, "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    right = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert right.z < Z
    prior = dict(problem.prior)
    X = problem.X
    if mistake == "onehot":
        prior["kinds"] = ["onehot", "number"]
    else:  # the mistake of an imputation at the largest value
        X = np.where(np.isnan(X), 9.0, X)
    wrong = partition_posterior(problem, "normal", partition_prior(X, **prior))
    found = law_gap(states, shares, {**dict.fromkeys(states, 1e-12), **wrong}, len(chain.codes))
    assert found.z > 2 * Z, found
