"""Data of a model with trees: other rows, new inputs, and tables that stay out of results."""

from collections.abc import Iterable

import pymc as pm
import pymc.backends.arviz
import pymc.sampling
import pymc.sampling.forward
from pytensor.graph.traversal import ancestors
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.core.columns.table_file import in_file
from pymc_trees.distributions.data.variables import encode_for
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.targets.graph import parameters_of

# ---------------------- Prediction at new rows where an observed variable kept its training length
#
# Without ``shape=mu.shape`` PyMC gives an observed variable the shape of its data once and for
# all. With another number of rows its error is about vectorised inputs; a wrapper explains the
# remedy.


INDEX = Subtensor | AdvancedSubtensor
FORWARD = ("sample_posterior_predictive", "sample_prior_predictive")


def explain_shapes() -> None:
    """Wrap PyMC's forward sampling."""
    for name in FORWARD:
        wrap([pm, pymc.sampling, pymc.sampling.forward], name, _explaining)


def _explaining(original, *args, **kwargs):
    try:
        return original(*args, **kwargs)
    except ValueError as error:
        given = arguments(original, args, kwargs)
        model = without_dims(pm.modelcontext(given.get("model")))
        check_bases(model, error)
        fixed, drawn = fixed_lengths(model) | fixed_latents(model), []
        if "trace" in given:
            drawn = latents_of_rows(model, given["trace"], fixed)
        if fixed:
            [(name, (length, rows)), *_] = fixed.items()
            raise ValueError(
                f"{name} has {length} rows, as in the data at its declaration, but the inputs of "
                f"its forest have {rows}. Declare {sorted(fixed)} with shape=mu.shape, where mu is "
                "the function returned by BART or the tree, so that their lengths agree."
                + (f" {_anew(model, drawn)}" if drawn else "")
            ) from error
        if drawn and given.get("sample_vars") is None:
            raise ValueError(
                f"{drawn} have an entry for each row, and the draws hold those of the training "
                f"rows. {_anew(model, drawn)}"
            ) from error
        raise


def _anew(model: pm.Model, latents: list[str]) -> str:
    """How entries of new rows are drawn."""
    drawn = [*latents, *(rv.name for rv in model.observed_RVs)]
    return f"Have entries drawn for these rows: give sample_vars={drawn}."


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
        rows = {len(one.X.eval()) for one in evaluations(parameters_of(rv))}
        shape = tuple(rv.shape.eval(mode="FAST_COMPILE")) if rows else ()
        if shape and not rows & set(shape):
            found[rv.name] = int(shape[0]), int(min(rows))
    return found


def fixed_latents(model: pm.Model) -> dict[str, tuple[int, int]]:
    """Unobserved variables with an entry for each row of the data, and not of their function."""
    rows = _rows_of(model)
    if rows is None:  # no trees, for one
        return {}
    lengths = {len(value) for value in _observations(model)} - {rows}
    return {
        name: (next(n for n in shape if n in lengths), rows)
        for name, shape in _shapes_of_latents(model).items()
        if lengths & set(shape) and rows not in shape
    }


def latents_of_rows(model: pm.Model, trace, fixed: Iterable[str]) -> list[str]:
    """Unobserved variables with an entry for each row, whose draws are those of other rows."""
    if _rows_of(model) is None:
        return []
    return [
        name
        for name, shape in _shapes_of_latents(model).items()
        if name in fixed or _stored_shape(trace, name) not in (None, shape)
    ]


def _stored_shape(trace, name: str) -> tuple[int, ...] | None:
    """Of one draw; None where the draws are no tree of groups, or lack the variable."""
    group = getattr(trace, "posterior", trace)
    return tuple(group[name].shape[2:]) if name in getattr(group, "data_vars", ()) else None


def _rows_of(model: pm.Model) -> int | None:
    """Rows at which trees are evaluated, where these are as many for all."""
    rows = {len(one.X.eval()) for one in evaluations(model.observed_RVs)}
    return rows.pop() if len(rows) == 1 else None


def _observations(model: pm.Model) -> list:
    values = [model.rvs_to_values[rv].eval() for rv in model.observed_RVs]
    return [value for value in values if value.ndim]


def _shapes_of_latents(model: pm.Model) -> dict[str, tuple[int, ...]]:
    """Of the unobserved variables other than trees that enter an observed one."""
    entering = set(ancestors(model.observed_RVs))
    # One that is read by an index has entries of groups, however many.
    reads = [v.owner for v in entering if v.owner and isinstance(v.owner.op, INDEX)]
    entering -= {next(iter(one.inputs)) for one in reads}
    return {
        rv.name: tuple(int(n) for n in rv.shape.eval(mode="FAST_COMPILE"))
        for rv in model.free_RVs
        if rv in entering and rv.ndim and not is_tree_variable(rv)
    }


# --------------------------------------------------------------------------------------------------
# `pymc.set_data` of the inputs of a forest, which encodes them as `pymc_trees.set_data` does.
#
# PyMC masks NaN in data, and a compiled function then fails with an error about array types.


def encode_new_data() -> None:
    """Wrap `pymc.Model.set_data`."""
    wrap([pm.Model], "set_data", _encode)


def _encode(original, self, name, values, coords=None):
    return original(self, name, encode_for(self, name, values), coords=coords)


# ----------------- Results without tables stored in files, which would be copied into every result


def leave_files_out() -> None:
    """Restrict the group ``constant_data`` to data in memory."""
    wrap([pymc.backends.arviz], "find_constants", _in_memory)


def _in_memory(original, *args, **kwargs):
    found = original(*args, **kwargs)
    return {name: value for name, value in found.items() if not in_file(value)}
