"""Accumulated effects against sums over predictions made one table at a time by PyMC."""

import numpy as np
import pytest
from support.fitted import frame, on_a_frame, predicted, two_functions

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
    effect, share = [np.zeros(at[0].shape[:2])], []
    for k in range(3):
        here = ((X.age > ends[k]) | (k == 0)) & (X.age <= ends[k + 1])  # missing: nowhere
        change = (at[k + 1] - at[k])[..., here.to_numpy()].mean(-1)
        effect.append(effect[-1] + change)
        share.append(here.sum() / X.age.notna().sum())
    assert sum(share) == pytest.approx(1.0)
    middle = sum(s * 0.5 * (a + b) for s, a, b in zip(share, effect, effect[1:], strict=False))
    want = np.stack(effect, axis=-1) - middle[..., None]
    np.testing.assert_allclose(found, want, atol=1e-12)


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


def test_of_a_line_it_is_the_line():
    """What f adds, whatever goes with the column: here a straight line of one column, by hand."""
    from pymc_trees.posterior.accumulated_effects import _of_numbers

    x = np.array([0.0, 0.1, 0.5, 0.6, 1.0])
    points = np.array([0.0, 0.5, 1.0])
    who, step, weight = _of_numbers(x, points)
    np.testing.assert_array_equal(who, np.arange(5))
    np.testing.assert_array_equal(step, [0, 0, 0, 1, 1])
    np.testing.assert_allclose(weight, [0.3, 0.5, 0.2])


def test_outputs_and_errors(fitted):
    model, idata = two_functions()
    found = pmt.accumulated_effects(idata, model, 1, var_name="f")["effect"]
    assert found.dims == ("chain", "draw", "kind", "x1")
    one_value = frame().assign(dose=1.0)
    with pytest.raises(ValueError, match="The column 'dose' has 1 values in these rows"):
        pmt.accumulated_effects(fitted[1], fitted[0], "dose", one_value)
    with pytest.raises(ValueError, match="intervals=0: must be a whole number"):
        pmt.accumulated_effects(fitted[1], fitted[0], "dose", intervals=0)
