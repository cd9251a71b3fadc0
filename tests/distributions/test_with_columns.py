"""Forests with random columns: what they are declared with, what steps see, and predictions."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from pymc.exceptions import ImputationWarning
from scipy.stats import norm

import pymc_trees as pmt
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.targets.graph import UnsupportedModelError

N = 30
RNG = np.random.default_rng(5)
X = RNG.random((N, 2))
TRUTH = RNG.normal(size=N)
W = TRUTH + 0.3 * RNG.normal(size=N)
Y = np.where(TRUTH > 0, 1.0, -1.0) + 0.3 * RNG.normal(size=N)
LEAF = pmt.NormalLeaf(0.0, 0.5)
QUICK = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}
QUICK["compute_convergence_checks"] = False


def model_of(inputs=X, column=None, measured=True, **given):
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N) if column is None else column()
        f = pmt.BART("f", pmt.with_columns(inputs, z=z), leaf=LEAF, m=4, **given)
        if measured:
            pm.Normal("w", z, 0.3, observed=W)
        pm.Normal("y", f, pm.HalfNormal("sigma"), observed=Y)
    return model


def test_the_forest_does_not_know_the_column():
    """Its log-probability, its draws and its checksum are those of the reference rows alone."""
    model = model_of()
    known = declared(model["f_forest"])
    np.testing.assert_array_equal(known.X[:, :2], X)
    quantiles = np.sort(known.X[:, 2])
    assert len(known.cuts) == 3 and all(len(cuts) <= 99 for cuts in known.cuts)
    # quantiles of 10,000 draws: errors of 0.0125 at the median, and of 0.03 at 1.7%
    np.testing.assert_allclose(quantiles, norm.ppf((np.arange(N) + 0.5) / N), atol=0.15)
    np.testing.assert_array_equal(known.X, declared(model_of()["f_forest"]).X)
    point = model.initial_point()
    logp = model.compile_logp([model["f_forest"]])
    assert logp(point) == logp(point | {"z": np.full(N, 7.0)})


def test_where_a_column_starts():
    with pm.Model() as model:
        z = pm.Normal("z", 0, pm.HalfNormal("spread"), shape=N)
        u = pm.Uniform("u", shape=N, initval=np.full(N, 0.25))
        pmt.BART("f", pmt.with_columns(X, z=z, u=u), leaf=LEAF, m=2)
    point = model.initial_point(random_seed=1)
    assert len(np.unique(point["z"])) == N and len(np.unique(point["u_interval__"])) == 1
    np.testing.assert_array_equal(point["z"], model.initial_point(random_seed=1)["z"])


def test_cuts_that_are_given():
    with pm.Model() as model:
        z = pm.Normal("z", 0, 100, shape=N)
        inputs = pmt.with_columns(X, z=z, cuts={"z": [-1.0, 0.0, 2.0]})
        pmt.BART("f", inputs, leaf=LEAF, m=3, n_cuts=5)
    known = declared(model["f_forest"])
    np.testing.assert_array_equal(known.cuts[2], [-1.0, 0.0, 2.0])
    assert len(known.cuts[0]) == 5
    codes = np.searchsorted(known.cuts[2], known.X[:, 2])
    assert set(np.bincount(codes, minlength=4)) <= {7, 8}  # every interval as often


def test_more_cuts_than_rows():
    """Rows of the declaration reach beyond the outer cuts, so that trees can use every one."""
    cuts = np.linspace(-3, 3, 99)
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": cuts}), leaf=LEAF, m=50, beta=0.5)
    codes = np.sort(np.searchsorted(cuts, declared(model["f_forest"]).X[:, 2]))
    assert codes[0] == 0 and codes[-1] == 99 and np.diff(codes).max() <= 4


def test_the_step_sees_the_cells_of_the_point(rng):
    """Rows of leaves, sums and log-likelihoods follow the column, when it alone changes too."""
    model = model_of(monotone={"z": 1})
    with model:
        step = pmt.CGM(moves_per_visit=5, rng=1)
    [f] = model.replace_rvs_by_values([model["f"]])
    function = model.compile_fn(f, inputs=model.value_vars, on_unused_input="ignore")
    point = model.initial_point()
    [forest] = step.forests
    moved = 0
    for _ in range(15):
        point["z"] = rng.normal(size=N)
        point, [stats] = step.step(point)
        state = step.states[0].forest
        np.testing.assert_array_equal(state.fit[:, 0], function(point))
        anew = forest.load(None, point["f_forest"], forest.target.at(point)[0], point)
        np.testing.assert_array_equal(anew.fit, state.fit)
        np.testing.assert_array_equal(
            anew.trees.count[anew.trees.roots], state.trees.count[state.trees.roots]
        )
        np.testing.assert_array_equal(
            forest.store(anew, forest.target.at(point)[0]).value, point["f_forest"]
        )
        assert np.isfinite(model.compile_logp()(point))
        moved += stats["n_leaves"] > 4
    assert moved > 5


def test_some_leaves_have_no_row(rng):
    """All rows on one side of every cut: leaves keep their prior, and nothing breaks."""
    model = model_of()
    with model:
        step = pmt.CGM(moves_per_visit=5, rng=1)
    point, empty = model.initial_point(), 0
    point["z"] = np.full(N, 50.0)
    for _ in range(20):
        point, [stats] = step.step(point)
        leaf_of = step.states[0].forest.trees.leaf_of
        empty += stats["n_leaves"] - sum(len(np.unique(leaves)) for leaves in leaf_of)
        assert np.isfinite(model.compile_logp()(point))
    assert empty > 0


def test_steps_that_sample_assigns():
    model = model_of()
    with model:
        idata = pm.sample(**QUICK)
    assert idata.posterior.z.shape == (1, 5, N)
    assert (idata.sample_stats.accept_column == 1).all()
    again = pmt.resume(idata, model, draws=5, cores=1, progressbar=False)
    assert again.posterior.sizes["draw"] == 10


def test_draws_do_not_depend_on_how_they_are_recorded(tmp_path):
    """Saved, read and resumed: the same draws as of one longer run."""
    model = model_of()
    with model:
        idata, whole = (pm.sample(**QUICK | {"draws": d}) for d in (5, 10))
    pmt.save(idata, tmp_path / "fit.nc")
    again = pmt.resume(pmt.open(tmp_path / "fit.nc", model), model, draws=5, progressbar=False)
    for name in ("z", "f", "sigma"):
        np.testing.assert_array_equal(again.posterior[name], whole.posterior[name])


def test_missing_cells_of_a_column():
    cells = np.where(np.arange(N) % 3 == 0, np.nan, TRUTH)

    def column():
        with pytest.warns(ImputationWarning):
            return pm.Normal("z", pm.Normal("mean"), 1, observed=np.ma.masked_invalid(cells))

    model = model_of(column=column, measured=False)
    known = declared(model["f_forest"]).X[:, 2]
    seen = ~np.isnan(cells)
    np.testing.assert_array_equal(known[seen], cells[seen])
    assert known[~seen].min() >= cells[seen].min() and known[~seen].max() <= cells[seen].max()
    with model:
        idata = pm.sample(**QUICK)
    z = idata.posterior.z.to_numpy()
    np.testing.assert_array_equal(z[..., seen], np.broadcast_to(cells[seen], z[..., seen].shape))
    assert (z[0, 0, ~seen] != z[0, -1, ~seen]).all()


def test_predictions_draw_the_column_from_its_prior():
    """f at new rows is that of the trees at the drawn cells, whose law has its parents there."""
    with pm.Model() as model:
        data = pm.Data("X", X)
        z = pm.Normal("z", 10 * data[:, 0], 0.1)
        f = pmt.BART("f", pmt.with_columns(data, z=z), leaf=LEAF, m=4)
        pm.Normal("y", f, 0.5, observed=Y, shape=f.shape)
        idata = pm.sample(**QUICK)
        pm.set_data({"X": np.array([[0.1, 0.2], [0.8, 0.9], [0.5, 0.5]])})
        found = pm.sample_posterior_predictive(
            idata,
            sample_vars=["z", "y"],
            var_names=["z", "f"],
            predictions=True,
            progressbar=False,
            random_seed=1,
        ).predictions
    np.testing.assert_allclose(found.z[0, 0], [1, 8, 5], atol=0.6)  # six sds
    new = np.array([[0.1, 0.2, np.nan], [0.8, 0.9, np.nan], [0.5, 0.5, np.nan]])
    for draw in range(5):
        new[:, 2] = found.z[0, draw]
        forest, value = model["f_forest"], idata.posterior.f_forest.to_numpy()[0, draw]
        at = pmt.evaluate(forest, new).eval({forest: value})
        np.testing.assert_array_equal(found.f[0, draw], at)


def test_known_cells_at_new_rows():
    model = model_of()
    with model:
        idata = pm.sample(**QUICK)
    new = pd.DataFrame({"x0": [0.1, 0.2], "x1": [0.5, 0.5], "z": [-1.0, 1.0]})
    found = pmt.predictions(idata, model, data=new, var_name="f", summary="mean")
    forest, f = model["f_forest"], idata.posterior.f_forest.to_numpy()[0]
    at = pmt.evaluate(forest, new.to_numpy())
    values = [at.eval({forest: value}) for value in f]
    np.testing.assert_allclose(
        found.to_array().to_numpy().ravel()[-2:], np.mean(values, axis=0), rtol=1e-12
    )
    own = pmt.predictions(idata, model)["prediction"]
    np.testing.assert_array_equal(own, idata.posterior.f)
    with pytest.raises(ValueError, match="depends on random columns of X"):
        pmt.summarise_function(idata, model)


# --------------------------------------------------------------------------------- What is refused


def declared_with(**given):
    def call():
        with pm.Model():
            z = pm.Normal("z", 0, 1, shape=N)
            two = pm.MvNormal("two", np.zeros(N), np.eye(N))
            counts = pm.Poisson("counts", 1.0, shape=N)
            short = pm.Normal("short", 0, 1, shape=N - 1)
            many = pm.Categorical("many", np.full(40, 1 / 40), shape=N)
            die = pm.DiscreteUniform("die", 1, 6, shape=N)
            columns = {"z": z, "two": two, "counts": counts, "short": short, "sum": z + 1.0}
            columns |= {"many": many, "die": die}
            chosen = given.pop("columns", {"z": "z"})
            chosen = {k: columns[v] if isinstance(v, str) else v for k, v in chosen.items()}
            inputs = pmt.with_columns(given.pop("X", X), cuts=given.pop("cuts", None), **chosen)
            make = given.pop("make", pmt.BART)
            return make("f", inputs, **{"leaf": LEAF, "m": 2} | given)

    return call


REFUSED = {
    "no column": (declared_with(columns={}), ValueError, "give at least one column"),
    "an array": (declared_with(columns={"z": W}), TypeError, "must be a vector random variable"),
    "a function": (
        declared_with(columns={"z": "sum"}),
        TypeError,
        "must itself be a free variable",
    ),
    "counts": (declared_with(columns={"z": "counts"}), TypeError, "its categories are not known"),
    "rows that mix": (
        declared_with(columns={"z": "two"}),
        TypeError,
        "independent from row to row",
    ),
    "too short": (
        declared_with(columns={"z": "short"}),
        ValueError,
        "has 29 entries, but X has 30",
    ),
    "a name of X": (declared_with(columns={"x0": "z"}), ValueError, "are columns of X, too"),
    "cuts of no column": (declared_with(cuts={"u": [1]}), ValueError, "dict from the name of"),
    "too many cuts": (
        declared_with(cuts={"z": np.arange(70_000.0)}),
        ValueError,
        "at most 65,534 cuts",
    ),
    "cuts that fall": (declared_with(cuts={"z": [2, 1]}), ValueError, "increasing finite numbers"),
    "cuts of text": (declared_with(cuts={"z": ["a"]}), ValueError, "cuts of z must be numbers"),
    "split by levels": (
        declared_with(split_rules={"z": "subset"}),
        ValueError,
        "is continuous, and split by cuts. Leave it out",
    ),
    "too many categories": (
        declared_with(columns={"z": "many"}),
        ValueError,
        "40 categories, more than there are rows",
    ),
    "sets of counts from 1 on": (
        declared_with(columns={"z": "die"}, split_rules={"z": "subset"}),
        ValueError,
        "but sets are of 0 to 49 at most",
    ),
    "cuts of sets": (
        declared_with(columns={"z": "many"}, split_rules={"z": "subset"}, cuts={"z": [0.5]}),
        ValueError,
        "which have no cuts. Leave out",
    ),
    "slopes": (
        declared_with(leaf=None, Y=Y, response="linear"),
        NotImplementedError,
        "needs constant leaves",
    ),
    "a process": (
        declared_with(tree_prior=pmt.MondrianPrior(1.0)),
        NotImplementedError,
        "needs constant leaves",
    ),
    "soft trees": (declared_with(make=pmt.SoftBART), TypeError, "only BART and DecisionTree take"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: pmt.ParticleGibbs(), "ParticleGibbs: f_forest has random columns"),
        (lambda: pmt.Tempering(pmt.CGM()), "Tempering: f has random columns"),
        (lambda: pmt.RestructureCGM(), "whose rows move. Use"),
        (lambda: pmt.CGM(moves={"grow": 1, "prune": 1, "rotate": 1}), "whose rows move. Use"),
    ],
)
def test_steps_that_take_rows_as_they_are(make, words):
    with model_of(), pytest.raises(UnsupportedModelError, match=words):
        make()


def test_other_inputs_than_those_of_the_declaration():
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
        other = pmt.evaluate(model["f_forest"], pm.math.concatenate([X, z[:, None] + 1.0], axis=1))
        pm.Normal("y", f + other, 1.0, observed=Y)
        with pytest.raises(UnsupportedModelError, match="at inputs other than those"):
            pmt.CGM()
