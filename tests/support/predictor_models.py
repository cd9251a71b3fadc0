"""Small models of every kind that a predictor holds, with draws of their prior, and new rows."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import xarray as xr

import pymc_trees as pmt

N, DRAWS, M = 40, 4, 5
_rng = np.random.default_rng(1)
X = _rng.random((N, 3)).round(1)  # with ties
Y = X[:, 0] + 0.3 * _rng.normal(size=N)
COUNTS = _rng.poisson(2.0, N)
LEAF = pmt.NormalLeaf(0, 0.5)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
FRAME["c"] = FRAME["c"].where(_rng.random(N) > 0.2)
FRAME["town"] = np.array(["Bonn", "Genf", "Linz", None], dtype=object)[_rng.integers(0, 4, N)]
FRAME["size"] = pd.Categorical(
    np.array(["S", "M", "L"])[_rng.integers(0, 3, N)], ["S", "M", "L"], ordered=True
)
GROUPS = _rng.integers(0, 4, N)
TREES = {"alpha": 0.98, "beta": 0.7}
"""Deep enough that every kind of split occurs."""


class Case(NamedTuple):
    """A model with draws."""

    model: pm.Model
    idata: xr.DataTree
    new: object
    """Rows, as `predictions` takes them."""


def drawn(model: pm.Model, new, seed: int = 1) -> Case:
    """Draws of the prior as those of a posterior, in two chains."""
    with model:
        names = [v.name for v in (*model.free_RVs, *model.deterministics)]
        prior = pm.sample_prior_predictive(2 * DRAWS, random_seed=seed, var_names=names)["prior"]
    ds = prior.to_dataset()
    parts = [ds.isel(draw=slice(k * DRAWS, (k + 1) * DRAWS)) for k in range(2)]
    parts = [part.assign_coords(draw=np.arange(DRAWS), chain=[k]) for k, part in enumerate(parts)]
    return Case(model, xr.DataTree.from_dict({"posterior": xr.concat(parts, "chain")}), new)


def new_array(n: int = 30, missing: bool = True, seed: int = 2) -> np.ndarray:
    """Rows with values on, between and beyond those of training, and missing cells."""
    rng = np.random.default_rng(seed)
    rows = np.where(rng.random((n, 3)) < 0.5, X[rng.integers(0, N, n)], rng.normal(0.5, 1, (n, 3)))
    if missing:
        rows[rng.random((n, 3)) < 0.2] = np.nan
    return rows


def new_frame(n: int = 30, seed: int = 2) -> pd.DataFrame:
    """The same with levels, some of them not seen in training."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(new_array(n, seed=seed), columns=["a", "b", "c"])
    frame["town"] = rng.choice(np.array(["Bonn", "Genf", "Linz", "Ulm", None], object), n)
    frame["size"] = rng.choice(np.array(["S", "M", "L", "XL", None], object), n)
    return frame


def forest(inputs=X, new=None, **settings) -> Case:
    """One forest."""
    settings = {"leaf": LEAF, "m": M} | TREES | settings
    with pm.Model() as model:
        pmt.BART("f", pmt.Data("X", inputs), **settings)
    return drawn(model, new_array() if new is None else new)


def mixed(**settings) -> Case:
    """Levels and missing cells."""
    return forest(FRAME, new_frame(), **settings)


def onehot() -> Case:
    """Levels, one against the rest."""
    return mixed(split_rules={"town": "onehot", "size": "subset"})


def grid() -> Case:
    """Cuts on a grid."""
    return forest(n_cuts=5)


def outputs() -> Case:
    """Three outputs that share trees."""
    return forest(shape=(3, N), separate_trees=False)


def forests_of_outputs() -> Case:
    """Three outputs with trees of their own."""
    return forest(shape=(3, N))


def linear(columns="parent", **settings) -> Case:
    """Leaves with slopes."""
    return mixed(leaf=pmt.LinearLeaf(0.1, 0.3, columns=columns, **settings))


def monotone() -> Case:
    """Ordered leaves."""
    return forest(monotone={0: 1})


def mondrian_prior() -> Case:
    """Trees of a Mondrian process."""
    with pm.Model() as model:
        prior = pmt.MondrianPrior(2.0)
        pmt.DecisionTree("f", pmt.Data("X", X), leaf=LEAF, tree_prior=prior)
    return drawn(model, new_array())


def decision_tree() -> Case:
    """A tree with means and precisions, and one with classes."""
    with pm.Model() as model:
        data = pmt.Data("X", FRAME)
        pmt.DecisionTree("t", data, leaf=pmt.NormalGammaLeaf(0.5, 3.0, 1.0), **TREES)
        pmt.DecisionTree("c", data, leaf=pmt.DirichletLeaf(1.0, 3), **TREES)
    return drawn(model, new_frame())


def soft() -> Case:
    """Soft trees, one column hard."""
    with pm.Model() as model:
        pmt.SoftBART("f", pmt.Data("X", X), leaf=LEAF, m=M, hard=[1])
    return drawn(model, new_array(missing=False))


def basis(sd=0.5) -> Case:
    """Coefficients of a basis, which are given with the rows."""
    with pm.Model() as model:
        leaf = pmt.BasisLeaf(np.column_stack([np.ones(N), Y]), sd=sd)
        pmt.BART("f", pmt.Data("X", X), leaf=leaf, m=M, **TREES)
    rows = {"X": new_array(), "f_basis": np.random.default_rng(3).normal(size=(30, 2))}
    return drawn(model, rows)


def counterfactual() -> Case:
    """A forest at rows with one column set."""
    with pm.Model() as model:
        data = pmt.Data("X", X)
        f = pmt.BART("f", data, leaf=LEAF, m=M, **TREES)
        treated = pt.set_subtensor(data[:, 0], 1.0)
        pm.Deterministic("gain", pmt.evaluate(model["f_forest"], treated) - f)
        slope = pm.Normal("slope", shape=3)
        pm.Deterministic("line", f + data @ slope + pt.stack([slope[0], slope[1]]).sum())
    return drawn(model, new_array(missing=False))


def several_inputs() -> Case:
    """Forests of different frames."""
    with pm.Model() as model:
        f = pmt.BART("f", pmt.Data("first", FRAME), leaf=LEAF, m=M, **TREES)
        other = FRAME[["a", "c"]].rename(columns={"a": "e"}).assign(c=X[:, 1])
        other.columns = ["e", "g"]
        g = pmt.BART("g", pmt.Data("second", other), leaf=LEAF, m=M, **TREES)
        pm.Deterministic("total", f + g)
    second = pd.DataFrame(new_array(seed=5)[:, :2], columns=["e", "g"])
    return drawn(model, {"first": new_frame(), "second": second})


def expressions() -> Case:
    """Several forests, a scale, data beside X and effects of groups."""
    with pm.Model(coords={"group": list("abcd")}) as model:
        data = pmt.Data("X", X)
        f = pmt.BART("f", data, leaf=LEAF, m=M, **TREES)
        g = pmt.BART("g", data, leaf=LEAF, m=M, **TREES)
        exposure, group = pm.Data("exposure", np.ones(N)), pm.Data("group_of", GROUPS)
        scale = pm.HalfNormal("scale", 1.0)
        effect = pm.Normal("effect", 0, scale, dims="group")
        pm.Deterministic("rate", pm.math.exp(f + effect[group]) * exposure)
        sd = pm.Deterministic("sd", pm.math.exp(g) * scale)
        pm.Deterministic("share", pm.math.invprobit(f / sd) + pm.math.sigmoid(g) ** 2)
        pm.Normal("y", f, sd, observed=Y, shape=f.shape)
    rng = np.random.default_rng(3)
    rows = {"X": new_array(), "exposure": rng.random(30), "group_of": rng.integers(0, 4, 30)}
    return drawn(model, rows)


def _normal(f, s):
    pm.Normal("y", f, s, observed=Y, shape=f.shape)
    return f


def _noise_forest(f, s):
    g = pmt.BART("g", pm.modelcontext(None)["X"], leaf=LEAF, m=M)
    pm.Normal("y", f, s * pm.math.exp(g), observed=Y, shape=f.shape)
    return f


def _lognormal(f, s):
    pm.LogNormal("y", f, s, observed=np.exp(Y), shape=f.shape)
    return pm.math.exp(f + s**2 / 2)


def _studentt(f, s):
    pm.StudentT("y", nu=5, mu=f, sigma=s, observed=Y, shape=f.shape)
    return f


def _bernoulli(f, s):
    p = pm.math.invprobit(f)
    pm.Bernoulli("y", p=p, observed=COUNTS > 2, shape=f.shape)
    return p


def _bernoulli_logit(f, s):
    pm.Bernoulli("y", logit_p=f, observed=COUNTS > 2, shape=f.shape)
    return pm.math.sigmoid(f)


def _poisson(f, s):
    pm.Poisson("y", pm.math.exp(f), observed=COUNTS, shape=f.shape)
    return pm.math.exp(f)


def _negative_binomial(f, s):
    pm.NegativeBinomial("y", mu=pm.math.exp(f), alpha=s, observed=COUNTS, shape=f.shape)
    return pm.math.exp(f)


def _gamma(f, s):
    pm.Gamma("y", mu=pm.math.exp(f), sigma=s, observed=np.exp(Y), shape=f.shape)
    return pm.math.exp(f)


def _exponential(f, s):
    pm.Exponential("y", scale=pm.math.exp(f), observed=np.exp(Y), shape=f.shape)
    return pm.math.exp(f)


def _categorical(f, s):
    g = pmt.BART("g", pm.modelcontext(None)["X"], leaf=LEAF, m=M, shape=(3, N))
    p = pm.math.softmax(g, axis=0).T
    pm.Categorical("y", p=p, observed=COUNTS % 3, shape=g.shape[1:])
    return p


def _ordered_logistic(f, s):
    cuts = pm.Normal("cuts", np.arange(2.0), 0.1, transform=pm.distributions.transforms.ordered)
    pm.OrderedLogistic("y", eta=f, cutpoints=cuts, observed=COUNTS % 3, shape=f.shape)


def _ordered_probit(f, s):
    pm.OrderedProbit("y", eta=f, cutpoints=np.arange(2.0), observed=COUNTS % 3, shape=f.shape)


LAWS = {
    "normal": _normal,
    "noise forest": _noise_forest,
    "lognormal": _lognormal,
    "studentt": _studentt,
    "bernoulli": _bernoulli,
    "bernoulli of a logit": _bernoulli_logit,
    "poisson": _poisson,
    "negative_binomial": _negative_binomial,
    "gamma": _gamma,
    "exponential": _exponential,
    "categorical": _categorical,
    "ordered logistic": _ordered_logistic,
    "ordered probit": _ordered_probit,
}


def response(law: str) -> Case:
    """A model of a law, with the mean, or the probabilities, as the Deterministic ``expected``."""
    with pm.Model() as model:
        f = pmt.BART("f", pmt.Data("X", X), leaf=LEAF, m=M, **TREES)
        expected = LAWS[law](f, pm.HalfNormal("s", 1.0))
        if expected is not None:
            pm.Deterministic("expected", expected)
    return drawn(model, new_array())


CASES = {
    "numbers": forest,
    "grid": grid,
    "mixed": mixed,
    "onehot": onehot,
    "outputs": outputs,
    "forests of outputs": forests_of_outputs,
    "monotone": monotone,
    "Mondrian prior": mondrian_prior,
    "decision tree": decision_tree,
    "soft": soft,
    "basis": basis,
    "basis with covariances": lambda: basis(np.array([[0.5, 0.1], [0.1, 0.3]])),
    "counterfactual": counterfactual,
    "several inputs": several_inputs,
    "expressions": expressions,
    "slope of the parent": linear,
    "slopes of the path": lambda: linear("path", p_constant=0.3),
    "slopes": lambda: linear("all", extrapolate=False),
}
"""Functions of all kinds of trees, rules, leaves and expressions."""
