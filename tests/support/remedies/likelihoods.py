"""Remedies of messages about likelihoods."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_trees as pmt
from support.odd.table import LEAF, X, Y, with_entry
from support.remedies.table import remedy

COUNTS = np.arange(20) % 4


def stepped(declare, step=pmt.Hybrid):
    """What declares a model and makes a step for it."""

    def call():
        with pm.Model() as model:
            declare()
            return step(model) if step not in STEPS else step()

    return call


STEPS = {pmt.Hybrid, pmt.CGM, pmt.DCCTree, pmt.RJHMC, pmt.SoftCGM, pmt.NoiseScale, pmt.SplitWeights}


def observed(likelihood, front_end=pmt.BART, **given):
    """A function and what is observed of it."""

    def call():
        mu = front_end(
            "mu", **{"X": X, "leaf": LEAF} | ({"m": 2} if front_end is pmt.BART else {}) | given
        )
        likelihood(mu)
        return mu

    return call


def normal(mu, observed=Y, **given):
    """The usual likelihood."""
    return pm.Normal("y", mu, given.pop("sigma", 0.5), observed=observed, shape=mu.shape, **given)


def _started(likelihood, **given):
    """What makes a step and has it read the model at a point."""

    def call():
        with pm.Model() as model:
            observed(likelihood, **given)()
            step = pmt.CGM()
            step.setup_chain(np.random.default_rng(1), 1, 1)
            step.step(model.initial_point())
            return True

    return call


def _masked(mu):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        return pm.Normal("y", mu, 0.5, observed=np.ma.masked_array(Y, Y > 2))


def _walk(mu):
    first = pm.Normal.dist(0, 1)
    return pm.GaussianRandomWalk.dist(mu=mu[0], sigma=1.0, init_dist=first, steps=19)


def _copied(mu):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyMC's, of the copy
        return pm.Potential("walk", pm.logp(_walk(mu), Y).sum())


def _observed_walk(mu):
    first = pm.Normal.dist(0, 1)
    pm.GaussianRandomWalk("y", mu=mu[0], sigma=1.0, init_dist=first, observed=Y)


def _written_walk(mu):
    pm.Potential("walk", pm.logp(pm.Normal.dist(mu[0], 1.0), np.diff(Y)).sum())


def _strata(before, after):
    """What makes a step under weights of sums, and takes it under others."""

    def call():
        with pm.Model() as model:
            mu = observed(lambda mu: None)()
            w = pm.Data("w", np.full(5, before))
            sums = pt.logsumexp(mu.reshape((5, 4)), axis=1)
            pm.Potential("choices", mu[::4].sum() - pt.dot(w, sums))
            step = pmt.CGM()
            pm.set_data({"w": np.full(5, after)})
            step.setup_chain(np.random.default_rng(1), 1, 1)
            step.step(model.initial_point())
            return True

    return call


def _linear(likelihood, **given):
    return stepped(observed(likelihood, leaf=pmt.LinearLeaf(0.0, 1.0), **given))


def counted(mu):
    pm.Poisson("y", pm.math.exp(mu), observed=COUNTS)


def _cumulated(mu):
    pm.Poisson("y", pm.math.exp(mu).cumsum(), observed=COUNTS)


def _negative(**given):
    def likelihood(mu):
        pm.Normal("y", mu, pm.Normal("sigma", 0, 1, **given), observed=Y)

    return likelihood


def _positive(mu):
    pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=Y)


def _student(prior, **given):
    def likelihood(mu):
        pm.StudentT("y", nu=4, mu=mu, sigma=prior("sigma", **given), observed=Y)

    return likelihood


def _pairs(sd):
    def likelihood(mu):
        cov = np.array([[1.0, 0.5], [0.5, 1.0]]) * sd() ** 2
        pm.MvNormal("y", pt.stack([mu, mu], axis=1), cov=cov, observed=np.stack([Y, Y], axis=1))

    return likelihood


LIKELIHOODS = [
    remedy(
        "which it subtracted before pm.set_data: make the step anew with these data",
        _strata(1.0, -1.0),
        _strata(-1.0, -1.0),
    ),
    remedy(
        "which is not a variable of the model and never moves",
        stepped(observed(_copied)),
        stepped(observed(_observed_walk)),
        stepped(observed(_written_walk)),
    ),
    remedy(
        "rows: give it shape (…,)",
        _started(lambda mu: pm.Normal("y", mu, 0.5, observed=Y), X=X[:1]),
        _started(lambda mu: pm.Normal("y", mu, 0.5, observed=Y[:1]), X=X[:1]),
    ),
    remedy(
        "The observed variable holds NaN or infinite values: remove those rows",
        _started(lambda mu: normal(mu, with_entry(Y, np.inf))),
        _started(lambda mu: normal(mu, Y[1:]), X=X[1:]),
    ),
    remedy(
        "Under … take a NormalLeaf",
        _linear(_cumulated),
        stepped(observed(_cumulated)),
    ),
    remedy(
        "for a single column give observed=y.ravel()",
        _linear(lambda mu: pm.Normal("y", mu[:, None], 0.5, observed=Y[:, None])),
        _linear(lambda mu: pm.Normal("y", mu, 0.5, observed=Y[:, None].ravel())),
    ),
    remedy(
        "remove those rows from X and y before declaring the model",
        _linear(_masked),
        _linear(lambda mu: normal(mu, Y[Y <= 2]), X=X[Y <= 2]),
    ),
    remedy(
        "but at this point it is …: give it a prior that keeps it away from 0",
        _started(_negative(initval=-1.0)),
        _started(_positive),
        _started(_negative(initval=1.0)),
    ),
    remedy(
        "give its standard deviations a prior that keeps them away from 0",
        _started(_pairs(lambda: pm.Normal("sd", initval=0.0))),
        _started(_pairs(lambda: pm.HalfNormal("sd"))),
    ),
    remedy(
        "and so must nu or b, but one of them is not at this point: give it a prior",
        _started(_student(pm.Normal, initval=-1.0)),
        _started(_student(pm.HalfNormal)),
        _started(_student(pm.Normal, initval=1.0)),
    ),
    remedy(
        "is used other than through evaluate(forest, X): use the function",
        stepped(lambda: _numbers_used()),
        stepped(observed(normal)),
    ),
    remedy(
        "use pymc_trees.BART instead, or write the likelihood so that each row depends only on",
        stepped(
            observed(lambda mu: pm.MvNormal("y", mu, np.eye(20), observed=Y), pmt.SoftBART, m=2),
            pmt.SoftCGM,
        ),
        stepped(observed(lambda mu: pm.MvNormal("y", mu, np.eye(20), observed=Y))),
        stepped(observed(normal, pmt.SoftBART, m=2), pmt.SoftCGM),
    ),
]


def _numbers_used():
    observed(normal)()
    pm.Potential("p", pt.sum(pm.modelcontext(None)["mu_forest"]))
