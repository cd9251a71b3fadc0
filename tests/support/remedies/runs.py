"""Remedies of messages about whole runs: shards, sequential Monte Carlo, resuming, room."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

import pymc_trees as pmt
from support.odd import runs as odd
from support.odd import sharded as odd_sharded
from support.odd.table import FRAME, X, Y
from support.remedies.table import bart, remedy, short_dcc

FEW = {"draws": 2, "tune": 2, "chains": 1, "progressbar": False, "random_seed": 1}
FAST = {"compute_convergence_checks": False}


def sharded(**given):
    """A short run in shards of this process, of a model but for what is given."""

    def call():
        return pmt.sample_sharded(odd_sharded.model_of(**given), **FEW) is not None

    return call


def set_to(**given):
    """A short run in shards of this process, with settings."""
    return lambda: pmt.sample_sharded(odd_sharded.model_of(), **FEW | given) is not None


def by_sample(**given):
    """A short run of `pm.sample`, which is what else the messages about shards propose."""

    def call():
        with odd_sharded.model_of(**given):
            return pm.sample(**FEW, **FAST, cores=1, step=pmt.CGM()) is not None

    return call


def _with_sigma(mu):
    pm.Normal("y", mu, pm.HalfNormal("s"), observed=Y)


BART = odd_sharded.bart

SHARDS = [
    remedy(
        "sigma varies between rows: sample_sharded needs one number for all rows. Give one",
        odd_sharded.SHARDED["sigma of rows"],
        sharded(),
        by_sample(y=odd_sharded._by_row),
    ),
    remedy(
        "sample_sharded supports trees with hard splits. Declare a BART",
        odd_sharded.SHARDED["soft trees"],
        sharded(),
    ),
    remedy(
        "supports constant NormalLeaf values without monotone columns. Use these",
        odd_sharded.SHARDED["lines in leaves"],
        sharded(),
    ),
    remedy(
        "supports the prior of alpha and beta. Leave tree_prior out",
        odd_sharded.SHARDED["Mondrian trees"],
        sharded(),
    ),
    remedy(
        "numeric columns only. Encode levels as numbers and impute missing cells",
        odd_sharded.SHARDED["levels"],
        sharded(forest=BART(X=pd.get_dummies(FRAME))),
    ),
    remedy(
        "would have to be sampled too. Give numbers instead",
        odd_sharded.SHARDED["another variable"],
        sharded(y=lambda mu: pm.Normal("y", mu + 1.0, 0.5, observed=Y)),
    ),
    remedy(
        "needs pm.Normal(..., observed=y) around it. For draws of the prior call",
        odd_sharded.SHARDED["nothing observed"],
        sharded(),
        lambda: pm.sample_prior_predictive(
            2, model=odd_sharded.model_of(y=odd_sharded._unobserved)
        ),
    ),
    remedy(
        "supports the function itself plus terms that are data. Scale y instead",
        odd_sharded.SHARDED["a multiple"],
        sharded(y=lambda mu: pm.Normal("y", mu, 0.25, observed=Y / 2)),
    ),
    remedy(
        "give it a prior that covers the spread of y, or an initial value (initval=)",
        sharded(
            y=lambda mu: pm.Normal(
                "y", mu, pm.Uniform("s", 0.1, 1.0, initval=3.0, default_transform=None), observed=Y
            )
        ),
        sharded(
            y=lambda mu: pm.Normal(
                "y", mu, pm.Uniform("s", 0.1, 9.0, initval=3.0, default_transform=None), observed=Y
            )
        ),
        sharded(
            y=lambda mu: pm.Normal(
                "y", mu, pm.Uniform("s", 0.1, 1.0, initval=0.5, default_transform=None), observed=Y
            )
        ),
    ),
    remedy(
        "depends on a pm.Minibatch, which takes other rows at each evaluation",
        lambda: bart(X=pm.Minibatch(X, batch_size=5))(),
        bart(),
        by_sample(),
        sharded(),
    ),
    remedy(
        "or a number of shards in this process, from 1 to the",
        odd_sharded.SHARDED["shards zero"],
        set_to(shards=1),
        set_to(shards=20),
    ),
]


def smc(model, **given):
    """A short run of `sample_tree_smc`."""

    def call():
        with model():
            return pmt.sample_tree_smc(
                **{"particles": 5, "islands": 1, "cores": 1, "random_seed": 1, "progressbar": False}
                | given
            )

    return call


def _one_tree(**given):
    return lambda: odd.tree_model(**given)


def _summed():
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 0.5, observed=Y)
    return model


def _sum_by_particles():
    with _summed():
        return (
            pm.sample(**FEW, **FAST, cores=1, step=pmt.ParticleGibbs(num_particles=3)) is not None
        )


def _narrow(max_nodes, alpha=0.99, beta=0.0):
    def model():
        with pm.Model() as made:
            p = pmt.DecisionTree(
                "p", X, leaf=pmt.DirichletLeaf(1.0, 2), max_nodes=max_nodes, alpha=alpha, beta=beta
            )
            pm.Categorical("y", p=p, observed=(Y > 2).astype(int))
        return made

    return model


def _soft_dcc():
    with odd._soft_model() as model:
        pm.Normal("y", model["mu"], 0.5, observed=Y)
        return short_dcc()


SMC = [
    remedy(
        "sample_tree_smc grows trees with hard splits; for a … use …",
        odd.SMC["a soft tree"],
        _soft_dcc,
        full=True,
    ),
    remedy(
        "but sample_tree_smc grows one: declare a DecisionTree, or sample the sum by pm.sample()",
        odd.SMC["a sum of trees"],
        smc(_one_tree()),
        _sum_by_particles,
        full=True,
    ),
    remedy(
        "Observe them or give numbers instead (compare candidate numbers by the",
        odd.SMC["another variable"],
        smc(_one_tree()),
        lambda: "log_marginal_likelihood" in str(smc(_one_tree())()),
        full=True,
    ),
    remedy(
        "outgrew max_nodes=…. Declare it with a larger one, for example max_nodes=",
        smc(_narrow(3), particles=100),
        smc(_narrow(39), particles=100),
        full=True,
    ),
    remedy(
        "Give a larger max_stages (with expansion='node' a tree takes a stage for each of its",
        smc(_one_tree(), particles=20, max_stages=1),
        smc(_one_tree(), particles=20, max_stages=100),
        smc(_one_tree(), particles=20, max_stages=20, expansion="layer"),
        full=True,
    ),
]


def chains(**given):
    """A short run of `sample_chains`."""

    def call():
        with odd.tree_model():
            return (
                pmt.sample_chains(
                    **{
                        "chains": 1,
                        "draws": 2,
                        "tune": 2,
                        "cores": 1,
                        "progressbar": False,
                        "random_seed": 1,
                    }
                    | given
                )
                is not None
            )

    return call


def _with_checkpoint():
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.nc"
        chains(checkpoint=file, every=1)()
        return file.exists()


def _model(rows=X, n_trees=2, **given):
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", rows), Y, m=n_trees, max_nodes=80, **given)
        pm.Normal("y", mu + pm.Data("offset", np.zeros(20)), 0.5, observed=Y, shape=mu.shape)
    return model


def resumed(change, step=pmt.CGM, draws=2, **given):
    """A run of one step, and one that goes on after a change of its model."""

    def call():
        model = _model()
        with model:
            idata = pm.sample(**FEW, **FAST, cores=1, step=pmt.CGM())
        model = change(model) or model
        with model:
            return (
                pmt.resume(idata, draws=draws, cores=1, progressbar=False, step=step(), **given)
                is not None
            )

    return call


def until(**given):
    """A run that ends when it has reached next to nothing."""

    def call():
        with odd.tree_model() as model:
            pm.Deterministic("double", 2.0 * model["mu"])
            short = {"draws": 6, "tune": 2, "chains": 2, "cores": 1, "progressbar": False}
            return pmt.sample_until(**{"r_hat": 99.0, "ess": 0.1, **short, **given}) is not None

    return call


def _with_step(kind):
    """A short run with a step of the user's choice for a number beside the trees."""

    def call():
        with pm.Model():
            b = pm.Normal("b")
            mu = pmt.BART("mu", X, Y, m=2, max_nodes=80)
            pm.Normal("y", mu + b, 0.5, observed=Y, shape=mu.shape)
            given = FEW | {"cores": 1, "step": [pmt.CGM(), kind([b])]}
            return pmt.sample_chains(**given) is not None

    return call


def _until_of_a_file(name="there.nc", removed=False, empty=True):
    """A run whose checkpoint may be a file of no run, or of one of another model."""

    def call():
        with TemporaryDirectory() as folder:
            there = Path(folder) / "there.nc"
            if empty:
                xr.DataTree().to_netcdf(there, engine="h5netcdf")
            else:
                with pm.Model():
                    mu = pmt.DecisionTree("mu", odd.X, odd.Y, max_nodes=39)
                    pm.Normal("y", mu, 0.5, observed=odd.Y + 1.0, shape=mu.shape)
                    short = {"draws": 6, "tune": 2, "chains": 2, "cores": 1, "progressbar": False}
                    pmt.sample_until(r_hat=99.0, ess=0.1, checkpoint=there, **short)
            if removed:
                there.unlink()
            return until(checkpoint=Path(folder) / name)()

    return call


def updated(build=None, change=None, **given):
    """A run whose chains start from draws of `_model`, which may be changed."""

    def call():
        idata = odd.fit_of(_model())
        if change is not None:
            idata["posterior"]["mu_forest"] = change(idata["posterior"]["mu_forest"])
        short = {"draws": 1, "tune": 0, "cores": 1, "progressbar": False, **FAST}
        model = _model() if build is None else build()
        return pmt.update(idata, model, **{**short, "step": pmt.CGM(model=model), **given})

    return call


def _set(model):
    model["offset"].set_value(np.ones(20))


def _set_back(model):
    _set(model)
    model["offset"].set_value(np.zeros(20))


def _sampled_anew():
    with _model(X[::-1].copy()):
        return pm.sample(**FEW, **FAST, cores=1, step=pmt.CGM()) is not None


def _same(model):
    return None


RUNS = [
    remedy(
        "cores=…: give the number of chains to run at once, or -1 for all cores",
        odd.CHAINS["cores zero"],
        chains(cores=1),
        chains(cores=-1),
    ),
    remedy("leave it out, or call pm.sample", odd.CHAINS["a trace"], chains(), lambda: _by_pymc()),
    remedy(
        "needs a checkpoint: give the name of a file as checkpoint=",
        odd.CHAINS["every alone"],
        _with_checkpoint,
    ),
    remedy(
        "give seconds, or a text such as '90s', '20min', '2h'",
        odd.UNTIL["max_time soon"],
        until(max_time="90s"),
        until(max_time=90),
    ),
    remedy("of=…: choose from", odd.UNTIL["of unknown"], until(of=["mu"])),
    remedy(
        "Leave it out of of=, or name it in var_names",
        until(of=["mu", "double"], var_names=["mu_forest"]),
        until(of=["mu"], var_names=["mu_forest"]),
        until(of=["mu", "double"], var_names=["mu_forest", "double"]),
    ),
    remedy(
        "holds no states from which chains go on: give another name, or remove the file",
        _until_of_a_file(),
        _until_of_a_file(name="other.nc"),
        _until_of_a_file(removed=True),
    ),
    remedy(
        "holds chains of another model, or of other data: give another name, or remove the file",
        _until_of_a_file(empty=False),
        _until_of_a_file(empty=False, name="other.nc"),
        _until_of_a_file(empty=False, removed=True),
    ),
    remedy("resume takes no …=, which …: leave it out", odd.RESUME["a seed"], resumed(_same)),
    remedy(
        "Give resume the step= and other options of the first run",
        resumed(_same, step=pmt.Hybrid),
        resumed(_same),
    ),
    remedy(
        "Set the data back with pm.set_data, or sample the new model from the beginning",
        resumed(_set),
        resumed(_set_back),
        _sampled_anew,
    ),
    remedy(
        "Rebuild the model with its original settings, or sample the new one from the beginning",
        resumed(lambda model: _model(leaf=pmt.NormalLeaf(0.0, 9.0), n_cuts=3)),
        resumed(lambda model: _model()),
        _sampled_anew,
    ),
    remedy(
        "draws each chain by itself, and pm.DEMetropolis needs all of",
        _with_step(pm.DEMetropolis),
        _with_step(pm.DEMetropolisZ),
    ),
    remedy(
        "could not be judged. Add them, or leave var_names out.",
        until(of=["double"], var_names=["mu"]),
        until(of=["double"], var_names=["mu", "double"]),
        until(of=["double"]),
    ),
    remedy(
        "Give the whole result of pm.sample or sample_chains, or a file of it",
        odd.UPDATE["no forests"],
        updated(),
    ),
    remedy("update takes no …=, which …: leave it out", odd.UPDATE["chains"], updated()),
    remedy(
        "start=…: give the number of a draw, such as -1", odd.UPDATE["start fraction"], updated()
    ),
    remedy("start=…: choose from the draws", odd.UPDATE["start beyond"], updated(start=1)),
    remedy(
        "Declare the new model like that of the draws, or sample it from the beginning",
        updated(lambda: _model(n_trees=3)),
        updated(),
        _sampled_anew,
    ),
    remedy(
        "update takes forests of BART, DecisionTree and SoftBART. Sample the model",
        odd.UPDATE["a soft tree"],
        lambda: pm.sample(**FEW, **FAST, cores=1, model=odd._soft()) is not None,
        full=True,
    ),
    remedy(
        "or joined from the draws of another model. Give the unchanged draws",
        updated(change=lambda values: values.round(1)),
        updated(),
    ),
    remedy(
        "var_names=…: choose from",
        odd.SMC["var_names unknown"],
        smc(_one_tree(), var_names=["mu"]),
        smc(_one_tree(), var_names=["mu_forest"]),
        full=True,
    ),
]


def _by_pymc():
    with odd.tree_model():
        return pm.sample(**FEW, **FAST, cores=1, step=pmt.CGM(), trace=None) is not None


def _outgrown(step, front_end, max_nodes, **given):
    def call():
        with pm.Model():
            mu = front_end("mu", X, Y, max_nodes=max_nodes, **given)
            pm.Normal("y", mu, 0.05, observed=Y)
            return pm.sample(**FEW | {"tune": 60}, **FAST, cores=1, step=step()) is not None

    return call


ROOM = [
    remedy(
        "outgrew max_nodes=…. Declare it with a larger one, for example max_nodes=",
        _outgrown(pmt.CGM, pmt.BART, 4, m=3, alpha=0.99, beta=0.0),
        _outgrown(pmt.CGM, pmt.BART, 117, m=3, alpha=0.99, beta=0.0),
        full=True,
    ),
    remedy(
        "outgrew max_nodes=…. Declare it with a larger one, for example max_nodes=",
        _outgrown(pmt.SoftCGM, pmt.SoftBART, 3, m=2, alpha=0.99, beta=0.0),
        _outgrown(pmt.SoftCGM, pmt.SoftBART, 117, m=2, alpha=0.99, beta=0.0),
        full=True,
    ),
]
