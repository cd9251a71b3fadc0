"""Chains that start from the trees of a fit of other rows have the law of the new model.

The law of a tree on few rows is listed by `support.oracle`. The fit that chains start from is one
of rows that say otherwise: a chain that kept anything of it would be found.
"""

import json

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support import oracle as o
from support.naive.batches import batch_means, frequencies, gap, law_gap
from support.naive.laws import partition_posterior
from support.small_models import FAST, assert_same_draws, bart_model, soft_model, step_data

import pymc_trees as pmt
from pymc_trees.inference.chains.update import starts_from
from pymc_trees.posterior.declarations import declared_group

pytestmark = pytest.mark.usefixtures("quick_compile")
RUN = {"cores": 1, "random_seed": 3, **FAST}
BATCHES, Z = 60, 5.5


class Few:
    """Rows, and a Normal leaf with the parameters of the model below."""

    X = np.array([[0.0, 1], [0.1, 0], [0.5, 1], [0.9, 0], [2.0, 0], [2.3, 1]])
    y = np.array([-0.9, -0.2, -1.1, 0.8, 1.2, 0.4])
    prior = {"alpha": 0.8, "beta": 0.7}
    n = 6

    def normal(self):
        return o.NormalLeaf(self.y, 0.7, 0.1, 0.9)


def tree_of(X, y, m=1):
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0.1, 0.9)
        mu = pmt.BART("mu", X, m=m, leaf=leaf, **Few.prior)
        pm.Normal("y", mu, 0.7, observed=y, shape=mu.shape)
    return model


def fit_of_other_rows(m):
    """Of rows that cover both columns and have the opposite response."""
    X = np.vstack([Few.X, Few.X + [0.05, 0], Few.X + [5.0, 0]])
    with tree_of(X, np.tile(-3 * Few.y, 3), m):
        return pm.sample(20, tune=200, chains=2, **RUN)


def labels(f):
    """Of each draw of one tree, the rows of equal values, as a text."""
    return ["".join(str(int(k)) for k in np.unique(row, return_inverse=True)[1]) for row in f]


def partition_of(text):
    return frozenset(frozenset(i for i, k in enumerate(text) if k == label) for label in set(text))


def by_partition(f):
    """The same partition has several texts, by the order of its values."""
    first = {}
    for text in set(labels(f)):
        first[text] = "".join(sorted(map(str, map(sorted, partition_of(text)))))
    return np.array([first[text] for text in labels(f)]), {v: k for k, v in first.items()}


def test_the_law_is_that_of_the_new_model():
    """6,000 draws: 5.5 standard errors, and three times the error that was met."""
    few = Few()
    expected = partition_posterior(few, "normal")
    idata = pmt.update(fit_of_other_rows(1), tree_of(few.X, few.y), 6_000, tune=50, **RUN)
    f = idata["posterior"]["mu"].values
    keys, texts = by_partition(f.reshape(-1, few.n))
    states, shares = frequencies(keys, BATCHES)
    partitions = [partition_of(texts[key]) for key in states]
    found = law_gap(partitions, shares, expected, len(keys))
    assert found.within(Z, 0.03), found
    exact = o.dynamic_posterior(few.X, few.normal(), leaf_moments=few.normal().moments, **few.prior)
    means = gap(batch_means(f.reshape(-1, few.n), BATCHES), exact.mean)
    assert means.within(Z, 0.05), means


@pytest.mark.full
def test_so_is_that_of_a_sum_of_trees():
    few = Few()
    X, y = few.X[:4], few.y[:4]
    exact = o.two_tree_posterior(X, y, 0.7, 0.1, 0.9, **few.prior)
    idata = pmt.update(fit_of_other_rows(2), tree_of(X, y, 2), 6_000, tune=50, **RUN)
    f = idata["posterior"]["mu"].values.reshape(-1, 4)
    means = gap(batch_means(f, BATCHES), exact.mean)
    assert means.within(Z, 0.05), means
    squares = exact.sd**2 + exact.mean**2
    moments = gap(batch_means(f**2, BATCHES), squares)
    assert moments.within(Z, 0.15), moments


# ------------------------------------------------------------------------------- What a start takes


def grouped(labels, n=30):
    """A forest, a scale, and effects of groups with labels."""
    X, y = step_data(n)
    with pm.Model(coords={"group": labels}) as model:
        mu = pmt.BART("mu", pm.Data("X", X), y, m=5)
        effect = pm.Normal("effect", 0, 1, dims="group")
        sigma = pm.HalfNormal("sigma", 1)
        at = effect[np.arange(n) % len(labels)]
        pm.Normal("y", mu + at, sigma, observed=y, shape=mu.shape)
    return model


def prior_as_fit(model, chains=2, draws=3):
    """Draws of the prior as those of a fit."""
    names = [v.name for v in model.free_RVs]
    prior = pm.sample_prior_predictive(chains * draws, model=model, random_seed=1, var_names=names)
    ds = prior["prior"].to_dataset()
    parts = [ds.isel(draw=slice(k * draws, (k + 1) * draws)) for k in range(chains)]
    parts = [part.assign_coords(draw=range(draws), chain=[k]) for k, part in enumerate(parts)]
    return xr.DataTree.from_dict(
        {"posterior": xr.concat(parts, "chain"), "forests": declared_group(model)}
    )


@pytest.mark.parametrize("start", [-1, 0])
def test_parameters_start_at_their_draws_by_label(start):
    idata = prior_as_fit(grouped(["a", "b", "c"]))
    starts = starts_from(idata, grouped(["c", "a", "b"], 40), start)
    posterior = idata["posterior"].to_dataset().isel(draw=start)
    for k, values in enumerate(starts):
        assert set(values) == {"mu_forest", "effect", "sigma"}
        assert values["sigma"] == posterior["sigma"][k]
        np.testing.assert_array_equal(values["effect"], posterior["effect"][k][[2, 0, 1]])
    for labels in (["a", "b", "d"], ["a", "b", "c", "d"]):  # no draw belongs to the new one
        assert set(starts_from(idata, grouped(labels))[0]) == {"mu_forest", "sigma"}


@pytest.mark.parametrize("chosen", [{"chain": 1}, {"draw": -1}, {"chain": 1, "draw": -1}])
def test_one_chain_or_draw_may_be_selected(chosen):
    idata, new = prior_as_fit(grouped(["a", "b", "c"])), grouped(["c", "a", "b"], 40)
    alone = starts_from(idata.isel(chosen, missing_dims="ignore"), new)
    kept = {dim: [k] for dim, k in chosen.items()}
    of_axes = starts_from(idata.isel(kept, missing_dims="ignore"), new)
    assert len(alone) == len(of_axes) == (1 if "chain" in chosen else 2)
    for one, other in zip(alone, of_axes, strict=True):
        for name, value in other.items():
            np.testing.assert_array_equal(one[name], value)


def test_a_run_goes_on_with_more_rows_and_can_be_resumed(tmp_path):
    run = {"cores": 1, **FAST}
    with bart_model(20, sigma=None) as model:
        idata = pm.sample(4, tune=10, chains=2, random_seed=1, **run)
    before = idata.copy(deep=True)
    pmt.save(idata, tmp_path / "fit.nc")
    with bart_model(30, sigma=None) as model:
        new = pmt.update(pmt.open(tmp_path / "fit.nc"), draws=5, tune=6, random_seed=2, **run)
        again = pmt.update(idata, draws=5, tune=6, random_seed=2, **run)
        longer = pmt.update(idata, draws=7, tune=6, random_seed=2, **run)
    assert dict(new["posterior"]["mu"].sizes) == {"chain": 2, "draw": 5, "mu_dim_0": 30}
    assert_same_draws(new, again)
    assert idata.identical(before)
    pmt.check_draws(new, model)
    assert_same_draws(pmt.resume(new, model, 2, **run), longer)


def test_soft_trees_start_too():
    with soft_model() as model:
        idata = pm.sample(3, tune=3, chains=1, **RUN)
        new = pmt.update(idata, model, 2, tune=2, **RUN)
    assert np.isfinite(new["posterior"]["mu"]).all()


# ---------------------------------------------------------------------------------- What is refused


TOWNS = pd.DataFrame({"a": np.arange(20.0), "town": ["Bonn", "Genf"] * 10})


def declare(X=TOWNS, **given):
    with pm.Model() as model:
        given = {"m": 3, "leaf": pmt.NormalLeaf(0, 1)} | given
        mu = pmt.BART(given.pop("name", "mu"), X, **given)
        pm.Normal(
            "y", mu, 1.0, observed=np.zeros((mu.ndim == 2) * (2,) + (len(X),)), shape=mu.shape
        )
    return model


def with_levels(column, ordered=False):
    levels = pd.Categorical(column, sorted(set(column)), ordered=ordered)
    return TOWNS.assign(town=levels)


OTHERS = {
    "a name": (lambda: declare(TOWNS.rename(columns={"a": "b"})), "columns: .*'a'.*'b'"),
    "an order": (lambda: declare(TOWNS[["town", "a"]]), "columns:"),
    "a column": (lambda: declare(TOWNS.assign(c=1.0)), "number of columns: 2 in the draws, 3"),
    "a kind": (lambda: declare(TOWNS.assign(town=1.0)), "split rule of 'town': subset"),
    "a rule": (lambda: declare(split_rules={"town": "onehot"}), "split rule of 'town'"),
    "levels": (
        lambda: declare(TOWNS.assign(town=["Linz", "Wien"] * 10)),
        "levels of 'town': none of",
    ),
    "trees": (lambda: declare(m=4), "number of trees: 3 in the draws, 4 in the model"),
    "a leaf": (
        lambda: declare(leaf=pmt.LinearLeaf(0, 1)),
        "leaf: NormalLeaf in the draws, LinearLeaf",
    ),
    "outputs": (
        lambda: declare(shape=(2, 20), separate_trees=False),
        "leaf: NormalLeaf in the draws",
    ),
    "another": (lambda: declare(name="nu"), "it is not among the forests of the draws"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_forests_are_refused(case):
    build, message = OTHERS[case]
    with pytest.raises(ValueError, match=rf"idata: its trees cannot be a start of .*{message}"):
        pmt.update(prior_as_fit(declare()), build())


def test_levels_between_cuts_must_be_the_same():
    idata = prior_as_fit(declare(with_levels(["x", "y"] * 10, ordered=True)))
    starts_from(idata, declare(with_levels(["x", "y", "y", "x"] * 5, ordered=True)))
    with pytest.raises(ValueError, match="levels of 'town', split by cuts: .*'x', 'y'.*'z'"):
        starts_from(idata, declare(with_levels(["x", "y", "z", "x"] * 5, ordered=True)))


def test_what_is_no_fit_is_refused():
    idata = prior_as_fit(declare())
    for part in (idata["posterior"].to_dataset(), None, xr.DataTree()):
        with pytest.raises(ValueError, match="idata: the draws are no fit"):
            pmt.update(part, declare())
    rounded = idata.copy(deep=True)
    rounded["posterior"]["mu_forest"] = rounded["posterior"]["mu_forest"].astype(np.float32)
    with pytest.raises(ValueError, match="mu_forest of chain 0 was altered"):
        pmt.update(rounded, declare())
    with pytest.raises(ValueError, match="start=3: choose from the draws 0 to 2"):
        pmt.update(idata, declare(), start=3)
    with pytest.raises(TypeError, match="start=1.5"):
        pmt.update(idata, declare(), start=1.5)
    with pytest.raises(TypeError, match="update takes no chains=, which are those of the draws"):
        pmt.update(idata, declare(), chains=3)


# ------------------------------------------------------------ What stays with the draws of a forest


def test_levels_are_kept_by_name_and_turn_codes_back(tmp_path):
    with declare(pd.DataFrame({"town": ["Genf", "Bonn", None, "Genf"], "n": [1, 2, 1, 2]})):
        idata = pm.sample(2, tune=2, chains=1, **RUN)
    pmt.save(idata, tmp_path / "fit.nc")
    again = pmt.open(tmp_path / "fit.nc")
    forest = json.loads(again["forests"]["mu_forest"].item())
    assert forest["columns"] == [
        {"name": "town", "rule": "subset", "levels": ["Bonn", "Genf"]},
        {"name": "n", "rule": "continuous", "levels": None},
    ]
    [data] = forest["data"]
    codes = again["constant_data"][data][:, 0].values
    towns = [forest["columns"][0]["levels"][int(k)] if k >= 0 else None for k in codes]
    assert towns == ["Genf", "Bonn", None, "Genf"]
    assert (forest["trees"], forest["rows"], forest["leaf"]) == (3, 4, "NormalLeaf")
