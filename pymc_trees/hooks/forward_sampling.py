"""Prior draws and predictions, during which interrupts are deferred.

PyMC compiles one function for a draw and calls it repeatedly. If the graph contains a forest or a
soft tree, a draw may take long, and an interrupt during it could end the process.
"""

import pymc.sampling.forward
from pytensor.graph.traversal import ancestors

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.hooks.wrap import arguments, wrap

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
    made = compiler(*args, **kwargs)
    outputs = arguments(compiler, args, kwargs)["outputs"]
    outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
    if not any(is_tree_variable(v) for v in ancestors(outputs)):
        return made
    if isinstance(made, tuple):
        return (DeferredDraw(made[0]), *made[1:])
    return DeferredDraw(made)
