"""PyMC's NUTS on a compiled log-density of any dimension.

This is the only file of the wing that uses private parts of PyMC and PyTensor;
`tests/inference/test_nuts_private.py` pins them.

PyMC makes a NUTS step for the variables of a model. Here the density depends on the topology, so a
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
"""Number of draws that the initial variances count for, as in `pymc.init_nuts`."""
DISCARD = 10
"""Number of first draws that are not used to estimate variances."""
DOUBLINGS = 8
"""Maximal tree depth: 255 gradients per draw. With 10, PyMC's default, draws of trees with more
splits than needed cost up to three times as many gradients, for no more effective draws each
(benchmarks)."""


class Density:
    """Value and gradient at a vector, with the interface of PyMC's compiled log-density."""

    _raveled_inputs = True
    dtype = "float64"

    def __init__(self, function):
        self.function = function
        self._pytensor_function = _machine_code(function)
        self._extra_vars_shared: dict = {}

    def __reduce__(self):
        return Density, (self.function,)


def _machine_code(function):
    """The machine code of a compiled function of one vector, without the overhead of its call.

    The overhead is 4 of about 60 us per gradient within NUTS. Functions of other PyTensor modes
    are returned unchanged.
    """
    vm: Any = getattr(function, "vm", None)
    kernel = getattr(vm, "jit_fn", None)
    if kernel is None:
        return function
    [_, *cells] = vm.inputs  # of shared variables, whose values may change
    return lambda q: kernel(q, *[cell[0] for cell in cells])


@dataclass_state
class NutsChain(DataClassState):
    """One chain of one topology between visits, with all adaptation of NUTS."""

    position: np.ndarray
    """(d,) last draw."""
    state: Any
    """`sampling_state` of the step method: step size, variances, generators. None if d is 0."""
    covariance: np.ndarray | None = None
    """(d, d) fixed covariance by which momenta are scaled; None if NUTS adapts variances."""

    @property
    def variances(self) -> np.ndarray | None:
        """(d,) variances by which momenta are scaled."""
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
    """Number of gradient evaluations."""


@cache
def _flat_model(d: int) -> pm.Model:
    with pm.Model(model=None) as model:  # not nested in the model on the context stack
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
        model=_flat_model(len(position)),
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
    """New chain, whose step size and variances are not adapted yet.

    Parameters
    ----------
    window : int
        Variances are estimated from the last ``window`` to ``2 * window`` draws.
    variances : (d,) array, optional
        Initial variances; default 1.
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
    """New chain with a fixed (d, d) covariance, whose step size is not adapted yet."""
    potential = QuadPotentialFull(covariance, rng=rng.spawn(1)[0])
    step = _make_step(density, position, potential, rng, target_accept)
    return NutsChain(
        position=position.copy(), state=step.sampling_state, covariance=covariance.copy()
    )


def run_chain(density: Density, chain: NutsChain, n: int, *, tune=False, before_each=None) -> Run:
    """Continue a chain.

    Parameters
    ----------
    density : Density
        Value and gradient of the topology's log-density.
    n : int
        Number of iterations.
    tune : bool
        Whether step size and variances are adapted.
    before_each : callable, optional
        Called before each iteration with its number.
    """
    if chain.state is None:
        return Run(chain, np.empty((n, 0)), np.zeros(n, dtype=bool), 0)
    step = restore(density, chain)
    draws, diverging, gradients = advance(step, chain.position, n, tune, before_each)
    position = draws[-1].copy() if n else chain.position
    after = NutsChain(position=position, state=step.sampling_state, covariance=chain.covariance)
    return Run(after, draws, diverging, gradients)


def restore(density: Density, chain: NutsChain) -> pm.NUTS:
    """Step method that continues a chain; the density has at least one dimension."""
    rng = np.random.default_rng(0)
    if chain.covariance is not None:
        potential = QuadPotentialFull(chain.covariance, rng=rng)
    else:
        # Initial mean and variances cannot be set by the state; it sets everything else.
        saved = chain.state.potential
        potential = _diagonal(chain.position, saved._initial_diag, rng, 1)
        potential._initial_mean = saved._initial_mean
    step = _make_step(density, chain.position, potential, rng, 0.8)
    step.sampling_state = chain.state
    return step


def advance(step: pm.NUTS, position: np.ndarray, n: int, tune: bool, before_each=None):
    """Run a step method from a position.

    Returns
    -------
    (n, d) draws, (n,) which of them diverged, gradient evaluations
    """
    step.tune = tune
    d = len(position)
    q = RaveledVars(position, (("q", (d,), d, np.dtype("float64")),))
    draws, diverging, gradients = np.empty((n, d)), np.empty(n, dtype=bool), 0
    with np.errstate(over="ignore", invalid="ignore"):  # in divergent trajectories
        for i in range(n):
            if before_each is not None:
                before_each(i)
            with deferred_interrupts():
                q, [stats] = step.astep(q)
            draws[i], diverging[i] = q.data, stats["diverging"]
            gradients += int(stats["tree_size"])
    step.step_adapt._tuned_stats.clear()  # acceptance statistics, which grow with every draw
    return draws, diverging, gradients


def scales_of(step: pm.NUTS) -> tuple[float, np.ndarray]:
    """Adapted step size and variances of a step method."""
    return float(np.exp(step.step_adapt._log_bar)), step.potential._var.copy()
