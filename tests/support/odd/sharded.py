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


def setting(said, **given):
    """A row about a setting."""
    small = {"draws": 2, "tune": 2, "chains": 1, "progressbar": False}
    return Odd(lambda: pmt.sample_sharded(model_of(), **(small | given)), said)


def model(said, **given):
    """A row about a model that it refuses."""
    return Odd(lambda: pmt.sample_sharded(model_of(**given), draws=2, progressbar=False), said)


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
    "shards zero": setting(r"shards=0.*distributed.Client.*from 1 to the 20 rows", shards=0),
    "shards too many": setting(r"shards=21.*20 rows", shards=21),
    "shards bool": setting(r"shards=True", shards=True),
    "shards text": setting(r"shards='dask'.*distributed.Client", shards="dask"),
    "shards None": setting(r"shards=None", shards=None),
    "draws zero": setting(r"draws=0.*at least 1", draws=0),
    "tune negative": setting(r"tune=-1.*at least 0", tune=-1),
    "chains zero": setting(r"chains=0.*at least 1", chains=0),
    "sweeps zero": setting(r"sweeps=0.*at least 1", sweeps=0),
    "random_seed": setting(r"random_seed='x'", random_seed="x"),
    "var_names unknown": setting(r"var_names=.*mu_forest", var_names=["nu"]),
    "no model": Odd(pmt.sample_sharded, r"[Mm]odel"),
    "no forest": Odd(lambda: pmt.sample_sharded(pm.Model()), r"one BART; this one has 0"),
    "two forests": model(r"one BART; this one has 2.*pm.sample", forest=two_forests),
    "soft trees": model(
        r"mu_forest holds soft trees.*BART", forest=lambda: pmt.SoftBART("mu", X, Y, m=2)
    ),
    "lines in leaves": model(r"leaves of kind 'linear'", forest=bart(response="linear")),
    "monotone": model(r"monotone.*pm.sample", forest=bart(monotone={0: 1})),
    "Mondrian trees": model(r"tree_prior of its own", forest=bart(tree_prior=pmt.MondrianPrior(1))),
    "levels": model(r"columns of levels", forest=bart(X=FRAME)),
    "random alpha": model(
        r"\['alpha'\] would have to be sampled",
        forest=lambda: pmt.BART("mu", X, Y, m=2, alpha=pm.Beta("alpha", 2, 1)),
    ),
    "another variable": model(r"\['shift'\] would have to be", y=_shifted),
    "sigma below another": model(
        r"'above'\] would have to be", sigma=lambda: pm.HalfNormal("s", pm.HalfNormal("above"))
    ),
    "sigma of rows": model(r"sigma varies between rows", y=_by_row),
    "sigma times rows": model(
        r"\['s'\] would have to be", sigma=lambda: pm.HalfNormal("s") * np.linspace(1, 2, 20)
    ),
    "a multiple": model(r"multiple of mu_forest.*Scale y", y=_by_slope),
    "counts": model(r"integrate out.*pm.sample", y=_counts),
    "nothing observed": model(r"Nothing observed depends on mu_forest", y=_unobserved),
}
