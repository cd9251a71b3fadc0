"""Draws of many models as digests: does a change of the code leave every draw as it was?

``python -m benchmarks.draws record FILE`` runs the models and writes a digest of each one's draws,
``python -m benchmarks.draws compare FILE`` runs them again and names those that differ, bit by bit.
Both on one machine, with one set of installed packages: other versions of those round differently.
PyTensor runs without `fastmath`: with it, last bits depend on what was compiled before, and on what
was read from a cache.
"""

import argparse
import hashlib
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pymc_trees as pmt

OPTIONS = {
    "draws": 40,
    "tune": 20,
    "chains": 1,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def _data(n=80, p=3):
    rng = np.random.default_rng(11)
    X = rng.random((n, p))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)
    return X, y


def _frame():
    import pandas as pd

    X, y = _data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["level"] = pd.Categorical(np.array(["u", "v", "w", "x"])[(X[:, 2] * 4).astype(int)])
    frame.loc[::7, "b"] = np.nan
    return frame, y


def _sampled(model, *, step=None):
    """Posterior of everything but the encoded trees, and the counts of split columns."""
    with model:
        idata = pm.sample(**OPTIONS, step=step)
    forests = {rv.name for rv in model.free_RVs if rv.name.endswith("_forest")}
    found = {name: idata.posterior[name] for name in idata.posterior if name not in forests}
    stats = idata.sample_stats
    return found | {k: stats[k] for k in stats if k.startswith("variable_inclusion")}


def _gaussian(make_step, front=None, data=_data, sigma=0.3, **declared):
    X, y = data()
    declared = {"m": 8} | declared
    with pm.Model() as model:
        mu = (front or pmt.BART)("mu", X, y, **declared)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        step = None if make_step is None else make_step()
    return _sampled(model, step=step)


def _tree(name, X, y, m=1, **declared):
    return pmt.DecisionTree(name, X, y, **declared)


def _normal_gamma():
    X, y = _data()
    with pm.Model() as model:
        leaf = pmt.NormalGammaLeaf(0.1, 3.0, 0.1)
        mu, tau = pmt.DecisionTree("mu", X, leaf=leaf)
        pm.Normal("y", mu, tau=tau, observed=y, shape=mu.shape)
    return _sampled(model)


def _dirichlet():
    X, y = _data()
    with pm.Model() as model:
        p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(3.0, 3))
        pm.Categorical("y", p=p, observed=np.digitize(y, [0.0, 1.0]), shape=p.shape[:1])
        step = pmt.ParticleGibbs(proposal="empirical", resampling="stratified")
    return _sampled(model, step=step)


def _dart():
    X, y = _data()
    with pm.Model() as model:
        s = pm.Dirichlet("s", np.full(3, 0.4))
        mu = pmt.BART("mu", X, y, m=8, split_prior=s)
        pm.Normal("y", mu, 0.3, observed=y, shape=mu.shape)
    return _sampled(model)


def _two_forests():
    X, y = _data()
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=8)
        scale = pmt.BART("scale", X, m=5, leaf=pmt.NormalLeaf(-0.2, 0.2))
        pm.Normal("y", mu, pt.exp(scale), observed=y, shape=mu.shape)
    return _sampled(model)


def _poisson():
    X, y = _data()
    counts = np.random.default_rng(5).poisson(np.exp(y))
    with pm.Model() as model:
        f = pmt.BART("f", X, m=6, leaf=pmt.NormalLeaf(0.0, 0.4))
        pm.Poisson("y", pt.exp(f), observed=counts, shape=f.shape)
    return _sampled(model)


def _softmax():
    X, y = _data()
    with pm.Model() as model:
        f = pmt.BART("f", X, m=4, leaf=pmt.NormalLeaf(0.0, 0.5), shape=(3, len(y)))
        classes = np.digitize(y, [0.0, 1.0])
        pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=classes)
    return _sampled(model)


def _joint():
    X, y = _data(n=25)
    with pm.Model() as model:
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        pm.MvNormal("y", f, cov=0.1 * np.eye(25) + 0.05, observed=y)
    return _sampled(model)


def _prior():
    frame, y = _frame()
    with pm.Model():
        mu = pmt.BART("mu", frame, y, m=8)
        pm.Normal("y", mu, 0.3, observed=y, shape=mu.shape)
        idata = pm.sample_prior_predictive(20, random_seed=3)
    return {"mu": idata.prior["mu"], "y": idata.prior_predictive["y"]}


def _tree_smc():
    X, y = _data()
    with pm.Model():
        mu = pmt.DecisionTree("mu", X, y)
        pm.Normal("y", mu, 0.3, observed=y, shape=mu.shape)
        options = {"proposal": "optimal", "random_seed": 3, "progressbar": False, "cores": 1}
        idata = pmt.sample_tree_smc(60, islands=2, **options)
    name = "log_marginal_likelihood"
    return {"mu": idata.posterior["mu"], name: np.array(idata.attrs[name])}


def _dcc():
    X, y = _data(n=30, p=2)
    with pm.Model():
        mu = pmt.SoftDecisionTree("mu", X, y)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
        idata = pmt.sample_dcc(
            4,
            20,
            2,
            local_draws=10,
            tune=40,
            initial_trees=6,
            threshold=2,
            max_active=4,
            random_seed=3,
            progressbar=False,
        )
    return {name: idata.posterior[name] for name in idata.posterior if name in ("mu", "sigma")}


def _mondrian():
    X, y = _data()
    forest = pmt.MondrianForestRegressor(5, random_state=3).fit(X[:50], y[:50])
    forest.partial_fit(X[50:], y[50:])
    classes = pmt.MondrianForestClassifier(5, random_state=3).fit(X[:50], y[:50] > 0)
    classes.partial_fit(X[50:], y[50:] > 0)
    return {"mean": forest.predict(X), "p": classes.predict_proba(X)}


MODELS = {
    "normal, hybrid": lambda: _gaussian(None),
    "normal, CGM, a precision per row": lambda: _gaussian(
        pmt.CGM, _tree, sigma=np.linspace(0.1, 0.5, 80)
    ),
    "grid, GrowPrune": lambda: _gaussian(pmt.GrowPrune, n_cuts=10),
    "particle Gibbs, prior": lambda: _gaussian(lambda: pmt.ParticleGibbs(num_particles=5)),
    "particle Gibbs, optimal, systematic": lambda: _gaussian(
        lambda: pmt.ParticleGibbs(num_particles=5, proposal="optimal", resampling="systematic")
    ),
    "levels and missing cells": lambda: _gaussian(None, data=_frame),
    "levels and missing cells, grid": lambda: _gaussian(None, data=_frame, n_cuts=10),
    "Mondrian prior": lambda: _gaussian(None, tree_prior=pmt.MondrianPrior(1.0)),
    "normal-gamma": _normal_gamma,
    "Dirichlet": _dirichlet,
    "DART": _dart,
    "two forests": _two_forests,
    "Poisson": _poisson,
    "softmax": _softmax,
    "joint likelihood": _joint,
    "prior predictive": _prior,
    "tree SMC": _tree_smc,
    "DCC-Tree": _dcc,
    "Mondrian forests": _mondrian,
}


def digest(found) -> str:
    """Of all numbers of a run."""
    total = hashlib.sha256()
    for name in sorted(found):
        values = np.ascontiguousarray(np.asarray(found[name]))
        if values.dtype == object:  # vector statistics
            values = np.array(values.tolist())
        total.update(f"{name}{values.shape}".encode())
        total.update(values.tobytes())
    return total.hexdigest()[:32]


def main():
    """Record or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(MODELS), default=list(MODELS))
    given = parser.parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    pytensor.config.numba__fastmath = False
    known = json.loads(given.file.read_text()) if given.what == "compare" else {}
    made = {}
    for name in given.only:
        begun = time.perf_counter()
        made[name] = digest(MODELS[name]())
        state = "" if name not in known else ("same" if made[name] == known[name] else "DIFFERENT")
        print(f"{name:40s} {made[name]}  {time.perf_counter() - begun:5.1f} s  {state}", flush=True)
    if given.what == "record":
        given.file.write_text(json.dumps(made, indent=1) + "\n")
    sys.exit(given.what == "compare" and any(made[k] != known.get(k) for k in made))


if __name__ == "__main__":
    main()
