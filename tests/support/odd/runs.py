"""Odd inputs of whole runs, `save`, `check_draws` and the plots."""

import numpy as np
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from support.odd.table import Odd, X, Y


def tree_model(**given):
    """A tree whose leaf values integrate out."""
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, Y, max_nodes=39, **given)
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
    return model


def smc(said, **given):
    """A row about a setting of `sample_tree_smc`."""

    def call():
        with tree_model():
            return pmt.sample_tree_smc(**{"particles": 5, "progressbar": False, **given})

    return Odd(call, said)


def smc_of(model, said):
    """A row about a model that it refuses."""

    def call():
        with model():
            return pmt.sample_tree_smc(5, islands=1, cores=1, progressbar=False)

    return Odd(call, said)


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


def chains(said, **given):
    """A row about a setting of `sample_chains`."""

    def call():
        with tree_model():
            return pmt.sample_chains(**{"draws": 2, "tune": 2, "progressbar": False, **given})

    return Odd(call, said)


CHAINS = {
    "chains zero": chains(r"chains=0.*at least 1", chains=0),
    "chains None": chains(r"chains=None", chains=None),
    "draws zero": chains(r"draws", draws=0),
    "cores zero": chains(r"cores=0.*-1 for all", cores=0),
    "cores text": chains(r"cores='2'", cores="2"),
    "random_seed": chains(r"seed", random_seed="x", cores=1),
    "a trace": chains(r"takes no trace=.*pm.sample", trace="store"),
    "a callback": chains(r"takes no callback=", callback=print),
    "an unknown word": chains(r"chain= is not an argument", chain=3),
    "every alone": chains(r"every=5.*as checkpoint=", every=5),
    "every zero": chains(r"every=0.*at least 1", checkpoint="a.nc", every=0),
    "every fraction": chains(r"every=0.5.*whole", checkpoint="a.nc", every=0.5),
    "checkpoint a number": chains(r"checkpoint=3: give the name of a file", checkpoint=3),
    "checkpoint nowhere": chains(
        r"checkpoint=.*folder 'nowhere' does not exist", checkpoint="nowhere/a.nc"
    ),
    "checkpoint a folder": chains(r"checkpoint='tests' is a folder", checkpoint="tests"),
    "no model": Odd(pmt.sample_chains, r"[Mm]odel"),
}


def goes_on(said, **given):
    """A row about what `resume` is given."""

    def call():
        with tree_model():
            return pmt.resume(**{"idata": DRAWS, "draws": 2, "progressbar": False, **given})

    return Odd(call, said)


DRAWS = xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": ("draw", [0.0])})})
STATES = xr.DataTree.from_dict({"sampling_state/chain_0": xr.Dataset()})
OBJECTS = xr.DataTree.from_dict({"sample_stats": xr.Dataset({"warning": ("draw", [None])})})


def saved(idata, path, said):
    """A row about what `save` is given."""
    return Odd(lambda: pmt.save(idata, path), said)


RESUME = {
    "idata None": goes_on(r"idata: the states of the step methods are missing", idata=None),
    "no states": goes_on(r"idata: the states of the step methods are missing"),
    "draws zero": goes_on(r"draws=0.*at least 1", draws=0),
    "cores zero": goes_on(r"cores=0.*-1 for all", cores=0),
    "chains": goes_on(r"takes no chains=, which are those of the draws", chains=2),
    "a seed": goes_on(r"takes no random_seed=", random_seed=1),
    "a trace": goes_on(r"resume takes no trace=.*pm.sample", trace="store"),
    "an unknown word": goes_on(r"chain= is not an argument", chain=3),
    "every alone": goes_on(r"every=5.*as checkpoint=", idata=STATES, every=5),
    "checkpoint nowhere": goes_on(
        r"checkpoint=.*folder 'nowhere' does not exist", idata=STATES, checkpoint="nowhere/a.nc"
    ),
    "no model": Odd(lambda: pmt.resume(DRAWS), r"[Mm]odel"),
}

SAVE = {
    "idata None": saved(None, "a.nc", r"idata: NoneType is not a DataTree"),
    "a group": saved(DRAWS["posterior"].to_dataset(), "a.nc", r"Dataset is not a DataTree"),
    "objects": saved(OBJECTS, "a.nc", r"'warning' of group '/sample_stats' holds Python objects"),
    "no folder": saved(DRAWS, "nowhere/a.nc", r"the folder 'nowhere' does not exist"),
    "a folder": saved(DRAWS, "tests", r"'tests' is a folder"),
    "path None": saved(DRAWS, None, r"path=None: give the name"),
}

SMC = {
    "particles zero": smc(r"particles=0.*at least 1", particles=0),
    "particles fraction": smc(r"particles=2.5.*whole", particles=2.5),
    "particles None": smc(r"particles=None", particles=None),
    "particles bool": smc(r"particles=True", particles=True),
    "islands zero": smc(r"islands=0.*at least 1", islands=0),
    "islands text": smc(r"islands='4'", islands="4"),
    "proposal": smc(r"proposal='best'.*'optimal'", proposal="best"),
    "expansion": smc(r"expansion='all'.*'layer'", expansion="all"),
    "resampling": smc(r"resampling=None.*'residual'", resampling=None),
    "ess_threshold large": smc(r"ess_threshold=1.1.*0 to 1", ess_threshold=1.1),
    "ess_threshold NaN": smc(r"ess_threshold=nan", ess_threshold=np.nan),
    "max_stages zero": smc(r"max_stages=0", max_stages=0),
    "max_stages None": smc(r"max_stages=None", max_stages=None),
    "combine": smc(r"combine='sum'.*'average'", combine="sum"),
    "cores zero": smc(r"cores=0", cores=0),
    "random_seed": smc(r"random_seed|seed", random_seed="x"),
    "var_names unknown": smc(r"var_names=.*mu_forest", var_names=["nu"]),
    "var_names empty": smc(r"var_names=\[\]", var_names=[]),
    "no model": Odd(pmt.sample_tree_smc, r"[Mm]odel"),
    "a sum of trees": smc_of(_sum_of_trees, r"mu_forest is a sum.*DecisionTree"),
    "a soft tree": smc_of(_soft, r"SoftDecisionTree.*sample_dcc"),
    "another variable": smc_of(_with_sigma, r"'sigma'.*Observe"),
    "counts": smc_of(_counts, r"integrate out.*pm.sample"),
    "no tree": smc_of(lambda: pm.Model(), r"one DecisionTree.*has 0"),
}


def drawn(**given):
    """A model and draws of its prior, as a posterior."""
    model = tree_model(**given)
    with model:
        prior = pm.sample_prior_predictive(3, random_seed=1)
    return model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


def check(change, said=None, model=None):
    """A row about `check_draws` of changed draws."""

    def call():
        own, idata = drawn()
        return pmt.check_draws(change(idata), own if model is None else model())

    return Odd(call, said, holds=lambda result: result is None)


def _group(idata, change):
    return xr.DataTree.from_dict({"posterior": change(idata["posterior"].to_dataset())})


def _soft_model():
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, Y)
    return model


CHECK_DRAWS = {
    "as they are": check(lambda d: d),
    "None": check(lambda d: None, r"idata must be"),
    "a path": check(lambda d: "draws.nc", r"idata must be"),
    "a number": check(lambda d: 3, r"idata must be"),
    "a Dataset": check(lambda d: d["posterior"].to_dataset(), r"idata must be"),
    "no posterior": check(lambda d: xr.DataTree(), r"no posterior"),
    "no forest": check(
        lambda d: _group(d, lambda p: p.drop_vars("mu_forest")), r"lacks mu_forest.*var_names"
    ),
    "one chain picked": check(
        lambda d: _group(d, lambda p: p.sel(chain=0)), r"mu_forest.*(sel\(chain|\[)"
    ),
    "one draw picked": check(
        lambda d: _group(d, lambda p: p.isel(draw=0)), r"mu_forest.*(isel|sel|\[)"
    ),
    "stacked": check(
        lambda d: _group(d, lambda p: p.stack(sample=("chain", "draw"))), r"mu_forest"
    ),
    "transposed": check(lambda d: _group(d, lambda p: p.transpose("draw", "chain", ...))),
    "single precision": check(
        lambda d: _group(d, lambda p: p.astype(np.float32)), r"mu_forest.*float32"
    ),
    "fields cut": check(
        lambda d: _group(d, lambda p: p.isel(mu_forest_dim_1=slice(1))), r"mu_forest has shape"
    ),
    "rows reversed": check(
        lambda d: _group(d, lambda p: p.isel(mu_forest_dim_0=slice(None, None, -1))), r"mu_forest"
    ),
    "of other rows": check(lambda d: d, r"mu_forest", model=lambda: _other(X[::-1])),
    "of another alpha": check(lambda d: d, model=lambda: tree_model(alpha=0.5)),
    "of other weights": check(
        lambda d: d, r"mu_forest.*split", model=lambda: tree_model(split_prior=[1, 2])
    ),
    "of another leaf": check(
        lambda d: d, r"mu_forest", model=lambda: _leaf(pmt.DirichletLeaf(1.0, 2))
    ),
    "of a soft tree": check(lambda d: d, r"mu_forest", model=_soft_model),
    "no model": Odd(lambda: pmt.check_draws(drawn()[1]), r"[Mm]odel"),
    "no draws": check(
        lambda d: _group(d, lambda p: p.isel(draw=slice(0))), r"mu_forest has no draws"
    ),
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


def plot_soft(said, change=lambda d: d, **given):
    """A row about `plot_soft_tree`."""

    def call():
        model, idata = _soft_draws()
        return pmt.plot_soft_tree(change(idata), model, **given)

    return Odd(call, said)


PLOT_SOFT_TREE = {
    "names short": plot_soft(r"names.*2", names=["a"]),
    "no soft tree": Odd(
        lambda: pmt.plot_soft_tree(drawn()[1], tree_model()), r"no SoftDecisionTree"
    ),
    "no model": Odd(lambda: pmt.plot_soft_tree(_soft_draws()[1]), r"[Mm]odel"),
    "no posterior": plot_soft(r"posterior", change=lambda d: xr.DataTree()),
    "draw beyond": plot_soft(r"draw=7", draw=7),
    "chain beyond": plot_soft(r"chain=7", chain=7),
}

PLOT_TOPOLOGIES = {
    "no group": Odd(lambda: pmt.plot_topologies(xr.DataTree()), r"no group 'topologies'"),
    "None": Odd(lambda: pmt.plot_topologies(None), r"no group 'topologies'"),
    "top zero": Odd(lambda: pmt.plot_topologies(_topologies(), top=0), r"top=0"),
    "top text": Odd(lambda: pmt.plot_topologies(_topologies(), top="all"), r"top='all'"),
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


def densities(said, rows=(0,), idata=None, **given):
    """A row about `plot_predictive_densities`."""
    return Odd(
        lambda: pmt.plot_predictive_densities(
            _predictions() if idata is None else idata, rows, **given
        ),
        said,
    )


PLOT_DENSITIES = {
    "no group": densities(r"'y'.*predictions.*sample_posterior_predictive", idata=xr.DataTree()),
    "variable unknown": densities(r"'z'.*predictions", var_name="z"),
    "row beyond": densities(r"rows=.*3 rows", rows=[3]),
    "no rows": densities(r"rows=\[\].*at least one", rows=[]),
    "rows a number": densities(r"rows=1", rows=1),
    "one axis for two rows": densities(r"axes", rows=[0, 1], axes=[None]),
}
