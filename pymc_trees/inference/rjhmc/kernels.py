"""What NUTS is tuned to in each topology.

A topology that is met for the first time gets a warm-up of its own, from a draw of its prior. The
state of the chain does not enter it, so that topologies may be met after tuning too: given what all
topologies are tuned to, each transition of the chain leaves the posterior invariant, and that is
drawn without regard to where the chain is. While the chain tunes, its own draws adapt the topology
it is in further.
"""

import numpy as np
import pymc as pm

from pymc_trees.core.soft.bridge import Scales
from pymc_trees.core.soft.topology import n_splits
from pymc_trees.inference.dcc.local import warm_up
from pymc_trees.inference.dcc.nuts import NutsChain, advance, revive, scales_of
from pymc_trees.inference.rjhmc.posterior import JumpPosterior, State


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
            self._alive[label] = revive(self.posterior.density, chain)
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
