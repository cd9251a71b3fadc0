"""Proposed and active topologies, and which of them is visited next (algorithm 1, eq. 10)."""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np

from pymc_trees.dcc.kernels.topology import draw_topology
from pymc_trees.dcc.neighbours import propose

# ---------------------------------------------- The utility of eq. 10, from logarithms of its terms


LOOK_AHEAD = 1000
"""Number T_a of future samples in eq. 71 (Rainforth 2018)."""


def exploitation(log_mass, log_variance, kappa: float = 0.0) -> np.ndarray:
    """``tau / max tau`` with ``tau^2 = Z^2 + (1 + kappa) sigma^2`` (eq. 66-70).

    Parameters
    ----------
    log_mass : (M,) array
        Log of Z p(m).
    log_variance : (M,) array
        Log of the variance of the importance weights, with the factor p(m)^2.
    """
    log_tau = 0.5 * np.logaddexp(2.0 * np.asarray(log_mass), math.log1p(kappa) + log_variance)
    return np.exp(log_tau - log_tau.max())


def exploration(threshold: float, mean, sd) -> np.ndarray:
    """``rho / max rho``: probability that a future weight exceeds all weights so far (eq. 71).

    Parameters
    ----------
    threshold : float
        Largest log weight of any topology.
    mean, sd : (M,) arrays
        Of the log weights of each topology, assumed normal.
    """
    with np.errstate(divide="ignore"):
        z = np.where(sd > 0, (threshold - mean) / np.where(sd > 0, sd, 1.0), np.inf)
    above = np.array([0.5 * math.erfc(v / math.sqrt(2.0)) for v in z])
    # 1 - (1 - above)^T_a without cancellation
    with np.errstate(divide="ignore"):
        rho = -np.expm1(LOOK_AHEAD * np.log1p(-above))
    largest = rho.max()
    return rho / largest if largest > 0 else np.zeros(len(rho))


def utility(visits, tau, rho, delta: float = 0.0, beta: float = 1.0) -> np.ndarray:
    """U of eq. 10; infinite without a visit.

    Parameters
    ----------
    visits : (M,) int array
        S, visits of each topology.
    tau, rho : (M,) arrays
        From `exploitation` and `exploration`.
    delta : float in [0, 1], default 0
        Share of exploration (default of the authors' program).
    beta : float, default 1
        Optimism boost (default of the authors' program).
    """
    visits = np.asarray(visits)
    s = np.maximum(visits, 1)
    boost = beta * math.log(max(visits.sum(), 1)) / np.sqrt(s)
    return np.where(visits > 0, ((1.0 - delta) * tau + delta * rho + boost) / s, np.inf)


# ----------- Proposed and active topologies, and the choice of the next one to visit (algorithm 1)


@dataclass
class Search:
    """Proposed topologies with the number of their proposals, and those of them that are active.

    Parameters
    ----------
    alpha, beta : float
        Prior of the topologies.
    threshold : int
        C_0: a topology proposed more often than this becomes active.
    max_active : int
        Maximal number of active topologies; further ones stay inactive.
    max_nodes : int
        Maximal number of nodes of the random variable.
    delta : float
        Share of exploration in the utility.
    optimism : float
        Beta of the utility: bonus of topologies with few visits.
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
        """Count topologies drawn from the prior as proposed."""
        for _ in range(initial_trees):
            self.count(draw_topology(rng, self.alpha, self.beta, self.max_nodes))

    def count(self, label: str) -> None:
        """Record that a topology was proposed."""
        self.proposed[label] = self.proposed.get(label, 0) + 1

    def activate(self) -> list[str]:
        """Activate topologies proposed more often than the threshold; return the new ones.

        If none is active yet, the topology proposed most often is activated.
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
