"""Small models with a few draws, for what is asked of draws."""

import numpy as np
import pandas as pd
import pymc as pm

import pymc_trees as pmt

N = 12


def frame():
    """Numbers with a missing cell, levels, and few distinct numbers."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"age": rng.normal(50, 10, N), "site": rng.choice(list("abc"), N)})
    X.loc[3, "age"] = np.nan
    X["dose"] = np.resize([0.0, 1.0, 2.0], N)
    return X


def draws_of():
    """Two chains of four draws of the model on the context stack."""
    options = {"tune": 5, "draws": 4, "chains": 2, "cores": 1, "progressbar": False}
    return pm.sample(**options, random_seed=1, compute_convergence_checks=False)


def on_a_frame():
    """A model of one forest, and draws."""
    X = frame()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=4, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Normal("y", mu, 0.5, observed=X.dose.to_numpy(), shape=mu.shape)
        return model, draws_of()


def on_awkward_columns():
    """A model of columns with names of ours, numbers alike in 4 digits, and numbers as levels."""
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"zip": np.resize([94103, 94104, 94105], 24), "chain": rng.random(24)})
    X["row"] = np.resize([0.0, 1.0, np.nan], 24)
    X["grade"] = np.resize([10.0, 20.0, 30.0, 40.0], 24)
    X["average"] = np.where(rng.random(24) < 0.2, np.nan, rng.random(24))
    X["draw"] = 3.0
    with pm.Model() as model:
        mu = pmt.BART("mu", X, m=6, leaf=pmt.NormalLeaf(0.0, 1.0), split_rules={"grade": "subset"})
        pm.Normal("y", mu, 0.5, observed=X.grade.to_numpy() / 10, shape=mu.shape)
        return model, draws_of()


def two_functions():
    """A model of f with two outputs and named dims, g, and the rate exp(g); and draws."""
    X = np.random.default_rng(1).random((N, 2))
    with pm.Model(coords={"kind": ["low", "high"], "row_of_y": range(N)}) as model:
        f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0), dims=("kind", "row_of_y"))
        g = pmt.BART("g", X, m=2, leaf=pmt.NormalLeaf(0.0, 1.0))
        pm.Deterministic("rate", pm.math.exp(g))
        pm.Normal("y", f + g, 1.0, observed=np.zeros((2, N)))
        return model, draws_of()


def predicted(model, idata, X, name="mu"):
    """(chain, draw, ..., row) outputs at other rows, by PyMC, through `pymc_trees.set_data`."""
    with model, np.errstate(invalid="ignore"):  # PyMC compares data by their ratio
        before = model[f"{name}_X"].get_value()
        pmt.set_data({f"{name}_X": X})
        found = pm.sample_posterior_predictive(idata, var_names=[name], progressbar=False)
        pm.set_data({f"{name}_X": before})
    return found.posterior_predictive[name].to_numpy()


def predicted_of(model, idata, forest, X):
    """(chain, draw, row) outputs of one forest at other rows."""
    with model:
        value = model[forest].type()
        f = pmt.evaluate(model[forest], X)
    fn = pm.compile([value], f, givens=[(model[forest], value)])
    draws = idata.posterior[forest].to_numpy()
    return np.array([[fn(draw) for draw in chain] for chain in draws])
