"""PyMC's NUTS on a compiled log-density of any dimension.

This is the one file that touches private parts of PyMC and PyTensor;
`tests/inference/test_nuts_private.py` pins them.

PyMC makes a NUTS step for the variables of a model. Here the density belongs to a topology, so a
model with one flat vector provides names and shapes, and the density is passed separately.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
from pymc.blocking import RaveledVars
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiagAdapt, QuadPotentialFull
from pymc.step_methods.state import DataClassState, dataclass_state

from pymc_trees.core.interrupts import deferred_interrupts

WEIGHT = 10
"""Draws that the first guess of the variances counts for, as in `pymc.init_nuts`."""
DISCARD = 10
"""Draws at the start that no variance is estimated from; variances follow from then on."""
DOUBLINGS = 8
"""Of a trajectory, at most: 255 gradients a draw. With 10, PyMC's default, draws of trees with
splits in excess cost up to three times as many, and tell no more per gradient (benchmarks)."""


class Density:
    """What NUTS asks of PyMC's compiled log-density: value and gradient of a vector."""

    _raveled_inputs = True
    dtype = "float64"

    def __init__(self, function):
        self.function = function
        self._pytensor_function = _machine_code(function)
        self._extra_vars_shared: dict = {}

    def __reduce__(self):
        return Density, (self.function,)


def _machine_code(function):
    """What a compiled function of one vector calls, without what it does before and after.

    That takes 4 of some 60 us that a gradient takes within NUTS. A function of another kind, as of
    another mode of PyTensor, is returned as it is.
    """
    vm: Any = getattr(function, "vm", None)
    kernel = getattr(vm, "jit_fn", None)
    if kernel is None:
        return function
    [_, *cells] = vm.inputs  # of shared variables: their values may be set anew
    return lambda q: kernel(q, *[cell[0] for cell in cells])


@dataclass_state
class NutsChain(DataClassState):
    """One chain of one topology between visits; everything that NUTS adapted is in it."""

    position: np.ndarray
    """(d,) last draw."""
    state: Any
    """`sampling_state` of the step method: step size, variances, generators. None when d is 0."""
    covariance: np.ndarray | None = None
    """(d, d) what it takes for the covariance of the density; None where it adapts variances."""

    @property
    def variances(self) -> np.ndarray | None:
        """(d,) what it takes for the variances of the density."""
        if self.state is None:
            return None
        if self.covariance is not None:
            return np.diag(self.covariance).copy()
        return self.state.potential._var.copy()


@dataclass
class Run:
    """Draws of one chain."""

    chain: NutsChain
    draws: np.ndarray
    """(n, d)"""
    diverging: np.ndarray
    """(n,) bool"""
    gradients: int
    """Gradient evaluations."""


@cache
def _stand_in(d: int) -> pm.Model:
    with pm.Model(model=None) as model:  # not a part of the model on the stack
        pm.Flat("q", shape=d)
    return model


def _diagonal(position, variances, rng, window) -> QuadPotentialDiagAdapt:
    return QuadPotentialDiagAdapt(
        len(position),
        position.copy(),
        variances.copy(),
        WEIGHT,
        adaptation_window=window,
        discard_window=DISCARD,
        early_update=True,
        rng=rng.spawn(1)[0],
    )


def _make_step(density, position, potential, rng, target_accept) -> pm.NUTS:
    return pm.NUTS(
        model=_stand_in(len(position)),
        logp_dlogp_func=density,
        potential=potential,
        initial_point={"q": position},
        target_accept=target_accept,
        max_treedepth=DOUBLINGS,
        rng=rng.spawn(1)[0],
    )


def start_chain(
    density: Density,
    position: np.ndarray,
    rng: np.random.Generator,
    target_accept: float,
    window: int,
    variances: np.ndarray | None = None,
) -> NutsChain:
    """Chain that has yet to adapt its step size and variances.

    Parameters
    ----------
    window : int
        Variances are those of the last ``window`` to ``2 * window`` draws of the adaptation.
    variances : (d,) array, optional
        First guess of them; default 1.
    """
    if len(position) == 0:  # the stump of a Dirichlet leaf has no parameters
        return NutsChain(position=position, state=None)
    variances = np.ones(len(position)) if variances is None else variances
    potential = _diagonal(position, variances, rng, window)
    step = _make_step(density, position, potential, rng, target_accept)
    return NutsChain(position=position.copy(), state=step.sampling_state)


def start_with_covariance(
    density: Density,
    position: np.ndarray,
    rng: np.random.Generator,
    target_accept: float,
    covariance: np.ndarray,
) -> NutsChain:
    """Chain that has yet to adapt its step size; the (d, d) covariance stays as it is."""
    potential = QuadPotentialFull(covariance, rng=rng.spawn(1)[0])
    step = _make_step(density, position, potential, rng, target_accept)
    return NutsChain(
        position=position.copy(), state=step.sampling_state, covariance=covariance.copy()
    )


def run_chain(density: Density, chain: NutsChain, n: int, *, tune=False, before_each=None) -> Run:
    """Run a chain on.

    Parameters
    ----------
    density : Density
        Value and gradient of the topology's log-density.
    n : int
        Iterations.
    tune : bool
        Whether step size and variances are adapted.
    before_each : callable, optional
        Called with the number of each iteration before it.
    """
    if chain.state is None:
        return Run(chain, np.empty((n, 0)), np.zeros(n, dtype=bool), 0)
    step = restore(density, chain)
    draws, diverging, gradients = advance(step, chain.position, n, tune, before_each)
    position = draws[-1].copy() if n else chain.position
    after = NutsChain(position=position, state=step.sampling_state, covariance=chain.covariance)
    return Run(after, draws, diverging, gradients)


def restore(density: Density, chain: NutsChain) -> pm.NUTS:
    """Step method that goes on where a chain stopped; its density has at least one dimension."""
    rng = np.random.default_rng(0)
    if chain.covariance is not None:
        potential = QuadPotentialFull(chain.covariance, rng=rng)
    else:
        # The first guess of mean and variances is a frozen part of a state; all else comes with it.
        kept = chain.state.potential
        potential = _diagonal(chain.position, kept._initial_diag, rng, 1)
        potential._initial_mean = kept._initial_mean
    step = _make_step(density, chain.position, potential, rng, 0.8)
    step.sampling_state = chain.state
    return step


def advance(step: pm.NUTS, position: np.ndarray, n: int, tune: bool, before_each=None):
    """Run a step method on from a position.

    Returns
    -------
    (n, d) draws, (n,) which of them diverged, gradient evaluations
    """
    step.tune = tune
    d = len(position)
    q = RaveledVars(position, (("q", (d,), d, np.dtype("float64")),))
    draws, diverging, gradients = np.empty((n, d)), np.empty(n, dtype=bool), 0
    with np.errstate(over="ignore", invalid="ignore"):  # a trajectory that diverges
        for i in range(n):
            if before_each is not None:
                before_each(i)
            with deferred_interrupts():
                q, [stats] = step.astep(q)
            draws[i], diverging[i] = q.data, stats["diverging"]
            gradients += int(stats["tree_size"])
    step.step_adapt._tuned_stats.clear()  # a record of acceptances that grows with every draw
    return draws, diverging, gradients


def scales_of(step: pm.NUTS) -> tuple[float, np.ndarray]:
    """Step size that a step method has adapted to, and the variances."""
    return float(np.exp(step.step_adapt._log_bar)), step.potential._var.copy()
