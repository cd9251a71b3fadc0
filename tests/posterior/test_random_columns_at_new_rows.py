"""Functions of rows that lack random columns: sums over the intervals between all cuts, in scipy.

The truth takes the trees at a point of each interval between the cuts that users gave, and not
those of a draw, and probabilities of scipy; draws of the prior stand for those of a posterior.
Monte Carlo: `pm.sample_posterior_predictive` draws the column for copies of one draw, and
importance sampling for measurements; means are compared in standard errors, below 5 (some 30
means, one chance failure in 50,000 runs).
"""

import logging

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from pymc.exceptions import ImputationWarning
from scipy import stats
from support.predictor_models import drawn
from support.random_columns import (
    QUIET,
    at_points,
    between,
    close,
    draws_of,
    evaluated,
    found,
)

import pymc_trees as pmt

N = 14
RNG = np.random.default_rng(4)
X, RELATED, W = RNG.random((N, 1)), RNG.normal(size=N), RNG.normal(size=N)
CUTS = np.linspace(-2.0, 2.0, 9)
LEAF = {"leaf": pmt.NormalLeaf(0.0, 0.7), "m": 4, "alpha": 0.98, "beta": 0.3}
NEW = pd.DataFrame({"x0": [0.1, 0.5, 0.9], "related": [0.0, -0.7, 1.5]})


@pytest.fixture(scope="module")
def measured():
    """A parent in X, one beside it, a measurement whose error differs from row to row."""
    with pm.Model() as model:
        data, related = pm.Data("X", X), pm.Data("related", RELATED)
        error = pm.Data("error", np.full(N, 0.4))
        slope, spread = pm.Normal("slope"), pm.HalfNormal("spread")
        z = pm.Normal("z", slope * related + data[:, 0], 0.3 + spread, shape=data.shape[0])
        pm.Normal("w", z, error, observed=pm.Data("w_seen", W), shape=z.shape)
        f = pmt.BART("f", pmt.with_columns(data, dose=z, cuts={"dose": CUTS}), **LEAF)
        pm.Deterministic("rate", pm.math.exp(f))
        pm.Deterministic("both", f + 0.5 * z)
        pm.Normal("y", f, 0.5, observed=W, shape=f.shape)
    return drawn(model, NEW)


def shares(law, cuts=CUTS):
    """(..., intervals) probabilities of a frozen law with a last axis of length 1."""
    return np.diff(law.cdf(cuts), axis=-1, prepend=0.0, append=1.0)


def prior_of(case, new=NEW):
    """Mean and sd of the column in each draw, (draws, rows)."""
    slope, spread = draws_of(case, "slope", "spread")
    mean = slope * new["related"].to_numpy() + new["x0"].to_numpy()
    return mean, 0.3 + spread + 0.0 * mean


def given(prior, w, error):
    mean, sd = prior
    precision = 1 / sd**2 + 1 / error**2
    return (mean / sd**2 + w / error**2) / precision, precision**-0.5


def normal(mean, sd):
    return stats.norm(mean[..., None], sd[..., None])


@pytest.mark.parametrize("function", [{}, {"func": np.exp}, {"var_name": "rate"}])
def test_the_prior_at_new_rows(measured, function):
    """A function is integrated, not taken at the mean of f."""
    of = np.exp if function else np.positive
    f = of(at_points(measured, NEW[["x0"]].to_numpy(), between(CUTS)))
    truth = (f * shares(normal(*prior_of(measured)))).sum(axis=-1)
    close(found(measured, NEW, **function), truth)
    given_as_dict = {"X": NEW[["x0"]].to_numpy(), "related": NEW["related"].to_numpy()}
    close(found(measured, given_as_dict, **function), truth)


def test_a_measurement_at_new_rows(measured):
    """Normal given Normal; a row without it has the prior; data of its values name it, too."""
    f = at_points(measured, NEW[["x0"]].to_numpy(), between(CUTS))
    w, error = np.array([0.4, np.nan, -1.0]), np.array([0.2, 0.2, 0.9])
    law = given(prior_of(measured), np.nan_to_num(w), np.where(np.isnan(w), np.inf, error))
    truth = (f * shares(normal(*law))).sum(axis=-1)
    data = NEW.assign(w=w, error=error)
    close(found(measured, data), truth)
    close(found(measured, data.rename(columns={"w": "w_seen"})), truth)
    other = {"X": NEW[["x0"]], "related": NEW["related"], "w": w, "error": error}
    close(found(measured, other), truth)


def test_measurements_by_importance_sampling(measured):
    """The response takes no part: the column is weighted by its measurement alone."""
    w, n = np.array([0.4, 1.3, -1.0]), 40_000
    data = NEW.assign(w=w, error=0.5)
    exact, (mean, sd) = found(measured, data), prior_of(measured)
    function, values = evaluated(measured)
    for d in (1, 6):
        z = mean[d, :, None] + sd[d, :, None] * RNG.normal(size=(3, n))
        weight = stats.norm.pdf(w[:, None], z, 0.5)
        rows = np.column_stack([np.repeat(NEW["x0"], n), z.ravel()])
        f = function(values[d], rows).reshape(3, n)
        batches = [
            (v * u).sum(axis=1) / u.sum(axis=1)
            for v, u in zip(np.split(f, 40, axis=1), np.split(weight, 40, axis=1), strict=True)
        ]
        error = np.std(batches, axis=0, ddof=1) / np.sqrt(40)
        assert (abs(np.mean(batches, axis=0) - exact[d]) < 5 * error + 1e-12).all()


def test_what_pymc_draws_at_new_rows(measured):
    """Means of f at cells that sample_posterior_predictive draws are those of the mixture."""
    n = 4_000
    one = measured.idata.posterior.to_dataset().isel(chain=[1], draw=[2])
    copies = one.isel(draw=np.zeros(n, dtype=int)).assign_coords(draw=np.arange(n))
    with measured.model as model:
        pm.set_data({"X": NEW[["x0"]].to_numpy(), "related": NEW["related"].to_numpy()})
        pm.set_data({"error": np.full(3, 0.4), "w_seen": np.zeros(3)})
        sampled = pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": copies}),
            sample_vars=["z"],
            var_names=["z", "rate"],
            predictions=True,
            random_seed=3,
            **QUIET,
        ).predictions["rate"][0]
        # the rows of the model are others now: the same without data
        exact = [
            pmt.predictions(measured.idata, model, data, var_name="rate", **QUIET)["prediction"]
            for data in (NEW, None)
        ]
        pm.set_data({"X": X, "related": RELATED, "error": np.full(N, 0.4), "w_seen": W})
    close(exact[0], exact[1])
    error = sampled.std("draw").to_numpy() / np.sqrt(n)
    difference = sampled.mean("draw").to_numpy() - exact[0][1, 2].to_numpy()
    assert (abs(difference) < 5 * error).all() and (error > 0).all()


def test_the_rows_of_the_model(measured, caplog):
    """There the draws of the column are used, as those of f are."""
    for name in ("f", "rate", "both"):
        with caplog.at_level(logging.INFO, logger="pymc.trees"):
            made = pmt.predictions(measured.idata, measured.model, var_name=name, **QUIET)
        np.testing.assert_array_equal(made["prediction"], measured.idata.posterior[name])
        assert made.attrs["random_columns"] == "dose: draws at the rows of the model"
    assert "dose: draws at the rows of the model" in caplog.text
    compared = found(measured, name="x0", call=pmt.comparisons, variables={"x0": (0.1, 0.8)})
    z = measured.idata.posterior["z"].stack(d=("chain", "draw")).transpose("d", ...).to_numpy()
    held = pd.DataFrame({"x0": np.tile([0.1, 0.8], N), "dose": 0.0})
    for d in range(len(z)):
        held["dose"] = np.repeat(z[d], 2)
        old, new = found(measured, held)[d].reshape(N, 2).T
        close(compared[d, 0], new - old)
    other = {"related": 1.0}  # other rows: the column is not that of the draws
    truth = NEW[["x0"]].iloc[[0] * N].assign(x0=X[:, 0], related=1.0)
    close(found(measured, other), found(measured, truth))


def test_cells_that_are_known(measured):
    """Rows with the cell, in an array, a frame or a dict, and some without it."""
    cells = np.array([-1.2, np.nan, 0.3])
    held = np.column_stack([NEW["x0"], [-1.2, 0.0, 0.3]])
    known = found(measured, held)
    f = at_points(measured, held[:, :1], held[:, 1])[:, np.arange(3), np.arange(3)]
    close(known, f)
    close(found(measured, {"X": NEW[["x0"]], "dose": held[:, 1]}), f)
    some = found(measured, NEW.assign(dose=cells))
    close(some[:, [0, 2]], f[:, [0, 2]])
    close(some[:, 1], found(measured, NEW)[:, 1])
    close(found(measured, held, var_name="both"), f + 0.5 * held[:, 1])


def test_questions_about_columns(measured):
    """Comparisons, slopes, dependence and effects are those of the integrated function."""
    low, high = (found(measured, NEW.assign(x0=v)) for v in (0.2, 0.7))
    asked = {"call": pmt.comparisons, "name": "x0", "variables": {"x0": (0.2, 0.7)}}
    close(found(measured, NEW, **asked)[:, 0], high - low)
    ratio = found(measured, NEW, comparison="ratio", **asked)[:, 0]
    close(ratio, high / low)
    # a parent of the column alone has an effect through it
    there = found(measured, NEW.assign(related=NEW["related"] + 1)) - found(measured, NEW)
    through = found(measured, NEW, call=pmt.comparisons, name="related", variables="related")
    close(through[:, 0], there)
    assert abs(there).max() > 0.01
    slope = found(measured, NEW, call=pmt.slopes, name="x0", variables="x0", step=0.2)
    up, down = (found(measured, NEW.assign(x0=NEW["x0"] + s)) for s in (0.1, -0.1))
    close(slope, (up - down) / 0.2)
    given_X = {"call": lambda *a, data, **k: pmt.partial_dependence(*a, X=data, **k)}
    average = found(measured, NEW, "average", features="x0", grid=[0.2, 0.7], **given_X)
    close(average, np.stack([low.mean(axis=1), high.mean(axis=1)], axis=1))
    held = found(measured, NEW, "average", features="dose", grid=[-1.0, 1.0], **given_X)
    close(held[:, 1], found(measured, NEW.assign(dose=1.0)).mean(axis=1))
    of_reference = found(measured, NEW, "average", features="dose", **given_X)
    assert 5 < of_reference.shape[1] <= 21
    made = pmt.accumulated_effects(
        measured.idata, measured.model, "x0", NEW, var_name="f", grid=[0.1, 0.9], **QUIET
    )
    ends = [found(measured, NEW.assign(x0=v)) for v in (0.1, 0.9)]
    change = np.diff(made["effect"].to_numpy().reshape(-1, 2))[:, 0]
    close(change, (ends[1] - ends[0]).mean(axis=1))
    assert "integrated over its prior" in made.attrs["random_columns"]


def test_means_and_summaries(measured):
    whole = found(measured, NEW)
    close(found(measured, NEW, by=True), whole.mean(axis=1))
    summary = pmt.predictions(
        measured.idata, measured.model, NEW, var_name="f", summary=("mean", 0.5), **QUIET
    )
    close(summary["prediction"][0], whole.mean(axis=0))
    close(summary["prediction"][1], np.median(whole, axis=0))


def of_forest():
    """The mean of the column is a forest of the same X, the noise too."""
    with pm.Model() as model:
        g = pmt.BART("g", X, leaf=pmt.NormalLeaf(0.0, 0.7), m=3)
        z = pm.Normal("z", g, 0.6, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3] + 0.01)
    function, values = evaluated(case, "g_forest")
    mean = np.array([function(v, case.new).ravel() for v in values])
    return case, at_points(case, case.new, between(CUTS)), shares(normal(mean, 0.6 + 0 * mean))


def uniform():
    """A law with bounds, a parameter of which is drawn."""
    with pm.Model() as model:
        z = pm.Uniform("z", -1.0, pm.Uniform("top", 0.5, 1.5), shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    [top] = draws_of(case, "top")
    law = stats.uniform(-1.0, (top + 1.0 + np.zeros(3))[..., None])
    return case, at_points(case, case.new, between(CUTS)), shares(law)


def two_columns():
    """Independent of each other: all pairs of intervals."""
    other = np.array([0.3, 1.0, 2.0])
    with pm.Model() as model:
        z, u = pm.Normal("z", 0.2, 0.8, shape=N), pm.Exponential("u", 2.0, shape=N)
        columns = pmt.with_columns(X, z=z, u=u, cuts={"z": CUTS, "u": other})
        f = pmt.BART("f", columns, **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    each = [shares(stats.norm(0.2, 0.8)), shares(stats.expon(scale=0.5), other)]
    return case, at_points(case, case.new, between(CUTS), between(other)), np.outer(*each).ravel()


def partly_observed():
    """PyMC takes the parameters of the missing cells by a mask: those of all rows are meant."""
    cells = np.where(np.arange(N) % 3 == 0, np.nan, W)
    with pm.Model() as model, pytest.warns(ImputationWarning):
        slope, data = pm.Normal("slope"), pm.Data("X", X)
        z = pm.Normal("z", slope * data[:, 0], 0.7, observed=np.ma.masked_invalid(cells))
        f = pmt.BART("f", pmt.with_columns(data, z=z, cuts={"z": CUTS}), **LEAF)
        pm.Normal("y", f, 0.7, observed=W, shape=f.shape)
    case = drawn(model, X[:3] + 0.01)
    [slope] = draws_of(case, "slope")
    mean = slope * case.new[:, 0]
    return case, at_points(case, case.new, between(CUTS)), shares(normal(mean, 0.7 + 0 * mean))


def with_groups():
    """Its mean is the effect of the group of a row."""
    with pm.Model() as model:
        group = pm.Data("group", np.arange(N) % 3)
        z = pm.Normal("z", pm.Normal("effect", shape=3)[group], 0.7, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, {"X": X[:3], "group": np.array([2, 0, 2])})
    effect = case.idata.posterior["effect"].stack(d=("chain", "draw")).transpose("d", ...)
    mean = effect.to_numpy()[:, [2, 0, 2]]
    with pytest.raises(IndexError, match="group picks entry 3 of effect"):
        found(case, {"X": X[:3], "group": np.array([0, 1, 3])})
    return case, at_points(case, X[:3], between(CUTS)), shares(normal(mean, 0.7 + 0 * mean))


LAWS = [of_forest, uniform, two_columns, partly_observed, with_groups]


@pytest.mark.parametrize("make", LAWS)
def test_laws(make):
    case, f, share = make()
    close(found(case, case.new), (f * share).sum(axis=-1))
    own = pmt.predictions(case.idata, case.model, var_name="f", **QUIET)["prediction"]
    np.testing.assert_array_equal(own, case.idata.posterior["f"])


# --------------------------------------------------------------------------------- What is refused


def test_what_is_refused(measured):
    def refused(words, data=NEW, call=pmt.predictions, **asked):
        with pytest.raises(ValueError, match=words):
            found(measured, data, call=call, **asked)

    refused("takes the random columns .'dose'. beside its trees", var_name="both")
    refused("f depends on .'related'.*give these", NEW[["x0"]])
    refused("has the unknown columns .'y'.", NEW.assign(y=1.0))
    refused("'dose' has 2 entries, but there are 3 rows", {"X": NEW[["x0"]], "dose": [0.0, 1.0]})
    refused("'dose' has the shape", {"X": NEW[["x0"]], "dose": np.zeros((3, 1))})
    refused("'w' must be numbers", {"X": NEW[["x0"]], "w": ["a", "b", "c"]})
    refused("cannot be changed by a step", call=pmt.comparisons, variables="dose")
    refused("cannot be changed by a step", call=pmt.slopes, variables="dose")
    with pytest.raises(ValueError, match="cannot be changed by a step"):
        pmt.accumulated_effects(measured.idata, measured.model, "dose", NEW, var_name="f", **QUIET)
    known = NEW.assign(dose=[-1.0, 0.2, 0.8])[["x0", "dose"]]
    given = measured.idata, measured.model
    named = {"var_name": "f"} | QUIET
    words = "depends on random columns of X.*without missing cells|lacks the columns .'dose'"
    for explain in (
        lambda X: pmt.shap_values(*given, X, background=known, **named),
        lambda X: pmt.shap_values(*given, X, background=known, func=np.exp, **named),
        lambda X: pmt.compute_variable_importance(*given, X, **named),
        lambda X: pmt.sobol_indices(*given, X, **named),
        lambda X: pmt.permutation_importance(*given, X, [0.0, 1.0, 0.5], **named),
    ):
        for lacking in (None, NEW[["x0"]], known.assign(dose=np.nan)):
            with pytest.raises(ValueError, match=words):
                explain(lacking)
        explain(known)  # as the message says
    lacking = measured.idata.posterior.to_dataset().drop_vars("spread")
    with pytest.raises(ValueError, match="idata lacks .'spread'., which the priors of"):
        pmt.predictions(lacking, measured.model, NEW, var_name="f", **QUIET)


def test_shapley_values_take_random_columns_from_a_background_alone(measured):
    """Neither rows of the model, whose cells differ from draw to draw, nor its reference rows."""
    known = NEW.assign(dose=[-1.0, 0.2, 0.8])[["x0", "dose"]]

    def asked(**options):
        options |= {"var_name": "f"} | QUIET
        return pmt.shap_values(measured.idata, measured.model, known, **options)

    for func in (None, np.exp):
        with pytest.raises(ValueError, match="depends on random columns of X.* as background"):
            asked(background=3, func=func)
    with pytest.raises(ValueError, match="values are not defined: give background=, a frame"):
        asked()
    pairs = known.merge(known, how="cross", suffixes=("", "_b"))
    of_x0 = found(measured, pairs[["x0", "dose_b"]].set_axis(known.columns, axis=1))
    of_x0 = of_x0.reshape(len(of_x0), 3, 3)  # x0 of a row, dose of the background
    both, base = found(measured, known), of_x0.diagonal(axis1=1, axis2=2).mean(axis=1)[:, None]
    x0, dose = of_x0.mean(axis=2), of_x0.mean(axis=1)
    shares = asked(background=known)["values"].to_numpy().reshape(*both.shape, 2)
    close(shares[..., 0], (x0 - base + both - dose) / 2)
    close(shares[..., 1], (dose - base + both - x0) / 2)
    assert (abs(shares).max(axis=(0, 1)) > 0.01).all()


def test_priors_that_are_unknown_at_new_rows():
    """Another unknown column, a law that is not closed, and numbers of the training rows."""
    with pm.Model() as model:
        z = pm.Normal("z", pm.Data("related", RELATED), 0.7, shape=N)
        u = pm.Gamma("u", 2.0, pm.math.exp(z), shape=N)
        pm.Normal("seen", u, 0.3, observed=W)
        pm.Poisson("counted", pm.math.exp(z), observed=np.ones(N, dtype=int))
        f = pmt.BART("f", pmt.with_columns(X, z=z, u=u), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    frame = pd.DataFrame({"x0": [0.1, 0.2], "z": 0.0, "u": 1.0})
    for words, data in (
        ("depends on .'z'., which are unknown too", frame[["x0"]].assign(related=1.0)),
        ("measures the random column 'u'", frame[["x0", "z"]].assign(seen=1.0)),
        ("measures the random column 'z'", frame[["x0", "u"]].assign(counted=1, related=0.0)),
    ):
        with pytest.raises(ValueError, match=words):
            found(case, data)
    law = stats.gamma(2.0, scale=1.0)  # the other one is known
    f = at_points(case, frame[["x0"]].to_numpy(), [0.0], np.linspace(0.0005, 15, 15_000))
    dense = (f * law.pdf(np.linspace(0.0005, 15, 15_000))).sum(axis=-1) * 0.001
    np.testing.assert_allclose(found(case, frame[["x0", "z"]]), dense, atol=5e-3)
    with pm.Model() as model:
        z = pm.Normal("z", RELATED, 0.7, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), **LEAF)
        pm.Normal("y", f, 0.7, observed=W)
    case = drawn(model, X[:3])
    with pytest.raises(ValueError, match="the priors of these are not known there"):
        found(case, X[:3])
    close(found(case, frame[["x0", "z"]]), at_points(case, frame[["x0"]].to_numpy(), [0.0])[..., 0])
