"""Odd inputs of the step methods of forests, and what PyMC's own samplers do with a forest."""

import numpy as np
import pymc as pm

import pymc_trees as pmt
from support.odd.table import LEAF, Odd, X, Y

FAST = {"progressbar": False, "compute_convergence_checks": False, "cores": 1, "chains": 1}


def model_of(likelihood="normal"):
    """A small BART model."""
    with pm.Model() as model:
        weights = pm.Dirichlet("weights", np.ones(2))
        mu = pmt.BART("mu", X, Y, m=2, max_nodes=80, split_prior=weights)
        sigma = pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=Y, shape=mu.shape)
    return model


def on_model(make, said=None, holds=lambda result: True):
    """A row about something made inside the small model."""

    def call():
        with model_of() as model:
            return make(model)

    return Odd(call, said, holds)


def no_forest(make, said):
    """A row about something made in a model without forest."""

    def call():
        with pm.Model():
            pm.Normal("x")
            return make()

    return Odd(call, said)


def outside(make):
    """A row about something made outside any model."""
    return Odd(make, "[Mm]odel")


def of_vars(step):
    """Rows about ``vars``, for a step method of forests."""
    return {
        "vars of another kind": on_model(lambda m: step([m["sigma"]]), r"vars.*'sigma'.*forest"),
        "vars a name": on_model(lambda m: step(vars="foo"), r"vars: 'foo'.*neither a forest"),
        "vars names": on_model(lambda m: step(["foo"]), r"vars: 'foo'.*neither a forest"),
        "vars a number": on_model(lambda m: step(3), r"vars: 3.*neither a forest"),
        "vars an array": on_model(lambda m: step([np.ones(2)]), r"vars"),
        "vars the function": on_model(
            lambda m: step([m["mu"]]), holds=lambda s: len(s.forests) == 1
        ),
        "vars the name of the function": on_model(
            lambda m: step("mu"), holds=lambda s: len(s.forests) == 1
        ),
        "vars the forest twice": on_model(
            lambda m: step([m["mu_forest"], m["mu"]]), holds=lambda s: len(s.forests) == 1
        ),
        "no forest": no_forest(step, r"no forest.*BART"),
        "no model": outside(step),
        "unknown argument": on_model(lambda m: step(particles=3), r"particles"),
    }


def of_moves(step):
    """Rows about ``moves``."""
    return {
        "moves unknown": on_model(
            lambda m: step(moves={"grow": 1, "prune": 1, "jump": 1}), r"moves.*'jump'.*'grow'"
        ),
        "moves a list": on_model(lambda m: step(moves=["grow"]), r"moves=.*dict"),
        "moves empty": on_model(lambda m: step(moves={}), r"moves=.*grow and prune"),
        "moves negative": on_model(
            lambda m: step(moves={"grow": -1, "prune": 1}), r"moves=.*at least 0"
        ),
        "moves NaN": on_model(
            lambda m: step(moves={"grow": np.nan, "prune": 1}), r"moves=.*finite"
        ),
        "moves text": on_model(
            lambda m: step(moves={"grow": "often", "prune": 1}), r"moves=.*numbers"
        ),
        "moves one way": on_model(lambda m: step(moves={"grow": 1}), r"moves=.*grow and prune"),
        "moves huge": on_model(
            lambda m: step(moves={"grow": 1e308, "prune": 1e308}),
            holds=lambda s: np.allclose(s.kernels[0].moves.weights[:2], 0.5),
        ),
    }


def of_particles(step):
    """Rows about particles and batches."""
    return {
        "num_particles one": on_model(lambda m: step(num_particles=1), r"num_particles=1.*least 2"),
        "num_particles fraction": on_model(lambda m: step(num_particles=2.5), r"num_particles=2.5"),
        "num_particles bool": on_model(lambda m: step(num_particles=True), r"num_particles=True"),
        "num_particles None": on_model(lambda m: step(num_particles=None), r"num_particles=None"),
        "batch zero": on_model(lambda m: step(batch=(0, 1)), r"batch=.*\(0, 1\]"),
        "batch large": on_model(lambda m: step(batch=(1, 1.5)), r"batch=.*\(0, 1\]"),
        "batch a number": on_model(lambda m: step(batch=0.5), r"batch=0.5.*two shares"),
        "batch three": on_model(lambda m: step(batch=(1, 1, 1)), r"batch=.*two shares"),
        "batch NaN": on_model(lambda m: step(batch=(1, np.nan)), r"batch=.*\(0, 1\]"),
    }


def of_visits(step):
    """``moves_per_visit``."""
    return {
        f"moves_per_visit {given!r}": on_model(
            lambda m, given=given: step(moves_per_visit=given), r"moves_per_visit=.*whole number"
        )
        for given in (0, -2, 2.0, True, "3", None)
    }


def of_threads(step):
    """``threads``."""
    return {
        f"threads {given!r}": on_model(
            lambda m, given=given: step(threads=given), r"threads=.*whole number"
        )
        for given in (0, 1.5, True, "all")
    }


CGM = of_vars(pmt.CGM) | of_moves(pmt.CGM) | of_visits(pmt.CGM) | of_threads(pmt.CGM)
GROW_PRUNE = (
    of_vars(pmt.GrowPrune)
    | of_visits(pmt.GrowPrune)
    | of_threads(pmt.GrowPrune)
    | {
        "moves": on_model(lambda m: pmt.GrowPrune(moves={"grow": 1}), r"moves"),
    }
)
RestructureCGM = (
    of_vars(pmt.RestructureCGM)
    | of_visits(pmt.RestructureCGM)
    | of_threads(pmt.RestructureCGM)
    | {
        "moves": on_model(lambda m: pmt.RestructureCGM(moves={"restructure": 1}), r"moves"),
    }
)
TEMPERING = of_threads(lambda **given: pmt.Tempering(pmt.CGM(), 2, **given)) | {
    "step none": on_model(lambda m: pmt.Tempering(None), r"step=None.*CGM"),
    "step a class": on_model(lambda m: pmt.Tempering(pmt.CGM), r"the class CGM: pass an instance"),
    "step of PyMC": on_model(lambda m: pmt.Tempering(pm.Slice([m["sigma"]])), r"step='slice'"),
    "a prior that is drawn": on_model(
        lambda m: pmt.Tempering(pmt.CGM()), r"prior of mu has random parameters"
    ),
    "temperatures": on_model(lambda m: pmt.Tempering(pmt.CGM(), 1), r"temperatures=1.*at least 2"),
    "temperatures falling": on_model(
        lambda m: pmt.Tempering(pmt.CGM(), [1, 3, 2]), r"temperatures=\[1, 3, 2\].*increasing"
    ),
    "outside": outside(lambda: pmt.Tempering(None)),
}
HYBRID = (
    of_vars(pmt.Hybrid)
    | of_moves(pmt.Hybrid)
    | of_visits(pmt.Hybrid)
    | of_threads(pmt.Hybrid)
    | of_particles(pmt.Hybrid)
    | {
        "local_sweeps zero": on_model(lambda m: pmt.Hybrid(local_sweeps=0), r"local_sweeps=0"),
        "local_sweeps bool": on_model(lambda m: pmt.Hybrid(local_sweeps=True), r"local_sweeps"),
        "local_sweeps text": on_model(lambda m: pmt.Hybrid(local_sweeps="5"), r"local_sweeps='5'"),
    }
)
PARTICLE_GIBBS = (
    of_vars(pmt.ParticleGibbs)
    | of_particles(pmt.ParticleGibbs)
    | of_threads(pmt.ParticleGibbs)
    | {
        "proposal": on_model(
            lambda m: pmt.ParticleGibbs(proposal="best"), r"proposal='best'.*'optimal'"
        ),
        "proposal a list": on_model(lambda m: pmt.ParticleGibbs(proposal=["prior"]), r"proposal="),
        "resampling": on_model(
            lambda m: pmt.PGBART(resampling="residual"), r"resampling='residual'.*'systematic'"
        ),
    }
)

SPLIT_WEIGHTS = {
    "vars of another kind": on_model(
        lambda m: pmt.SplitWeights([m["sigma"]]), r"vars.*'sigma'.*pm.Dirichlet"
    ),
    "vars a name": on_model(lambda m: pmt.SplitWeights(["nothing"]), r"vars.*'nothing'"),
    "vars the forest": on_model(lambda m: pmt.SplitWeights([m["mu_forest"]]), r"vars"),
    "vars empty": on_model(lambda m: pmt.SplitWeights([]), r"vars|variables"),
    "no Dirichlet": no_forest(pmt.SplitWeights, r"vars: nothing.*Dirichlet"),
    "no model": outside(pmt.SplitWeights),
}


def _used_elsewhere():
    with pm.Model():
        d = pm.Dirichlet("d", np.ones(2))
        pmt.BART("mu", X, m=2, max_nodes=80, leaf=LEAF, alpha=d[0])
        return pmt.SplitWeights([d])


SPLIT_WEIGHTS["a Dirichlet for another setting"] = Odd(_used_elsewhere, r"vars.*'d'.*Dirichlet")

NOISE_SCALE = {
    "vars of another kind": on_model(
        lambda m: pmt.NoiseScale([m["weights"]]), r"vars.*'weights'.*sigma or tau.*pm.sample"
    ),
    "vars a name": on_model(lambda m: pmt.NoiseScale(["sigma"]), r"vars.*'sigma'"),
    "vars the forest": on_model(lambda m: pmt.NoiseScale([m["mu_forest"]]), r"vars.*'mu_forest'"),
    "vars the function": on_model(lambda m: pmt.NoiseScale([m["mu"]]), r"vars.*'mu'"),
    "vars the observed variable": on_model(lambda m: pmt.NoiseScale([m["y"]]), r"vars.*'y'"),
    "vars a number": on_model(lambda m: pmt.NoiseScale([3]), r"vars.*3.*sigma or tau"),
    "vars an array": on_model(lambda m: pmt.NoiseScale([np.ones(2)]), r"vars"),
    "vars empty": on_model(lambda m: pmt.NoiseScale([]), r"vars|variables"),
    "vars itself": on_model(
        lambda m: pmt.NoiseScale(m["sigma"]), holds=lambda s: s.widths == {"sigma_log__": 1.0}
    ),
    "unknown argument": on_model(lambda m: pmt.NoiseScale(width=3), r"width"),
    "no noise": no_forest(pmt.NoiseScale, r"vars: nothing.*sigma or tau"),
    "no model": outside(pmt.NoiseScale),
}


def _step_then_data():
    with pm.Model():
        data = pm.Data("X", X)
        mu = pmt.BART("mu", data, Y, m=2, max_nodes=80)
        pm.Normal("y", mu, 1.0, observed=Y, shape=mu.shape)
        step = pmt.CGM()
        pm.set_data({"X": X[::-1]})
        return pm.sample(2, tune=2, step=step, **FAST)


FOREIGN = {
    name: on_model(lambda m, s=step: s([m["mu_forest"]]), r"(?i)forest|trees")
    for name, step in {
        "NUTS": pm.NUTS,
        "HamiltonianMC": pm.HamiltonianMC,
        "Metropolis": pm.Metropolis,
        "Slice": pm.Slice,
        "DEMetropolis": pm.DEMetropolis,
        "DEMetropolisZ": pm.DEMetropolisZ,
        "BinaryMetropolis": pm.BinaryMetropolis,
    }.items()
} | {
    "find_MAP": on_model(lambda m: pm.find_MAP(progressbar=False), r"find_MAP.*mu_forest.*vars="),
    "sample_smc": on_model(lambda m: pm.sample_smc(5, **FAST), r"sample_smc.*mu_forest.*pm.sample"),
    "fit": on_model(lambda m: pm.fit(2, progressbar=False), r"(?i)forest|tree"),
    "nutpie": on_model(
        lambda m: pm.sample(2, nuts_sampler="nutpie", **FAST), r"nuts_sampler.*forest|forest.*nuts"
    ),
    "numpyro": on_model(
        lambda m: pm.sample(2, nuts_sampler="numpyro", **FAST), r"nuts_sampler|forest"
    ),
    "data set after the step": Odd(_step_then_data, r"mu_forest.*inputs other.*pm.set_data"),
}
