"""DCC-Tree: global iterations over topologies, and their combined posterior (algorithm 1)."""

import math
import warnings
import zlib
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.arguments import check_number, check_positive, check_share
from pymc_trees.dcc.evidence import MAX_CENTRES, Evidence, estimate_evidence, pooled_covariances
from pymc_trees.dcc.kernels.encode import draw_topology, log_prior
from pymc_trees.dcc.local import (
    LocalChain,
    LocalRun,
    Refit,
    Runner,
    begin,
    plan_starts,
    refit,
    visit,
)
from pymc_trees.dcc.neighbours import propose
from pymc_trees.dcc.topology_model import TopologyModel

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
        """Count topologies drawn from the prior as proposed, but for those that are too large."""
        left_out, room = 0, self.max_nodes
        for _ in range(initial_trees):
            try:
                self.count(draw_topology(rng, self.alpha, self.beta, room))
            except ValueError:
                left_out += 1
                if left_out == initial_trees:
                    raise
        if left_out:
            warnings.warn(
                f"{left_out} of {initial_trees} topologies drawn from the prior were left out, as "
                f"max_nodes={room}. If topologies of nearly this size have much weight, declare "
                f"the SoftDecisionTree with a larger one, for example max_nodes={2 * room + 1}.",
                stacklevel=2,
            )

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


# ------------------------------------------------------------------------------------- Settings


class Settings(NamedTuple):
    """Numbers of a run; defaults are those of the paper or of the authors' program."""

    chains: int = 16
    """N_c, local chains per topology."""
    local_draws: int = 100
    """N_s, draws per chain and visit."""
    tune: int = 2000
    """N_INIT, warm-up per chain."""
    importance_draws: int = 10
    """N_M, pseudo-draws per Gaussian."""
    initial_trees: int = 100
    """T_0, topologies drawn from the prior at the start."""
    threshold: int = 5
    """C_0: a topology proposed more often than this becomes active."""
    max_active: int = 100
    """T_max, maximal number of active topologies."""
    exploration: float = 0.0
    """Delta of eq. 10."""
    optimism: float = 0.1
    """Beta of eq. 10."""
    screening: float = 0.2
    """Share of the warm-up before the first visit of a topology."""


RUN = Settings()
"""Defaults of `sample_dcc`."""

STEP = Settings(chains=4)
"""Defaults of `DCCTree`: `pymc.sample` makes one run for each of its chains."""

MINIMA = {
    "chains": 1,
    "local_draws": 2,
    "tune": 20,
    "importance_draws": 1,
    "initial_trees": 1,
    "threshold": 0,
    "max_active": 1,
}


def check_settings(**given) -> Settings:
    """The settings with these names, if all are in range."""
    numbers = {name: check_number(name, given[name], low) for name, low in MINIMA.items()}
    return Settings(
        **numbers,
        exploration=check_share("exploration", given["exploration"]),
        optimism=check_positive("optimism", given["optimism"]),
        screening=check_share("screening", given["screening"]),
    )


# -------------------------------------------------------------------------------- Topologies


QUICK_CENTRES = 500
"""Number of Gaussians in estimates that only decide which topology is visited next."""
SHORTEST = 100
"""Minimal length of a short warm-up: a shorter one would cost more in the visit than it saves."""


@dataclass_state
class Topology(DataClassState):
    """Chains, draws and evidence of an active topology."""

    chains: list[LocalChain]
    draws: list[np.ndarray]
    """One (chains, local draws, d) array per visit."""
    divergences: int
    """After warm-up."""
    estimate: tuple
    """log Z, log variance of the weights, largest log weight, mean and sd of the log weights."""
    visits: int
    """Including visits whose draws were replaced after a later warm-up."""
    is_screened: bool
    """Whether only the short warm-up was made."""
    begins_anew: bool
    """Whether the next draws replace those so far, which followed a short warm-up."""


NOT_VISITED = (-np.inf, -np.inf, -np.inf, 0.0, 0.0)


def _add_counts(chain: LocalChain, before: LocalChain) -> LocalChain:
    """A chain, with the counts of the chain that it replaces added to its own."""
    return LocalChain(
        nuts=chain.nuts,
        warm_ups=chain.warm_ups + before.warm_ups,
        gradients=chain.gradients + before.gradients,
    )


class Combined(NamedTuple):
    """The combined posterior (eq. 28-29); topologies by decreasing weight."""

    labels: list[str]
    log_evidence: np.ndarray
    error: np.ndarray
    log_prior: np.ndarray
    weight: np.ndarray


class DCC:
    """A run of DCC-Tree on one model.

    Parameters
    ----------
    model : TopologyModel
    settings : Settings
    seed : int
        It determines all draws, on any number of cores.
    cores : int
        Number of processes for local inference.
    """

    def __init__(self, model: TopologyModel, settings: Settings, seed: int, cores: int = 1):
        op = model.op
        self.model, self.settings, self.seed = model, settings, seed
        self.run = Runner(model, cores)
        self.rng = np.random.default_rng([seed, 0])
        self.search = Search(
            op.alpha,
            op.beta,
            settings.threshold,
            settings.max_active,
            op.max_nodes,
            settings.exploration,
            settings.optimism,
        )
        self.search.start(self.rng, settings.initial_trees)
        self.topologies: dict[str, Topology] = {}

    def _seed(self, label: str, *numbers: int) -> list[int]:
        return [self.seed, 1, zlib.crc32(label.encode()), len(label), *numbers]

    def log_prior(self, label: str) -> float:
        """Log of p(m)."""
        return log_prior(label, self.model.op.alpha, self.model.op.beta)

    def state(self) -> dict:
        """Everything that is needed to continue the run, as plain and comparable values."""
        return {
            "seed": self.seed,
            "rng": self.rng.bit_generator.state,
            "proposed": dict(self.search.proposed),
            "active": list(self.search.active),
            "topologies": dict(self.topologies),
        }

    @classmethod
    def resume(cls, model: TopologyModel, settings: Settings, state: dict) -> "DCC":
        """Continue a run from its `state`."""
        state = deepcopy(state)
        counts = {len(topology.chains) for topology in state["topologies"].values()}
        if counts - {settings.chains}:
            raise ValueError(
                f"chains={settings.chains}: this run has {max(counts)} chains a topology. Give "
                "DCCTree the settings of the first run."
            )
        dcc = cls(model, settings, state["seed"])
        dcc.rng.bit_generator.state = state["rng"]
        dcc.search.proposed, dcc.search.active = state["proposed"], state["active"]
        dcc.topologies = state["topologies"]
        return dcc

    def iterate(self) -> str:
        """One global iteration: warm up new topologies, visit one topology, propose another.

        A topology that is chosen for the second time is warmed up in full, and its draws begin
        anew. Returns the label of the visited topology.
        """
        settings = self.settings
        self.search.activate()
        # an interrupted iteration may have left topologies active without chains
        self._begin([label for label in self.search.active if label not in self.topologies])
        label = self._select()
        if self.topologies[label].visits and self.topologies[label].is_screened:
            self.warm_up([label], settings.tune)
        self.visit(label)
        self.search.step(self.rng, label)
        return label

    def visit(self, label: str) -> None:
        """Continue the chains of a topology, and estimate its evidence."""
        topology, n = self.topologies[label], self.settings.local_draws
        if topology.is_screened:
            n = max(round(self.settings.screening * n), MINIMA["local_draws"])
        runs = self.run(visit, [(label, chain, n) for chain in topology.chains])
        earlier = [] if topology.begins_anew else topology.draws
        draws = [*earlier, np.stack([run.draws for run in runs])]
        # Nothing has changed so far, so an interrupt of the estimate does no harm.
        quick = self._estimate(label, draws, QUICK_CENTRES)
        topology.chains = [run.chain for run in runs]
        topology.draws = draws
        topology.divergences += sum(run.divergences for run in runs)
        topology.visits += 1
        topology.begins_anew = False
        finite = quick.log_weights[np.isfinite(quick.log_weights)]
        topology.estimate = (
            quick.log_evidence,
            quick.log_variance,
            float(finite.max()),
            float(finite.mean()),
            float(finite.std()),
        )

    def _begin(self, new: list[str]) -> None:
        """Warm up new topologies, small ones first: larger ones start from them."""
        tune, share = self.settings.tune, self.settings.screening
        short = min(max(round(share * tune), SHORTEST), tune)
        for _, level in groupby(sorted(new, key=len), key=len):
            self.warm_up(list(level), short)

    def warm_up(self, labels: list[str], tune: int) -> None:
        """Warm up chains of topologies from new starting points, and pool their covariances.

        Covariances are estimated twice in a full warm-up, once in a short one. If the first ones
        make draws more expensive than the variances of each chain did, the second are diagonal.
        """
        states = {
            label: np.stack([chain.nuts.position for chain in topology.chains])
            for label, topology in self.topologies.items()
        }
        is_full = tune == self.settings.tune
        starts = []
        for label in labels:
            seeds = [self._seed(label, k, int(is_full)) for k in range(self.settings.chains)]
            starts += [(label, start, tune) for start in plan_starts(label, seeds, states)]
        runs = self.run(begin, starts)
        costs = self._costs(runs)
        pooled = self._refits(labels, runs, 2 + is_full, [True] * len(labels), not is_full)
        runs = self.run(refit, pooled)
        if is_full:
            pays = [new < old for new, old in zip(self._costs(runs), costs, strict=True)]
            runs = self.run(refit, self._refits(labels, runs, 4, pays, is_last=True))
        for label, own in zip(labels, self._by_topology(runs), strict=True):
            chains, before = [run.chain for run in own], self.topologies.get(label)
            if before is not None:
                chains = [_add_counts(*pair) for pair in zip(chains, before.chains, strict=True)]
            self.topologies[label] = Topology(
                chains=chains,
                draws=[] if before is None else before.draws,
                divergences=0,
                estimate=NOT_VISITED if before is None else before.estimate,
                visits=0 if before is None else before.visits,
                is_screened=not is_full,
                begins_anew=True,
            )

    def _by_topology(self, runs: list) -> list[list]:
        n = self.settings.chains
        return [runs[k : k + n] for k in range(0, len(runs), n)]

    def _costs(self, runs: list[LocalRun]) -> list[float]:
        return [sum(run.cost for run in own) for own in self._by_topology(runs)]

    def _refits(self, labels, runs: list[LocalRun], stage: int, pays: list[bool], is_last: bool):
        """Arguments of `refit`: pooled covariances, diagonal if a full one does not pay."""
        refits = []
        for label, own, is_full in zip(labels, self._by_topology(runs), pays, strict=True):
            covariances = pooled_covariances([run.draws for run in own], is_full)
            for k, (run, covariance) in enumerate(zip(own, covariances, strict=True)):
                what = Refit(self._seed(label, k, stage), run.chain, covariance, is_last)
                refits.append((label, what, self.settings.tune))
        return refits

    def _select(self) -> str:
        active = [self.topologies[label] for label in self.search.active]
        visits = np.array([t.visits for t in active])
        log_z, log_variance, largest, mean, sd = np.array([t.estimate for t in active]).T
        prior = np.array([self.log_prior(label) for label in self.search.active])
        return self.search.select(
            visits, log_z + prior, log_variance + 2.0 * prior, largest + prior, mean + prior, sd
        )

    def evidence(self, label: str) -> Evidence:
        """Evidence of a visited topology from all its draws, which determine it."""
        return self._estimate(label, self.topologies[label].draws, MAX_CENTRES)

    def _estimate(self, label: str, draws: list[np.ndarray], max_centres: int) -> Evidence:
        self.model.set_topology(label)
        rng = np.random.default_rng(self._seed(label, 1_000_000 + len(draws)))
        return estimate_evidence(
            rng,
            np.concatenate(draws, axis=1),
            self.model.log_densities,
            self.model.draw_prior,
            self.settings.importance_draws,
            max_centres,
        )

    def combine(self) -> Combined:
        """Weights of all visited topologies."""
        labels = [label for label, topology in self.topologies.items() if topology.draws]
        evidence = [self.evidence(label) for label in labels]
        log_z = np.array([e.log_evidence for e in evidence])
        error = np.array([e.error for e in evidence])
        prior = np.array([self.log_prior(label) for label in labels])
        log_mass = log_z + prior
        weight = np.exp(log_mass - log_mass.max())
        weight /= weight.sum()
        order = np.argsort(-log_mass, kind="stable")  # not by weight: small ones underflow to 0
        return Combined(
            [labels[k] for k in order], log_z[order], error[order], prior[order], weight[order]
        )

    def draw_parameters(self, rng: np.random.Generator, label: str, count: int) -> np.ndarray:
        """(count, d) draws of a topology's parameters: weighted pseudo-draws (eq. 14)."""
        evidence = self.evidence(label)
        return evidence.points[rng.choice(len(evidence.points), count, p=evidence.probabilities)]
