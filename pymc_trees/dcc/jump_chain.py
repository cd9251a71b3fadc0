"""One iteration: moves within the topology, then perhaps a jump to a neighbour (`RJHMC`)."""

from typing import NamedTuple

import numpy as np
import pymc as pm

from pymc_trees.core.soft.topology import log_prior, n_splits
from pymc_trees.dcc.bridge import Point, Scales, cross
from pymc_trees.dcc.jump_posterior import JumpPosterior, State
from pymc_trees.dcc.local import warm_up
from pymc_trees.dcc.neighbours import (
    Jump,
    LeafSplit,
    log_proposal_ratio,
    propose_jump,
    shared_places,
)
from pymc_trees.dcc.nuts import NutsChain, advance, restore, scales_of
from pymc_trees.dcc.soft_posterior import draw_gates
from pymc_trees.distributions.capacity import ForestTooLargeError

# ---------------------------------------------------------- What NUTS is tuned to in each topology
#
# A topology that is met for the first time gets a warm-up of its own, from a draw of its prior.
# The state of the chain does not enter it, so that topologies may be met after tuning too: given
# what all topologies are tuned to, each transition of the chain leaves the posterior invariant,
# and that is drawn without regard to where the chain is. While the chain tunes, its own draws
# adapt the topology it is in further.


class Kernels:
    """NUTS in every topology met so far.

    Parameters
    ----------
    posterior : JumpPosterior
    tune : int
        Iterations of a warm-up.
    known : mapping of str to NutsChain, optional
        What topologies are tuned to already.
    """

    def __init__(self, posterior: JumpPosterior, tune: int, known=None):
        self.posterior, self.tune = posterior, tune
        self._resting: dict[str, NutsChain] = dict(known or {})
        self._alive: dict[str, pm.NUTS] = {}
        self.reference: tuple[np.ndarray, dict] = posterior.others, posterior.given()
        """What warm-ups take the other variables for: those of the last iteration of tuning."""

    def __len__(self) -> int:
        return len(self._resting)

    @property
    def known(self) -> dict[str, NutsChain]:
        """What topologies are tuned to, and the generators of their NUTS."""
        for label, step in self._alive.items():
            resting = self._resting[label]
            self._resting[label] = NutsChain(position=resting.position, state=step.sampling_state)
        return dict(self._resting)

    def _step(self, rng: np.random.Generator, label: str) -> pm.NUTS | None:
        """NUTS of a topology, after a warm-up when it is new; None where there is no parameter."""
        if label not in self._resting:
            self._resting[label] = self._warm_up(rng, label)
        if label not in self._alive:
            chain = self._resting[label]
            if chain.state is None:
                return None
            self._alive[label] = restore(self.posterior.density, chain)
        return self._alive[label]

    def _warm_up(self, rng: np.random.Generator, label: str) -> NutsChain:
        posterior, given = self.posterior, self.posterior.given()
        posterior.others, reference = self.reference
        posterior.set_given(reference)
        posterior.inputs = posterior.draw_inputs(rng, n_splits(label))
        try:
            return warm_up(posterior, label, rng, self.tune).chain.nuts
        finally:
            posterior.set_given(given)
            posterior.set_sharpness(posterior.op.h[1])

    def scales(self, rng: np.random.Generator, label: str) -> Scales:
        """Step size and variances of HMC in a topology with splits."""
        step = self._step(rng, label)
        assert step is not None
        return Scales(*scales_of(step))

    def run(self, rng: np.random.Generator, state: State, n: int, tune: bool):
        """NUTS iterations within a topology: the state after them, divergences, gradients."""
        step = self._step(rng, state.label)
        if step is None or n == 0:
            return state, 0, 0
        self.posterior.place(state.label, state.inputs)
        draws, diverging, gradients = advance(step, state.q, n, tune)
        return state._replace(q=draws[-1].copy()), int(diverging.sum()), gradients


# -------------------- One iteration: moves within the topology, then perhaps a jump to a neighbour


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
        if p == 1 or len(state.inputs) == 0:
            return state
        posterior.place(state.label, state.inputs)
        present = posterior.terms(state.q).likelihood
        for k in range(len(state.inputs)):
            index, q = state.inputs.copy(), state.q
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
        twig = jump.twig
        room = self.posterior.op.max_nodes
        if len(twig.larger) > room:
            raise ForestTooLargeError(
                f"{self.posterior.soft.tree.name} outgrew max_nodes={room}. Declare it with a "
                f"larger one, for example max_nodes={2 * room + 1}."
            )
        scales = self.kernels.scales(rng, twig.larger)
        pair, z = self.matched(rng, state, jump)
        with np.errstate(all="ignore"):  # a trajectory that diverges
            way = cross(rng, z, pair.terms, scales, self.settings.bridge, jump.grows)
        log_ratio = way.log_weight
        log_ratio += self.log_ratio_of_growing(twig) * (1.0 if jump.grows else -1.0)
        return pair.state(way.z, jump.grows), log_ratio, way.gradients

    def log_ratio_of_growing(self, twig: LeafSplit) -> float:
        """Log of the prior of the larger topology over the smaller one's, and of proposals."""
        op, settings = self.posterior.op, self.settings
        prior = log_prior(twig.larger, op.alpha, op.beta) - log_prior(
            twig.smaller, op.alpha, op.beta
        )
        return prior + log_proposal_ratio(twig, settings.grow, settings.prune)

    def matched(self, rng: np.random.Generator, state: State, jump: Jump):
        """Both ends of a jump, and the vector of the larger one that a state is a part of."""
        posterior, twig, side = self.posterior, jump.twig, jump.side
        has_values = posterior.op.leaf_type.sampled_in_soft_trees
        d = len(state.q) + (has_values + posterior.gate_size) * jump.grows
        shared = shared_places(twig, side, d, posterior.gate_size, has_values)
        z, larger, smaller = state.q, state.inputs, state.inputs
        if jump.grows:
            # what the larger has more, from its prior: leaf value, threshold, weights
            posterior.place(twig.smaller, smaller)
            value = posterior.draw_values(rng, state.q, 1)
            z = np.empty(d)
            z[shared] = state.q
            z[np.setdiff1d(np.arange(d), shared)] = np.append(
                value, draw_gates(rng, 1, 1, posterior.gate_size)
            )
        if posterior.op.by_index:
            if jump.grows:
                larger = np.insert(state.inputs, twig.split, posterior.draw_inputs(rng, 1))
            else:
                smaller = np.delete(state.inputs, twig.split)
        return Pair(posterior, twig, shared, smaller, larger), z


class Pair(NamedTuple):
    """Two topologies that a jump connects, as densities of the larger one's vector."""

    posterior: JumpPosterior
    twig: LeafSplit
    shared: np.ndarray
    """Places of the smaller vector."""
    smaller: np.ndarray
    """Inputs of splits, where these are drawn by index."""
    larger: np.ndarray

    def state(self, z: np.ndarray, larger: bool) -> State:
        """State of the larger or smaller topology."""
        if larger:
            return State(self.twig.larger, self.larger, z)
        return State(self.twig.smaller, self.smaller, z[self.shared])

    def terms(self, z: np.ndarray) -> Point:
        """The bridge's two terms: prior of the larger and likelihood of the smaller, and the gain.

        What a jump draws has its prior as its density, which the prior of the larger counts.
        """
        posterior, shared = self.posterior, self.shared
        posterior.place(self.twig.smaller, self.smaller)
        below = posterior.terms(z[shared])
        posterior.place(self.twig.larger, self.larger)
        above = posterior.terms(z)
        d_base, d_gain = above.d_prior.copy(), above.d_likelihood.copy()
        d_base[shared] += below.d_likelihood
        d_gain[shared] -= below.d_likelihood
        base, gain = above.prior + below.likelihood, above.likelihood - below.likelihood
        return Point(base, gain, d_base, d_gain)
