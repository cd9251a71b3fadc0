"""Inputs of a forest as model data that remember what their columns are."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
from pytensor.compile.sharedvalue import SharedVariable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.named import bare
from pymc_trees.distributions.data.table import (
    Table,
    as_matrix,
    encode,
    keep_schema,
    read,
    schema_of,
)

# --------------------------------- A model gets all variables of a declaration, or stays unchanged


@contextmanager
def all_or_nothing(model: pm.Model) -> Iterator[None]:
    """Undo what a block registers in a model, and in those it is nested in, if the block fails.

    Some errors come late, from PyMC: for a name that is taken, or a dimension that does not exist.
    """
    models = [model]
    while models[-1].parent is not None:
        models.append(models[-1].parent)
    attributes = [v for m in models for v in vars(m).values()]
    lists = [(v, list(v)) for v in attributes if isinstance(v, list)]
    dicts = [(v, dict(v)) for v in attributes if isinstance(v, dict)]
    try:
        yield
    except BaseException:
        # by the plain methods: those of a nested model's containers write to its parent too
        for names, names_before in lists:
            list.clear(names)
            list.extend(names, names_before)
        for table, table_before in dicts:
            dict.clear(table)
            dict.update(table, table_before)
        raise


def check_new(model: pm.Model, name: str) -> None:
    """Raise an error for the name of a forest, or of another variable, of this model."""
    taken = model.named_vars
    if model.name_for(name) not in taken and model.name_for(f"{name}_forest") not in taken:
        return
    what = "forest" if model.name_for(f"{name}_forest") in taken else "variable"
    raise ValueError(
        f"The name {name} already exists: this model has a {what} called {name!r}. Give each "
        "forest a name of its own; where a cell of a notebook ran again, begin with a new "
        "pm.Model()."
    )


# --------------------------------------------------------------------------------------------------


_SET = pm.Model.set_data
"""PyMC's own: the method that `hooks.data` puts in its place encodes, too."""


def Data(
    name: str,
    X: Any,
    dims: Sequence[str] | None = None,
    *,
    split_rules: str | Sequence[str] | Mapping[str, str] | None = None,
) -> SharedVariable:
    """Register the inputs of a forest as model data.

    Like `pymc.Data`, but columns may hold text, categories and missing cells, and the names, types
    and levels of a frame's columns are remembered: `set_data` puts the columns of a new frame in
    the same order and gives its levels the same codes. Text and unordered categories are split by
    subsets of their levels. Ordered categories are numbers in their order, bools are 0 and 1, and
    both are split by cuts.

    Parameters
    ----------
    name : str
        Name of the data variable.
    X : (n, p) array, pandas or polars frame
        Numbers, text, categories or bools; missing cells as NaN, None or NA.
    dims : sequence of str, optional
        Names of the two dimensions. Default for a frame: ``{name}_row``, and ``{name}_column`` with
        the names of the columns as coordinates; in a nested model with its prefix.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        "continuous", "subset" or "onehot" for columns that are not to be split as above. A numeric
        column that is split by levels may hold any numbers. A forest splits columns of up to 50
        levels; one with more has to have the weight 0 in its ``split_prior``.

    Returns
    -------
    SharedVariable
        A model data variable, shape (n, p), dtype float64: levels as codes in sorted
        order, or in that of an ordered category without levels that no row has; missing cells as
        ``-2.0**900``.

    Raises
    ------
    ValueError
        ``dims`` other than two; "X ..." when the values are infinite or not two-dimensional, or a
        column is of another type, or is split by levels and missing in every row.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, pymc_trees as pmt
    >>> frame = pd.DataFrame({"city": ["Oslo", None, "Rome"], "wind": [1.0, 2.0, np.nan]})
    >>> with pm.Model() as model:
    ...     X = pmt.Data("X", frame)
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=5)
    >>> X.get_value()[:, 0].tolist()
    [0.0, -8.452712498170644e+270, 1.0]
    """
    if dims is not None and (isinstance(dims, str) or len(dims) != 2):
        raise ValueError(f"dims={dims!r}: give two names, for the rows and the columns.")
    return register_data(name, read(X, split_rules, name), dims)


def register_data(name: str, table: Table, dims=None) -> SharedVariable:
    """Model data variable of a table."""
    coords = None
    if dims is None and table.schema.names is not None:
        full = pm.modelcontext(None).name_for(name)  # nested models share their dimensions
        dims = (f"{full}_row", f"{full}_column")
        coords = {dims[1]: table.schema.names}
    with all_or_nothing(pm.modelcontext(None)):
        # PyMC would copy the values; they are nobody else's
        variable = pm.Data(name, table.values[:1], dims=dims, coords=coords)
        variable.set_value(table.values.astype(variable.dtype, copy=False), borrow=True)
    keep_schema(variable, table.schema)
    return variable


def registered(name: str, table: Table) -> Table:
    """The table with the model data that hold it: new ones, unless it was read from some."""
    if table.variable is None:
        variable = register_data(name, table)
        values = variable.get_value(borrow=True)
        if values.dtype != np.float64:  # where PyMC's floats have four bytes
            values = as_matrix(values, "X")
        return replace(table, values=values, variable=variable)
    data = bare(table.variable)
    if table.schema.complete and (schema := schema_of(data)) is not None:
        keep_schema(data, schema._replace(complete=True))
    return table


def set_data(
    new_data: Mapping[str, Any],
    model: pm.Model | None = None,
    *,
    coords: Mapping[str, Sequence] | None = None,
) -> None:
    """Replace model data, as `pymc.set_data` does, and accept frames for the inputs of a forest.

    A missing cell goes where the rules of the trees send missing cells. So does a level that no
    training row has; a column whose new cells are all such levels gets a warning. Levels must match
    the training levels exactly, text with text and numbers with numbers; a number matches text only
    where every level is a plain decimal number. In a numeric array, non-numeric levels are given by
    their codes; an array of text or objects is read like a frame.

    Parameters
    ----------
    new_data : dict of str to array or frame
        New values by data variable. A frame for a variable made by `Data` from a frame is put in
        the remembered column order.
    model : pymc.Model, optional
        Default: the model on the context stack.
    coords : dict of str and sequence, optional
        New labels of named dimensions. Where a vector, such as group effects, has other labels than
        in the draws, `pymc.sample_posterior_predictive` keeps the draws of known ones and draws
        entries of new ones from their population, with the hyperparameters of each draw.

    Raises
    ------
    ValueError
        A name that is not a data variable, or not a dimension; "X ..." for values that `Data` would
        refuse, a frame with other columns, or levels of a type other than in training.

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
    names = [v.name for v in model.data_vars]
    unknown = [name for name in new_data if name not in names]
    if unknown:
        raise ValueError(f"{unknown} are not data variables of the model, which has {names}.")
    unknown = [dim for dim in coords or {} if dim not in model.coords]
    if unknown:
        raise ValueError(
            f"coords: {unknown} are not dimensions of the model, which has {list(model.coords)}."
        )
    encoded = {name: encode_for(model, name, values) for name, values in new_data.items()}
    for name, values in encoded.items():
        _SET(model, name, values, coords=coords)
    of_data = {dim for name in new_data for dim in model.named_vars_to_dims.get(name) or ()}
    for dim, labels in (coords or {}).items():
        if dim not in of_data:
            model.set_dim(dim, len(labels), labels)


def encode_for(model: pm.Model, name: str, value: Any) -> Any:
    """New value of a data variable: a checked matrix when it is the inputs of a forest."""
    variable = model.named_vars.get(name)
    schema = schema_of(variable)
    if schema is None:
        return value
    new = encode(value, schema, name)
    has_missing = (new == MISSING).any()
    if schema.complete and has_missing:
        raise ValueError(f"{name} holds NaN or infinite values: remove or impute those rows.")
    if variable.dtype == "float64":
        return new
    if has_missing:
        raise ValueError(
            f"{name} holds NaN, but is {variable.dtype} model data: make it with pymc_trees.Data."
        )
    cast = new.astype(variable.dtype)
    return cast if np.issubdtype(cast.dtype, np.floating) or (cast == new).all() else new
