"""How runs proceed: interrupts, threads, chains that run elsewhere, where they start, lengths."""

import copyreg
import functools
import logging
import time
import traceback
from contextlib import closing
from contextvars import ContextVar
from multiprocessing.connection import wait

import pymc as pm
import pymc.initial_point
import pymc.model.core
import pymc.sampling.forward
import pymc.sampling.mcmc
from pymc.sampling.parallel import ProcessAdapter
from pymc.step_methods import CompoundStep
from pytensor.graph.traversal import ancestors

from pymc_trees.core.compile.threads import available_threads, give_threads
from pymc_trees.core.interrupts import PATIENCE, deferred_interrupts, interrupts_wait
from pymc_trees.distributions.tree_variable import (
    TREE_VARIABLES,
    is_tree_variable,
    tree_variables,
)
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.inference.chains.lengths import MOST, lengths
from pymc_trees.inference.chains.run import RUNNER
from pymc_trees.processes import shares_cores
from pymc_trees.progress import Lines, can_draw
from pymc_trees.step_methods.sweep import SweepStep
from pymc_trees.targets.latent_normals import latent_entries

# ------------------------- `pymc.sample` of a model with trees, interrupted only between iterations
#
# An interrupt during PyMC's compiled log-probability, or while a draw is recorded, may become a
# `SystemError` that loses the previous draws; and numba's compiler calls Python functions that
# must not raise. Interrupts are therefore deferred, and handled between two iterations or while
# `pymc.sample` waits for draws of other processes. Those processes receive the interrupt as well
# and may have ended, so sending to them can fail.


def defer_around_draws() -> None:
    """Wrap `pymc.sample` and the loops in it that make draws or wait for them."""
    wrap(SAMPLE, "sample", _defer)
    wrap([pymc.sampling.mcmc], "_sample_many", _start)
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([ProcessAdapter], "_send", _send)
    wrap([ProcessAdapter], "recv_draw", _receive)
    wrap([CompoundStep], "step", _step)


def _defer(original, *args, **kwargs):
    model = pm.modelcontext(arguments(original, args, kwargs).get("model"))
    if not tree_variables(model):
        return original(*args, **kwargs)
    # PyMC calls `competence` without the model, which must therefore be on the context stack.
    with model, deferred_interrupts():
        return original(*args, **kwargs)


def _handle_interrupts() -> None:
    if interrupts_wait():
        with deferred_interrupts() as held:
            held.answer()


def _start(original, *args, **kwargs):
    _handle_interrupts()
    return original(*args, **kwargs)


def _iterate(original, *args, **kwargs):
    with closing(original(*args, **kwargs)) as iterations:
        for stats in iterations:
            _handle_interrupts()
            yield stats


def _receive(original, processes, timeout=3600):
    if not interrupts_wait() or not processes:
        return original(processes, timeout)
    pipes = [process._msg_pipe for process in processes]
    until = time.monotonic() + timeout
    with deferred_interrupts() as held:
        held.answer()
        while not wait(pipes, PATIENCE) and time.monotonic() < until:
            held.answer()
        try:
            return original(processes, timeout)
        except (EOFError, OSError):
            held.answer()
            raise


def _send(original, self, message, *args):
    if not interrupts_wait():
        return original(self, message, *args)
    with deferred_interrupts() as held:
        try:
            return original(self, message, *args)
        except Exception as error:
            # Python 3.12.1 crashes if objects of these frames are left to garbage collection
            # (python/cpython issue 111049).
            _clear_frames(error)
            if message != "abort":  # it would leave other processes running
                held.answer()
            raise


def _clear_frames(error):
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _step(original, self, point):
    if not any(getattr(method, "finishes_iterations", False) for method in self.methods):
        return original(self, point)
    with deferred_interrupts():
        return original(self, point)


# ------------------------------ Prior draws and predictions: interrupts are deferred during a draw
#
# PyMC compiles one function for a draw and calls it repeatedly. If the graph contains a forest or
# a soft tree, a draw may take long, and an interrupt during it could end the process.


COMPILERS = ("compile", "compile_forward_sampling_function")
"""Functions of `pymc.sampling.forward` that compile the function for a draw."""


class DeferredDraw:
    """A compiled function whose calls are not interrupted."""

    def __init__(self, function):
        self._function = function

    def __call__(self, *args, **kwargs):
        """Call the function."""
        with deferred_interrupts():
            return self._function(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)


def defer_in_draws() -> None:
    """Wrap the compilers of PyMC's forward sampling."""
    for name in COMPILERS:
        wrap([pymc.sampling.forward], name, _deferring)


def _deferring(compiler, *args, **kwargs):
    compiled = compiler(*args, **kwargs)
    outputs = arguments(compiler, args, kwargs)["outputs"]
    outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
    if not any(is_tree_variable(v) for v in ancestors(outputs)):
        return compiled
    if isinstance(compiled, tuple):
        return (DeferredDraw(compiled[0]), *compiled[1:])
    return DeferredDraw(compiled)


# ------------------- Cores not used by the chains of `pymc.sample` run threads of its step methods


_cores: ContextVar[int | None] = ContextVar("argument cores of a run", default=None)


def allocate_threads() -> None:
    """Wrap `pymc.sample`, and the loops in which it runs chains."""
    wrap(SAMPLE, "sample", _store_cores)
    wrap([pymc.sampling.mcmc], "_mp_sample", _in_processes)
    wrap([pymc.sampling.mcmc], "_sample_many", _in_sequence)


def _store_cores(original, *args, **kwargs):
    token = _cores.set(arguments(original, args, kwargs).get("cores"))
    try:
        return original(*args, **kwargs)
    finally:
        _cores.reset(token)


def _in_processes(original, **kwargs):
    _divide_cores(kwargs["step"], min(kwargs["chains"], kwargs["cores"]))
    return original(**kwargs)


def _in_sequence(original, **kwargs):
    runner = RUNNER.get()
    if runner is None:
        _divide_cores(kwargs["step"], 1)
    else:
        _set_threads(kwargs["step"], None if shares_cores(runner.cores) else 1)
    try:
        return original(**kwargs)
    finally:
        give_threads(None)


def _divide_cores(step, n_concurrent: int) -> None:
    """Set the number of threads of each step method, given the number of concurrent chains."""
    cores = _cores.get() or available_threads()
    _set_threads(step, max(cores // n_concurrent, 1))


def _set_threads(step, n_threads: int | None) -> None:
    for method in getattr(step, "methods", [step]):
        if isinstance(method, SweepStep):
            method.threads_left = n_threads


# ---------- `pymc.sample` passes its chains to a runner, if one is set (`inference.chains.run`)


def delegate_chains() -> None:
    """Wrap the function that runs chains in sequence."""
    wrap([pymc.sampling.mcmc], "_sample_many", _delegate)


def _delegate(original, **kwargs):
    runner = RUNNER.get()
    return original(**kwargs) if runner is None else runner(**kwargs)


# --------------------- A process that unpickles a model with trees installs steps and hooks as well
#
# A pickle refers to a function of this module, so loading it imports the package of hooks. The Ops
# themselves do not depend on it.


def pickle_with_hooks() -> None:
    """Register a function for `pickle`, `copy` and cloudpickle."""
    for op in TREE_VARIABLES:
        copyreg.pickle(op, _reduce)


def _reduce(op):
    return restore, (type(op), op.__dict__)


def restore(kind, state):
    """The Op that was pickled."""
    op = kind.__new__(kind)
    op.__dict__.update(state)
    return op


# -------------------- A line a minute while a model with trees is sampled where no bar can be drawn


def report_in_pipes() -> None:
    """Wrap `pymc.sample`, whose bars are drawn in terminals and notebooks only."""
    wrap(SAMPLE, "sample", _reporting)


def _reporting(original, *args, **kwargs):
    quiet = kwargs.get("quiet") or kwargs.get("progressbar") is False or can_draw()
    if not quiet and tree_variables(pm.modelcontext(kwargs.get("model"))):
        given, lines = kwargs.get("callback"), Lines("Iterations of all chains")

        def callback(*, trace, draw):
            lines.advance()
            if given is not None:
                given(trace=trace, draw=draw)

        kwargs = kwargs | {"callback": callback, "progressbar": False}
    return original(*args, **kwargs)


# -------------- A line on how long chains need be, where those of a large table would be far longer


_log = logging.getLogger("pymc.trees")

LONGER = 2
"""Times as long as is usually enough, from which on it is said."""


def say_lengths() -> None:
    """Wrap `pymc.sample`."""
    wrap(SAMPLE, "sample", _sample)


def _sample(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    model = pm.modelcontext(given.get("model"))
    if tree_variables(model) and given.get("step") is None and not given.get("quiet"):
        enough = lengths(model)
        asked = given.get("draws", MOST) + given.get("tune", MOST)
        if enough.draws < MOST and asked > LONGER * (enough.draws + enough.tune):
            _log.info(
                f"A draw of {enough.rows:,} rows and {enough.trees} trees is five sweeps: "
                f"pm.sample(draws={enough.draws}, tune={enough.tune}, chains={enough.chains}) is "
                "long enough for most tables of this size, all chains taken together."
            )
    return original(*args, **kwargs)


# ---------------------------------- Initial values of latent normal entries lie within their limits


def start_within_limits() -> None:
    """Wrap what makes initial points: PyMC starts a normal at its mean, beyond limits or not."""
    wrap([pymc.model.core, pymc.initial_point], "make_initial_point_fn", _within)


def _within(original, *, model: pm.Model, return_transformed=True, **kwargs):
    function = original(model=model, return_transformed=return_transformed, **kwargs)
    if not (return_transformed and tree_variables(model)):
        return function
    entries = latent_entries(without_dims(model))
    if not entries:
        return function

    @functools.wraps(function)
    def started(*args, **given):
        point = function(*args, **given)
        for one in entries:
            point[one.value_name] = one.inside(point)
        return point

    return started
