"""Chains of RJHMC on small data, and one that accepts as the authors' program warms up."""

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.dcc.jump_chain import JumpChain, Kernels, Settings
from pymc_trees.dcc.jump_model import JumpModel
from pymc_trees.dcc.read_model import read_jump_model

ALPHA, BETA = 0.7, 2.0
"""Prior of the small models: few trees have more than three leaves."""
H = 0.1
TUNE = 60
"""Iterations of warm-ups, which decide how fast a chain mixes and nothing else."""
BATCHES = 30


def weak_step(n=15, p=1, seed=2, size=0.7):
    """Rows that one step explains rather well, none and two not much worse; or steps of a size."""
    rng = np.random.default_rng(seed)
    X = np.linspace(0, 1, n)[:, None]
    f = size * (np.where(X[:, 0] > 0.5, 1.0, -1.0) - np.where(X[:, 0] > 0.8, 1.0, 0.0))
    y = f + rng.normal(0, 0.6, n)
    if p > 1:
        more = np.stack([rng.permutation(X[:, 0]) for _ in range(p - 1)], axis=1)
        X = np.concatenate([X, more], axis=1)
    return X, y


def weak_model(X, y, **settings):
    """Normal rows with noise of unknown sd."""
    with pm.Model() as model:
        mu = pmt.SoftDecisionTree("mu", X, y, ALPHA, BETA, **{"h": (2 * H, H)} | settings)
        sigma = pm.InverseGamma("sigma", 1.5, 1.5)
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def kernels_of(model):
    """NUTS of all topologies that chains of a model meet, and the state of a first iteration."""
    posterior = JumpModel(read_jump_model(model, None))
    point = model.initial_point()
    posterior.other_values = posterior.others_at(point)
    return Kernels(posterior, TUNE), posterior.state_at(point)


def labels_of(kernels, state, draws, *, bridge, seed, chain=JumpChain, jumps=0.8):
    """Topologies of a chain after tuning, which is a tenth of it."""
    jumping = chain(kernels.model, kernels, Settings(jumps / 2, jumps / 2, bridge, 1))
    rng, labels = np.random.default_rng(seed), []
    for k in range(draws + draws // 10):
        state = jumping.iterate(rng, state, tune=k < draws // 10).state
        labels.append(state.label)
    return np.array(labels[draws // 10 :])


def batches_of(labels, topologies):
    """(batches, topologies) shares among the draws that are of these."""
    labels = labels[np.isin(labels, topologies)]
    length = len(labels) // BATCHES
    shown = labels[: length * BATCHES, None] == np.array(topologies)
    return shown.reshape(BATCHES, length, -1).mean(axis=1)


class ProgramsWarmUp(JumpChain):
    """Burn-in of the proposed topology, accepted by the densities at both ends of it all.

    So the authors' program accepts while it warms up. What lies between start and end is not a
    reversible transition of one density, and the ratio does not say how probable it is.
    """

    burn_in = 10

    def jump(self, rng, state, jump):
        pair, z = self.match_vectors(rng, state, jump)
        begun = pair.state(z, jump.grows)
        ended, _, gradients = self.kernels.run(rng, begun, self.burn_in, False)
        log_ratio = self.joint(ended) - self.joint(state)
        log_fresh = self.prior(pair.state(z, True)) - self.prior(pair.state(z, False))
        sign = 1.0 if jump.grows else -1.0
        log_ratio += sign * (self.log_ratio_of_growing(jump.change) - log_fresh)
        return ended, log_ratio, gradients

    def prior(self, state):
        self.model.set_state(state.label, state.inputs)
        return self.model.terms(state.q).prior

    def joint(self, state):
        return self.prior(state) + self.model.terms(state.q).likelihood
