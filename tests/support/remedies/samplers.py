"""Remedies of messages about step methods, and about other samplers than ours."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from support.odd import soft as odd_soft
from support.odd import soft_sums as odd_sums
from support.odd import steps as odd
from support.odd.table import LEAF, X, Y
from support.remedies.likelihoods import counted, normal, observed, stepped
from support.remedies.table import remedy, short_dcc

QUICK = {"draws": 2, "tune": 2, "chains": 1, "cores": 1, "random_seed": 1}
FAST = {"progressbar": False, "compute_convergence_checks": False}


def sampled(declare, **given):
    """What declares a model and samples it for a moment."""

    def call():
        with pm.Model() as model:
            declare()
            given_now = {k: v(model) if callable(v) else v for k, v in given.items()}
            idata = pm.sample(**QUICK | FAST | given_now)
        return bool(np.isfinite(idata["sample_stats"].to_dataset().to_array(name="s")).shape)

    return call


def _small():
    weights = pm.Dirichlet("weights", np.ones(2))
    mu = pmt.BART("mu", X, Y, m=2, max_nodes=80, split_prior=weights)
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=Y, shape=mu.shape)


def _assigned(declare):
    """The steps that `pm.sample` assigns."""

    def call():
        with pm.Model() as model:
            declare()
            return pm.sampling.mcmc.assign_step_methods(model)[0] is not None

    return call


def _between(low, high):
    def limits(z):
        pm.Potential("limits", pt.switch((z[:, 1] > low) & (z[:, 1] < high), 0.0, -np.inf))

    return limits


def _latents(cov=lambda: None, **given):
    """Latent entries, drawn once."""

    def call():
        with pm.Model() as model:
            odd.pairs(cov(), **given)
            return pmt.LatentNormals().step(model.initial_point()) is not None

    return call


def on_small(make):
    """What is made in the small model."""
    return odd.on_model(make).call


def _tempered(**given):
    def declare():
        mu = pmt.BART("mu", X, Y, **{"m": 2, **given})
        pm.Normal("y", mu, 0.5, observed=Y, shape=mu.shape)
        return mu

    return declare


def _two_values():
    mu = pmt.BART("mu", X, m=2, leaf=pmt.BasisLeaf(X))
    pm.Normal("y", mu if mu.ndim == 1 else (mu * X).sum(axis=-1), 0.5, observed=Y)


def _hidden_classes():
    p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(1.0, 2))
    pm.Normal("y", pm.Categorical("z", p=p), 1.0, observed=Y)


def _tempering(step=pmt.CGM, **given):
    return lambda model: pmt.Tempering(step(**given), 3)


STEP_METHODS = [
    remedy(
        "The model has no forest: declare one with",
        odd.no_forest(pmt.CGM, ""),
        stepped(observed(normal), pmt.CGM),
    ),
    remedy(
        "is neither a forest nor the function of one forest. Pass the variables returned by",
        odd.CGM["vars a name"],
        on_small(lambda m: pmt.CGM([m["mu"]])),
        on_small(lambda m: pmt.CGM(["mu_forest"])),
    ),
    remedy(
        "is a …: leave it to pm.sample(), which assigns its step",
        lambda: odd_soft.on_soft(lambda: pmt.CGM(["mu"]), "").call(),
        _assigned(lambda: normal(pmt.SoftDecisionTree("mu", X, Y))),
    ),
    remedy(
        "are soft trees, which pymc_trees.SoftCGM samples: leave them to pm.sample()",
        stepped(observed(normal, pmt.SoftBART, m=2), pmt.CGM),
        _assigned(observed(normal, pmt.SoftBART, m=2)),
        stepped(observed(normal, pmt.SoftBART, m=2), pmt.SoftCGM),
    ),
    remedy(
        "are trees with hard splits, which pymc_trees.CGM and Hybrid sample: leave them to",
        odd_sums.SOFT_CGM["hard trees"],
        _assigned(observed(normal)),
        stepped(observed(normal), pmt.CGM),
        stepped(observed(normal), pmt.Hybrid),
    ),
    remedy(
        "is not part of the sigma or tau of observed pm.Normal variables around forests alone",
        odd.NOISE_SCALE["vars of another kind"],
        _assigned(_small),
    ),
    remedy(
        "is not latent entries of pm.MvNormal rows around forests, on which nothing but limits",
        odd.LATENT_NORMALS["vars of another kind"],
        _assigned(_small),
    ),
    remedy(
        "have no room between their limits at this point: make lower limits smaller",
        _latents(limits=_between(1.0, -1.0)),
        _latents(limits=_between(-1.0, 1.0)),
    ),
    remedy(
        "must be finite, and its covariance positive definite, but at this point they are not",
        _latents(cov=lambda: np.eye(2) * pm.Normal("s", initval=-1.0)),
        _latents(cov=lambda: np.eye(2) * pm.HalfNormal("s")),
    ),
    remedy(
        "split_prior of BART, DecisionTree or SoftBART and nowhere else. Leave it to pm.sample()",
        odd.SPLIT_WEIGHTS["vars of another kind"],
        _assigned(_small),
    ),
    remedy(
        "moves=…: grow and prune need positive weights",
        on_small(lambda m: pmt.CGM(moves={"grow": 1.0})),
        on_small(lambda m: pmt.CGM(moves={"grow": 1.0, "prune": 1.0})),
    ),
    remedy(
        "moves: … are not moves; choose from",
        on_small(lambda m: pmt.CGM(moves={"jump": 1.0})),
        on_small(
            lambda m: pmt.CGM(
                moves={"grow": 0.3, "prune": 0.3, "change": 0.2, "swap": 0.1, "restructure": 0.1}
            )
        ),
    ),
    remedy(
        "grow, prune and bandwidth need positive weights",
        odd_sums.SOFT_CGM["moves without bandwidth"],
        odd_sums.moves(odd_sums.BOTH).call,
    ),
    remedy(
        "step is the class …: pass an instance, such as pymc_trees",
        odd.TEMPERING["step a class"],
        stepped(_tempered(), lambda m: pmt.Tempering(pmt.CGM([m["mu"]]))),
    ),
    remedy(
        "Pass Hybrid(temperatures=1), or leave out Tempering",
        stepped(_tempered(), lambda m: pmt.Tempering(pmt.Hybrid(temperatures=3))),
        stepped(_tempered(), lambda m: pmt.Tempering(pmt.Hybrid(temperatures=1))),
        stepped(_tempered(), lambda m: pmt.Hybrid(temperatures=3)),
    ),
    remedy(
        "do not integrate out of its likelihood, so that there are no flatter posteriors to sample",
        stepped(observed(counted), _tempering()),
        stepped(observed(counted), pmt.CGM),
    ),
    remedy(
        "Give its leaf and tree prior numbers, or use the step without Tempering",
        odd.TEMPERING["a prior that is drawn"],
        stepped(_tempered(), _tempering()),
        on_small(lambda m: pmt.CGM()),
    ),
    remedy(
        "so that flatter posteriors would change with it. Use the step without Tempering",
        stepped(_hidden_classes, _tempering()),
        stepped(_hidden_classes, pmt.CGM),
    ),
    remedy(
        "the leaves of … have several values each, for which flatter posteriors are not available",
        stepped(_two_values, _tempering()),
        stepped(_two_values, pmt.CGM),
    ),
    remedy(
        "sampler: leave nuts_sampler out, so that PyMC's NUTS samples the other",
        odd.FOREIGN["nutpie"],
        sampled(_small),
    ),
    remedy(
        "works on vectors and cannot sample …. Name the other variables",
        odd.FOREIGN["Metropolis"],
        sampled(_small, step=lambda m: [pm.Metropolis([m["sigma"]])]),
    ),
    remedy(
        "Sampling needs the training inputs: set the data back with pm.set_data, or declare",
        odd.FOREIGN["data set after the step"],
        lambda: _set_back(),
        lambda: _anew(),
    ),
    remedy(
        "Leave it out of initvals, or give a draw from the same model",
        lambda: _from_a_point("zeros"),
        lambda: _initial(None),
        lambda: _initial("drawn"),
        lambda: _from_a_point("drawn"),
    ),
    remedy(
        "has no gradient with respect to its trees. Sample them with pymc_trees.Hybrid or",
        odd.FOREIGN["fit"],
        stepped(_small, pmt.Hybrid),
        stepped(_small, pmt.CGM),
        _assigned(_small),
    ),
    remedy(
        "Sample them with pymc_trees.SoftCGM (pm.sample() assigns it automatically)",
        lambda: _fitted(lambda: normal(pmt.SoftBART("mu", X, Y, m=2, max_nodes=80))),
        _assigned(lambda: normal(pmt.SoftBART("mu", X, Y, m=2))),
    ),
    remedy(
        "Sample the model with pm.sample(), which assigns pymc_trees.DCCTree or RJHMC",
        lambda: _fitted(lambda: normal(pmt.SoftDecisionTree("mu", X, Y))),
        _assigned(lambda: normal(pmt.SoftDecisionTree("mu", X, Y))),
        _assigned(lambda: normal(pmt.SoftDecisionTree("mu", X, Y, direction="index"))),
    ),
    remedy(
        "A soft tree has no batch dimensions: declare one per model",
        lambda: _soft_batch((2,)),
        lambda: _soft_batch(),
    ),
    remedy(
        "give an initial value (initvals) inside the prior, and remove rows that hold NaN",
        lambda: _noise(-1.0),
        lambda: _noise(1.0),
    ),
]


def _fitted(declare):
    with pm.Model():
        declare()
        return pm.fit(2, progressbar=False)


def _soft_batch(size=None):
    with pm.Model() as model:
        pmt.SoftDecisionTree("mu", X, Y)
    node = model["mu_forest"].owner
    given = [v.eval() for v in node.inputs[2:]]
    return node.op.rng_fn(np.random.default_rng(1), *given, size) is not None


def _noise(value):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=2, max_nodes=80)
        sigma = pm.TruncatedNormal("sigma", 1.0, 1.0, lower=0.0, default_transform=None)
        pm.Normal("y", mu, sigma, observed=Y, shape=mu.shape)
        step = pmt.NoiseScale()
        step.setup_chain(np.random.default_rng(1), 1, 1)
        step.step(model.initial_point() | {"sigma": np.array(value)})
        return True


def _on_data(change):
    with pm.Model() as model:
        mu = pmt.BART("mu", pm.Data("X", X), Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
        step = pmt.CGM()
        pm.set_data({"X": X[::-1]})
        change(model)
        return pm.sample(step=step, **QUICK, **FAST) is not None


def _set_back():
    return _on_data(lambda model: pm.set_data({"X": X}))


def _anew():
    with pm.Model():
        mu = pmt.BART("mu", pm.Data("X", X[::-1]), Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
        return pm.sample(step=pmt.CGM(), **QUICK, **FAST) is not None


def _initial(value):
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
        if isinstance(value, str):
            drawn = pm.draw(model["mu_forest"], random_seed=1)
            value = drawn if value == "drawn" else np.zeros_like(drawn)
        given = {} if value is None else {"initvals": {"mu_forest": value}}
        return pm.sample(step=pmt.CGM(), **QUICK, **FAST, **given) is not None


def _from_a_point(value):
    """A step from a point with such trees; PyMC's own way there, initvals, is checked before."""
    with pm.Model() as model:
        mu = pmt.BART("mu", X, Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 1.0, observed=Y)
        drawn = pm.draw(model["mu_forest"], random_seed=1)
        step = pmt.CGM()
    step.setup_chain(np.random.default_rng(1), 2, 2)
    point = model.initial_point()
    point["mu_forest"] = drawn if value == "drawn" else np.zeros_like(drawn)
    return step.step(point) is not None


def _soft(**given):
    return pmt.SoftDecisionTree("mu", X, **{"leaf": LEAF, **given})


def _with(more, **given):
    def declare():
        mu = _soft(**given)
        normal(mu)
        more(mu)

    return declare


def _discrete(mu):
    pm.Poisson("count", 3)


def _latent(mu):
    pm.Normal("z", mu.sum())


def _no_density(look=False):
    with pm.Model() as model:
        normal(_soft())
        pm.Potential("nowhere", pt.constant(-np.inf))
        if look:
            return model.point_logps()["nowhere"] == -np.inf
        return pmt.sample_dcc(2, 5, chains=2, tune=20, cores=1, progressbar=False, random_seed=1)


SOFT_STEPS = [
    remedy(
        "log-probability: look for the term that is -inf, by model.point_logps()",
        lambda: _no_density(),
        lambda: _no_density(look=True),
        full=True,
    ),
    remedy(
        "sample it with pymc_trees.RJHMC, which pm.sample() assigns, or declare it with",
        stepped(_with(lambda mu: None, direction="index"), pmt.DCCTree),
        stepped(_with(lambda mu: None, direction="index"), pmt.RJHMC),
        stepped(_with(lambda mu: None, direction="dirichlet"), pmt.DCCTree),
    ),
    remedy(
        "are discrete, or forests: leave them out or marginalise them",
        stepped(_with(_discrete), pmt.DCCTree),
        stepped(_with(lambda mu: None), pmt.DCCTree),
        stepped(_with(_discrete), lambda m: [pmt.RJHMC()]),
    ),
    remedy(
        "Marginalise them, observe them, or sample with step=[pymc_trees.RJHMC()]",
        stepped(_with(_latent), pmt.DCCTree),
        stepped(_with(lambda mu: pm.Normal("z", mu.sum(), observed=1.0)), pmt.DCCTree),
        stepped(_with(_latent), lambda m: [pmt.RJHMC()]),
    ),
    remedy(
        "this one has none: declare one, or leave the step to pm.sample()",
        odd_soft.DCC_TREE["no soft tree"],
        stepped(_with(lambda mu: None), pmt.DCCTree),
        _assigned(observed(normal)),
    ),
    remedy(
        "RJHMC moves the tree of a model with one SoftDecisionTree, but … are trees too: leave",
        stepped(_with(lambda mu: pmt.BART("nu", X, Y, m=2)), pmt.RJHMC),
        stepped(_with(lambda mu: None), pmt.RJHMC),
    ),
    remedy(
        "let it move … too, or give them a step of their own, for example step=",
        stepped(lambda: _two_variables(), lambda m: pmt.RJHMC([m["sigma"]])),
        stepped(lambda: _two_variables(), lambda m: pmt.RJHMC([m["sigma"], m["mu_forest"]])),
        stepped(lambda: _two_variables(), lambda m: [pmt.RJHMC([m["mu"]]), pm.NUTS([m["sigma"]])]),
    ),
    remedy(
        "but … are discrete: leave them to another step",
        stepped(_with(_discrete), lambda m: pmt.RJHMC(["mu", "count"])),
        stepped(_with(_discrete), lambda m: [pmt.RJHMC(["mu"]), pm.Metropolis([m["count"]])]),
    ),
    remedy(
        "another posterior: declare it with the other direction, or leave variant out",
        odd_soft.RJHMC["variant of other trees"],
        stepped(_with(lambda mu: None, direction="index"), lambda m: pmt.RJHMC(variant="DF")),
        stepped(_with(lambda mu: None), pmt.RJHMC),
    ),
    remedy(
        "has another step: give the other variables one too, for example",
        stepped(lambda: _two_variables(), lambda m: pmt.DCCTree([m.rvs_to_values[m["sigma"]]])),
        stepped(lambda: _two_variables(), lambda m: [pmt.RJHMC([m["mu"]]), pm.NUTS([m["sigma"]])]),
        stepped(lambda: _two_variables(), lambda m: pmt.RJHMC()),
    ),
    remedy(
        "samples all free variables of the model jointly, but … have another step: leave them to",
        stepped(lambda: _two_variables(), lambda m: pmt.DCCTree([m.rvs_to_values[m["mu_forest"]]])),
        stepped(lambda: _two_variables(), pmt.DCCTree),
    ),
    remedy(
        "DCCTree finds and weights topologies during tuning; give pm.sample tune=100 or more",
        lambda: _tuned(0),
        lambda: _tuned(100),
    ),
    remedy(
        "replace pm.Flat or pm.HalfFlat by a proper prior",
        lambda: _dcc(pm.HalfFlat),
        lambda: _dcc(pm.HalfNormal),
        full=True,
    ),
    remedy(
        "topologies drawn from the prior were left out, as max_nodes=",
        lambda: _dcc(pm.HalfNormal, alpha=0.5, max_nodes=1),
        lambda: _dcc(pm.HalfNormal, alpha=0.5, max_nodes=63),
        full=True,
    ),
]


def _two_variables():
    mu = _soft()
    pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=Y, shape=mu.shape)


def _tuned(tune):
    with pm.Model():
        normal(_soft())
        step = pmt.DCCTree()
        step.setup_chain(np.random.default_rng(1), tune, 1)
        return step.tune


def _dcc(prior, **given):
    with pm.Model():
        mu = _soft(**given)
        pm.Normal("y", mu, prior("sigma"), observed=Y, shape=mu.shape)
        found = short_dcc()
        return len(found["posterior"]["mu_forest"]) > 0
