"""Data of a model with trees: new rows, new inputs, and tables kept out of results."""

import warnings
from collections.abc import Iterable
from pathlib import Path

import pymc as pm
import pymc.backends.arviz
import pymc.model.transform
import pymc.model.transform.conditioning
import pymc.sampling
import pymc.sampling.forward
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

from pymc_trees.core.columns.table_file import in_file
from pymc_trees.distributions.data.table import keep_schema, schema_of
from pymc_trees.distributions.data.variables import encode_for
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable, tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.targets.graph import parameters_of

# ----------- Prediction at new rows when an observed variable has the length of its training data
#
# Without ``shape=mu.shape`` PyMC fixes the shape of an observed variable to that of its data. With
# another number of rows it raises an error about vectorised inputs; a wrapper adds the remedy.


INDEXING = Subtensor | AdvancedSubtensor
FORWARD = ("sample_posterior_predictive", "sample_prior_predictive")


def explain_shapes() -> None:
    """Wrap PyMC's forward sampling."""
    for name in FORWARD:
        wrap([pm, pymc.sampling, pymc.sampling.forward], name, _explaining)


def _explaining(original, *args, **kwargs):
    try:
        with warnings.catch_warnings():
            # PyTensor divides 0 by 0 where it says how new data differ from those of the draws
            warnings.filterwarnings("ignore", "invalid value", module=r"pytensor\.tensor\.type")
            return original(*args, **kwargs)
    except ValueError as error:
        call = arguments(original, args, kwargs)
        model = without_dims(pm.modelcontext(call.get("model")))
        check_bases(model, error)
        fixed, latents = fixed_lengths(model) | fixed_latents(model), []
        if "trace" in call:
            latents = latents_of_rows(model, call["trace"], fixed)
        if fixed:
            [(name, (length, rows)), *_] = fixed.items()
            raise ValueError(
                f"{name} has {length} rows, as in the data at its declaration, but the inputs of "
                f"its forest have {rows}. Declare {sorted(fixed)} with shape=mu.shape, where mu is "
                "the function returned by BART or the tree, so that their lengths agree."
                + (f" {_how_to_draw(model, latents)}" if latents else "")
            ) from error
        if latents and call.get("sample_vars") is None:
            raise ValueError(
                f"{latents} have an entry for each row, and the draws hold those of the training "
                f"rows. {_how_to_draw(model, latents)}"
            ) from error
        raise


def warn_of_fixed_shapes() -> None:
    """Wrap `pymc.sample`: an hour of it would end in the error above."""
    wrap(SAMPLE, "sample", _warning)


def _warning(original, *args, **kwargs):
    model = pm.modelcontext(kwargs.get("model"))
    if tree_variables(model) and (fixed := will_be_fixed(without_dims(model))):
        name, data = next(iter(fixed.items()))
        warnings.warn(
            f"{name} keeps the rows of its data, so that predictions at other rows of {data} will "
            "fail. Declare it with shape=mu.shape, where mu is the function that BART or the tree "
            "returned.",
            skip_file_prefixes=(str(Path(__file__).parent),),
        )
    return original(*args, **kwargs)


def will_be_fixed(model: pm.Model) -> dict[str, str]:
    """Observed variables whose length is that of their data, and the inputs that may change.

    Inputs that a forest registered itself, from an array, are not meant to be replaced.
    """
    own = {f"{tree.name.removesuffix('_forest')}_X" for tree in tree_variables(model)}
    inputs = [data for data in model.data_vars if data.name not in own]
    inputs = [data for data in inputs if isinstance(data, SharedVariable)]  # not frozen
    fixed: dict[str, str] = {}
    for rv in model.observed_RVs:
        for call in evaluations(parameters_of(rv)):
            above = set(ancestors([call.X]))
            for data in inputs:
                if data in above and _has_rows(data, call.X, rv.type.shape):
                    fixed.setdefault(str(rv.name), str(data.name))
    return fixed


def _has_rows(data: SharedVariable, X: Variable, lengths) -> bool:
    """Whether data of which inputs are made are a table or column, as long as an observed variable.

    A vector with an entry for each column of the inputs, such as their means, is neither.
    """
    shape = tuple(data.get_value(borrow=True).shape)
    if len(shape) not in (1, 2) or shape[0] not in lengths:
        return False
    return len(shape) == 2 or shape[0] != int(X.shape[1].eval(mode="FAST_COMPILE"))


def _how_to_draw(model: pm.Model, latents: list[str]) -> str:
    """How to draw the entries of new rows."""
    sampled = [*latents, *(rv.name for rv in model.observed_RVs)]
    return f"To draw entries for the new rows, give sample_vars={sampled}."


def check_bases(model: pm.Model, error: Exception) -> None:
    """Raise an error if a basis still has its training rows."""
    for coefficients in model.deterministics:
        basis = getattr(coefficients.tag, "pymc_trees_basis", None)
        if basis is None:
            continue
        [rows] = {len(call.X.eval()) for call in evaluations([coefficients])}
        length = len(basis.eval())
        if length != rows:
            raise ValueError(
                f"{basis.name or 'the basis'} has {length} rows, but the inputs of its forest "
                f"have {rows}: set it together with X in pymc_trees.set_data."
            ) from error


def fixed_lengths(model: pm.Model) -> dict[str, tuple[int, int]]:
    """Length of observed variables that differ from their function in length, and its rows."""
    lengths = {}
    for rv in model.observed_RVs:
        rows = {len(call.X.eval()) for call in evaluations(parameters_of(rv))}
        shape = tuple(rv.shape.eval(mode="FAST_COMPILE")) if rows else ()
        if shape and not rows & set(shape):
            lengths[rv.name] = int(shape[0]), int(min(rows))
    return lengths


def fixed_latents(model: pm.Model) -> dict[str, tuple[int, int]]:
    """Unobserved variables with an entry for each row of the data, not for each new row."""
    rows = _rows_of(model)
    if rows is None:  # such as a model without trees
        return {}
    lengths = {len(value) for value in _observations(model)} - {rows}
    return {
        name: (next(n for n in shape if n in lengths), rows)
        for name, shape in _shapes_of_latents(model).items()
        if lengths & set(shape) and rows not in shape
    }


def latents_of_rows(model: pm.Model, trace, fixed: Iterable[str]) -> list[str]:
    """Unobserved variables with an entry for each row, whose draws belong to other rows."""
    if _rows_of(model) is None:
        return []
    return [
        name
        for name, shape in _shapes_of_latents(model).items()
        if name in fixed or _stored_shape(trace, name) not in (None, shape)
    ]


def _stored_shape(trace, name: str) -> tuple[int, ...] | None:
    """Shape of one draw; None if the draws are not a tree of groups or lack the variable."""
    group = getattr(trace, "posterior", trace)
    return tuple(group[name].shape[2:]) if name in getattr(group, "data_vars", ()) else None


def _rows_of(model: pm.Model) -> int | None:
    """Number of rows at which trees are evaluated, if it is the same for all."""
    rows = {len(call.X.eval()) for call in evaluations(model.observed_RVs)}
    return rows.pop() if len(rows) == 1 else None


def _observations(model: pm.Model) -> list:
    values = [model.rvs_to_values[rv].eval() for rv in model.observed_RVs]
    return [value for value in values if value.ndim]


def _shapes_of_latents(model: pm.Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the unobserved variables, other than trees, that observed ones depend on."""
    used = set(ancestors(model.observed_RVs))
    # A variable that is indexed has an entry for each group, whatever their number.
    indexed = [v.owner for v in used if v.owner and isinstance(v.owner.op, INDEXING)]
    used -= {next(iter(node.inputs)) for node in indexed}
    return {
        rv.name: tuple(int(n) for n in rv.shape.eval(mode="FAST_COMPILE"))
        for rv in model.free_RVs
        if rv in used and rv.ndim and not is_tree_variable(rv)
    }


# --------------------------------------------------------------------------------------------------
# `pymc.set_data` and `pymc.do` encode new inputs of a forest as `pymc_trees.set_data` does.
#
# PyMC masks NaN in data, and a compiled function then fails with an error about array types.


def encode_new_data() -> None:
    """Wrap `pymc.Model.set_data` and `pymc.do`."""
    wrap([pm.Model], "set_data", _encode)
    wrap([pm, pymc.model.transform, pymc.model.transform.conditioning], "do", _do)


def _encode(original, self, name, values, coords=None):
    return original(self, name, encode_for(self, name, values), coords=coords)


def _do(original, *args, **kwargs):
    call = arguments(original, args, kwargs)
    model, given = call["model"], dict(call["vars_to_interventions"])
    schemas = {}
    for key, value in given.items():
        name = key if isinstance(key, str) else key.name
        schema = schema_of(model.named_vars.get(name))
        if schema is not None and not isinstance(value, Variable):
            schemas[name], given[key] = schema, encode_for(model, name, value)
    if not schemas:
        return original(*args, **kwargs)
    changed = original(**call | {"vars_to_interventions": given})
    for name, schema in schemas.items():
        keep_schema(changed[name], schema)
    return changed


# ------------------ Tables stored in files are left out of results, which would otherwise copy them


def exclude_tables_in_files() -> None:
    """Restrict the group ``constant_data`` to data in memory."""
    wrap([pymc.backends.arviz], "find_constants", _in_memory)


def _in_memory(original, *args, **kwargs):
    constants = original(*args, **kwargs)
    return {name: value for name, value in constants.items() if not in_file(value)}
