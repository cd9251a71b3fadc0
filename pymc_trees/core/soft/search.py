"""Known and active topologies, and the choice of the next one to visit (algorithm 1)."""

import warnings
from dataclasses import dataclass, field

import numpy as np

from pymc_trees.core.soft.neighbours import propose
from pymc_trees.core.soft.topology import draw_topology
from pymc_trees.core.soft.utility import exploitation, exploration, utility


@dataclass
class Search:
    """Discovered topologies with how often each was proposed, and those among them that are active.

    Parameters
    ----------
    alpha, beta : float
        Prior of the topologies.
    threshold : int
        C_0: a topology that was proposed more often becomes active.
    max_active : int
        Maximal number of active topologies; others stay known, and the search continues.
    max_nodes : int
        Maximal number of nodes of the random variable.
    delta : float
        Share of exploration in the utility.
    optimism : float
        Beta of the utility: how much a topology gains by having had few visits.
    """

    alpha: float
    beta: float
    threshold: int
    max_active: int
    max_nodes: int
    delta: float = 0.0
    optimism: float = 1.0
    proposed: dict[str, int] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)

    def start(self, rng: np.random.Generator, initial_trees: int) -> None:
        """Discover topologies of the prior."""
        for _ in range(initial_trees):
            self.count(draw_topology(rng, self.alpha, self.beta, self.max_nodes))

    def count(self, label: str) -> None:
        """Record that a topology was proposed."""
        self.proposed[label] = self.proposed.get(label, 0) + 1

    def activate(self) -> list[str]:
        """Make active what was proposed more often than the threshold; those that are new.

        Where nothing is active yet, the topology proposed most often is.
        """
        often = sorted(self.proposed, key=lambda label: -self.proposed[label])
        new = [
            label
            for label in often
            if self.proposed[label] > self.threshold and label not in self.active
        ]
        if not self.active and not new:
            new = often[:1]
        new = new[: max(self.max_active - len(self.active), 0)]
        self.active += new
        return new

    def select(self, visits, log_mass, log_variance, largest, mean, sd) -> str:
        """Active topology of the highest utility (eq. 10); arrays in the order of ``active``."""
        seen = visits > 0
        tau, rho = np.zeros(len(visits)), np.zeros(len(visits))
        if seen.any():
            tau[seen] = exploitation(log_mass[seen], log_variance[seen])
            rho[seen] = exploration(largest[seen].max(), mean[seen], sd[seen])
        return self.active[int(np.argmax(utility(visits, tau, rho, self.delta, self.optimism)))]

    def step(self, rng: np.random.Generator, label: str) -> None:
        """Global update: propose a topology from the one just visited, unless it is too large."""
        new, room = propose(rng, label), self.max_nodes
        if len(new) <= room:
            self.count(new)
            return
        warnings.warn(
            f"A topology of {len(new)} nodes was proposed and left out, as max_nodes={room}. If "
            "topologies of nearly this size have much weight, declare the SoftDecisionTree with a "
            f"larger one, for example max_nodes={2 * room + 1}.",
            stacklevel=2,
        )
