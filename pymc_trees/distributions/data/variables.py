"""Inputs of a forest as model data, with the schema of their columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.data import MinibatchOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RNGConsumerOp

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.core.columns.table_file import row_blocks
from pymc_trees.distributions.data.encoding import as_matrix, encode_new, encode_training
from pymc_trees.distributions.data.named import bare, present
from pymc_trees.distributions.data.schema import CONTINUOUS, Schema

# --------------------------------- A model gets all variables of a declaration, or stays unchanged


@contextmanager
def all_or_nothing(model: pm.Model) -> Iterator[None]:
    """Take back what the block registered in a model, and in those it is nested in, if it fails.

    Some errors come late, from PyMC: a name that is taken, a dimension that is not there.
    """
    models = [model]
    while models[-1].parent is not None:
        models.append(models[-1].parent)
    held = [v for m in models for v in vars(m).values()]
    lists = [(v, list(v)) for v in held if isinstance(v, list)]
    dicts = [(v, dict(v)) for v in held if isinstance(v, dict)]
    try:
        yield
    except BaseException:
        # by the plain methods: those of a nested model's containers write to its parent too
        for names, kept in lists:
            list.clear(names)
            list.extend(names, kept)
        for table, rows in dicts:
            dict.clear(table)
            dict.update(table, rows)
        raise


# --------------------------------------------------------------------------------------------------


_TAG = "pymc_trees_columns"
_SET = pm.Model.set_data
"""As PyMC has it: the one that models come to have encodes too (`hooks.data`)."""


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
        the names of the columns as coordinates.
    split_rules : str, sequence of p str, or dict of column name and str, optional
        "continuous", "subset" or "onehot" for columns that are not to be split as above. A numeric
        column that is split by levels may hold any numbers. A forest splits columns of up to 50
        levels; one with more has to have the weight 0 in its ``split_prior``.

    Returns
    -------
    SharedVariable
        A model data variable, shape (n, p), dtype float64: levels as codes in sorted order,
        missing cells as ``-2.0**900``.

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
    return register_data(name, *encode_training(X, name, split_rules), dims)


def register_data(
    name: str, values: np.ndarray, schema: Schema | None, dims=None
) -> SharedVariable:
    """Model data variable of encoded inputs."""
    coords = None
    if dims is None and schema is not None and schema.names is not None:
        dims = (f"{name}_row", f"{name}_column")
        coords = {dims[1]: schema.names}
    with all_or_nothing(pm.modelcontext(None)):
        # PyMC would copy the values; they are nobody else's
        variable = pm.Data(name, values[:1], dims=dims, coords=coords)
        if variable.dtype == values.dtype:
            variable.set_value(values, borrow=True)
        else:
            variable.set_value(values.astype(variable.dtype), borrow=True)
    setattr(variable.tag, _TAG, schema)
    return variable


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
    coords : dict, optional
        New coordinate values of named dimensions.

    Raises
    ------
    ValueError
        A name that is not a data variable; "X ..." for values that `Data` would refuse, a frame
        with other columns, or levels of a type other than in training.

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
    known = [v.name for v in model.data_vars]
    unknown = [name for name in new_data if name not in known]
    if unknown:
        raise ValueError(f"{unknown} are not data variables of the model, which has {known}.")
    encoded = {name: encode_for(model, name, values) for name, values in new_data.items()}
    for name, values in encoded.items():
        _SET(model, name, values, coords=coords)


def schema_of(X: Any) -> Schema | None:
    """What is known of the columns of a model data variable."""
    return getattr(getattr(X, "tag", None), _TAG, None)


def encode_for(model: pm.Model, name: str, value: Any) -> Any:
    """New value of a data variable: a checked matrix when it is the inputs of a forest."""
    variable = model.named_vars.get(name)
    if variable is None or not hasattr(variable.tag, _TAG):
        return value
    schema = schema_of(variable)
    new = encode_new(value, schema, name, variable.get_value(borrow=True).shape[1])
    if schema is not None and schema.complete and (new == MISSING).any():
        raise ValueError(f"{name} holds NaN or infinite values: remove or impute those rows.")
    if variable.dtype == "float64":
        return new
    if (new == MISSING).any():
        raise ValueError(
            f"{name} holds NaN, but is {variable.dtype} model data: make it with pymc_trees.Data."
        )
    cast = new.astype(variable.dtype)
    return cast if np.issubdtype(cast.dtype, np.floating) or (cast == new).all() else new


def sees_batch(variables: Iterable[Variable], blockers=None) -> bool:
    """Whether expressions depend on a `pymc.Minibatch`."""
    seen = ancestors(variables, blockers=blockers)
    return any(v.owner is not None and isinstance(v.owner.op, MinibatchOp) for v in seen)


def no_batch(name: str) -> str:
    """What to say of a variable that does."""
    return (
        f"{name} depends on a pm.Minibatch, which takes other rows at each evaluation, but trees "
        "are sampled given all rows: give X, y and all that has a row for each the whole arrays, "
        "without pm.Minibatch and total_size. A step costs time in proportion to the rows; "
        "pymc_trees.sample_sharded shares them among processes."
    )


class TrainingInputs(NamedTuple):
    """Inputs as they were read when a forest was declared."""

    values: np.ndarray
    """(n, p) float64, levels as codes."""
    schema: Schema | None
    """What is known of the columns."""


def training_inputs(X: Any, split_rules=None) -> TrainingInputs:
    """Values that X has now, as a matrix, and what is known of its columns."""
    if isinstance(X, TrainingInputs):
        return X
    if not isinstance(X, Variable):
        return TrainingInputs(*encode_training(X, "X", split_rules))
    if sees_batch([X]):
        raise TypeError(no_batch("X"))
    if any(v.owner and isinstance(v.owner.op, RNGConsumerOp) for v in ancestors([X])):
        raise TypeError(
            "X depends on a random variable. The inputs of a forest must be data: pass an array, a "
            "frame, pm.Data or an expression of those."
        )
    X, values = bare(X), present(X)
    # The very array of the data variable where it will do, so that a forest knows at once that it
    # is evaluated at its training inputs. Setting new data replaces that array.
    if not _usable(values):
        values = as_matrix(values, "X")
    if isinstance(X, SharedVariable) and not hasattr(X.tag, _TAG):
        setattr(X.tag, _TAG, None)
    return TrainingInputs(values, schema_of(X))


def _usable(values: np.ndarray) -> bool:
    """Whether an array is a matrix of inputs as it stands."""
    if values.dtype != np.float64 or values.ndim != 2 or not values.flags.c_contiguous:
        return False
    return values.shape[1] > 0 and all(np.isfinite(rows).all() for _, rows in row_blocks(values))


def register_inputs(name: str, inputs: TrainingInputs) -> tuple[SharedVariable, TrainingInputs]:
    """Model data variable of inputs, and the inputs as it holds them."""
    variable = register_data(name, *inputs)
    held = variable.get_value(borrow=True)
    if held.dtype != np.float64 or not held.flags.c_contiguous:
        return variable, training_inputs(variable)
    return variable, inputs._replace(values=held)


def finite_inputs(X: Any) -> np.ndarray:
    """Values that X has now, for a model that takes numbers without missing cells only."""
    values, schema = training_inputs(X)
    if schema is not None and any(levels is not None for levels in schema.levels):
        named = [schema.label(j) for j, levels in enumerate(schema.levels) if levels is not None]
        raise ValueError(
            f"X has columns that are not numeric: {', '.join(named)}. Encode them as numbers "
            "first, for example one 0/1 column per level."
        )
    missing = np.flatnonzero((values == MISSING).any(axis=0))
    if missing.size:
        named = [str(j) if schema is None else schema.label(int(j)) for j in missing]
        raise ValueError(
            f"X holds NaN in columns {', '.join(named)}, and soft trees take finite numbers only: "
            "remove or impute those rows."
        )
    X = bare(X) if isinstance(X, Variable) else X
    if isinstance(X, SharedVariable):
        p = values.shape[1]
        known = schema or Schema(None, (CONTINUOUS,) * p, (None,) * p)
        setattr(X.tag, _TAG, known._replace(complete=True))
    return values
