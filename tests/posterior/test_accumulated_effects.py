"""Accumulated effects against sums over predictions made one table at a time by PyMC."""

import numpy as np
import pymc as pm
import pytest
from support.fitted import draws_of, frame, on_a_frame, predicted, two_functions

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")


@pytest.fixture(scope="module")
def fitted():
    return on_a_frame()


def test_numbers_add_up_by_intervals(fitted):
    model, idata = fitted
    X = frame()
    found = pmt.accumulated_effects(idata, model, "age", func=np.exp, intervals=3)["effect"]
    ends = found["age"].to_numpy()
    assert ends[0] == X.age.min() and ends[-1] == X.age.max() and len(ends) == 4
    at = [np.exp(predicted(model, idata, X.assign(age=end))) for end in ends]
    effect = [np.zeros(at[0].shape[:2])]
    for k in range(3):
        here = ((X.age > ends[k]) | (k == 0)) & (X.age <= ends[k + 1])  # missing: nowhere
        effect.append(effect[-1] + (at[k + 1] - at[k])[..., here.to_numpy()].mean(-1))
    curve = np.stack(effect, axis=-1)
    ages = X.age.dropna().to_numpy()
    middle = np.mean([interpolated(ends, curve, age) for age in ages], axis=0)
    np.testing.assert_allclose(found, curve - middle[..., None], atol=1e-12)
    assert max(np.abs(np.mean([interpolated(ends, found.values, age) for age in ages], 0)).flat) < (
        1e-12
    )


def interpolated(ends, curve, x):
    """A curve, (..., ends), straight between its ends, at x."""
    flat = curve.reshape(-1, len(ends))
    return np.array([np.interp(x, ends, one) for one in flat]).reshape(curve.shape[:-1])


def test_levels_add_up_over_the_rows_of_both(fitted):
    model, idata = fitted
    X = frame()
    found = pmt.accumulated_effects(idata, model, "site")["effect"]
    assert list(found["site"].to_numpy()) == ["a", "b", "c"]
    at = {site: predicted(model, idata, X.assign(site=site)) for site in "abc"}
    effect = [np.zeros(at["a"].shape[:2])]
    for low, high in ("ab", "bc"):
        here = X.site.isin([low, high]).to_numpy()
        effect.append(effect[-1] + (at[high] - at[low])[..., here].mean(-1))
    shares = [(X.site == site).mean() for site in "abc"]
    middle = sum(s * e for s, e in zip(shares, effect, strict=True))
    np.testing.assert_allclose(found, np.stack(effect, -1) - middle[..., None], atol=1e-12)


def test_the_mean_is_zero_of_few_values_too(fitted):
    """Each cell is an end, so that the mean over the rows is a mean of the curve's own values."""
    model, idata = fitted
    found = pmt.accumulated_effects(idata, model, "dose")["effect"]
    at_rows = found.sel(dose=frame().dose.to_numpy()).to_numpy()
    assert np.ptp(at_rows, axis=-1).max() > 0.1
    np.testing.assert_allclose(at_rows.mean(-1), 0, atol=1e-12)


def by_hand(f, X, columns, ends, is_level):
    """The effect of a pair row by row and cell by cell, from its definition; f at rows of X."""
    n, (P, Q) = len(X), map(len, ends)

    def at(row, low, high, column):  # whether a row lies at a step
        x, z = X[row, columns[column]], ends[column]
        if is_level[column]:
            return x in (z[low], z[high])
        return (z[low] < x or low == 0) and x <= z[high]

    def weight(row, column):  # of the ends, in the value of a row
        x, z = X[row, columns[column]], ends[column]
        if is_level[column]:
            return (np.array(z) == x).astype(float)
        return np.array([np.interp(x, z, one) for one in np.eye(len(z))])

    def held(row, *values):
        changed = X[row].copy()
        changed[columns] = values
        return changed

    W = [np.array([weight(row, column) for row in range(n)]) for column in (0, 1)]
    delta, middles = {}, [_middles(z, levels) for z, levels in zip(ends, is_level, strict=True)]
    for k in range(P - 1):
        for m in range(Q - 1):
            rows = [r for r in range(n) if at(r, k, k + 1, 0) and at(r, m, m + 1, 1)]
            if rows:
                a, b = ends
                corners = [
                    f(np.array([held(r, a[k + u], b[m + v]) for r in rows])).mean(-1)
                    for u, v in ((1, 1), (0, 1), (1, 0), (0, 0))
                ]
                delta[k, m] = corners[0] - corners[1] - corners[2] + corners[3]
    surface = np.zeros((*next(iter(delta.values())).shape, P, Q))
    for k in range(P - 1):
        for m in range(Q - 1):
            near = min(
                delta,
                key=lambda c: (
                    (middles[0][c[0]] - middles[0][k]) ** 2
                    + (middles[1][c[1]] - middles[1][m]) ** 2
                ),
            )
            surface[..., k + 1 :, m + 1 :] += delta[near][..., None, None]

    def alone(column):
        z, curve = ends[column], [0.0]
        other = np.moveaxis(surface, column - 2, -2)
        for k in range(len(z) - 1):
            rows = [r for r in range(n) if at(r, k, k + 1, column)]
            rise = other[..., k + 1, :] - other[..., k, :]
            curve.append(curve[-1] + np.mean([rise @ W[1 - column][r] for r in rows], axis=0))
        curve[0] = np.zeros_like(curve[1])
        return np.stack(curve, axis=-1)

    surface = surface - alone(0)[..., :, None] - alone(1)[..., None, :]
    mean = np.mean([W[1][r] @ np.moveaxis(surface, -2, -1) @ W[0][r] for r in range(n)], axis=0)
    return surface - mean[..., None, None]


def _middles(z, levels):
    if levels:
        return (np.arange(len(z) - 1) + 0.5) / (len(z) - 1)
    z = np.array(z)
    return ((z[1:] + z[:-1]) / 2 - z[0]) / (z[-1] - z[0])


@pytest.mark.parametrize(
    ("pair", "grid"),
    [
        (("age", "dose"), {"age": 4}),
        (("age", "site"), "linear"),
        (("site", "dose"), {"site": ["c", "a", "b"]}),
    ],
)
def test_a_pair_is_that_of_the_definition(fitted, pair, grid):
    model, idata = fitted
    X = frame().dropna()
    asked = {"grid": grid, "intervals": 3, "func": np.exp}  # exp: any two columns interact
    found = pmt.accumulated_effects(idata, model, pair, X, **asked)["effect"]
    assert found.dims == ("chain", "draw", *pair)
    coded = X.assign(site=X.site.map({"a": 0.0, "b": 1.0, "c": 2.0})).to_numpy(dtype=float)
    columns = [list(X.columns).index(name) for name in pair]
    levels = [name == "site" for name in pair]
    codes = dict(zip("abc", range(3), strict=True))
    ends = [[float(codes.get(v, v)) for v in found[name].to_numpy()] for name in pair]

    def f(rows):
        table = X.iloc[np.zeros(len(rows), dtype=int)].reset_index(drop=True)
        for name, cells in zip(X.columns, rows.T, strict=True):
            table[name] = np.array(list("abc"))[cells.astype(int)] if name == "site" else cells
        return np.exp(predicted(model, idata, table))

    wanted = by_hand(f, coded, columns, ends, levels)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    assert np.abs(wanted).max() > 0.01


def test_a_pair_of_a_sum_is_zero():
    """One split a tree at the most: f is a sum of functions of single columns."""
    X = np.random.default_rng(2).random((30, 2)) ** 2
    X[:, 1] = 0.5 * (X[:, 0] + X[:, 1])  # they go together, so that cells are empty
    with pm.Model() as model:
        f = pmt.BART("f", X, m=20, leaf=pmt.NormalLeaf(0.0, 1.0), alpha=0.99, beta=60.0)
        pm.Normal("y", f, 0.3, observed=X.sum(axis=1))
        idata = draws_of()
    found = pmt.accumulated_effects(idata, model, (0, 1), intervals=6)["effect"]
    single = pmt.accumulated_effects(idata, model, 0, intervals=6)["effect"]
    assert np.abs(single).max() > 0.1
    np.testing.assert_allclose(found, 0, atol=1e-13 * np.abs(idata.posterior["f"]).max())


def test_rows_grids_and_groups(fitted):
    model, idata = fitted
    X = frame()
    asked = {"grid": [0.0, 2.0], "feature": "dose"}
    found = pmt.accumulated_effects(idata, model, **asked)["effect"]
    ends = [predicted(model, idata, X.assign(dose=dose)).mean(-1) for dose in (0.0, 2.0)]
    np.testing.assert_allclose(found[..., 1] - found[..., 0], ends[1] - ends[0], atol=1e-12)
    some = pmt.accumulated_effects(idata, model, subsample=5, random_state=2, **asked)["effect"]
    rows = np.sort(np.random.default_rng(2).choice(len(X), 5, replace=False))
    same = pmt.accumulated_effects(idata, model, X=X.iloc[rows], **asked)["effect"]
    np.testing.assert_array_equal(some, same)
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    before = pmt.accumulated_effects(prior, model, group="prior", **asked)["effect"]
    assert before.sizes["draw"] == 3
    reverse = pmt.accumulated_effects(idata, model, "site", grid=["c", "b"])["effect"]
    here = X.site.isin(["b", "c"]).to_numpy()
    step = [predicted(model, idata, X.assign(site=site))[..., here] for site in "cb"]
    np.testing.assert_allclose(
        reverse[..., 1] - reverse[..., 0], (step[1] - step[0]).mean(-1), atol=1e-12
    )


def test_outputs_and_errors(fitted):
    model, idata = two_functions()
    found = pmt.accumulated_effects(idata, model, 1, var_name="f")["effect"]
    assert found.dims == ("chain", "draw", "kind", "x1")
    one_value = frame().assign(dose=1.0)
    with pytest.raises(ValueError, match="The column 'dose' has 1 values in these rows"):
        pmt.accumulated_effects(fitted[1], fitted[0], "dose", one_value)
    for few in (1, [1.0], [1.0, 1.0]):
        with pytest.raises(ValueError, match="grid=.* of the column 'dose': an effect needs at"):
            pmt.accumulated_effects(fitted[1], fitted[0], "dose", grid=few)
    with pytest.raises(ValueError, match="intervals=0: must be a whole number"):
        pmt.accumulated_effects(fitted[1], fitted[0], "dose", intervals=0)
