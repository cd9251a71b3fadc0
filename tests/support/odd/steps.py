"""Odd inputs of the step methods of forests, and what PyMC's own samplers do with a forest."""

import warnings

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


def on_model(make, refused=None, holds=lambda result: True):
    """A row about something made inside the small model."""

    def call():
        with model_of() as model:
            return make(model)

    return Odd(call, refused, holds)


def no_forest(make, refused):
    """A row about something made in a model without forest."""

    def call():
        with pm.Model():
            pm.Normal("x")
            return make()

    return Odd(call, refused)


def outside(make):
    """A row about something made outside any model."""
    return Odd(make, TypeError("model"))


def of_vars(step):
    """Rows about ``vars``, for a step method of forests."""
    return {
        "vars of another kind": on_model(lambda m: step([m["sigma"]]), "vars"),
        "vars a name": on_model(lambda m: step(vars="foo"), "vars"),
        "vars names": on_model(lambda m: step(["foo"]), "vars"),
        "vars a number": on_model(lambda m: step(3), "vars"),
        "vars an array": on_model(lambda m: step([np.ones(2)]), "vars"),
        "vars the function": on_model(
            lambda m: step([m["mu"]]), holds=lambda s: len(s.forests) == 1
        ),
        "vars the name of the function": on_model(
            lambda m: step("mu"), holds=lambda s: len(s.forests) == 1
        ),
        "vars the forest twice": on_model(
            lambda m: step([m["mu_forest"], m["mu"]]), holds=lambda s: len(s.forests) == 1
        ),
        "no forest": no_forest(step, "no"),
        "no model": outside(step),
        "unknown argument": on_model(lambda m: step(particles=3), TypeError("particles")),
    }


def of_moves(step):
    """Rows about ``moves``."""
    return {
        "moves unknown": on_model(
            lambda m: step(moves={"grow": 1, "prune": 1, "jump": 1}), "moves"
        ),
        "moves a list": on_model(lambda m: step(moves=["grow"]), TypeError("moves")),
        "moves empty": on_model(lambda m: step(moves={}), "moves"),
        "moves negative": on_model(lambda m: step(moves={"grow": -1, "prune": 1}), "moves"),
        "moves NaN": on_model(lambda m: step(moves={"grow": np.nan, "prune": 1}), "moves"),
        "moves text": on_model(lambda m: step(moves={"grow": "often", "prune": 1}), "moves"),
        "moves one way": on_model(lambda m: step(moves={"grow": 1}), "moves"),
        "moves huge": on_model(
            lambda m: step(moves={"grow": 1e308, "prune": 1e308}),
            holds=lambda s: np.allclose(s.kernels[0].moves.weights[:2], 0.5),
        ),
    }


def of_particles(step):
    """Rows about particles and batches."""
    return {
        "num_particles one": on_model(lambda m: step(num_particles=1), "num_particles"),
        "num_particles fraction": on_model(lambda m: step(num_particles=2.5), "num_particles"),
        "num_particles bool": on_model(lambda m: step(num_particles=True), "num_particles"),
        "num_particles None": on_model(lambda m: step(num_particles=None), "num_particles"),
        "batch zero": on_model(lambda m: step(batch=(0, 1)), "batch"),
        "batch large": on_model(lambda m: step(batch=(1, 1.5)), "batch"),
        "batch a number": on_model(lambda m: step(batch=0.5), "batch"),
        "batch three": on_model(lambda m: step(batch=(1, 1, 1)), "batch"),
        "batch NaN": on_model(lambda m: step(batch=(1, np.nan)), "batch"),
    }


def of_visits(step):
    """``moves_per_visit``."""
    return {
        f"moves_per_visit {given!r}": on_model(
            lambda m, given=given: step(moves_per_visit=given), "moves_per_visit"
        )
        for given in (0, -2, 2.0, True, "3", None)
    }


def of_threads(step):
    """``threads``."""
    return {
        f"threads {given!r}": on_model(lambda m, given=given: step(threads=given), "threads")
        for given in (0, 1.5, True, "all")
    }


CGM = of_vars(pmt.CGM) | of_moves(pmt.CGM) | of_visits(pmt.CGM) | of_threads(pmt.CGM)
GROW_PRUNE = (
    of_vars(pmt.GrowPrune)
    | of_visits(pmt.GrowPrune)
    | of_threads(pmt.GrowPrune)
    | {
        "moves": on_model(lambda m: pmt.GrowPrune(moves={"grow": 1}), TypeError("moves")),
    }
)
RestructureCGM = (
    of_vars(pmt.RestructureCGM)
    | of_visits(pmt.RestructureCGM)
    | of_threads(pmt.RestructureCGM)
    | {
        "moves": on_model(
            lambda m: pmt.RestructureCGM(moves={"restructure": 1}), TypeError("moves")
        ),
    }
)
TEMPERING = of_threads(lambda **given: pmt.Tempering(pmt.CGM(), 2, **given)) | {
    "step none": on_model(lambda m: pmt.Tempering(None), TypeError("step")),
    "step a class": on_model(lambda m: pmt.Tempering(pmt.CGM), TypeError("step")),
    "step of PyMC": on_model(lambda m: pmt.Tempering(pm.Slice([m["sigma"]])), TypeError("step")),
    "a prior that is drawn": on_model(
        lambda m: pmt.Tempering(pmt.CGM()), NotImplementedError("prior")
    ),
    "temperatures": on_model(lambda m: pmt.Tempering(pmt.CGM(), 1), "temperatures"),
    "temperatures falling": on_model(lambda m: pmt.Tempering(pmt.CGM(), [1, 3, 2]), "temperatures"),
    "outside": outside(lambda: pmt.Tempering(None)),
}
HYBRID = (
    of_vars(pmt.Hybrid)
    | of_moves(pmt.Hybrid)
    | of_visits(pmt.Hybrid)
    | of_threads(pmt.Hybrid)
    | of_particles(pmt.Hybrid)
    | {
        "local_sweeps zero": on_model(lambda m: pmt.Hybrid(local_sweeps=0), "local_sweeps"),
        "local_sweeps bool": on_model(lambda m: pmt.Hybrid(local_sweeps=True), "local_sweeps"),
        "local_sweeps text": on_model(lambda m: pmt.Hybrid(local_sweeps="5"), "local_sweeps"),
    }
)
PARTICLE_GIBBS = (
    of_vars(pmt.ParticleGibbs)
    | of_particles(pmt.ParticleGibbs)
    | of_threads(pmt.ParticleGibbs)
    | {
        "proposal": on_model(lambda m: pmt.ParticleGibbs(proposal="best"), "proposal"),
        "proposal a list": on_model(lambda m: pmt.ParticleGibbs(proposal=["prior"]), "proposal"),
        "resampling": on_model(lambda m: pmt.PGBART(resampling="residual"), "resampling"),
    }
)

SPLIT_WEIGHTS = {
    "vars of another kind": on_model(lambda m: pmt.SplitWeights([m["sigma"]]), "vars"),
    "vars a name": on_model(lambda m: pmt.SplitWeights(["nothing"]), "vars"),
    "vars the forest": on_model(lambda m: pmt.SplitWeights([m["mu_forest"]]), "vars"),
    "vars empty": on_model(lambda m: pmt.SplitWeights([]), "variables"),
    "no Dirichlet": no_forest(pmt.SplitWeights, "vars"),
    "no model": outside(pmt.SplitWeights),
}


def _used_elsewhere():
    with pm.Model():
        d = pm.Dirichlet("d", np.ones(2))
        pmt.BART("mu", X, m=2, max_nodes=80, leaf=LEAF, alpha=d[0])
        return pmt.SplitWeights([d])


SPLIT_WEIGHTS["a Dirichlet for another setting"] = Odd(_used_elsewhere, "vars")

NOISE_SCALE = {
    "vars of another kind": on_model(lambda m: pmt.NoiseScale([m["weights"]]), "vars"),
    "vars a name": on_model(lambda m: pmt.NoiseScale(["sigma"]), "vars"),
    "vars the forest": on_model(lambda m: pmt.NoiseScale([m["mu_forest"]]), "vars"),
    "vars the function": on_model(lambda m: pmt.NoiseScale([m["mu"]]), "vars"),
    "vars the observed variable": on_model(lambda m: pmt.NoiseScale([m["y"]]), "vars"),
    "vars a number": on_model(lambda m: pmt.NoiseScale([3]), "vars"),
    "vars an array": on_model(lambda m: pmt.NoiseScale([np.ones(2)]), "vars"),
    "vars empty": on_model(lambda m: pmt.NoiseScale([]), "variables"),
    "vars itself": on_model(
        lambda m: pmt.NoiseScale(m["sigma"]), holds=lambda s: s.widths == {"sigma_log__": 1.0}
    ),
    "unknown argument": on_model(lambda m: pmt.NoiseScale(width=3), TypeError("width")),
    "no noise": no_forest(pmt.NoiseScale, "vars"),
    "no model": outside(pmt.NoiseScale),
}


def pairs(cov=None, latent=True, limits=lambda z: None):
    """Two outputs of a forest, one of them latent."""
    f = pmt.BART("f", X, m=2, max_nodes=80, leaf=LEAF, shape=(2, len(X)))
    cov = np.eye(2) + 0.5 if cov is None else cov
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        seen = np.column_stack([Y, np.nan * Y if latent else Y])
        limits(pm.MvNormal("z", f.T, cov=cov, observed=seen))


def beside(make, refused=None, holds=lambda result: True, **given):
    """A row about a step made in a model with a latent output."""

    def call():
        with pm.Model() as model:
            pairs(**given)
            return make(model)

    return Odd(call, refused, holds)


LATENT_NORMALS = {
    "vars of another kind": on_model(lambda m: pmt.LatentNormals([m["sigma"]]), "vars"),
    "vars a name": beside(lambda m: pmt.LatentNormals(["z_unobserved"]), "vars"),
    "vars the forest": beside(lambda m: pmt.LatentNormals([m["f_0_forest"]]), "vars"),
    "vars the rows": beside(lambda m: pmt.LatentNormals([m["z"]]), "vars"),
    "vars the observed part": beside(lambda m: pmt.LatentNormals([m["z_observed"]]), "vars"),
    "vars a number": beside(lambda m: pmt.LatentNormals([3]), "vars"),
    "vars an array": beside(lambda m: pmt.LatentNormals([np.ones(2)]), "vars"),
    "vars empty": beside(lambda m: pmt.LatentNormals([]), "variables"),
    "vars itself": beside(
        lambda m: pmt.LatentNormals(m["z_unobserved"]),
        holds=lambda s: [v.name for v in s.vars] == ["z_unobserved"],
    ),
    "unknown argument": beside(lambda m: pmt.LatentNormals(sweeps=3), TypeError("sweeps")),
    "nothing latent": beside(lambda m: pmt.LatentNormals(), "vars", latent=False),
    "no forest": no_forest(pmt.LatentNormals, "vars"),
    "no model": outside(pmt.LatentNormals),
}


def with_column(make, refused=None, holds=lambda result: True):
    """A row about a step made in a model with a random column."""

    def call():
        with pm.Model() as model:
            z = pm.Normal("z", 0, 1, shape=20)
            f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
            pm.Normal("y", f, pm.HalfNormal("sigma"), observed=Y)
            return make(model)

    return Odd(call, refused, holds)


LATENT_COLUMN = {
    "vars of another kind": with_column(lambda m: pmt.LatentColumn([m["sigma"]]), "vars"),
    "vars a name": with_column(lambda m: pmt.LatentColumn(["z"]), "vars"),
    "vars the forest": with_column(lambda m: pmt.LatentColumn([m["f_forest"]]), "vars"),
    "vars a number": with_column(lambda m: pmt.LatentColumn([3]), "vars"),
    "vars an array": with_column(lambda m: pmt.LatentColumn([np.ones(2)]), "vars"),
    "vars empty": with_column(lambda m: pmt.LatentColumn([]), "variables"),
    "vars itself": with_column(
        lambda m: pmt.LatentColumn(m["z"]), holds=lambda s: [v.name for v in s.vars] == ["z"]
    ),
    "unknown argument": with_column(lambda m: pmt.LatentColumn(sweeps=3), TypeError("sweeps")),
    "no random column": on_model(lambda m: pmt.LatentColumn(), "vars"),
    "no forest": no_forest(pmt.LatentColumn, "vars"),
    "no model": outside(pmt.LatentColumn),
}


GAUSSIAN_TERMS = {
    "vars of another kind": on_model(lambda m: pmt.GaussianTerms([m["sigma"]]), "vars"),
    "vars a name": on_model(lambda m: pmt.GaussianTerms(["sigma"]), "vars"),
    "vars the forest": on_model(lambda m: pmt.GaussianTerms([m["mu_forest"]]), "vars"),
    "vars a number": on_model(lambda m: pmt.GaussianTerms([3]), "vars"),
    "vars an array": on_model(lambda m: pmt.GaussianTerms([np.ones(2)]), "vars"),
    "vars empty": on_model(lambda m: pmt.GaussianTerms([]), "variables"),
    "unknown argument": on_model(lambda m: pmt.GaussianTerms(leaves=3), TypeError("leaves")),
    "no terms": on_model(lambda m: pmt.GaussianTerms(), "no variable"),
    "no forest": no_forest(pmt.GaussianTerms, "no variable"),
    "no model": outside(pmt.GaussianTerms),
}

ONE_SIDED_ERRORS = {
    "vars of another kind": on_model(lambda m: pmt.OneSidedErrors([m["sigma"]]), "vars"),
    "vars a name": on_model(lambda m: pmt.OneSidedErrors(["sigma"]), "vars"),
    "vars the forest": on_model(lambda m: pmt.OneSidedErrors([m["mu_forest"]]), "vars"),
    "vars a number": on_model(lambda m: pmt.OneSidedErrors([3]), "vars"),
    "vars an array": on_model(lambda m: pmt.OneSidedErrors([np.ones(2)]), "vars"),
    "vars empty": on_model(lambda m: pmt.OneSidedErrors([]), "variables"),
    "unknown argument": on_model(lambda m: pmt.OneSidedErrors(width=3), TypeError("width")),
    "no errors on one side": on_model(lambda m: pmt.OneSidedErrors(), "no variable"),
    "no forest": no_forest(pmt.OneSidedErrors, "no variable"),
    "no model": outside(pmt.OneSidedErrors),
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
    name: on_model(lambda m, s=step: s([m["mu_forest"]]), NotImplementedError("step"))
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
    "find_MAP": on_model(lambda m: pm.find_MAP(progressbar=False), NotImplementedError("find_MAP")),
    "sample_smc": on_model(lambda m: pm.sample_smc(5, **FAST), NotImplementedError("sample_smc")),
    "fit": on_model(lambda m: pm.fit(2, progressbar=False), NotImplementedError("forest")),
    "nutpie": on_model(
        lambda m: pm.sample(2, nuts_sampler="nutpie", **FAST), NotImplementedError("nuts_sampler")
    ),
    "numpyro": on_model(
        lambda m: pm.sample(2, nuts_sampler="numpyro", **FAST), NotImplementedError("nuts_sampler")
    ),
    "data set after the step": Odd(_step_then_data, NotImplementedError("mu_forest")),
}
