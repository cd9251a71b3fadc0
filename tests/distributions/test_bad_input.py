"""Every bad input gets an error that names the argument and a remedy; legal oddities work."""

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import scipy.sparse
from support.small_models import sample, step_data
from support.tiers import tiers

import pymc_trees as pmt

pytestmark = pytest.mark.usefixtures("quick_compile")
X, Y = step_data(20)
LEAF = pmt.NormalLeaf(0.0, 1.0)


def with_entry(values, entry):
    """A copy whose entry [3, 1] or [3] is another."""
    values = values.copy()
    values[(3, 1) if values.ndim == 2 else 3] = entry
    return values


class Lazy:
    """A frame that gives its rows all at once or not at all."""

    def collect(self):
        raise AssertionError


TEXT = pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 10})
LEVELS = pd.DataFrame({"a": [f"level {k}" for k in range(51)]})
BLANK = pd.DataFrame({"a": X[:, 0], "b": pd.Series([None] * 20, dtype="string")})
DATES = pd.DataFrame({"a": X[:, 0], "b": pd.date_range("2020-01-01", periods=20)})

# arguments of BART beside the name -> what the error says, in this order
BAD = {
    "X infinite": ({"X": with_entry(X, np.inf)}, r"X .*infinite.*columns \[1\].*remove"),
    "X infinite in a frame": (
        {"X": pd.DataFrame(with_entry(X, -np.inf), columns=["a", "b"])},
        r"X .*infinite.*'b'.*remove",
    ),
    "X dates": ({"X": DATES}, r"X .*not numeric.*'b'.*Encode"),
    "X text array": ({"X": np.array([["a", "b"]] * 20)}, r"X .*numbers.*frame"),
    "X objects": ({"X": np.array([[1, "b"]] * 20, dtype=object)}, r"X .*numbers.*frame"),
    "X mixed column": ({"X": TEXT.astype({"b": object}).replace("u", 1.5)}, r"X .*'b'.*Encode"),
    "X levels": ({"X": LEVELS, "Y": None, "leaf": LEAF}, r"X.*'a'.*51 levels.*50.*merge"),
    "X levels by rule": (
        {"X": np.arange(51.0)[:, None], "Y": None, "leaf": LEAF, "split_rules": "subset"},
        r"X.*column 0.*51 levels.*50.*merge",
    ),
    "X nothing but missing": ({"X": BLANK}, r"X.*'b'.*missing in every row.*leave"),
    "X numbers and text": (
        {"X": pd.DataFrame({"a": [1, "2"] * 10})},
        r"X .*not numeric.*'a' \(object of int, str\).*Encode",
    ),
    "X text of numbers": (
        {"X": np.array([["1", "2"]] * 20, dtype=object)},
        r"X .*numbers only.*'1' of type str.*frame",
    ),
    "X bytes": ({"X": pd.DataFrame({"a": [b"1"] * 20})}, r"X .*not numeric.*'a'.*bytes"),
    "X dates array": ({"X": np.array([["2020-01-01"]] * 20, "M8[D]")}, r"X .*datetime64"),
    "X intervals": (
        {"X": pd.DataFrame({"a": pd.interval_range(0, 20)})},
        r"X .*not numeric.*'a' \(interval.*Encode",
    ),
    "X lists": ({"X": pl.DataFrame({"a": [[1, 2]] * 20})}, r"X .*not numeric.*'a' \(List\(Int64"),
    "X lazy": ({"X": Lazy()}, r"X is a Lazy,.*\.collect\(\)"),
    "Y lazy": ({"Y": pl.LazyFrame({"a": range(20)})}, r"Y is a LazyFrame.*\.collect\(\)"),
    "X sparse": ({"X": scipy.sparse.csr_matrix(X)}, r"X is a sparse csr_matrix.*X\.toarray\(\)"),
    "X complex": ({"X": X + 1j}, r"X .*numbers"),
    "X vector": ({"X": X[:, 0]}, r"X .*two-dimensional.*reshape\(-1, 1\)"),
    "X three dimensions": ({"X": X[None]}, r"X .*two-dimensional"),
    "X scalar": ({"X": 3.0}, r"X .*two-dimensional"),
    "X None": ({"X": None}, r"X "),
    "X no rows": ({"X": X[:0], "Y": None, "leaf": LEAF}, r"X .*no rows.*at least one"),
    "X no columns": ({"X": X[:, :0]}, r"X .*no columns.*at least one"),
    "X too wide": ({"X": np.where(X > 0.5, 1.7e308, -1.7e308)}, r"X spans.*\[0, 1\].*rescale"),
    "X repeated names": (
        {"X": pd.DataFrame(X, columns=["a", "a"])},
        r"X .*repeated column names.*rename",
    ),
    "Y NaN": ({"Y": with_entry(Y, np.nan)}, r"Y .*NaN.*leaf="),
    "Y infinite": ({"Y": with_entry(Y, -np.inf)}, r"Y .*infinite.*leaf="),
    "Y text": ({"Y": ["a"] * 20}, r"Y .*numbers"),
    "Y masked": ({"Y": np.ma.masked_array(Y, Y > 3)}, r"Y .*NaN.*leaf="),
    "Y dates": ({"Y": pd.date_range("2020", periods=20)}, r"Y .*numbers.*datetime64"),
    "Y complex": ({"Y": Y + 1j}, r"Y .*numbers.*complex"),
    "Y text of numbers": ({"Y": ["1", "2"] * 10}, r"Y .*numbers"),
    "Y objects of text": ({"Y": np.array(["1", "2"] * 10, dtype=object)}, r"Y .*numbers.*'1'"),
    "Y sparse": ({"Y": scipy.sparse.csr_matrix(Y)}, r"Y is a sparse.*Y\.toarray"),
    "Y short": ({"Y": Y[:-1]}, r"Y .*\(19,\).*20 rows"),
    "Y matrix": ({"Y": np.ones((20, 2))}, r"Y .*\(20, 2\).*20 rows"),
    "Y empty": ({"X": X[:0], "Y": Y[:0]}, r"no rows"),
    "m zero": ({"m": 0}, r"m=0.*at least 1"),
    "m negative": ({"m": -2}, r"m=-2.*at least 1"),
    "m fraction": ({"m": 2.5}, r"m=2.5.*whole number"),
    "m bool": ({"m": True}, r"m=True.*whole number"),
    "m large": ({"m": 10**6}, r"m=1000000, max_nodes=.*one draw .*B.*fewer"),
    "m text": ({"m": "5"}, r"m='5'.*whole number"),
    "n_cuts text": ({"n_cuts": "5"}, r"n_cuts='5'.*whole number"),
    "max_nodes text": ({"max_nodes": "500"}, r"max_nodes='500'.*whole number"),
    "max_nodes bool": ({"max_nodes": True, "m": 1}, r"max_nodes=True.*whole number"),
    "alpha bool": ({"alpha": True}, r"alpha=True.*number"),
    "alpha numpy bool": ({"alpha": np.True_}, r"alpha=.*True.*number"),
    "beta bool": ({"beta": True}, r"beta=True.*number"),
    "alpha zero": ({"alpha": 0.0}, r"alpha=0.0.*\(0, 1\)"),
    "alpha one": ({"alpha": 1.0}, r"alpha=1.0.*\(0, 1\)"),
    "alpha large": ({"alpha": 1.2}, r"alpha=1.2.*\(0, 1\)"),
    "alpha negative": ({"alpha": -0.1}, r"alpha=-0.1.*\(0, 1\)"),
    "alpha NaN": ({"alpha": np.nan}, r"alpha=nan"),
    "alpha text": ({"alpha": "big"}, r"alpha='big'.*number"),
    "alpha vector": ({"alpha": np.ones(2) / 2}, r"alpha=.*number"),
    "beta negative": ({"beta": -1.0}, r"beta=-1.0.*must be at least 0"),
    "beta infinite": ({"beta": np.inf}, r"beta=inf"),
    "leaf wrong": ({"leaf": 0.3}, r"leaf=0.3.*NormalLeaf"),
    "leaf of a single tree": ({"leaf": pmt.DirichletLeaf(1.0, 2)}, r"m=50.*DecisionTree"),
    "split_prior short": ({"split_prior": [1.0]}, r"split_prior.*\(1,\).*2 columns"),
    "split_prior negative": ({"split_prior": [1.0, -1]}, r"split_prior.*at least 0"),
    "split_prior zeros": ({"split_prior": [0.0, 0]}, r"split_prior.*not all 0"),
    "split_prior NaN": ({"split_prior": [np.nan, 1]}, r"split_prior.*finite"),
    "split_prior text": ({"split_prior": ["a", "b"]}, r"split_prior"),
    "split_prior text of numbers": ({"split_prior": ["1", "2"]}, r"split_prior .*numbers only"),
    "split_prior of no frame": ({"split_prior": {"a": 1.0}}, r"split_prior .*'a'.*does not have"),
    "max_nodes small": ({"max_nodes": 49}, r"max_nodes=49.*at least 50, one node a tree"),
    "max_nodes fraction": ({"max_nodes": 100.5}, r"max_nodes=100.5.*whole number"),
    "response": ({"response": "cubic"}, r"response='cubic'.*'constant'"),
    "tree_prior": ({"tree_prior": "mondrian"}, r"tree_prior"),
    "shape": ({"shape": (2, 19)}, r"shape=\(2, 19\).*\(K, n\)"),
    "shape fraction": ({"shape": (2.7, 20)}, r"shape=\(2.7, 20\).*whole numbers \(K, n\)"),
    "shape bool": ({"shape": (True, 20)}, r"shape=\(True, 20\).*whole numbers"),
    "shape of words": ({"shape": "two"}, r"shape='two'.*\(K, n\)"),
    "leaves of outputs": (
        {"shape": (2, 20), "leaf": pmt.NormalLeaf(0.0, [1.0, 2.0, 3.0])},
        r"leaf: 3 values for 2 outputs",
    ),
    "one output": ({"leaf": pmt.NormalLeaf(0.0, [1.0, 2.0])}, r"leaf.*scalar.*shape=\(K, n\)"),
    "classes of outputs": (
        {"shape": (2, 20), "leaf": pmt.DirichletLeaf(1.0, 2), "m": 1},
        r"several outputs.*NormalLeaf",
    ),
    "split_rules": ({"split_rules": ["continuous", "set"]}, r"split_rules.*'set'.*'subset'"),
    "split_rules number": ({"split_rules": 5}, r"split_rules=5.*'subset'.*dict"),
    "split_rules of no frame": (
        {"split_rules": {"a": "subset"}},
        r"split_rules .*'a'.*does not have",
    ),
    "split_rules unknown": (
        {"X": TEXT, "split_rules": {"c": "subset"}},
        r"split_rules .*'c'.*'a', 'b'",
    ),
    "split_prior unknown": ({"X": TEXT, "split_prior": {"c": 2.0}}, r"split_prior .*'c'.*'a', 'b'"),
    "split_rules short": ({"split_rules": ["continuous"]}, r"split_rules has 1.*2 columns"),
    "dims unknown": ({"dims": ("a", "b")}, r"the model has no dimension 'a'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_argument_of_bart(case):
    arguments, said = BAD[case]
    arguments = {"X": X, "Y": Y, **arguments}
    with pm.Model() as model:
        with pytest.raises((ValueError, TypeError, NotImplementedError), match=f"(?s){said}"):
            pmt.BART("mu", **arguments)
        assert dict(model.named_vars) == {} and not model.coords


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: pmt.NormalLeaf(0, 0), r"NormalLeaf\(sd=0\).*sd must be a positive"),
        (lambda: pmt.NormalLeaf(0, -1.0), "sd must be a positive"),
        (lambda: pmt.NormalLeaf(np.nan, 1), "mean must be a finite"),
        (lambda: pmt.NormalLeaf("a", 1), "mean"),
        (lambda: pmt.NormalLeaf(0, "a"), "sd"),
        (lambda: pmt.NormalLeaf(0, None), "sd"),
        (lambda: pmt.NormalLeaf(0, []), r"sd=\[\].*sd must be a positive"),
        (lambda: pmt.NormalLeaf([], 1), r"mean=\[\].*mean must be a finite"),
        (lambda: pmt.NormalLeaf(0, True), "sd=True.*sd must be a positive"),
        (lambda: pmt.NormalLeaf(False, 1), "mean=False.*mean must be a finite"),
        (lambda: pmt.NormalLeaf(0, [1.0, True]), "sd must be a positive"),
        (lambda: pmt.NormalLeaf(0, ["a", "b"]), r"sd=\['a', 'b'\].*sd must be a positive"),
        (lambda: pmt.NormalLeaf(0, ["1", "2"]), "sd must be a positive"),
        (lambda: pmt.NormalLeaf(0, [[1.0, 2.0]]), "sd must be a positive"),
        (lambda: pmt.NormalLeaf(0, 1e-300), "sd=1e-300.*square.*rescale"),
        (lambda: pmt.NormalLeaf(0, 1e300), "sd=1e[+]300.*square.*rescale"),
        (lambda: pmt.NormalGammaLeaf(nu=True), "nu must be a positive"),
        (lambda: pmt.DirichletLeaf(True, 2), "alpha must be a positive"),
        (lambda: pmt.MondrianPrior(True), "lifetime=True must be a number"),
        (lambda: pmt.NormalGammaLeaf(a=0), r"NormalGammaLeaf\(a=0\)"),
        (lambda: pmt.NormalGammaLeaf(nu=-1), "nu must be a positive"),
        (lambda: pmt.NormalGammaLeaf(lam=np.inf), "lam must be a positive"),
        (lambda: pmt.DirichletLeaf(0.0, 2), "alpha must be a positive"),
        (lambda: pmt.DirichletLeaf(1.0, 1), "n_classes must be a whole number of at least 2"),
        (lambda: pmt.DirichletLeaf(1.0, 2.5), "n_classes"),
    ],
)
def test_bad_setting_of_a_leaf(make, said):
    with pytest.raises((ValueError, TypeError), match=said):
        make()


@pytest.mark.parametrize("name", ["alpha", "beta", "leaf", "split_prior"])
def test_random_settings_of_the_wrong_shape(name):
    with pm.Model():
        vector = pm.Beta("vector", 1, 1, shape=(2, 2) if name == "split_prior" else 2)
        given = {name: pmt.NormalLeaf(vector, 1) if name == "leaf" else vector}
        with pytest.raises(ValueError, match=name):
            pmt.BART("mu", X, Y, **given)


def test_random_weights_of_the_wrong_length():
    with pm.Model():
        weights = pm.Dirichlet("weights", np.ones(3))
        with pytest.raises(ValueError, match="split_prior.*2 columns"):
            pmt.BART("mu", X, Y, split_prior=weights)


@pytest.mark.parametrize("n", [3, 2, 1])
def test_random_weights_whose_length_is_that_of_data(n):
    with pm.Model() as model:
        sd = pm.Data("sd", np.ones(n))
        weights = pm.HalfNormal("weights", sd, shape=sd.shape)
        if n == 2:
            pmt.BART("mu", X, Y, m=2, split_prior=weights)
            assert np.isfinite(model.compile_logp()(model.initial_point()))
            pm.set_data({"sd": np.ones(3)})
            with pytest.raises(ValueError):
                pm.draw(model["mu"])
            return
        with pytest.raises(ValueError, match=f"split_prior has {n} weights.*2 columns"):
            pmt.BART("mu", X, Y, split_prior=weights)


def test_random_inputs():
    with pm.Model():
        inputs = pm.Normal("inputs", shape=(20, 2))
        with pytest.raises(TypeError, match="X depends on a random variable.*must be data"):
            pmt.BART("mu", inputs, Y)


def test_outside_a_model():
    with pytest.raises(TypeError, match="[Mm]odel"):
        pmt.BART("mu", X, Y)


def test_prediction_at_numbers_that_are_none():
    with pm.Model():
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, Y, m=3)
        with pytest.raises(ValueError, match="X .*infinite.*remove or impute"):
            pm.set_data({"X": with_entry(X, np.inf)})
            pm.draw(mu)


def test_levels_of_model_data_are_codes():
    """PyMC's own data are not encoded: levels there are 0, 1, .. already."""
    with pm.Model():
        data = pm.Data("X", X * 3)
        with pytest.raises(ValueError, match="split_rules: column 0.*pymc_trees.Data"):
            pmt.BART("mu", data, Y, m=3, split_rules="subset")


LEGAL = {
    "constant column": np.column_stack([X[:, 0], np.full(20, 2.0)]),
    "all columns constant": np.ones((20, 2)),
    "identical rows": np.repeat(X[:2], 10, axis=0),
    "huge": X * 1e300,
    "tiny": X * 1e-300,
    "denormal": X * 1e-310,
    "adjacent floats": np.nextafter(1.0, 2.0) ** np.arange(20).reshape(-1, 1),
    "signed zeros": np.where(X > 0.5, 0.0, -0.0),
}


@pytest.mark.parametrize("case", tiers(LEGAL, quick=["all columns constant", "denormal"]))
def test_legal_oddities_sample(case):
    inputs = LEGAL[case]
    with pm.Model() as model:
        mu = pmt.BART("mu", inputs, Y, m=3, max_nodes=117, alpha=0.9, beta=0.5)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
        idata = sample(15, 15)
        logp = model.compile_logp(vars=[model["mu_forest"]])
        for value in (pm.draw(model["mu_forest"]), idata.posterior["mu_forest"].values[1, -1]):
            assert np.isfinite(logp({"mu_forest": value}))
    assert np.isfinite(idata.posterior["mu"].values).all()
    if case in ("all columns constant", "signed zeros"):
        assert (idata.sample_stats["n_leaves"] == 3).all()


@pytest.mark.parametrize("n", [1, 2])
def test_one_row_and_two(n):
    with pm.Model():
        mu = pmt.BART("mu", X[:n], leaf=LEAF, m=3)
        pm.Normal("y", mu, 0.5, observed=Y[:n], shape=mu.shape)
        idata = sample(15, 15)
    assert idata.posterior["mu"].shape == (2, 15, n)
    assert np.isfinite(idata.posterior["mu"].values).all()
