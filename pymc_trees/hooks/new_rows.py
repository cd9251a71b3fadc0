"""Prediction at new rows where an observed variable kept its training length.

Without ``shape=mu.shape`` PyMC gives an observed variable the shape of its data once and for all.
At another number of rows its error speaks of vectorised inputs; a wrapper says what to add.
"""

import functools
import inspect

import pymc as pm
import pymc.sampling
import pymc.sampling.forward
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.ops.evaluation import Evaluate
from pymc_trees.distributions.ops.soft_evaluation import SoftEvaluate

FORWARD = ("sample_posterior_predictive", "sample_prior_predictive")


def explain_shapes() -> None:
    """Wrap PyMC's forward sampling, once each."""
    for name in FORWARD:
        original = getattr(pymc.sampling.forward, name)
        if not getattr(original, "explains_shapes", False):
            wrapped = _explaining(original)
            for module in (pm, pymc.sampling, pymc.sampling.forward):
                setattr(module, name, wrapped)


def _explaining(original):
    signature = inspect.signature(original)

    @functools.wraps(original)
    def run(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except ValueError as error:
            model = signature.bind(*args, **kwargs).arguments.get("model")
            fixed = fixed_lengths(pm.modelcontext(model))
            if not fixed:
                raise
            [(name, (length, rows)), *_] = fixed.items()
            raise ValueError(
                f"{name} has {length} rows, as in the data it was declared with, and the inputs "
                f"of its forest now have {rows}. Declare {sorted(fixed)} with shape=mu.shape, "
                "where mu is the function that BART or the tree returned, so that they follow it."
            ) from error

    run.explains_shapes = True  # type: ignore[attr-defined]
    return run


def fixed_lengths(model: pm.Model) -> dict[str, tuple[int, int]]:
    """Observed variables whose length is not that of the function they see: it, and the rows."""
    found = {}
    for rv in model.observed_RVs:
        rows = {len(v.owner.inputs[1].eval()) for v in _evaluations(rv)}
        shape = tuple(rv.shape.eval(mode="FAST_COMPILE")) if rows else ()
        if shape and not rows & set(shape):
            found[rv.name] = int(shape[0]), int(min(rows))
    return found


def _evaluations(rv: Variable) -> list[Variable]:
    parameters = rv.owner.op.dist_params(rv.owner)
    return [
        v
        for v in ancestors(parameters)
        if v.owner and isinstance(v.owner.op, Evaluate | SoftEvaluate)
    ]
