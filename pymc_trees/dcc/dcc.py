"""DCC-Tree: global iterations over topologies, and their combined posterior (algorithm 1)."""

import zlib
from copy import deepcopy
from itertools import groupby
from typing import NamedTuple

import numpy as np
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.core.soft.topology import log_prior
from pymc_trees.dcc.evidence import MAX_CENTRES, Evidence, estimate_evidence, pooled_covariances
from pymc_trees.dcc.local import LocalChain, LocalRun, Refit, Runner, plan_starts
from pymc_trees.dcc.search import Search
from pymc_trees.dcc.settings import LEAST, Settings
from pymc_trees.dcc.soft_posterior import SoftPosterior

QUICK_CENTRES = 500
"""Gaussians of the estimates that only decide which topology is visited next."""
SHORTEST = 100
"""Iterations of a short warm-up, at least: fewer would cost more in the visit than they save."""


@dataclass_state
class Topology(DataClassState):
    """What is known of an active topology."""

    chains: list[LocalChain]
    draws: list[np.ndarray]
    """One (chains, local draws, d) array a visit."""
    divergences: int
    """After warm-up."""
    estimate: tuple
    """log Z, log variance of the weights, their largest logarithm, and mean and sd of these."""
    visits: int
    """Including those whose draws a later warm-up replaced."""
    is_screened: bool
    """Whether the warm-up was the short one."""
    begins_anew: bool
    """Whether the next draws take the place of those so far, which a short warm-up led to."""


UNKNOWN = (-np.inf, -np.inf, -np.inf, 0.0, 0.0)


def _counted(chain: LocalChain, before: LocalChain) -> LocalChain:
    """A chain with the counts of the one that it replaces added."""
    return LocalChain(
        nuts=chain.nuts,
        warm_ups=chain.warm_ups + before.warm_ups,
        gradients=chain.gradients + before.gradients,
    )


class Combined(NamedTuple):
    """The combined posterior (eq. 28-29); topologies by falling weight."""

    labels: list[str]
    log_evidence: np.ndarray
    error: np.ndarray
    log_prior: np.ndarray
    weight: np.ndarray


class DCC:
    """A run on one model.

    Parameters
    ----------
    posterior : SoftPosterior
    settings : Settings
    seed : int
        Everything follows from it, on any number of cores.
    cores : int
        Processes for local inference.
    """

    def __init__(self, posterior: SoftPosterior, settings: Settings, seed: int, cores: int = 1):
        op = posterior.op
        self.posterior, self.settings, self.seed = posterior, settings, seed
        self.run = Runner(posterior, cores)
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
        return log_prior(label, self.posterior.op.alpha, self.posterior.op.beta)

    def state(self) -> dict:
        """Everything that a run needs to go on, as plain and comparable values."""
        return {
            "seed": self.seed,
            "rng": self.rng.bit_generator.state,
            "proposed": dict(self.search.proposed),
            "active": list(self.search.active),
            "topologies": dict(self.topologies),
        }

    @classmethod
    def resume(cls, posterior: SoftPosterior, settings: Settings, state: dict) -> "DCC":
        """A run that goes on from a `state`."""
        state = deepcopy(state)
        made = {len(topology.chains) for topology in state["topologies"].values()}
        if made - {settings.chains}:
            raise ValueError(
                f"chains={settings.chains}: this run has {max(made)} chains a topology. Give "
                "DCCTree the settings of the first run."
            )
        dcc = cls(posterior, settings, state["seed"])
        dcc.rng.bit_generator.state = state["rng"]
        dcc.search.proposed, dcc.search.active = state["proposed"], state["active"]
        dcc.topologies = state["topologies"]
        return dcc

    def iterate(self) -> str:
        """One global iteration: warm up what is new, visit one topology, propose another.

        A topology that is chosen for the second time warms up in full, and its draws begin anew.
        Returns the label of the topology visited.
        """
        settings = self.settings
        self.search.activate()
        # an interrupted iteration may have left topologies active that nothing is known of
        self._begin([label for label in self.search.active if label not in self.topologies])
        label = self._select()
        if self.topologies[label].visits and self.topologies[label].is_screened:
            self.warm_up([label], settings.tune)
        self.visit(label)
        self.search.step(self.rng, label)
        return label

    def visit(self, label: str) -> None:
        """Run the chains of a topology on, and estimate its evidence."""
        topology, n = self.topologies[label], self.settings.local_draws
        if topology.is_screened:
            n = max(round(self.settings.screening * n), LEAST["local_draws"])
        runs: list[LocalRun] = self.run([(label, chain, n) for chain in topology.chains])
        earlier = [] if topology.begins_anew else topology.draws
        draws = [*earlier, np.stack([run.draws for run in runs])]
        # before anything changes: it can be interrupted
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
        """Warm up new topologies, the small ones first: larger ones start from them."""
        tune, share = self.settings.tune, self.settings.screening
        short = min(max(round(share * tune), SHORTEST), tune)
        for _, level in groupby(sorted(new, key=len), key=len):
            self.warm_up(list(level), short)

    def warm_up(self, labels: list[str], tune: int) -> None:
        """Warm up the chains of topologies from new starts, until they share covariances.

        These are estimated twice in a full warm-up, once in a short one. Where draws by the first
        cost more than by the variances of each chain, the second are diagonal.
        """
        states = {
            label: np.stack([chain.nuts.position for chain in topology.chains])
            for label, topology in self.topologies.items()
        }
        is_full = tune == self.settings.tune
        tasks = []
        for label in labels:
            seeds = [self._seed(label, k, int(is_full)) for k in range(self.settings.chains)]
            tasks += [(label, start, tune) for start in plan_starts(label, seeds, states)]
        runs = self.run(tasks)
        alone = self._costs(runs)
        runs = self.run(self._refits(labels, runs, 2 + is_full, [True] * len(labels), not is_full))
        if is_full:
            pays = [own < before for own, before in zip(self._costs(runs), alone, strict=True)]
            runs = self.run(self._refits(labels, runs, 4, pays, is_last=True))
        for label, own in zip(labels, self._by_topology(runs), strict=True):
            chains, before = [run.chain for run in own], self.topologies.get(label)
            if before is not None:
                chains = [_counted(*pair) for pair in zip(chains, before.chains, strict=True)]
            self.topologies[label] = Topology(
                chains=chains,
                draws=[] if before is None else before.draws,
                divergences=0,
                estimate=UNKNOWN if before is None else before.estimate,
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
        """Tasks: a covariance of all chains for each, diagonal where a full one does not pay."""
        tasks = []
        for label, own, is_full in zip(labels, self._by_topology(runs), pays, strict=True):
            covariances = pooled_covariances([run.draws for run in own], is_full)
            for k, (run, covariance) in enumerate(zip(own, covariances, strict=True)):
                what = Refit(self._seed(label, k, stage), run.chain, covariance, is_last)
                tasks.append((label, what, self.settings.tune))
        return tasks

    def _select(self) -> str:
        known = [self.topologies[label] for label in self.search.active]
        visits = np.array([t.visits for t in known])
        log_z, log_variance, largest, mean, sd = np.array([t.estimate for t in known]).T
        prior = np.array([self.log_prior(label) for label in self.search.active])
        return self.search.select(
            visits, log_z + prior, log_variance + 2.0 * prior, largest + prior, mean + prior, sd
        )

    def evidence(self, label: str) -> Evidence:
        """Evidence of a visited topology from all its draws; the same for the same draws."""
        return self._estimate(label, self.topologies[label].draws, MAX_CENTRES)

    def _estimate(self, label: str, draws: list[np.ndarray], max_centres: int) -> Evidence:
        self.posterior.bind(label)
        rng = np.random.default_rng(self._seed(label, 1_000_000 + len(draws)))
        return estimate_evidence(
            rng,
            np.concatenate(draws, axis=1),
            self.posterior.log_densities,
            self.posterior.draw_prior,
            self.settings.importance_draws,
            max_centres,
        )

    def combine(self) -> Combined:
        """Weights of all visited topologies."""
        labels = [label for label, topology in self.topologies.items() if topology.draws]
        found = [self.evidence(label) for label in labels]
        log_z = np.array([e.log_evidence for e in found])
        error = np.array([e.error for e in found])
        prior = np.array([self.log_prior(label) for label in labels])
        log_mass = log_z + prior
        weight = np.exp(log_mass - log_mass.max())
        weight /= weight.sum()
        order = np.argsort(-log_mass, kind="stable")  # a far smaller weight is 0
        return Combined(
            [labels[k] for k in order], log_z[order], error[order], prior[order], weight[order]
        )

    def draw_parameters(self, rng: np.random.Generator, label: str, count: int) -> np.ndarray:
        """(count, d) draws of a topology's parameters: weighted pseudo-draws (eq. 14)."""
        evidence = self.evidence(label)
        return evidence.points[rng.choice(len(evidence.points), count, p=evidence.probabilities)]
