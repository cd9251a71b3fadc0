"""Local inference: the chains of one topology, where they start, and where they run.

They are warmed up once and run on at every visit.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle
import joblib
import numpy as np
from pymc.exceptions import SamplingError
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.soft.topology import n_splits
from pymc_trees.dcc.neighbours import (
    Parameters,
    grow,
    neighbours,
    prune,
    put_together,
    take_apart,
)
from pymc_trees.dcc.nuts import Run, run_chain, start_chain, start_with_covariance
from pymc_trees.dcc.soft_posterior import SoftPosterior
from pymc_trees.processes import given_out, make_parallel

# ------------ Where the chains of a new topology start: at draws of the prior, or from a neighbour
#
# A chain from the prior rarely finds the good mode of a topology of several splits. A visited
# topology that differs by one split has found all but that split. The starting points of chains
# change neither their target nor the weights of draws.


CANDIDATES = 100
"""Starts that one is chosen from: the density is that of the rest too, so that the best is good."""
REDRAWN = 0.5
"""Share of them with another gate from the prior: one that is best alone may bar a better pair."""
PROBE = 1e-3
"""Change of a leaf value that shows the curvature."""


class Start(NamedTuple):
    """What the first state of a chain follows from."""

    seed: list[int]
    donors: list[tuple[str, np.ndarray]]
    """Neighbours and (chains, d) last states of theirs; empty for a start from the prior."""


def plan_starts(
    label: str, seeds: Sequence[list[int]], states: Mapping[str, np.ndarray]
) -> list[Start]:
    """Starts of the chains of a topology: every other one from neighbours, where there are any.

    States that the topology has already are among them. The others keep to the prior: neighbours
    may all be in modes that lead nowhere.

    Parameters
    ----------
    label : str
    seeds : sequence of list of int
        One a chain.
    states : mapping of str to (chains, d) array
        Last states of the chains of each topology there is.
    """
    near = [label, *neighbours(label)]
    donors = [(other, states[other]) for other in near if other in states]
    return [Start(seed, donors if k % 2 else []) for k, seed in enumerate(seeds)]


def neighbour_start(
    posterior: SoftPosterior,
    label: str,
    donors: Sequence[tuple[str, np.ndarray]],
    rng: np.random.Generator,
) -> np.ndarray | None:
    """(d,) best of some starts that each take over a state of a neighbour.

    A new split has a gate from the prior. Its two leaves start with the same value, so all gates
    would be equally good: leaf values are moved to where the density is highest given gates.

    Returns
    -------
    (d,) array or None
        None where no density is finite.
    """
    posterior.bind(label)
    p, splits = posterior.op.p, n_splits(label)
    has_values = posterior.op.leaf_type.sampled_in_soft_trees
    near = neighbours(label)
    best, highest = None, -np.inf
    for fresh in posterior.draw_prior(rng, CANDIDATES):
        other, states = donors[int(rng.integers(len(donors)))]
        state = states[rng.integers(len(states))]
        parts = take_apart(state, n_splits(other), p, has_values)
        gates: Parameters = take_apart(fresh, splits, p, has_values)
        nog = near.get(other)
        if nog is not None and nog.larger == label:
            parts = grow(parts, nog, gates.tau[nog.split], gates.weights[nog.split])
        elif nog is not None:
            parts = prune(parts, nog)
        if splits and rng.random() < REDRAWN:
            k = rng.integers(splits)
            parts.tau[k], parts.weights[k] = gates.tau[k], gates.weights[k]
        places = len(parts.others) + np.arange(len(parts.values))
        q, value = _accept_ordered(posterior, put_together(parts), places)
        if value > highest:
            best, highest = q, value
    return best


def _accept_ordered(posterior: SoftPosterior, q: np.ndarray, places: np.ndarray):
    """A Newton step of some coordinates, where it helps; the vector and its log-density."""

    def at(point):
        with np.errstate(over="ignore", invalid="ignore"), deferred_interrupts():
            value, gradient = posterior.density._pytensor_function(point)
        finite = np.isfinite(value) and np.isfinite(gradient).all()
        return (float(value) if finite else -np.inf), gradient[places]

    value, gradient = at(q)
    if len(places) == 0 or value == -np.inf:
        return q, value
    unit = np.eye(len(q))[places]
    curvature = [(gradient - at(q + PROBE * e)[1]) / PROBE for e in unit]
    curvature = 0.5 * (np.array(curvature) + np.array(curvature).T)
    if not np.isfinite(curvature).all() or np.linalg.eigvalsh(curvature)[0] <= 0:
        return q, value
    moved = q + np.linalg.solve(curvature, gradient) @ unit
    improved, _ = at(moved)
    return (moved, improved) if improved > value else (q, value)


# ----------- Local inference: the chains of one topology, warmed up once and run on at every visit


ANNEAL = (0.075, 0.85)
"""Part of a warm-up in which h falls: iterations 75 to 850 of 1,000 in the authors' program."""
RESTARTS = 3
"""Further warm-ups of a chain that still diverges; after that the geometry is to blame."""
WINDOW = 25
"""Draws that variances are estimated from, at least: fewer might be all the same."""
STEPS = 50
"""Iterations that a step size is adapted in, at least."""
TRIED = 10
"""Iterations after that without adaptation, at least."""
REJECTED = 0.2
"""One less the acceptance rate that the first warm-up aims at (PyMC's default)."""


@dataclass_state
class LocalChain(DataClassState):
    """One chain of one topology between visits."""

    nuts: Any
    """`nuts.NutsChain`"""
    warm_ups: int
    gradients: int
    """Gradient evaluations so far."""


@dataclass_state
class LocalRun(DataClassState):
    """What one chain did in a warm-up or at a visit."""

    chain: LocalChain
    draws: np.ndarray
    """(n, d), of a warm-up the last ones, at the model's sharpness"""
    divergences: int
    """Of a warm-up, in the iterations after the last adaptation."""
    cost: float
    """Gradient evaluations of a draw without adaptation."""


class Refit(NamedTuple):
    """A warmed-up chain that is to adapt its step size to a covariance."""

    seed: list[int]
    chain: LocalChain
    covariance: np.ndarray
    """(d, d)"""
    is_last: bool
    """Whether it repeats this while it diverges."""


def sharpness(i: int, n: int, h: tuple[float, float]) -> float:
    """Sharpness at iteration i of n: h falls by a constant amount between two levels."""
    start, stop = ANNEAL[0] * n, ANNEAL[1] * n
    share = min(max((i - start) / max(stop - start, 1.0), 0.0), 1.0)
    return h[0] + share * (h[1] - h[0])


def warm_up(
    posterior: SoftPosterior,
    label: str,
    rng: np.random.Generator,
    tune: int,
    donors: Sequence = (),
    repeats: bool = True,
) -> LocalRun:
    """Chain that has adapted to a topology, from a draw of the prior or, with donors, near them.

    Steps and variances are adapted anew once h has fallen: those of softer gates are too long and
    too wide. Then a twentieth of the warm-up is run without adaptation. If it ``repeats``, a chain
    that diverges there adapts anew from where it stands, each time half as long again and with half
    as many rejections as aim. A chain that does not move starts from a draw of the prior.

    Near donors (`starts.Start`) h falls from the geometric mean of its two levels: among the
    softest gates such a start would be forgotten, and at the last level alone NUTS adapts at
    greater cost.
    """
    posterior.bind(label)
    density, h = posterior.density, posterior.op.h
    chain, gradients = None, 0
    for attempt in range(1 + RESTARTS):
        n, target = tune + attempt * (tune // 2), 1.0 - REJECTED * 0.5**attempt
        falling = 0
        if chain is None:
            near = neighbour_start(posterior, label, donors, rng) if donors else None
            levels = h if near is None else (float(np.sqrt(h[0] * h[1])), h[1])
            start = posterior.draw_start(rng) if near is None else near
            donors = ()  # a further attempt has the prior's
            run = _fall(posterior, label, start, rng, target, n, levels)
            chain, falling, gradients = run.chain, len(run.draws), gradients + run.gradients
        rest = n - falling
        window = max(rest // 2, WINDOW)
        chain = start_chain(density, chain.position, rng, target, window, chain.variances)
        settling = run_chain(density, chain, rest, tune=True)
        run = run_chain(density, settling.chain, max(tune // 20, 1))
        gradients += settling.gradients + run.gradients
        moves = _moves(run)
        if moves and not (repeats and run.diverging.any()):
            break
        chain = run.chain if moves else None
    after = LocalChain(nuts=run.chain, warm_ups=attempt + 1, gradients=gradients)
    return _reported(after, [settling.draws[rest // 2 :], run.draws], run)


def _fall(posterior, label: str, start: np.ndarray, rng, target: float, n: int, levels) -> Run:
    """Run a new chain on while h falls, in a warm-up of n iterations.

    A likelihood that excludes some values of the tree, such as negative means of counts, may
    exclude the state of the chain at the next h. Then it stays where it starts, without draws.
    """
    chain = start_chain(posterior.density, start, rng, target, max(n // 20, WINDOW))
    try:
        run = run_chain(
            posterior.density,
            chain,
            round(ANNEAL[1] * n),
            tune=True,
            before_each=lambda i: posterior.set_sharpness(sharpness(i, n, levels)),
        )
    except SamplingError:
        run = None
    posterior.bind(label)
    if run is None or not posterior.is_finite(run.chain.position):
        return Run(chain, np.empty((0, len(start))), np.zeros(0, dtype=bool), 0)
    return run


def _reported(chain: LocalChain, draws: list[np.ndarray], run: Run) -> LocalRun:
    """A warm-up, or a visit, that ended with a run."""
    return LocalRun(
        chain=chain,
        draws=np.concatenate(draws),
        divergences=int(run.diverging.sum()),
        cost=run.gradients / len(run.draws),
    )


def _moves(run: Run) -> bool:
    few = len(run.draws) == 1 or run.draws.shape[1] == 0
    return few or bool(np.ptp(run.draws, axis=0).any())


def refit(posterior: SoftPosterior, label: str, what: Refit, tune: int) -> LocalRun:
    """Adapt a chain's step size to a covariance, and run it on without adaptation.

    Each takes a twentieth of a warm-up, or somewhat more. The last time, a chain that then diverges
    does so again with half as many rejections as aim. One that does not move any more keeps what it
    had.
    """
    posterior.bind(label)
    density, chain, rng = posterior.density, what.chain, np.random.default_rng(what.seed)
    if chain.nuts.state is None:
        return LocalRun(chain=chain, draws=np.empty((1, 0)), divergences=0, cost=0.0)
    n, nuts, gradients = max(tune // 20, STEPS), chain.nuts, 0
    for attempt in range(1 + RESTARTS * what.is_last):
        target = 1.0 - REJECTED * 0.5**attempt
        nuts = start_with_covariance(density, nuts.position, rng, target, what.covariance)
        adapting = run_chain(density, nuts, n, tune=True)
        run = run_chain(density, adapting.chain, max(tune // 20, TRIED))
        nuts, gradients = run.chain, gradients + adapting.gradients + run.gradients
        if not run.diverging.any():
            break
    after = LocalChain(
        nuts=nuts if _moves(run) else chain.nuts,
        warm_ups=chain.warm_ups + attempt,
        gradients=chain.gradients + gradients,
    )
    return _reported(after, [adapting.draws[n // 2 :], run.draws], run)


def visit(posterior: SoftPosterior, label: str, chain: LocalChain, n: int) -> LocalRun:
    """Run a chain on at the model's sharpness."""
    posterior.bind(label)
    run = run_chain(posterior.density, chain.nuts, n)
    after = LocalChain(
        nuts=run.chain, warm_ups=chain.warm_ups, gradients=chain.gradients + run.gradients
    )
    return _reported(after, [run.draws], run)


# ---------------- Where chains run: in this process, or in those of joblib. The draws are the same


_POSTERIORS: dict[str, SoftPosterior] = {}
"""Of the model a worker process is at; compiled functions cannot be sent."""


def run_task(posterior: SoftPosterior, task: tuple) -> LocalRun:
    """Warm up at a `Start`, adapt a `Refit`, or visit a `LocalChain`: a label, this, a number."""
    label, what, n = task
    if isinstance(what, LocalChain):
        return visit(posterior, label, what, n)
    if isinstance(what, Refit):
        return refit(posterior, label, what, n)
    rng = np.random.default_rng(what.seed)
    return warm_up(posterior, label, rng, n, what.donors, repeats=False)


def _work(pickled: bytes, digest: str, task: tuple) -> LocalRun:
    if digest not in _POSTERIORS:
        _POSTERIORS.clear()
        _POSTERIORS[digest] = SoftPosterior(cloudpickle.loads(pickled))
    return run_task(_POSTERIORS[digest], task)


class Runner:
    """Runs tasks of `run_task`.

    Parameters
    ----------
    posterior : SoftPosterior
        Used in this process.
    cores : int
        Processes; with 1 everything runs here.
    """

    def __init__(self, posterior: SoftPosterior, cores: int = 1):
        self.posterior, self.cores = posterior, cores
        if cores > 1:
            self.pickled = cloudpickle.dumps(posterior.soft.model)
            self.digest = hashlib.sha256(self.pickled).hexdigest()

    def __call__(self, tasks: Sequence[tuple]) -> list:
        """Results in the order of the tasks."""
        if self.cores == 1 or len(tasks) == 1:
            return [run_task(self.posterior, task) for task in tasks]
        work = joblib.delayed(_work)
        given = (work(self.pickled, self.digest, task) for task in tasks)
        return list(given_out(make_parallel(self.cores), given))
