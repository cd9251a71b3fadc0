"""A chain of RJHMC: NUTS within each topology, and jumps between topologies.

Each iteration moves within the topology, then proposes a jump to a neighbour or stays.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm

from pymc_trees.dcc.jump_model import JumpModel, State
from pymc_trees.dcc.kernels.encode import STUMP, log_prior, n_splits
from pymc_trees.dcc.local import warm_up
from pymc_trees.dcc.neighbours import LeafSplit, Parameters, growable, pack, prunable, prune, unpack
from pymc_trees.dcc.nuts import NutsChain, advance, restore, scales_of
from pymc_trees.dcc.topology_model import draw_gates
from pymc_trees.distributions.capacity import ForestTooLargeError

# --------------- From one density to another by Hamiltonian Monte Carlo, and the weight of the path
#
# A bridge joins two unnormalised densities of the same vector by densities in between,
#
#     log g_b(z) = base(z) + b gain(z),    0 = b_0 < b_1 < .. < b_T < b_{T+1} = 1,
#
# each left invariant by a reversible transition. The vector makes one transition of each. The
# weight of its path is the product of the ratios ``g_next / g_current``, each at the vector's
# position when the density changes (Neal 2001). In a Metropolis-Hastings ratio these weights
# stand for the ratio of the densities: the probability of a path up, times its weight, times g_0,
# equals that of the same path down times g_1 (Karagiannis and Andrieu 2013, section 3).
# Transitions must be reversible and the same in both directions; their efficiency affects
# acceptance only.


MAX_LEAPS = 32
"""Maximal number of leapfrog steps of a transition."""
SLOW_START = 3.0
"""Exponent of the spacing: densities are closer at small b, where they differ most."""


class Point(NamedTuple):
    """The two terms at a vector, and their gradients."""

    base: float
    gain: float
    d_base: np.ndarray
    d_gain: np.ndarray

    def log_density(self, b: float) -> float:
        """Log g_b; minus infinity where it is not a number."""
        value = self.base + b * self.gain if b > 0.0 else self.base
        return value if np.isfinite(value) else -np.inf

    def gradient(self, b: float) -> np.ndarray:
        """Of log g_b."""
        return self.d_base + b * self.d_gain


class Scales(NamedTuple):
    """Tuning of a transition, which does not depend on the vector."""

    step: float
    """Step size of the leapfrog, in units of the standard deviations."""
    variances: np.ndarray
    """(d,) inverse of the diagonal mass."""

    @property
    def max_leaps(self) -> int:
        """Maximal number of leapfrog steps: half a period for a normal with these variances."""
        return int(np.clip(np.ceil(np.pi / self.step), 1, MAX_LEAPS))


class Crossing(NamedTuple):
    """Result of crossing a bridge."""

    z: np.ndarray
    log_weight: float
    """Minus infinity if a density is 0 or undefined."""
    gradients: int
    """Number of evaluations of both terms."""


def spaced(n: int) -> np.ndarray:
    """(n + 2,) powers 0, .., 1 for n densities in between."""
    return (np.arange(n + 2) / (n + 1.0)) ** SLOW_START


def transition(
    rng: np.random.Generator,
    z: np.ndarray,
    at: Point,
    terms: Callable[[np.ndarray], Point],
    b: float,
    scales: Scales,
) -> tuple[np.ndarray, Point, int]:
    """Hamiltonian transition of g_b with a random number of steps, with acceptance (Neal 2011).

    The number of steps does not depend on the vector, and a leapfrog trajectory retraces itself
    when its momentum is negated, so the transition is reversible.

    Returns
    -------
    (d,) vector, its terms, number of gradients
    """
    root = np.sqrt(scales.variances)
    momentum = rng.standard_normal(len(z)) / root
    leaps = int(rng.integers(1, scales.max_leaps + 1))
    new, there = z, at
    energy = at.log_density(b) - 0.5 * np.sum(scales.variances * momentum**2)
    for k in range(leaps):
        momentum = momentum + 0.5 * scales.step * there.gradient(b)
        new = new + scales.step * scales.variances * momentum
        there = terms(new)
        if there.log_density(b) == -np.inf:  # the reverse trajectory would stop here too
            return z, at, k + 1
        momentum = momentum + 0.5 * scales.step * there.gradient(b)
    change = there.log_density(b) - 0.5 * np.sum(scales.variances * momentum**2) - energy
    if np.log(rng.random()) < change:
        return new, there, leaps
    return z, at, leaps


def cross(
    rng: np.random.Generator,
    z: np.ndarray,
    terms: Callable[[np.ndarray], Point],
    scales: Scales,
    n: int,
    up: bool,
) -> Crossing:
    """Cross a bridge of n densities, up from g_0 to g_1 or down.

    Parameters
    ----------
    z : (d,) array
        Starting point.
    terms : callable
        A vector to its `Point`.
    scales : Scales
        The same in both directions.
    n : int
        T; with 0 the weight is that of a plain jump.
    """
    powers = spaced(n)
    if not up:
        powers = powers[::-1]
    at = terms(z)
    log_weight, gradients = 0.0, 1
    for now, then in zip(powers[:-1], powers[1:], strict=True):
        if at.log_density(now) == -np.inf:
            return Crossing(z, -np.inf, gradients)
        log_weight += (then - now) * at.gain
        if not np.isfinite(log_weight):
            return Crossing(z, -np.inf, gradients)
        if then not in (0.0, 1.0):
            z, at, more = transition(rng, z, at, terms, then, scales)
            gradients += more
    return Crossing(z, float(log_weight), gradients)


# -------------------------------------------------------------------------------------------------


# ------------------------------------------------------------------------- NUTS in each topology
#
# A topology that is proposed for the first time gets a warm-up of its own, from a draw of its
# prior. The warm-up does not depend on the state of the chain, so this may happen after tuning too:
# given the adaptation of all topologies each transition of the chain leaves the posterior
# invariant, and the adaptation is independent of the chain. While the chain tunes, its own draws
# also adapt the topology it is in.


class Kernels:
    """NUTS in every topology proposed so far.

    Parameters
    ----------
    model : JumpModel
    tune : int
        Iterations of a warm-up.
    adapted : mapping of str to NutsChain, optional
        Topologies that have been warmed up already.
    """

    def __init__(self, model: JumpModel, tune: int, adapted=None):
        self.model, self.tune = model, tune
        self._adapted: dict[str, NutsChain] = dict(adapted or {})
        self._steps: dict[str, pm.NUTS] = {}
        self.reference: tuple[np.ndarray, dict] = model.other_values, model.fixed_values()
        """Values of all other variables in warm-ups: those at the end of tuning."""

    def __len__(self) -> int:
        return len(self._adapted)

    @property
    def adapted(self) -> dict[str, NutsChain]:
        """Adaptation of every topology, and the generators of its NUTS."""
        for label, step in self._steps.items():
            position = self._adapted[label].position
            self._adapted[label] = NutsChain(position=position, state=step.sampling_state)
        return dict(self._adapted)

    def _step(self, rng: np.random.Generator, label: str) -> pm.NUTS | None:
        """NUTS of a topology, after a warm-up if it is new; None if it has no parameters."""
        if label not in self._adapted:
            self._adapted[label] = self._warm_up(rng, label)
        if label not in self._steps:
            chain = self._adapted[label]
            if chain.state is None:
                return None
            self._steps[label] = restore(self.model.density, chain)
        return self._steps[label]

    def _warm_up(self, rng: np.random.Generator, label: str) -> NutsChain:
        model, fixed = self.model, self.model.fixed_values()
        model.other_values, reference = self.reference
        model.set_fixed(reference)
        model.inputs = model.draw_inputs(rng, n_splits(label))
        try:
            return warm_up(model, label, rng, self.tune).chain.nuts
        finally:
            model.set_fixed(fixed)
            model.set_sharpness(model.op.h[1])

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
        self.model.set_state(state.label, state.inputs)
        draws, diverging, gradients = advance(step, state.q, n, tune)
        return state._replace(q=draws[-1].copy()), int(diverging.sum()), gradients


# ---------------------------------- Jumps: their probabilities, and which parameters are shared
#
# A jump adds or removes a split of two leaves. The leaf that the split replaces has the value of
# the left or right one of these. The value of the other leaf, and the threshold and weights of the
# split, are parameters of the larger topology only. All other parameters are equal in both, so the
# Jacobian of the jump is one.


GROW, PRUNE = 0.2, 0.2
"""Default probabilities of proposals, from the program of Cochrane et al. (2023); the other steps
stay at their topology."""


class Jump(NamedTuple):
    """A proposed topology."""

    change: LeafSplit
    side: int
    """Which of the two leaves has the value of the leaf they replace: 0 the left, 1 the right."""
    grows: bool


def grow_probability(label: str, grow: float, prune: float) -> float:
    """Probability that a leaf grows: a stump, with nothing to prune, grows instead."""
    return grow + prune if label == STUMP else grow


def propose_jump(
    rng: np.random.Generator, label: str, grow: float = GROW, prune: float = PRUNE
) -> Jump | None:
    """Grow a leaf or prune a split, all equally likely, or stay (None)."""
    move = rng.random()
    if move >= grow + prune:
        return None
    grows = move < grow_probability(label, grow, prune)
    changes = growable(label) if grows else prunable(label)
    return Jump(changes[rng.integers(len(changes))], int(rng.integers(2)), grows)


def log_proposal_ratio(change: LeafSplit, grow: float = GROW, prune: float = PRUNE) -> float:
    """Log of the probability of pruning a split over that of growing it."""
    pruning = prune / len(prunable(change.larger))
    growing = grow_probability(change.smaller, grow, prune) / len(growable(change.smaller))
    return float(np.log(pruning) - np.log(growing))


def shared_indices(change: LeafSplit, side: int, d: int, p: int, has_values: bool) -> np.ndarray:
    """Indices in the vector of the larger topology that make up that of the smaller one.

    Parameters
    ----------
    d : int
        Length of the larger vector.
    p : int
        Number of inputs that a split weighs.
    has_values : bool
        Whether leaf values are parameters.
    """
    indices = unpack(np.arange(d), n_splits(change.larger), p, has_values)
    smaller = prune(indices, change)  # except the leaf's value
    values = indices.values
    if has_values:
        values = np.delete(values, change.leaf_index + 1 - side)
    return pack(Parameters(smaller.others, values, smaller.tau, smaller.weights))


# -------------------- One iteration: moves within the topology, then perhaps a jump to a neighbour


REDRAWN = 0.5
"""Share of proposals of another input that redraw the threshold too."""


class Settings(NamedTuple):
    """Settings of a chain."""

    grow: float
    prune: float
    bridge: int
    """Number of densities between two topologies."""
    local_draws: int
    """NUTS iterations within a topology."""


class Iteration(NamedTuple):
    """Result of an iteration."""

    state: State
    jump: int
    """1 if a leaf was proposed to grow, -1 if a split was to be pruned, 0 without a proposal."""
    accepted: bool
    log_ratio: float
    """Log of the acceptance ratio; NaN without a jump."""
    divergences: int
    gradients: int


class JumpChain:
    """Transitions of one chain.

    Parameters
    ----------
    model : JumpModel
    kernels : Kernels
    settings : Settings
    """

    def __init__(self, model: JumpModel, kernels: Kernels, settings: Settings):
        self.model, self.kernels, self.settings = model, kernels, settings

    def iterate(self, rng: np.random.Generator, state: State, tune: bool) -> Iteration:
        """Move within the topology, and propose a jump or stay."""
        local = self.kernels.run(rng, state, self.settings.local_draws, tune)
        state, divergences, gradients = local
        if self.model.op.by_index:
            state = self.redraw_inputs(rng, state)
        jump = propose_jump(rng, state.label, self.settings.grow, self.settings.prune)
        if jump is None:
            return Iteration(state, 0, False, np.nan, divergences, gradients)
        proposed, log_ratio, more = self.jump(rng, state, jump)
        accepted = bool(np.log(rng.random()) < log_ratio)
        room = self.model.op.max_nodes
        if accepted and len(proposed.label) > room:  # only a state has to be encoded
            raise ForestTooLargeError(
                f"{self.model.soft.tree.name} outgrew max_nodes={room}. Declare it with a "
                f"larger one, for example max_nodes={2 * room + 1}."
            )
        state = proposed if accepted else state
        sign = 1 if jump.grows else -1
        return Iteration(state, sign, accepted, log_ratio, divergences, gradients + more)

    def redraw_inputs(self, rng: np.random.Generator, state: State) -> State:
        """Metropolis step of the input of every split; all inputs are equally likely a priori."""
        model, p = self.model, self.model.op.p
        if p == 1 or len(state.inputs) == 0:
            return state
        model.set_state(state.label, state.inputs)
        current = model.terms(state.q).likelihood
        for k in range(len(state.inputs)):
            inputs, q = state.inputs.copy(), state.q
            inputs[k] = (inputs[k] + rng.integers(1, p)) % p
            if rng.random() < REDRAWN:  # from its prior, which cancels in the ratio
                q = q.copy()
                q[len(q) - len(inputs) + k] = draw_gates(rng, 1, 1, 1)[0, 0]
            model.set_state(state.label, inputs)
            proposed = model.terms(q).likelihood
            if np.log(rng.random()) < proposed - current:
                state, current = State(state.label, inputs, q), proposed
        return state

    def jump(self, rng: np.random.Generator, state: State, jump: Jump):
        """Proposed state of a jump, log of its acceptance ratio, and number of gradients."""
        change = jump.change
        scales = self.kernels.scales(rng, change.larger)
        pair, z = self.match_vectors(rng, state, jump)
        with np.errstate(all="ignore"):  # a trajectory that diverges
            crossed = cross(rng, z, pair.terms, scales, self.settings.bridge, jump.grows)
        log_ratio = crossed.log_weight
        log_ratio += self.log_ratio_of_growing(change) * (1.0 if jump.grows else -1.0)
        return pair.state(crossed.z, jump.grows), log_ratio, crossed.gradients

    def log_ratio_of_growing(self, change: LeafSplit) -> float:
        """Log ratio of the priors of the larger and smaller topology, and of the proposals."""
        op, settings = self.model.op, self.settings
        prior = log_prior(change.larger, op.alpha, op.beta) - log_prior(
            change.smaller, op.alpha, op.beta
        )
        return prior + log_proposal_ratio(change, settings.grow, settings.prune)

    def match_vectors(self, rng: np.random.Generator, state: State, jump: Jump):
        """Both topologies of a jump, and the vector of the larger one that contains the state."""
        model, change, side = self.model, jump.change, jump.side
        d = len(state.q) + (model.has_values + model.gate_size) * jump.grows
        shared = shared_indices(change, side, d, model.gate_size, model.has_values)
        z, larger, smaller = state.q, state.inputs, state.inputs
        if jump.grows:
            # additional parameters of the larger topology, from their prior
            model.set_state(change.smaller, smaller)
            value = model.draw_values(rng, state.q, 1)
            z = np.empty(d)
            z[shared] = state.q
            z[np.setdiff1d(np.arange(d), shared)] = np.append(
                value, draw_gates(rng, 1, 1, model.gate_size)
            )
        if model.op.by_index:
            if jump.grows:
                larger = np.insert(state.inputs, change.split_index, model.draw_inputs(rng, 1))
            else:
                smaller = np.delete(state.inputs, change.split_index)
        return Pair(model, change, shared, smaller, larger), z


class Pair(NamedTuple):
    """The two topologies of a jump, as densities of the vector of the larger one."""

    model: JumpModel
    change: LeafSplit
    shared: np.ndarray
    """Indices of the smaller vector."""
    smaller: np.ndarray
    """Inputs of splits in the smaller topology, if each split uses one input."""
    larger: np.ndarray
    """Inputs of splits in the larger topology."""

    def state(self, z: np.ndarray, larger: bool) -> State:
        """State of the larger or smaller topology."""
        if larger:
            return State(self.change.larger, self.larger, z)
        return State(self.change.smaller, self.smaller, z[self.shared])

    def terms(self, z: np.ndarray) -> Point:
        """Terms of the bridge: prior of the larger and likelihood of the smaller, and the gain.

        Additional parameters are drawn from their prior, a factor of the larger topology's prior.
        """
        model, shared = self.model, self.shared
        model.set_state(self.change.smaller, self.smaller)
        below = model.terms(z[shared])
        model.set_state(self.change.larger, self.larger)
        above = model.terms(z)
        d_base, d_gain = above.d_prior.copy(), above.d_likelihood.copy()
        d_base[shared] += below.d_likelihood
        d_gain[shared] -= below.d_likelihood
        base, gain = above.prior + below.likelihood, above.likelihood - below.likelihood
        return Point(base, gain, d_base, d_gain)
