"""One run of one sampler on one data set: scores, seconds, what was found."""

import time
from collections import Counter

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.dcc.kernels.encode import label_of


def dcc(data, seed, *, iterations, chains, threshold, local_draws, tune, cores):
    """DCC-Tree with the hyperparameters of tables 3 to 5 and the authors' defaults."""
    with pm.Model() as model:
        soft_tree(data)
        # One process beside others on a busy machine: count what it computes, compilation left in.
        clock = time.process_time if cores == 1 else time.perf_counter
        start = clock()
        idata = pmt.sample_dcc(
            iterations,
            250,
            chains,
            tune=tune,
            threshold=threshold,
            local_draws=local_draws,
            cores=cores,
            random_seed=seed,
            progressbar=False,
        )
        seconds = clock() - start
    found = idata["topologies"].to_dataset()
    proposals = iterations * chains * local_draws
    return {
        **scores(model, idata, data),
        "seconds": seconds,
        "seconds_per_proposal": seconds / proposals,
        "floor": data.floor,
        "visited": found.sizes["topology"],
        "cores": cores,
        "gradients": int(found["gradients"].sum()),
        "divergences": int(found["divergences"].sum()),
        "warm_ups_per_chain": float(found["warm_ups"].sum() / (chains * found.sizes["topology"])),
        "topologies": {
            str(label): [float(w), float(z), float(e)]
            for label, w, z, e in zip(
                found["topology"].values[:8],
                found["weight"].values,
                found["log_evidence"].values,
                found["log_evidence_error"].values,
                strict=False,
            )
        },
    }


def soft_tree(data, direction="dirichlet"):
    """Eq. 4-9: y as it is, noise ~ InverseGamma(3/2, 3/2) as a standard deviation."""
    f = pmt.SoftDecisionTree("f", data.X, data.y, h=data.h, direction=direction)
    if data.classes:
        return pm.Categorical("y", p=f, observed=data.y, shape=f.shape[:1])
    sigma = pm.InverseGamma("sigma", 1.5, 1.5)
    return pm.Normal("y", f, sigma, observed=data.y, shape=f.shape)


def cgm(data, seed):
    """Hard trees by the default step: grow, prune, change and swap, and redrawn trees."""
    return hard(data, seed, None)


def wu(data, seed):
    """Hard trees by the moves of Wu, Tjelmeland and West (2007), restructure among them."""
    return hard(data, seed, pmt.RestructureCGM)


def hard(data, seed, make_step):
    """Hard trees, from chains of their own."""
    with pm.Model() as model:
        if data.classes:
            leaf = pmt.DirichletLeaf(alpha=float(data.classes), n_classes=data.classes)
            f = pmt.DecisionTree("f", data.X, leaf=leaf)
            pm.Categorical("y", p=f, observed=data.y, shape=f.shape[:1])
        else:
            f = pmt.DecisionTree("f", data.X, data.y)
            sigma = pm.InverseGamma("sigma", 1.5, 1.5)
            pm.Normal("y", f, sigma, observed=data.y, shape=f.shape)
        return sampled(model, data, seed, None if make_step is None else make_step([f]), 1000)


def hmc_df(data, seed):
    """RJHMC on trees whose splits have one input each."""
    return rjhmc(data, seed, "index")


def hmc_dfi(data, seed):
    """RJHMC on the trees of DCC-Tree."""
    return rjhmc(data, seed, "dirichlet")


def rjhmc(data, seed, direction, draws=1000):
    with pm.Model() as model:
        soft_tree(data, direction)
        return sampled(model, data, seed, pmt.RJHMC(), draws, shares_of_topologies)


def sampled(model, data, seed, step, draws, what=lambda idata: {}, chains=4):
    """Scores of `pm.sample`, after as much tuning as draws; seconds of the processor."""
    start = time.process_time()
    options = {"progressbar": False, "quiet": True, "cores": 1, "random_seed": seed}
    idata = pm.sample(draws, tune=draws, chains=chains, step=step, **options)
    seconds = time.process_time() - start
    return {
        **scores(model, idata, data),
        **what(idata),
        "seconds": seconds,
        "seconds_per_proposal": seconds / (2 * draws * chains),
    }


def shares_of_topologies(idata):
    """Share of the draws of each chain in the topologies that all chains have most of."""
    labels = [[label_of(tree) for tree in c] for c in idata["posterior"]["f_forest"].values]
    most = Counter(label for c in labels for label in c).most_common(8)
    return {"topologies": {name: [c.count(name) / len(c) for c in labels] for name, _ in most}}


def smc(data, seed):
    """Trees grown from the root by sequential Monte Carlo."""
    with pm.Model() as model:
        leaf = pmt.DirichletLeaf(alpha=float(data.classes), n_classes=data.classes)
        f = pmt.DecisionTree("f", data.X, leaf=leaf)
        pm.Categorical("y", p=f, observed=data.y, shape=f.shape[:1])
        start = time.perf_counter()
        idata = pmt.sample_tree_smc(random_seed=seed, progressbar=False)
        seconds = time.perf_counter() - start
    return {**scores(model, idata, data), "seconds": seconds}


def scores(model, idata, data):
    """MSE or accuracy of the posterior mean, at the training and the test rows."""
    out = {}
    with model:
        for part, X, y in (("train", data.X, data.y), ("test", data.X_test, data.y_test)):
            pm.set_data({"f_X": X})
            f = pm.sample_posterior_predictive(
                idata, predictions=True, var_names=["f"], progressbar=False, random_seed=1
            ).predictions["f"]
            mean = f.mean(("chain", "draw")).values
            if data.classes:
                out[part] = float(np.mean(mean.argmax(axis=1) == y))
            else:
                out[part] = float(np.mean((mean - y) ** 2))
    return out
