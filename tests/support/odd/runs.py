"""Odd inputs of whole runs, `save`, `check_draws` and the plots."""

import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from pymc_trees.posterior.declarations import declared_group
from support.odd.table import Odd, X, Y


def tree_model(**given):
    """A tree whose leaf values integrate out."""
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, Y, max_nodes=39, **given)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
    return model


def smc(refused, **given):
    """A row about a setting of `sample_tree_smc`."""

    def call():
        with tree_model():
            return pmt.sample_tree_smc(**{"particles": 5, "progressbar": False, **given})

    return Odd(call, refused)


def smc_of(model, refused):
    """A row about a model that it refuses."""

    def call():
        with model():
            return pmt.sample_tree_smc(5, islands=1, cores=1, progressbar=False)

    return Odd(call, refused)


def _sum_of_trees():
    with pm.Model() as model:
        pmt.BART("mu", X, Y, m=2, max_nodes=80)
    return model


def _soft():
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, Y)
    return model


def _with_sigma():
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, Y)
        pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=Y, shape=mu.shape)
    return model


def _counts():
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, Y)
        pm.Poisson("y", pm.math.exp(mu), observed=np.ones(20, dtype=int), shape=mu.shape)
    return model


def chains(refused, **given):
    """A row about a setting of `sample_chains`."""

    def call():
        with tree_model():
            return pmt.sample_chains(**{"draws": 2, "tune": 2, "progressbar": False, **given})

    return Odd(call, refused)


CHAINS = {
    "chains zero": chains("chains", chains=0),
    "chains None": chains("chains", chains=None),
    "draws zero": chains("draws", draws=0),
    "cores zero": chains("cores", cores=0),
    "cores text": chains("cores", cores="2"),
    "random_seed": chains(TypeError("random_seed"), random_seed="x", cores=1),
    "a trace": chains(TypeError("takes"), trace="store"),
    "a callback": chains(TypeError("callback"), callback=print),
    "an unknown word": chains(TypeError("chain"), chain=3),
    "every alone": chains("every", every=5),
    "every zero": chains("every", checkpoint="a.nc", every=0),
    "every fraction": chains("every", checkpoint="a.nc", every=0.5),
    "checkpoint a number": chains(TypeError("checkpoint"), checkpoint=3),
    "checkpoint nowhere": chains("checkpoint", checkpoint="nowhere/a.nc"),
    "checkpoint a folder": chains("checkpoint", checkpoint="tests"),
    "no model": Odd(pmt.sample_chains, TypeError("model")),
}


def ends(refused, **given):
    """A row about a setting of `sample_until`."""

    def call():
        with tree_model():
            short = {"draws": 4, "tune": 2, "chains": 2, "cores": 1, "progressbar": False}
            return pmt.sample_until(**{**short, **given})

    return Odd(call, refused)


UNTIL = {
    "r_hat one": ends("r_hat", r_hat=1),
    "r_hat text": ends("r_hat", r_hat="1.01"),
    "ess zero": ends("ess", ess=0),
    "ess NaN": ends("ess", ess=np.nan),
    "of unknown": ends("of", of=["nu"]),
    "of nothing": ends("of", of=[]),
    "of a word": ends(None, of="mu", r_hat=9.0, ess=1),
    "pooled negative": ends("pooled", pooled=-0.1),
    "max_time soon": ends("max_time", max_time="soon"),
    "max_time zero": ends("max_time", max_time=0),
    "max_time None": ends("max_time", max_time=None),
    "chains one": ends("chains", chains=1),
    "draws three": ends("draws", draws=3),
    "max_draws below draws": ends("max_draws", draws=9, max_draws=8),
    "tune negative": ends("tune", tune=-1),
    "cores zero": ends("cores", cores=0),
    "random_seed": ends(TypeError("random_seed"), random_seed="x"),
    "a trace": ends(TypeError("sample_until"), trace="store"),
    "every": ends(TypeError("every"), every=5),
    "checkpoint a number": ends(TypeError("checkpoint"), checkpoint=3),
    "checkpoint nowhere": ends("checkpoint", checkpoint="nowhere/a.nc"),
    "no model": Odd(pmt.sample_until, TypeError("model")),
}


def goes_on(refused, **given):
    """A row about what `resume` is given."""

    def call():
        with tree_model():
            return pmt.resume(**{"idata": DRAWS, "draws": 2, "progressbar": False, **given})

    return Odd(call, refused)


DRAWS = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", [0.0])})})
STATES = xr.DataTree.from_dict({"sampling_state/chain_0": xr.Dataset()})
OBJECTS = xr.DataTree.from_dict({"sample_stats": xr.Dataset({"warning": ("draw", [None])})})


def saved(idata, path, refused):
    """A row about what `save` is given."""
    return Odd(lambda: pmt.save(idata, path), refused)


RESUME = {
    "idata None": goes_on("idata", idata=None),
    "no states": goes_on("idata"),
    "draws zero": goes_on("draws", draws=0),
    "cores zero": goes_on("cores", cores=0),
    "chains": goes_on(TypeError("chains"), chains=2),
    "a seed": goes_on(TypeError("random_seed"), random_seed=1),
    "a trace": goes_on(TypeError("resume"), trace="store"),
    "an unknown word": goes_on(TypeError("chain"), chain=3),
    "every alone": goes_on("every", idata=STATES, every=5),
    "checkpoint nowhere": goes_on("checkpoint", idata=STATES, checkpoint="nowhere/a.nc"),
    "no model": Odd(lambda: pmt.resume(DRAWS), TypeError("model")),
}


def fit_of(model):
    """Draws of the prior as those of a fit."""
    prior = pm.sample_prior_predictive(2, model=model, random_seed=1)["prior"]
    return xr.DataTree.from_dict({"posterior": prior, "forests": declared_group(model)})


def started(refused, **given):
    """A row about what `update` is given."""

    def call():
        with tree_model() as model:
            short = {"draws": 2, "tune": 0, "cores": 1, "progressbar": False}
            return pmt.update(**{"idata": fit_of(model), **short, **given})

    return Odd(call, refused)


UPDATE = {
    "idata None": started("idata", idata=None),
    "no forests": started("idata", idata=DRAWS),
    "draws zero": started("draws", draws=0),
    "tune negative": started("tune", tune=-1),
    "cores zero": started("cores", cores=0),
    "start beyond": started("start", start=2),
    "start fraction": started(TypeError("start"), start=0.5),
    "chains": started(TypeError("chains"), chains=2),
    "a trace": started(TypeError("update"), trace="store"),
    "a soft tree": started("model", model=_soft()),
    "no model": Odd(lambda: pmt.update(DRAWS), TypeError("model")),
}

SAVE = {
    "idata None": saved(None, "a.nc", TypeError("idata")),
    "a group": saved(DRAWS["posterior"].to_dataset(), "a.nc", TypeError("Dataset")),
    "objects": saved(OBJECTS, "a.nc", TypeError("'warning'")),
    "no folder": saved(DRAWS, "nowhere/a.nc", "'nowhere'"),
    "a folder": saved(DRAWS, "tests", "path"),
    "path None": saved(DRAWS, None, TypeError("path")),
}

SMC = {
    "particles zero": smc("particles", particles=0),
    "particles fraction": smc("particles", particles=2.5),
    "particles None": smc("particles", particles=None),
    "particles bool": smc("particles", particles=True),
    "islands zero": smc("islands", islands=0),
    "islands text": smc("islands", islands="4"),
    "proposal": smc("proposal", proposal="best"),
    "expansion": smc("expansion", expansion="all"),
    "resampling": smc("resampling", resampling=None),
    "ess_threshold large": smc("ess_threshold", ess_threshold=1.1),
    "ess_threshold NaN": smc("ess_threshold", ess_threshold=np.nan),
    "max_stages zero": smc("max_stages", max_stages=0),
    "max_stages None": smc("max_stages", max_stages=None),
    "combine": smc("combine", combine="sum"),
    "cores zero": smc("cores", cores=0),
    "random_seed": smc(TypeError("random_seed"), random_seed="x"),
    "var_names unknown": smc("var_names", var_names=["nu"]),
    "var_names empty": smc("var_names", var_names=[]),
    "no model": Odd(pmt.sample_tree_smc, TypeError("model")),
    "a sum of trees": smc_of(_sum_of_trees, NotImplementedError("mu_forest")),
    "a soft tree": smc_of(_soft, NotImplementedError("sample_dcc")),
    "another variable": smc_of(_with_sigma, NotImplementedError("'sigma'")),
    "counts": smc_of(_counts, NotImplementedError("integrate")),
    "no tree": smc_of(lambda: pm.Model(), "model"),
}


def drawn(**given):
    """A model and draws of its prior, as a posterior."""
    model = tree_model(**given)
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def check(change, refused=None, model=None):
    """A row about `check_draws` of changed draws."""

    def call():
        own, idata = drawn()
        return pmt.check_draws(change(idata), own if model is None else model())

    return Odd(call, refused, holds=lambda result: result is None)


def _group(idata, change):
    return xr.DataTree.from_dict({"posterior": change(idata["posterior"].to_dataset())})


def _soft_model():
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, Y)
    return model


CHECK_DRAWS = {
    "as they are": check(lambda d: d),
    "None": check(lambda d: None, TypeError("idata")),
    "a path": check(lambda d: "draws.nc", TypeError("idata")),
    "a number": check(lambda d: 3, TypeError("idata")),
    "a Dataset": check(lambda d: d["posterior"].to_dataset(), TypeError("idata")),
    "no posterior": check(lambda d: xr.DataTree(), "idata"),
    "no forest": check(lambda d: _group(d, lambda p: p.drop_vars("mu_forest")), "mu_forest"),
    "one chain picked": check(lambda d: _group(d, lambda p: p.sel(chain=0)), "mu_forest"),
    "one draw picked": check(lambda d: _group(d, lambda p: p.isel(draw=0)), "mu_forest"),
    "stacked": check(lambda d: _group(d, lambda p: p.stack(sample=("chain", "draw"))), "mu_forest"),
    "transposed": check(lambda d: _group(d, lambda p: p.transpose("draw", "chain", ...))),
    "single precision": check(lambda d: _group(d, lambda p: p.astype(np.float32)), "mu_forest"),
    "fields cut": check(
        lambda d: _group(d, lambda p: p.isel(mu_forest_dim_1=slice(1))), "mu_forest"
    ),
    "rows reversed": check(
        lambda d: _group(d, lambda p: p.isel(mu_forest_dim_0=slice(None, None, -1))), "mu_forest"
    ),
    "of other rows": check(lambda d: d, "mu_forest", model=lambda: _other(X[::-1])),
    "of another alpha": check(lambda d: d, model=lambda: tree_model(alpha=0.5)),
    "of other weights": check(
        lambda d: d, "mu_forest", model=lambda: tree_model(split_prior=[1, 2])
    ),
    "of another leaf": check(
        lambda d: d, "mu_forest", model=lambda: _leaf(pmt.DirichletLeaf(1.0, 2))
    ),
    "of a soft tree": check(lambda d: d, "mu_forest", model=_soft_model),
    "no model": Odd(lambda: pmt.check_draws(drawn()[1]), TypeError("model")),
    "no draws": check(lambda d: _group(d, lambda p: p.isel(draw=slice(0))), "mu_forest"),
}


def _other(X):
    with pm.Model() as model:
        pmt.DecisionTree("mu", X, Y, max_nodes=39)
    return model


def _leaf(leaf):
    with pm.Model() as model:
        pmt.DecisionTree("mu", X, leaf=leaf, max_nodes=39)
    return model


def _soft_draws():
    model = _soft_model()
    with model:
        prior = pm.sample_prior_predictive(1, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def plot_soft(refused, change=lambda d: d, **given):
    """A row about `plot_soft_tree`."""

    def call():
        model, idata = _soft_draws()
        return pmt.plot_soft_tree(change(idata), model, **given)

    return Odd(call, refused)


PLOT_SOFT_TREE = {
    "names short": plot_soft("names", names=["a"]),
    "no soft tree": Odd(lambda: pmt.plot_soft_tree(drawn()[1], tree_model()), "model"),
    "no model": Odd(lambda: pmt.plot_soft_tree(_soft_draws()[1]), TypeError("model")),
    "no posterior": plot_soft("posterior", change=lambda d: xr.DataTree()),
    "draw beyond": plot_soft("draw", draw=7),
    "chain beyond": plot_soft("chain", chain=7),
}

PLOT_TOPOLOGIES = {
    "no group": Odd(lambda: pmt.plot_topologies(xr.DataTree()), "'topologies'"),
    "None": Odd(lambda: pmt.plot_topologies(None), "'topologies'"),
    "top zero": Odd(lambda: pmt.plot_topologies(_topologies(), top=0), "top"),
    "top text": Odd(lambda: pmt.plot_topologies(_topologies(), top="all"), "top"),
    "more than there are": Odd(lambda: pmt.plot_topologies(_topologies(), top=99)),
}


def _topologies():
    found = xr.Dataset(
        {"weight": ("topology", [0.9, 0.1]), "log_prior": ("topology", [-1.3, -3.0])},
        coords={"topology": ["SLL", "L"]},
    )
    return xr.DataTree.from_dict({"topologies": found})


def _predictions():
    y = np.random.default_rng(1).normal(size=(2, 50, 3))
    group = xr.Dataset({"y": (("chain", "draw", "row"), y)})
    return xr.DataTree.from_dict({"predictions": group})


def densities(refused, rows=(0,), idata=None, **given):
    """A row about `plot_predictive_densities`."""
    return Odd(
        lambda: pmt.plot_predictive_densities(
            _predictions() if idata is None else idata, rows, **given
        ),
        refused,
    )


PLOT_DENSITIES = {
    "no group": densities("'y'", idata=xr.DataTree()),
    "variable unknown": densities("'z'", var_name="z"),
    "row beyond": densities("rows", rows=[3]),
    "no rows": densities("rows", rows=[]),
    "rows a number": densities("rows", rows=1),
    "one axis for two rows": densities("axes", rows=[0, 1], axes=[None]),
}
