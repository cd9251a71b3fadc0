"""Trees that were drawn under some rows, as trees of a forest of other rows.

Draws of the prior stand for a fit: they reach every kind of rule. What comes out is held against
`support.check`, which shares nothing with the kernel, and against the log-probability.
"""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support.check import check_value
from support.small_models import walked
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.core.columns.cells import MAX_CUT
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.value.adopt import adopt, subtree_sizes
from pymc_trees.core.value.evaluate import evaluate
from pymc_trees.core.value.fields import UNUSED, sizes
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.ops.forest_rv import leaf_at
from pymc_trees.inference.chains.update import starts_from
from pymc_trees.posterior.declarations import declared_group

pytestmark = pytest.mark.usefixtures("quick_compile")

N, M, DRAWS = 60, 5, 6
_rng = np.random.default_rng(4)
FRAME = pd.DataFrame(_rng.random((N, 3)).round(1), columns=list("abc"))
FRAME["town"] = np.array(["Bonn", "Genf", "Linz"], dtype=object)[_rng.integers(0, 3, N)]
GAPS = FRAME.copy()
GAPS["c"] = GAPS["c"].where(_rng.random(N) > 0.3)
LEAF = pmt.NormalLeaf(0.0, 0.5)
DEEP = {"alpha": 0.98, "beta": 0.5, "m": M, "leaf": LEAF}


def numbers(rows, **given):
    pmt.BART("f", FRAME[["a", "b", "c"]].iloc[rows], **DEEP | given)


def levels(rows, frame=GAPS, **given):
    pmt.BART("f", frame.iloc[rows], **DEEP | given)


def named_anew(rows, **given):
    """Rows from 50 on are of a town that comes first in the order of the codes."""
    frame = FRAME.copy()
    frame.loc[50:, "town"] = "Aachen"
    levels(rows, frame, **given)


KINDS = {
    "numbers": numbers,
    "grid": lambda rows: numbers(rows, n_cuts=4),
    "room": lambda rows: numbers(rows, max_nodes=120 if len(rows) == 40 else 24),
    "excluded": lambda rows: numbers(rows, split_prior=[1, 1, float(len(rows) == 40)]),
    "random weights": lambda rows: numbers(rows, split_prior=pm.Dirichlet("s", np.ones(3))),
    "outputs": lambda rows: numbers(rows, shape=(2, len(rows)), separate_trees=False),
    "monotone": lambda rows: numbers(rows, monotone={"a": 1}, alpha=0.9),
    "mixed grid": lambda rows: levels(rows, n_cuts=4),
    "levels": levels,
    "monotone beside levels": lambda rows: named_anew(rows, monotone={"a": 1}, alpha=0.9),
    "onehot": lambda rows: levels(rows, split_rules={"town": "onehot"}),
    "new level": named_anew,
    "new level alone": lambda rows: named_anew(rows, split_rules={"town": "onehot"}),
    "lines": lambda rows: levels(rows, leaf=pmt.LinearLeaf(0.1, 0.3)),
    "lines of the path": lambda rows: levels(rows, leaf=pmt.LinearLeaf(0.1, 0.3, columns="path")),
    "basis": lambda rows: numbers(rows, leaf=pmt.BasisLeaf(np.ones((len(rows), 2)))),
    "mondrian": lambda rows: numbers(rows, leaf=LEAF, tree_prior=pmt.MondrianPrior(2.0)),
    "soft": lambda rows: pmt.SoftBART(
        "f", FRAME[["a", "b", "c"]].iloc[rows], leaf=LEAF, m=M, alpha=0.98, beta=0.5
    ),
}
OLD = np.arange(40)
NEW = {"more": np.arange(60), "another day": np.arange(40, 60), "few": np.arange(3, 9)}


def model_of(kind, rows):
    with pm.Model() as model:
        if kind == "mondrian":  # its prior takes the place of alpha and beta
            data = FRAME[["a", "b", "c"]].iloc[rows]
            pmt.BART("f", data, m=M, leaf=LEAF, tree_prior=pmt.MondrianPrior(2.0))
        else:
            KINDS[kind](rows)
    return model


def fit_of(model, seed=1):
    """Draws of the prior as those of a fit."""
    names = [v.name for v in model.free_RVs]
    prior = pm.sample_prior_predictive(DRAWS, model=model, random_seed=seed, var_names=names)
    posterior = prior["prior"].to_dataset().rename(draw="chain", chain="draw")
    posterior = posterior.transpose("chain", "draw", ...)
    posterior = posterior.assign_coords(chain=range(DRAWS), draw=[0])
    return xr.DataTree.from_dict({"posterior": posterior, "forests": declared_group(model)})


def forest_and_starts(kind, rows):
    old, new = model_of(kind, OLD), model_of(kind, NEW[rows])
    idata = fit_of(old)
    return old, new, idata, [one["f_forest"] for one in starts_from(idata, new)]


@pytest.mark.parametrize("rows", NEW)
@pytest.mark.parametrize("kind", tiers(KINDS, quick=["numbers", "levels", "monotone", "lines"]))
def test_they_are_possible_under_the_new_rows(kind, rows):
    old, new, idata, starts = forest_and_starts(kind, rows)
    rv = new["f_forest"]
    logp = new.compile_logp(vars=[rv])
    point = new.initial_point()
    n_splits = 0
    for value in starts:
        assert np.isfinite(logp(point | {"f_forest": value}))
        n_splits += splits_of(new, value)
        if kind == "soft":
            continue
        known, weights = declared(rv), forest_inputs(rv).weights
        weights = None if kind == "random weights" else weights.data
        found = check_value(
            value,
            known.X,
            rv.owner.op.layout,
            known.fingerprint,
            known.cuts,
            weights,
            known.kinds if len(known.kinds) else None,
        )
        assert found == []
    before = sum(splits_of(old, value) for value in idata["posterior"]["f_forest"].values[:, 0])
    assert 0 < before and (0 < n_splits or rows == "few")
    if rows == "few" and kind != "soft":
        assert n_splits < before  # so that something was left out


def nodes_of(model, value):
    max_nodes = model["f_forest"].owner.op.layout.max_nodes
    return value[:max_nodes][value[:max_nodes, 0] != UNUSED]


def splits_of(model, value):
    return int((nodes_of(model, value)[:, 0] >= 0).sum())


@pytest.mark.parametrize("kind", ["numbers", "levels", "outputs", "basis", "mondrian", "soft"])
def test_more_rows_leave_trees_as_they_are(kind):
    """Both sides of every split keep their rows."""
    old, new, idata, starts = forest_and_starts(kind, "more")
    for before, value in zip(idata["posterior"]["f_forest"].values[:, 0], starts, strict=True):
        np.testing.assert_array_equal(nodes_of(new, value), nodes_of(old, before))


@pytest.mark.parametrize("rows", NEW)
@pytest.mark.parametrize("kind", ["numbers", "outputs", "mondrian"])
def test_the_function_at_the_new_rows_is_that_of_the_old_trees(kind, rows):
    """A split that is left out has all rows on the side that takes its place."""
    old, new, idata, starts = forest_and_starts(kind, rows)
    rv, X = old["f_forest"], declared(new["f_forest"]).X
    known, numbers = declared(rv), sizes(rv.owner.op.layout)
    for before, value in zip(idata["posterior"]["f_forest"].values[:, 0], starts, strict=True):
        before = np.ascontiguousarray(before)
        expected = evaluate(before, X, known.X, leaf_at(rv, X), numbers, known.fingerprint)
        np.testing.assert_allclose(walked(new["f_forest"], value), expected, atol=1e-12)


def test_levels_go_by_name_and_new_ones_where_missing_cells_go():
    """f of the old model at rows with an unseen level, which it treats as missing."""
    old, new, idata, starts = forest_and_starts("new level", "more")
    rv, rv_new = old["f_forest"], new["f_forest"]
    known, numbers = declared(rv), sizes(rv.owner.op.layout)
    pmt.set_data({"f_X": FRAME.assign(town=FRAME["town"].where(FRAME.index < 50, "Aachen"))}, old)
    X = old["f_X"].get_value()
    assert (declared(rv_new).X[50:, 3] == 0).all() and (X[50:, 3] < -1e9).all()
    for before, value in zip(idata["posterior"]["f_forest"].values[:, 0], starts, strict=True):
        before = np.ascontiguousarray(before)
        expected = evaluate(before, X, known.X, leaf_at(rv, X), numbers, known.fingerprint)
        np.testing.assert_allclose(walked(rv_new, value), expected, atol=1e-12)


def test_a_cut_moves_to_the_nearest_of_the_new_grid():
    old, new, idata, starts = forest_and_starts("grid", "more")
    grids = declared(new["f_forest"]).cuts
    for before, value in zip(idata["posterior"]["f_forest"].values[:, 0], starts, strict=True):
        cuts = nodes_of(old, before)
        moved = nodes_of(new, value)
        for column, cut in moved[moved[:, 0] >= 0]:
            grid = grids[int(column)]
            from_here = np.abs(grid[:, None] - cuts[cuts[:, 0] == column, 1])
            assert cut in grid
            assert np.isclose(from_here[grid == cut], from_here.min(axis=0)).any()


@pytest.mark.parametrize("n_cuts", [None, 4])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_present_cells_keep_their_branch_where_none_is_missing_any_more(n_cuts, side):
    """Of a split of missing against present rows, also on a grid, which has no such cut."""
    with pm.Model() as model:
        numbers(OLD, n_cuts=n_cuts)
    known, layout = declared(model["f_forest"]), model["f_forest"].owner.op.layout
    design = make_design(known.X, known.cuts if n_cuts else None)
    nodes = np.array([[0, side * MAX_CUT], [-1, 1.0], [-1, 5.0]])
    trees, altered = make_trees(1, 50, 1, len(OLD)), np.zeros(1, dtype=bool)
    rows, buffer = np.zeros((2, len(OLD)), dtype=np.uint32)
    prior = make_prior(0.5, 0.0, np.ones(3))
    of_one = sizes(layout._replace(m=1, max_nodes=50))
    adopt(nodes, subtree_sizes(nodes, 3), design, prior, of_one, trees, rows, buffer, altered)
    assert altered[0]
    np.testing.assert_array_equal(trees.values[trees.leaf_of[0], 0], 1.0 if side > 0 else 5.0)
