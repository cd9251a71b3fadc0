"""Local inference: the chains of one topology, warmed up once and run on at every visit."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from pymc.exceptions import SamplingError
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.inference.dcc.nuts import Run, run_chain, start_chain, start_with_covariance
from pymc_trees.inference.dcc.soft_posterior import SoftPosterior
from pymc_trees.inference.dcc.starts import neighbour_start

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
