"""Local inference: the chains of one topology, their starting points, and where they run.

Chains are warmed up once and continued at every visit.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import cloudpickle
import joblib
import numpy as np
from pymc.exceptions import SamplingError
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.dcc.kernels.encode import n_splits
from pymc_trees.dcc.neighbours import (
    Parameters,
    grow,
    neighbours,
    pack,
    prune,
    unpack,
)
from pymc_trees.dcc.nuts import Run, run_chain, start_chain, start_with_covariance
from pymc_trees.dcc.topology_model import TopologyModel
from pymc_trees.processes import make_parallel, run_tasks

# ---------- Starting points of the chains of a new topology: draws of the prior, or from neighbours
#
# A chain from the prior rarely finds the best mode of a topology with several splits. The chains
# of a topology with one split less or more have found all but that split. Starting points affect
# neither the target of a chain nor the weights of its draws.


CANDIDATES = 100
"""Candidates of which the one with the highest density becomes a starting point."""
REDRAWN = 0.5
"""Share of candidates in which another gate is redrawn from the prior too: the best single gate may
prevent a better pair."""
PROBE = 1e-3
"""Change of a leaf value in the finite difference of the gradient."""


class Start(NamedTuple):
    """What determines the first state of a chain."""

    seed: list[int]
    donors: list[tuple[str, np.ndarray]]
    """Neighbours and the (chains, d) last states of their chains; empty to start from the prior."""


def plan_starts(
    label: str, seeds: Sequence[list[int]], states: Mapping[str, np.ndarray]
) -> list[Start]:
    """Starts of the chains of a topology: every second chain from neighbours, if there are any.

    The topology's own states count as those of a neighbour. The other chains start from the prior,
    as all neighbours may be in poor modes.

    Parameters
    ----------
    label : str
    seeds : sequence of list of int
        One a chain.
    states : mapping of str to (chains, d) array
        Last states of the chains of each topology so far.
    """
    near = [label, *neighbours(label)]
    donors = [(other, states[other]) for other in near if other in states]
    return [Start(seed, donors if k % 2 else []) for k, seed in enumerate(seeds)]


def neighbour_start(
    model: TopologyModel,
    label: str,
    donors: Sequence[tuple[str, np.ndarray]],
    rng: np.random.Generator,
) -> np.ndarray | None:
    """(d,) best of several candidates, each made from a state of a neighbour.

    A new split gets a gate from the prior. Its two leaves get the same value, with which all gates
    would be equally good, so leaf values are moved to their mode given the gates.

    Returns
    -------
    (d,) array or None
        None if no density is finite.
    """
    model.set_topology(label)
    p, splits = model.op.p, n_splits(label)
    has_values = model.has_values
    near = neighbours(label)
    best, highest = None, -np.inf
    for fresh in model.draw_prior(rng, CANDIDATES):
        other, states = donors[int(rng.integers(len(donors)))]
        state = states[rng.integers(len(states))]
        parts = unpack(state, n_splits(other), p, has_values)
        gates: Parameters = unpack(fresh, splits, p, has_values)
        change = near.get(other)
        if change is not None and change.larger == label:
            parts = grow(
                parts, change, gates.tau[change.split_index], gates.weights[change.split_index]
            )
        elif change is not None:
            parts = prune(parts, change)
        if splits and rng.random() < REDRAWN:
            k = rng.integers(splits)
            parts.tau[k], parts.weights[k] = gates.tau[k], gates.weights[k]
        places = len(parts.others) + np.arange(len(parts.values))
        q, value = _newton_step(model, pack(parts), places)
        if value > highest:
            best, highest = q, value
    return best


def _newton_step(model: TopologyModel, q: np.ndarray, places: np.ndarray):
    """Newton step of some coordinates, if it increases the density; the vector and its density."""

    def at(point):
        with np.errstate(over="ignore", invalid="ignore"), deferred_interrupts():
            value, gradient = model.density._pytensor_function(point)
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


# -------------------------------------- Chains: warm-up, adaptation to a covariance, and visits


ANNEAL = (0.075, 0.85)
"""Part of a warm-up in which h falls: iterations 75 to 850 of 1,000 in the authors' program."""
RESTARTS = 3
"""Maximal number of further warm-ups of a chain that still diverges."""
WINDOW = 25
"""Minimal number of draws that variances are estimated from: fewer might all be equal."""
STEPS = 50
"""Minimal number of iterations in which a step size is adapted."""
TRIAL = 10
"""Minimal number of iterations after that, without adaptation."""
REJECTED = 0.2
"""One minus the target acceptance rate of the first warm-up (PyMC's default)."""


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
    """Result of a warm-up or visit of one chain."""

    chain: LocalChain
    draws: np.ndarray
    """(n, d); of a warm-up the last ones, at the model's sharpness"""
    divergences: int
    """For a warm-up: in the iterations after the last adaptation."""
    cost: float
    """Gradient evaluations per draw without adaptation."""


class Refit(NamedTuple):
    """Adaptation of the step size of a warmed-up chain to a covariance."""

    seed: list[int]
    chain: LocalChain
    covariance: np.ndarray
    """(d, d)"""
    is_last: bool
    """Whether it is repeated while the chain diverges."""


def sharpness(i: int, n: int, h: tuple[float, float]) -> float:
    """Sharpness at iteration i of n: h falls linearly between two levels."""
    start, stop = ANNEAL[0] * n, ANNEAL[1] * n
    share = min(max((i - start) / max(stop - start, 1.0), 0.0), 1.0)
    return h[0] + share * (h[1] - h[0])


def warm_up(
    model: TopologyModel,
    label: str,
    rng: np.random.Generator,
    tune: int,
    donors: Sequence = (),
    repeats: bool = True,
) -> LocalRun:
    """Warm up a chain of a topology from a draw of the prior or, with donors, from their states.

    Step size and variances are adapted anew once h has fallen: those of softer gates are too large.
    Then a twentieth of the warm-up is run without adaptation. If it ``repeats``, a chain that
    diverges there adapts again from its current state, each time for half as long again and with
    half the target rate of rejections. A chain that does not move restarts from a draw of the
    prior.

    With donors (`Start`) h falls from the geometric mean of its two levels: softer gates would
    lose the starting point, and with the last level alone NUTS adapts at greater cost.
    """
    model.set_topology(label)
    density, h = model.density, model.op.h
    chain, gradients = None, 0
    for attempt in range(1 + RESTARTS):
        n, target = tune + attempt * (tune // 2), 1.0 - REJECTED * 0.5**attempt
        falling = 0
        if chain is None:
            near = neighbour_start(model, label, donors, rng) if donors else None
            levels = h if near is None else (float(np.sqrt(h[0] * h[1])), h[1])
            start = model.draw_start(rng) if near is None else near
            donors = ()  # a further attempt has the prior's
            run = _sharpen(model, label, start, rng, target, n, levels)
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


def _sharpen(model, label: str, start: np.ndarray, rng, target: float, n: int, levels) -> Run:
    """Run a new chain while h falls, in a warm-up of n iterations.

    A likelihood that excludes some values of the tree, such as negative means of counts, may
    exclude the state of the chain at the next h. The chain then keeps its starting point and makes
    no draws.
    """
    chain = start_chain(model.density, start, rng, target, max(n // 20, WINDOW))
    try:
        run = run_chain(
            model.density,
            chain,
            round(ANNEAL[1] * n),
            tune=True,
            before_each=lambda i: model.set_sharpness(sharpness(i, n, levels)),
        )
    except SamplingError:
        run = None
    model.set_topology(label)
    if run is None or not model.is_finite(run.chain.position):
        return Run(chain, np.empty((0, len(start))), np.zeros(0, dtype=bool), 0)
    return run


def _reported(chain: LocalChain, draws: list[np.ndarray], run: Run) -> LocalRun:
    """Result of a warm-up or visit whose last part was ``run``."""
    return LocalRun(
        chain=chain,
        draws=np.concatenate(draws),
        divergences=int(run.diverging.sum()),
        cost=run.gradients / len(run.draws),
    )


def _moves(run: Run) -> bool:
    few = len(run.draws) == 1 or run.draws.shape[1] == 0
    return few or bool(np.ptp(run.draws, axis=0).any())


def begin(model: TopologyModel, label: str, start: Start, tune: int) -> LocalRun:
    """Warm up a new chain, once."""
    rng = np.random.default_rng(start.seed)
    return warm_up(model, label, rng, tune, start.donors, repeats=False)


def refit(model: TopologyModel, label: str, what: Refit, tune: int) -> LocalRun:
    """Adapt a chain's step size to a covariance, and continue the chain without adaptation.

    Each takes at least a twentieth of a warm-up. The last refit is repeated if the chain diverges,
    with half the target rate of rejections. A chain that no longer moves keeps its previous
    adaptation.
    """
    model.set_topology(label)
    density, chain, rng = model.density, what.chain, np.random.default_rng(what.seed)
    if chain.nuts.state is None:
        return LocalRun(chain=chain, draws=np.empty((1, 0)), divergences=0, cost=0.0)
    n, nuts, gradients = max(tune // 20, STEPS), chain.nuts, 0
    for attempt in range(1 + RESTARTS * what.is_last):
        target = 1.0 - REJECTED * 0.5**attempt
        nuts = start_with_covariance(density, nuts.position, rng, target, what.covariance)
        adapting = run_chain(density, nuts, n, tune=True)
        run = run_chain(density, adapting.chain, max(tune // 20, TRIAL))
        nuts, gradients = run.chain, gradients + adapting.gradients + run.gradients
        if not run.diverging.any():
            break
    after = LocalChain(
        nuts=nuts if _moves(run) else chain.nuts,
        warm_ups=chain.warm_ups + attempt,
        gradients=chain.gradients + gradients,
    )
    return _reported(after, [adapting.draws[n // 2 :], run.draws], run)


def visit(model: TopologyModel, label: str, chain: LocalChain, n: int) -> LocalRun:
    """Continue a chain at the model's sharpness."""
    model.set_topology(label)
    run = run_chain(model.density, chain.nuts, n)
    after = LocalChain(
        nuts=run.chain, warm_ups=chain.warm_ups, gradients=chain.gradients + run.gradients
    )
    return _reported(after, [run.draws], run)


# ---------------- Where chains run: in this process, or in those of joblib. The draws are the same


_MODELS: dict[str, TopologyModel] = {}
"""Compiled functions of the current model of a worker process, which cannot be sent there."""


def _work(pickled: bytes, digest: str, task: Callable, arguments: tuple) -> LocalRun:
    if digest not in _MODELS:
        _MODELS.clear()
        _MODELS[digest] = TopologyModel(cloudpickle.loads(pickled))
    return task(_MODELS[digest], *arguments)


class Runner:
    """Runs `begin`, `refit` or `visit` for several chains.

    Parameters
    ----------
    model : TopologyModel
        Used in this process.
    cores : int
        Number of processes; with 1 everything runs here.
    """

    def __init__(self, model: TopologyModel, cores: int = 1):
        self.model, self.cores = model, cores
        if cores > 1:
            self.pickled = cloudpickle.dumps(model.soft.model)
            self.digest = hashlib.sha256(self.pickled).hexdigest()

    def __call__(self, task: Callable[..., LocalRun], each: Sequence[tuple]) -> list[LocalRun]:
        """Results of a task for each tuple of its arguments after the model."""
        if self.cores == 1 or len(each) == 1:
            return [task(self.model, *arguments) for arguments in each]
        work = joblib.delayed(_work)
        calls = (work(self.pickled, self.digest, task, arguments) for arguments in each)
        return list(run_tasks(make_parallel(self.cores), calls))
