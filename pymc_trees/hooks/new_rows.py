"""Prediction at new rows where an observed variable kept its training length.

Without ``shape=mu.shape`` PyMC gives an observed variable the shape of its data once and for all.
With another number of rows its error is about vectorised inputs; a wrapper explains the remedy.
"""

import pymc as pm
import pymc.sampling
import pymc.sampling.forward

from pymc_trees.distributions.evaluations import evaluations
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import arguments, wrap

FORWARD = ("sample_posterior_predictive", "sample_prior_predictive")


def explain_shapes() -> None:
    """Wrap PyMC's forward sampling."""
    for name in FORWARD:
        wrap([pm, pymc.sampling, pymc.sampling.forward], name, _explaining)


def _explaining(original, *args, **kwargs):
    try:
        return original(*args, **kwargs)
    except ValueError as error:
        model = without_dims(pm.modelcontext(arguments(original, args, kwargs).get("model")))
        check_bases(model, error)
        fixed = fixed_lengths(model)
        if not fixed:
            raise
        [(name, (length, rows)), *_] = fixed.items()
        raise ValueError(
            f"{name} has {length} rows, as in the data at its declaration, but the inputs of its "
            f"forest have {rows}. Declare {sorted(fixed)} with shape=mu.shape, where mu is the "
            "function returned by BART or the tree, so that their lengths agree."
        ) from error


def check_bases(model: pm.Model, error: Exception) -> None:
    """Raise an error if a basis has its training rows."""
    for coefficients in model.deterministics:
        basis = getattr(coefficients.tag, "pymc_trees_basis", None)
        if basis is None:
            continue
        [rows] = {len(one.X.eval()) for one in evaluations([coefficients])}
        length = len(basis.eval())
        if length != rows:
            raise ValueError(
                f"{basis.name or 'the basis'} has {length} rows, but the inputs of its forest "
                f"have {rows}: set it together with X in pymc_trees.set_data."
            ) from error


def fixed_lengths(model: pm.Model) -> dict[str, tuple[int, int]]:
    """Observed variables whose length differs from that of their function: length and rows."""
    found = {}
    for rv in model.observed_RVs:
        parameters = rv.owner.op.dist_params(rv.owner)
        rows = {len(one.X.eval()) for one in evaluations(parameters)}
        shape = tuple(rv.shape.eval(mode="FAST_COMPILE")) if rows else ()
        if shape and not rows & set(shape):
            found[rv.name] = int(shape[0]), int(min(rows))
    return found
