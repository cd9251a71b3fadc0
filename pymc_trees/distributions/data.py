"""Inputs of a forest: arrays and frames in, finite float64 matrices out."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RNGConsumerOp

_TAG = "pymc_trees_columns"


def Data(name: str, X: Any, dims: Sequence[str] | None = None) -> SharedVariable:
    """Register the inputs of a forest as model data.

    Like `pymc.Data`, but the values are checked, always float64, and the column names of a frame
    are remembered: `set_data` then puts the columns of a new frame in the same order.

    Parameters
    ----------
    name : str
        Name of the data variable.
    X : (n, p) array, pandas or polars frame
        Numeric and finite.
    dims : sequence of str, optional
        Names of the two dimensions.

    Returns
    -------
    SharedVariable
        A model data variable, shape (n, p), dtype float64.

    Raises
    ------
    ValueError
        "X ..." when the values are not numeric, not finite or not two-dimensional.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> with pm.Model() as model:
    ...     X = pmt.Data("X", np.arange(6.0).reshape(3, 2))
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=5)
    >>> X.get_value().dtype
    dtype('float64')
    """
    values = as_matrix(X, name)
    variable = pm.Data(name, values, dims=dims)
    setattr(variable.tag, _TAG, column_names(X))
    return variable


def set_data(
    new_data: Mapping[str, Any],
    model: pm.Model | None = None,
    *,
    coords: Mapping[str, Sequence] | None = None,
) -> None:
    """Replace model data, as `pymc.set_data` does, with frames allowed for a forest's inputs.

    Parameters
    ----------
    new_data : dict of str to array or frame
        New values by data variable. A frame for a variable made by `Data` from a frame is put in
        the remembered column order.
    model : pymc.Model, optional
        Default: the model on the context stack.
    coords : dict, optional
        New coordinate values of named dimensions.

    Raises
    ------
    ValueError
        "X ..." for values that `Data` would refuse, or a frame with other columns.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> with pm.Model() as model:
    ...     X = pmt.Data("X", np.arange(6.0).reshape(3, 2))
    ...     pmt.set_data({"X": np.zeros((5, 2))})
    >>> X.get_value().shape
    (5, 2)
    """
    model = pm.modelcontext(model)
    encoded = {name: _encoded(model, name, value) for name, value in new_data.items()}
    pm.set_data(encoded, model=model, coords=coords)


def _encoded(model, name, value):
    """New value of a data variable: a checked matrix when it is the inputs of a forest."""
    variable = model.named_vars.get(name)
    if variable is None or not hasattr(variable.tag, _TAG):
        return value
    value = as_matrix(_in_order(value, getattr(variable.tag, _TAG), name), name)
    known = variable.get_value(borrow=True).shape[1]
    if value.shape[1] != known:
        raise ValueError(
            f"{name} has {value.shape[1]} columns, but the model was declared with {known}: give "
            "it the same columns in the same order."
        )
    return value


def check_new_data() -> None:
    """Make `pymc.set_data` refuse what a forest cannot be evaluated at, once.

    PyMC masks NaN in data, and a compiled function then fails with an error about array types.
    """
    original = pm.Model.set_data
    if getattr(original, "checks_forests", False):
        return

    @functools.wraps(original)
    def set_data(self, name, values, coords=None):
        checked = _encoded(self, name, values)
        variable = self.named_vars.get(name)
        if variable is not None and getattr(variable.tag, _TAG, None) is not None:
            values = checked  # the columns of a frame in the order of the first one
        return original(self, name, values, coords=coords)

    set_data.checks_forests = True  # type: ignore[attr-defined]
    pm.Model.set_data = set_data


def training_values(X: Any) -> np.ndarray:
    """Values that X has now, as a matrix."""
    if not isinstance(X, Variable):
        return as_matrix(X, "X")
    if any(v.owner and isinstance(v.owner.op, RNGConsumerOp) for v in ancestors([X])):
        raise TypeError(
            "X depends on a random variable. The inputs of a forest must be data: pass an array, a "
            "frame, pm.Data or an expression of those."
        )
    values = X.get_value(borrow=True) if isinstance(X, SharedVariable) else X.eval()
    checked = as_matrix(values, "X")
    if isinstance(X, SharedVariable) and not hasattr(X.tag, _TAG):
        setattr(X.tag, _TAG, None)
    # The very array of the data variable where it will do, so that a forest knows at once that it
    # is evaluated at its training inputs. Setting new data replaces that array.
    usable = values.dtype == np.float64 and values.flags.c_contiguous
    return values if usable else checked


def column_names(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a frame; None for an array."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(c) for c in columns)


def _in_order(X, columns, name):
    given = column_names(X)
    if columns is None or given is None or given == columns:
        return X
    missing = [c for c in columns if c not in given]
    unknown = [c for c in given if c not in columns]
    if missing or unknown:
        raise ValueError(
            f"{name}: the new frame lacks the columns {missing} and has the unknown columns "
            f"{unknown}. Give it the columns of the training frame."
        )
    order = [given.index(c) for c in columns]
    return X.iloc[:, order] if hasattr(X, "iloc") else X[:, order]


def as_matrix(X: Any, name: str) -> np.ndarray:
    """Finite float64 (n, p) matrix of an array or frame, or an error that names it."""
    columns = column_names(X)
    if columns is not None and len(set(columns)) < len(columns):
        raise ValueError(f"{name} has repeated column names: rename them.")
    if columns is not None and hasattr(X, "dtypes"):
        dtypes = [str(d) for d in X.dtypes]
        wrong = [
            c
            for c, d in zip(columns, dtypes, strict=True)
            if not any(kind in d.lower() for kind in ("int", "float", "bool", "decimal"))
        ]
        if wrong:
            raise ValueError(
                f"{name} has columns that are not numeric: {wrong}. Encode them as numbers first, "
                "for example one 0/1 column per level."
            )
    try:
        values = np.array(X.to_numpy() if hasattr(X, "to_numpy") else X)
        if values.dtype.kind in "USMm":
            raise TypeError(f"its entries are of type {values.dtype}")
        if np.iscomplexobj(values):
            raise TypeError("complex numbers have no order")
        values = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold numbers only, but could not be read as floats ({error}). Encode "
            "text and dates as numbers first."
        ) from error
    if values.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows, columns), but has shape {values.shape}. "
            "For a single column use X.reshape(-1, 1)."
        )
    if values.shape[1] == 0:
        raise ValueError(f"{name} has no columns: give at least one.")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values).all(axis=0))
        named = [columns[j] if columns else int(j) for j in bad]
        raise ValueError(
            f"{name} holds NaN or infinite values in columns {named}: remove or impute those rows."
        )
    return values
