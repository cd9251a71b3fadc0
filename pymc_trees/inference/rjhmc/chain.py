"""One iteration: moves within the topology, then perhaps a jump to a neighbour."""

from typing import NamedTuple

import numpy as np

from pymc_trees.core.soft.bridge import Point, Way, cross
from pymc_trees.core.soft.jumps import (
    Jump,
    log_proposal_ratio,
    propose_jump,
    shared_places,
)
from pymc_trees.core.soft.topology import check_room, log_prior
from pymc_trees.inference.dcc.soft_posterior import draw_gates
from pymc_trees.inference.rjhmc.kernels import Kernels
from pymc_trees.inference.rjhmc.posterior import JumpPosterior, State

REDRAWN = 0.5
"""Share of proposals of another input that draw the threshold anew too."""


class Settings(NamedTuple):
    """Numbers of a chain."""

    grow: float
    prune: float
    bridge: int
    """Densities between two topologies."""
    local_draws: int
    """NUTS iterations within a topology."""


class Iteration(NamedTuple):
    """What came of one."""

    state: State
    jump: int
    """1 where a leaf was to grow, -1 where a split was to go, 0 where neither."""
    accepted: bool
    log_ratio: float
    """Log of the acceptance ratio; NaN without a jump."""
    divergences: int
    gradients: int


class JumpChain:
    """Kernels of one chain.

    Parameters
    ----------
    posterior : JumpPosterior
    kernels : Kernels
    settings : Settings
    """

    def __init__(self, posterior: JumpPosterior, kernels: Kernels, settings: Settings):
        self.posterior, self.kernels, self.settings = posterior, kernels, settings

    def iterate(self, rng: np.random.Generator, state: State, tune: bool) -> Iteration:
        """Move within the topology, and propose a jump or stay."""
        local = self.kernels.run(rng, state, self.settings.local_draws, tune)
        state, divergences, gradients = local
        if self.posterior.op.by_index:
            state = self.redraw_inputs(rng, state)
        jump = propose_jump(rng, state.label, self.settings.grow, self.settings.prune)
        if jump is None:
            return Iteration(state, 0, False, np.nan, divergences, gradients)
        found, log_ratio, more = self.jump(rng, state, jump)
        accepted = bool(np.log(rng.random()) < log_ratio)
        state = found if accepted else state
        sign = 1 if jump.grows else -1
        return Iteration(state, sign, accepted, log_ratio, divergences, gradients + more)

    def redraw_inputs(self, rng: np.random.Generator, state: State) -> State:
        """A Metropolis step of every split's input; all have the same prior probability."""
        posterior, p = self.posterior, self.posterior.op.p
        if p == 1 or len(state.index) == 0:
            return state
        posterior.place(state.label, state.index)
        present = posterior.terms(state.q).likelihood
        for k in range(len(state.index)):
            index, q = state.index.copy(), state.q
            index[k] = (index[k] + rng.integers(1, p)) % p
            if rng.random() < REDRAWN:  # tau from its prior, which the ratio then lacks
                q = q.copy()
                q[len(q) - len(index) + k] = draw_gates(rng, 1, 1, 1)[0, 0]
            posterior.place(state.label, index)
            proposed = posterior.terms(q).likelihood
            if np.log(rng.random()) < proposed - present:
                state, present = State(state.label, index, q), proposed
        return state

    def jump(self, rng: np.random.Generator, state: State, jump: Jump):
        """State at the other end of a jump, log of its acceptance ratio, and gradients."""
        posterior, twig = self.posterior, jump.twig
        check_room(len(twig.larger), posterior.op.max_nodes)
        scales = self.kernels.scales(rng, twig.larger)
        d = len(scales.variances)
        has_values = posterior.op.leaf_type.sampled_in_soft_trees
        shared = shared_places(twig, jump.side, d, posterior.gate_size, has_values)
        z, larger, smaller = state.q, state.index, state.index
        if jump.grows:
            posterior.place(twig.smaller, smaller)
            z = np.empty(d)
            z[shared] = state.q
            fresh = self.draw_fresh(rng, state.q)
            z[np.setdiff1d(np.arange(d), shared)] = fresh
            if posterior.op.by_index:
                larger = np.insert(state.index, twig.split, posterior.draw_index(rng, 1))
        elif posterior.op.by_index:
            smaller = np.delete(state.index, twig.split)

        def terms(z):
            posterior.place(twig.smaller, smaller)
            below = posterior.terms(z[shared])
            posterior.place(twig.larger, larger)
            above = posterior.terms(z)
            # what a jump draws has its prior as its density, which the larger prior counts
            d_base, d_gain = above.d_prior.copy(), above.d_likelihood.copy()
            d_base[shared] += below.d_likelihood
            d_gain[shared] -= below.d_likelihood
            base, gain = above.prior + below.likelihood, above.likelihood - below.likelihood
            return Point(base, gain, d_base, d_gain)

        with np.errstate(all="ignore"):  # a trajectory that diverges
            way = self.cross(rng, z, terms, scales, jump.grows)
        op, sign = posterior.op, 1.0 if jump.grows else -1.0
        log_ratio = log_prior(twig.larger, op.alpha, op.beta)
        log_ratio -= log_prior(twig.smaller, op.alpha, op.beta)
        log_ratio += log_proposal_ratio(twig, self.settings.grow, self.settings.prune)
        log_ratio = sign * log_ratio + way.log_weight
        if jump.grows:
            return State(twig.larger, larger, way.z), log_ratio, way.gradients
        return State(twig.smaller, smaller, way.z[shared]), log_ratio, way.gradients

    def cross(self, rng, z, terms, scales, up) -> Way:
        """The bridge from one topology to the other."""
        return cross(rng, z, terms, scales, self.settings.bridge, up)

    def draw_fresh(self, rng: np.random.Generator, q: np.ndarray) -> np.ndarray:
        """What a larger topology has more, from its prior: leaf value, threshold, weights."""
        value = self.posterior.draw_values(rng, q, 1)
        return np.append(value, draw_gates(rng, 1, 1, self.posterior.gate_size))
