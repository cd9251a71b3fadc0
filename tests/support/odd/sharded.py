"""Odd inputs of `sample_sharded`."""

import numpy as np
import pymc as pm

import pymc_trees as pmt

from .table import FRAME, Odd, X, Y


def model_of(forest=lambda: pmt.BART("mu", X, Y, m=2, max_nodes=80), y=None, sigma=lambda: 0.5):
    """BART in the mean of a Normal, but for what is given."""
    with pm.Model() as model:
        mu = forest()
        if y is None:
            pm.Normal("y", mu, sigma(), observed=Y)
        else:
            y(mu)
    return model


def setting(refused, **given):
    """A row about a setting."""
    small = {"draws": 2, "tune": 2, "chains": 1, "progressbar": False}
    return Odd(lambda: pmt.sample_sharded(model_of(), **(small | given)), refused)


def model(refused, **given):
    """A row about a model that it refuses."""
    return Odd(lambda: pmt.sample_sharded(model_of(**given), draws=2, progressbar=False), refused)


def two_forests():
    """Two functions, added up."""
    leaf = pmt.NormalLeaf(0.0, 1.0)
    return pmt.BART("mu", X, m=2, leaf=leaf) + pmt.BART("nu", X, m=2, leaf=leaf)


def bart(**given):
    """What declares a forest."""
    return lambda: pmt.BART("mu", **({"X": X, "Y": Y, "m": 2} | given))


def _by_slope(mu):
    pm.Normal("y", 2.0 * mu, 0.5, observed=Y)


def _by_row(mu):
    pm.Normal("y", mu, np.linspace(0.5, 1.0, 20), observed=Y)


def _counts(mu):
    pm.Poisson("y", pm.math.exp(mu), observed=np.ones(20, dtype=int))


def _shifted(mu):
    pm.Normal("y", mu + pm.Normal("shift"), 0.5, observed=Y)


def _unobserved(mu):
    pass


SHARDED = {
    "shards zero": setting("shards", shards=0),
    "shards too many": setting("shards", shards=21),
    "shards bool": setting("shards", shards=True),
    "shards text": setting("shards", shards="dask"),
    "shards None": setting("shards", shards=None),
    "draws zero": setting("draws", draws=0),
    "tune negative": setting("tune", tune=-1),
    "chains zero": setting("chains", chains=0),
    "sweeps zero": setting("sweeps", sweeps=0),
    "random_seed": setting(TypeError("random_seed"), random_seed="x"),
    "var_names unknown": setting("var_names", var_names=["nu"]),
    "no model": Odd(pmt.sample_sharded, TypeError("model")),
    "no forest": Odd(lambda: pmt.sample_sharded(pm.Model()), "model"),
    "two forests": model("model", forest=two_forests),
    "soft trees": model(
        NotImplementedError("mu_forest"), forest=lambda: pmt.SoftBART("mu", X, Y, m=2)
    ),
    "lines in leaves": model(NotImplementedError("'linear'"), forest=bart(response="linear")),
    "monotone": model(NotImplementedError("monotone"), forest=bart(monotone={0: 1})),
    "Mondrian trees": model(
        NotImplementedError("tree_prior"), forest=bart(tree_prior=pmt.MondrianPrior(1))
    ),
    "levels": model(NotImplementedError("columns"), forest=bart(X=FRAME)),
    "random alpha": model(
        NotImplementedError("'alpha'"),
        forest=lambda: pmt.BART("mu", X, Y, m=2, alpha=pm.Beta("alpha", 2, 1)),
    ),
    "another variable": model(NotImplementedError("'shift'"), y=_shifted),
    "sigma below another": model(
        NotImplementedError("'above'"), sigma=lambda: pm.HalfNormal("s", pm.HalfNormal("above"))
    ),
    "sigma of rows": model(NotImplementedError("sigma"), y=_by_row),
    "sigma times rows": model(
        NotImplementedError("'s'"), sigma=lambda: pm.HalfNormal("s") * np.linspace(1, 2, 20)
    ),
    "a multiple": model(NotImplementedError("mu_forest"), y=_by_slope),
    "counts": model(NotImplementedError("integrate"), y=_counts),
    "nothing observed": model("mu_forest", y=_unobserved),
}
