"""Indices that are data, as in ``a[group]``: do they reach past the end of what they pick from?

Compiled code does not check them, and may read memory that belongs to something else.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors, explicit_graph_inputs
from pytensor.scalar.basic import Cast
from pytensor.tensor.einsum import Einsum
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor

PYTHON = Mode("py", "fast_compile")
"""For small functions that are called a few times: nothing is compiled."""


class Picked(NamedTuple):
    """An axis of an array from which entries are picked by numbers."""

    array: Variable
    axis: int
    index: Variable


def picks(expressions: Iterable[Variable], blockers: Iterable[Variable] = ()) -> list[Picked]:
    """Where a graph picks entries by integers; ancestors of the blockers are left out."""
    found = []
    for v in ancestors(list(expressions), blockers=set(blockers)):
        if v.owner is None or not isinstance(v.owner.op, Subtensor | AdvancedSubtensor):
            continue
        inputs = v.owner.inputs
        array, *numbers = inputs
        axis = 0
        for index in indices_from_subtensor(numbers, v.owner.op.idx_list):
            if isinstance(index, slice):
                axis += 1
            elif getattr(index, "dtype", None) == "bool":
                axis += index.ndim
            elif index is not None:
                found.append(Picked(array, axis, pt.as_tensor(index)))
                axis += 1
    return found


def contractions(expressions: Iterable[Variable]) -> list[tuple[Variable, int]]:
    """Arrays and the axis along which products add up: a row of the other picks from them."""
    found = []
    for v in ancestors(list(expressions)):
        op = v.owner.op if v.owner else None
        if isinstance(op, Einsum) and "." not in op.subscripts:
            inputs, output = op.subscripts.split("->")
            axes = inputs.split(",")
            for array, names in zip(v.owner.inputs, axes, strict=True):
                shared = [k for k in names if k not in output and sum(k in x for x in axes) > 1]
                found += [(array, names.index(k)) for k in shared]
        elif isinstance(getattr(op, "core_op", op), Dot):
            found += [(x, x.ndim - k) for k, x in enumerate(v.owner.inputs, start=1)]
    return found


def check_indices(
    model: pm.Model,
    expressions: Iterable[Variable],
    held: Mapping[Variable, tuple[int, ...]] | None = None,
) -> None:
    """Raise an error where an index that is data reaches past the end of what it picks from.

    An index below 0 counts from the end, as in numpy. Indices that are random are not checked.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions (`without_dims`).
    expressions : iterable of Variable
        Of the model's random variables.
    held : dict of Variable and tuple of int, optional
        Shapes of variables that are taken from draws; others have those of the model.

    Raises
    ------
    IndexError
        The message names the index, the vector, and what to do.
    """
    held = held or {}
    found = [
        one
        for one in picks(expressions, held)
        if not _is_checked(one, held) and _is_data(one.index, held)
    ]
    if not found:
        return
    stands = {}
    for v, shape in held.items():
        stands[v] = pt.zeros(shape, dtype=v.dtype)
        stands[v].name = v.name
    arrays = clone_replace([one.array for one in found], stands, rebuild_strict=False)
    lengths = [array.shape[one.axis] for array, one in zip(arrays, found, strict=True)]
    # only sizes of arrays are needed, and no draw of a variable
    lengths = rewrite_graph(lengths, include=("ShapeOpt", "canonicalize"))
    known = [k for k, length in enumerate(lengths) if _is_known([length])]
    outputs = [v for k in known for v in (found[k].index, lengths[k])]
    values = pytensor.function([], outputs, mode=PYTHON)()
    for k, numbers, length in zip(known, values[::2], values[1::2], strict=True):
        _check_numbers(model, found[k], np.asarray(numbers), int(length))


def _check_numbers(model: pm.Model, one: Picked, numbers: np.ndarray, n: int) -> None:
    """Raise an error for an index past the end of what has n entries."""
    wrong = numbers[(numbers < -n) | (numbers >= n)]
    if wrong.size:
        index, number = name_of(one.index), int(wrong.flat[0])
        raise IndexError(
            f"{index} picks entry {number} of {name_of(one.array)}, which has {n}: compiled "
            f"code would read past its end. {_remedy(model, one, index)}"
        )


def index_checker(
    model: pm.Model,
    expression: Variable,
    held: Mapping[Variable, tuple[int, ...]],
    parts: Mapping[Variable, Variable],
    at: Variable,
) -> Callable[[np.ndarray], None]:
    """What raises `check_indices`' error for other rows, from which indices are made.

    Parameters
    ----------
    model, held
        As for `check_indices`.
    expression : Variable
        Of the model's random variables.
    parts : dict of Variable and Variable
        What data of the model are, for the rows.
    at : Variable
        A matrix of rows.
    """
    found = []
    for one in picks([expression], held):
        below = set(ancestors([one.index]))
        if below & set(parts) and not below & set(held):
            found.append(one)
    if not found:
        return _nothing_to_check
    stands = {v: pt.zeros(shape, dtype=v.dtype) for v, shape in held.items()}
    replaced = stands | dict(parts)
    graphs = [v for one in found for v in (one.index, one.array.shape[one.axis])]
    outputs = clone_replace(graphs, replaced, rebuild_strict=False)
    outputs[1::2] = rewrite_graph(outputs[1::2], include=("ShapeOpt", "canonicalize"))
    function = pytensor.function([at], outputs, mode=PYTHON, on_unused_input="ignore")

    def check(rows):
        values = function(rows)
        for one, numbers, n in zip(found, values[::2], values[1::2], strict=True):
            _check_numbers(model, one, np.asarray(numbers), int(n))

    return check


def _nothing_to_check(rows: np.ndarray) -> None:
    """No index is made of rows."""


def labels_of_index(model: pm.Model, expression: Variable, index: Variable) -> tuple | None:
    """Labels of the entries that data pick, where all that they pick from has the same."""
    found = [one for one in picks([expression]) if _without_cast(one.index) is index]
    dims = {_dim_of(model, one) for one in found}
    if len(dims) != 1 or None in dims:
        return None
    labels = tuple(np.asarray(model.coords[dims.pop()]).tolist())
    return labels if len(set(labels)) == len(labels) else None


def _without_cast(index: Variable) -> Variable:
    op = index.owner.op if index.owner else None
    if isinstance(op, Elemwise) and isinstance(op.scalar_op, Cast):
        [index] = list(index.owner.inputs)
    return index


def _is_checked(one: Picked, held) -> bool:
    """Whether PyTensor knows both numbers, and has compared them."""
    length = one.array.type.shape[one.axis]
    is_fixed = length is not None and not any(v in held for v in ancestors([one.array]))
    return (
        is_fixed
        and isinstance(one.index, Constant)
        and -length <= one.index.data.min(initial=0) <= one.index.data.max(initial=-1) < length
    )


def _is_data(index: Variable, held) -> bool:
    above = set(ancestors([index]))
    return not any(v in held for v in above) and _is_known(above)


def _is_known(variables: Iterable[Variable]) -> bool:
    """Whether they follow from data and constants, and not from random numbers."""
    return all(
        isinstance(v, Constant)
        or (isinstance(v, SharedVariable) and isinstance(v.type, pt.TensorType))
        for v in explicit_graph_inputs(list(variables))
    )


def _remedy(model: pm.Model, one: Picked, index: str) -> str:
    dim = _dim_of(model, one)
    if dim is not None:
        return (
            "For groups that were not seen, add them to the coordinates, "
            f"pymc_trees.set_data({{{index!r}: ...}}, coords={{{dim!r}: [...]}}); else correct "
            f"{index}."
        )
    return (
        "For groups that were not seen, declare the vector with dims= that have coordinates, and "
        f"add them there by pymc_trees.set_data(..., coords=...); else correct {index}."
    )


def _dim_of(model: pm.Model, one: Picked) -> str | None:
    """Name of the axis, of the array or of a vector that it is made of."""
    for v in named_below([one.array]):
        dims = model.named_vars_to_dims.get(v.name) or ()
        axis = one.axis - (one.array.ndim - v.ndim)  # as they are broadcast
        if 0 <= axis < len(dims) and model.coords.get(dims[axis]) is not None:
            return dims[axis]
    return None


def name_of(expression: Variable) -> str:
    """Name of an expression, or those of what it is made of."""
    if expression.name:
        return str(expression.name)
    names = list(dict.fromkeys(str(v.name) for v in named_below([expression])))
    return f"an expression of {', '.join(names)}" if names else "an index"


def named_below(todo: list[Variable]) -> list[Variable]:
    """The variables with names from which expressions are made, or these themselves."""
    found = []
    while todo:
        v, *todo = todo
        if v.name and not isinstance(v, Constant):
            found.append(v)
        elif v.owner is not None:
            todo += v.owner.inputs
    return found
