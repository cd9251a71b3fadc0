"""`read`: inputs of a forest, arrays or frames or model data, as one `Table` of numbers.

Levels become codes 0, 1, .. and missing cells the number `MISSING`: PyMC's data hold no NaN.
"""

import functools
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pymc.data import MinibatchOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RNGConsumerOp

from pymc_trees.core.columns.cells import MAX_LEVELS, MISSING
from pymc_trees.core.columns.table_file import (
    BLOCK_BYTES,
    FileTable,
    in_file,
    row_blocks,
    write_table,
)
from pymc_trees.distributions.data.named import bare, dims_of, present, rows_dim, unnamed
from pymc_trees.distributions.data.schema import check_rules, read_schema, with_rules
from pymc_trees.predictors.columns import (
    CONTINUOUS,
    SUBSET,
    Schema,
    check_held,
    check_types,
    column_names,
    columns_of,
    is_lazy,
    matrix_of_reals,
)
from pymc_trees.predictors.rows import (
    check_repeated,
    checked,
    columns_of_matrix,
    encode_held,
    encode_matrix,
    in_order,
    matrix_of,
)


@dataclass(frozen=True, eq=False)
class Table:
    """Inputs of a forest as `read` has them."""

    values: np.ndarray
    """(n, p) float64, C-contiguous: levels as codes, `MISSING` in missing cells."""
    schema: Schema
    """What the columns are."""
    variable: Variable | None = None
    """The model data that hold the values; None where X was an array or a frame."""
    dims: tuple[str, ...] | None = None
    """Names of the dimensions, where these have any (`pymc.dims`)."""

    default_cuts: ClassVar[int | None] = None
    """Cuts of each column, unless their number is given."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_random(self) -> int:
        """Columns that are random variables, the last ones (`random_columns`)."""
        return 0

    def with_cuts(self, grid: list[np.ndarray]) -> list[np.ndarray]:
        """A grid of all columns, with the cuts that are given for some."""
        return grid

    @functools.cached_property
    def _summary(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each column the smallest and largest cell, and whether cells are missing."""
        p = self.values.shape[1]
        low, high, missing = np.full(p, np.inf), np.full(p, -np.inf), np.zeros(p, dtype=bool)
        for _, rows in row_blocks(self.values):
            absent = rows == MISSING
            missing |= absent.any(axis=0)
            where = ~absent if missing.any() else True
            low = np.minimum(low, rows.min(axis=0, where=where, initial=np.inf))
            high = np.maximum(high, rows.max(axis=0, initial=-np.inf))
        return low, high, missing

    @property
    def has_missing(self) -> np.ndarray:
        """(p,) whether a column has missing cells."""
        return self._summary[2]

    def check_training(self) -> None:
        """Raise an error for no rows, or columns so wide that a cut has no density."""
        if len(self) == 0:
            raise ValueError("X has no rows: a forest needs at least one training row.")
        low, high, _ = self._summary
        with np.errstate(over="ignore"):
            wide = np.flatnonzero(np.isposinf(high - low))
        if wide.size:
            raise ValueError(
                f"X spans more than floating-point numbers can hold in columns {wide.tolist()}: "
                "rescale them."
            )

    def complete(self) -> "Table":
        """Itself, for a model that takes finite numbers only: new rows are held to that, too."""
        schema = self.schema
        if schema.are_levels.any():
            named = [schema.label(j) for j in np.flatnonzero(schema.are_levels).tolist()]
            raise ValueError(
                f"X has columns that are not numeric: {', '.join(named)}. Encode them as numbers "
                "first, for example one 0/1 column per level."
            )
        if self.has_missing.any():
            named = [schema.label(j) for j in np.flatnonzero(self.has_missing).tolist()]
            raise ValueError(
                f"X holds NaN in columns {', '.join(named)}, and soft trees take finite numbers "
                "only: remove or impute those rows."
            )
        return replace(self, schema=schema._replace(complete=True))

    def kinds(self, excluded: np.ndarray) -> np.ndarray:
        """Kinds of the columns for `MixedDesign`; empty when all are numbers, none missing.

        A column that is excluded from splits may have any number of levels: its codes pass for
        numbers.
        """
        X, schema = self.values, self.schema
        kinds = np.zeros(X.shape[1], dtype=np.int64)
        for j, rule in enumerate(schema.rules):
            if rule == CONTINUOUS:
                continue
            levels, label = schema.levels[j] or (), schema.label(j)
            if len(levels) > MAX_LEVELS and excluded[j]:
                continue
            if len(levels) > MAX_LEVELS:
                raise ValueError(
                    f"X, column {label}, has {len(levels)} levels, but at most {MAX_LEVELS} can "
                    "be split by levels: merge rare levels, leave the column out or give it the "
                    "weight 0 in split_prior, or encode it as numbers."
                )
            codes = X[:, j][X[:, j] != MISSING]
            are_codes = codes.size and codes.min() >= 0 and (codes == np.floor(codes)).all()
            if not are_codes or codes.max() >= MAX_LEVELS:
                raise ValueError(
                    f"split_rules: column {label} of X is split by levels, so model data must hold "
                    f"level numbers 0, 1, .. below {MAX_LEVELS} there. Make it with "
                    "pymc_trees.Data, or give X itself to BART, which accepts any values."
                )
            n_levels = int(codes.max()) + 1
            kinds[j] = n_levels if rule == SUBSET else -n_levels
        return kinds if kinds.any() or self.has_missing.any() else kinds[:0]

    def rows(self, which: np.ndarray) -> "Table":
        """Some of the rows."""
        return Table(self.values[which], self.schema)

    def with_numbers(self, columns: Mapping[str, np.ndarray]) -> "Table":
        """With columns of numbers after the others."""
        values = np.column_stack([self.values, *columns.values()])
        return Table(values, self.schema.with_numbers(columns))


# -------------------------------------------------------------------------------------- Reading it


@dataclass(frozen=True, eq=False)
class Columns:
    """Inputs of a forest, as `with_columns` returns them."""

    X: Any
    """The constant columns."""
    random: Mapping[str, Variable]
    """A vector with an entry for each row, by the name of its column."""
    cuts: Mapping[str, np.ndarray]
    """Cuts of a random column, where they are given."""


def read(X: Any, split_rules=None, name: str = "X") -> Table:
    """Inputs of a forest, checked, as a declaration takes them; model data as they are now."""
    if isinstance(X, Table):
        return X
    if isinstance(X, Columns):
        raise TypeError(
            "X has random columns, which only BART and DecisionTree take: give constant columns, "
            "for example the means of the random ones."
        )
    if isinstance(X, Variable):
        return _read_variable(X, split_rules)
    _check_rows(X, name)
    names = column_names(X)
    check_repeated(names, name)
    if names and not is_large(X):
        columns = columns_of(X, name)
        rules = check_rules(split_rules, list(names))
    else:
        values = as_matrix(X, name)
        schema = Schema.of_numbers(values.shape[1], names)
        rules = check_rules(split_rules, schema.labels)
        if set(rules) <= {None, CONTINUOUS}:  # a large array is not copied again
            return Table(values, schema)
        columns = columns_of_matrix(values)
    schema = read_schema(columns, names, rules, name)
    return Table(matrix_of(columns, schema, name), schema)


def _read_variable(X: Variable, split_rules) -> Table:
    if sees_batch([X]):
        raise TypeError(no_batch("X"))
    if any(v.owner and isinstance(v.owner.op, RNGConsumerOp) for v in ancestors([X])):
        raise TypeError(
            "X depends on a random variable. The inputs of a forest must be data: pass an array, a "
            "frame, pm.Data or an expression of those."
        )
    dims = dims_of(X)
    rows_dim(dims)  # two, if they have names
    data = bare(X)
    if not isinstance(data, SharedVariable):
        _hold_to_numbers(data)
    values = present(X)
    # The very array of the data variable where it will do, so that a forest knows at once that it
    # is evaluated at its training inputs. Setting new data replaces that array.
    if not _is_matrix(values):
        values = as_matrix(values, "X")
    schema = schema_of(data)
    if schema is None:
        schema = Schema.of_numbers(values.shape[1])
        if isinstance(data, SharedVariable):
            keep_schema(data, schema)
    return Table(values, with_rules(schema, split_rules), unnamed(X), dims)


def _hold_to_numbers(X: Variable) -> None:
    """Raise an error where X computes with codes or missing cells; new rows have none either."""
    used = [v for v in ancestors([X]) if isinstance(v, SharedVariable) and schema_of(v) is not None]
    for data in used:
        schema, values = schema_of(data), data.get_value(borrow=True)
        assert schema is not None
        gaps = any((rows == MISSING).any() for _, rows in row_blocks(values))
        if gaps or schema.are_levels.any():
            raise TypeError(
                f"X is an expression of the data {data.name!r}, whose "
                f"{'missing cells' if gaps else 'levels'} would become ordinary numbers: give the "
                "data themselves, and transform the table before pymc_trees.Data."
            )
    for data in used:
        keep_schema(data, schema_of(data)._replace(complete=True))  # type: ignore[union-attr]


def _is_matrix(values: np.ndarray) -> bool:
    """Whether an array holds inputs as they are to be."""
    if values.dtype != np.float64 or values.ndim != 2 or not values.flags.c_contiguous:
        return False
    return values.shape[1] > 0 and all(np.isfinite(rows).all() for _, rows in row_blocks(values))


def encode(X: Any, schema: Schema, name: str = "X") -> np.ndarray:
    """(n, p) matrix of other rows, of a table whose training rows had a schema."""
    _check_rows(X, name)
    if not is_large(X):
        return encode_held(X, schema, name)
    X = in_order(X, schema.names, name)
    matrix = as_matrix(X, name)
    return encode_matrix(matrix, schema, name)


def _check_rows(X, name):
    if not is_lazy(X):
        check_held(X, name)


def as_matrix(X: Any, name: str) -> np.ndarray:
    """Float64 (n, p) matrix of an array of numbers, `MISSING` for NaN, or an error."""
    return large_table(X, name) if is_large(X) else checked(matrix_of_reals(X, name), name)


# ---------------------------------------------------------- Model data, and variables that are none


_TAG, _RANDOM = "pymc_trees_columns", "pymc_trees_random_columns"


def schema_of(variable: Any) -> Schema | None:
    """What the columns of model data are, or of the inputs of a forest; None before it is known."""
    return getattr(getattr(variable, "tag", None), _TAG, None)


def keep_schema(variable: Variable, schema: Schema) -> None:
    """Note it on a variable."""
    setattr(variable.tag, _TAG, schema)


def n_random_columns(variable: Any) -> int:
    """How many columns of the inputs of a forest are random variables, the last ones."""
    return getattr(getattr(variable, "tag", None), _RANDOM, 0)


def keep_random_columns(variable: Variable, n: int) -> None:
    """Note it on a forest."""
    setattr(variable.tag, _RANDOM, n)


def sees_batch(variables: Iterable[Variable], blockers=None) -> bool:
    """Whether expressions depend on a `pymc.Minibatch`."""
    seen = ancestors(variables, blockers=blockers)
    return any(v.owner is not None and isinstance(v.owner.op, MinibatchOp) for v in seen)


def no_batch(name: str) -> str:
    """Message about a variable that does."""
    return (
        f"{name} depends on a pm.Minibatch, which takes other rows at each evaluation, but trees "
        "are sampled given all rows: for X, y and everything else with rows give the whole arrays, "
        "without pm.Minibatch and total_size. The time of a step grows with the number of rows; "
        "pymc_trees.sample_sharded shares them among processes."
    )


# --------- Large tables of numbers that are not float64 in memory, read by rows and kept in a file
#
# So a file is never in memory as a whole, and numbers of four bytes do not come to take eight
# there.


LARGE = 2**28
"""Bytes as float64 beyond which a table is kept in a file."""


def is_large(X: Any) -> bool:
    """Whether X is such a table: an array, what has rows like one, or a lazy frame."""
    if is_lazy(X):
        return True
    shape, kind = getattr(X, "shape", None), getattr(getattr(X, "dtype", None), "kind", "O")
    if not isinstance(shape, tuple) or len(shape) != 2 or kind not in "biuf":
        return False
    if in_file(X):
        return True
    if np.ma.isMaskedArray(X) or not hasattr(X, "__getitem__"):
        return False
    in_memory = isinstance(X, np.ndarray) and not _is_memory_map(X)
    return 8 * shape[0] * shape[1] > LARGE and not (in_memory and X.dtype == np.float64)


def _is_memory_map(X) -> bool:
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def large_table(X: Any, name: str) -> FileTable:
    """Such a table in a file, `MISSING` for NaN, or an error that names it."""
    if in_file(X):
        return X
    names = column_names(X) if is_lazy(X) else None
    p = X.shape[1] if names is None else len(names)
    if p == 0:
        raise ValueError(f"{name} has no columns: give at least one.")
    if is_lazy(X):
        check_types(X.collect_schema(), name)
    blocks = (checked(matrix_of_reals(rows, name), name, names) for rows in _blocks_of(X, p))
    try:
        return write_table(p, blocks)
    except OSError as error:
        raise OSError(
            f"{name} could not be kept as float64 in a file in {tempfile.gettempdir()} ({error}). "
            "Free disk space, set the environment variable TMPDIR to another folder, or give "
            f"{name} as a float64 array in memory."
        ) from error


def _blocks_of(X, p: int):
    """Blocks of rows of what is not in memory."""
    step = max(1, BLOCK_BYTES // (8 * p))
    if is_lazy(X):
        yield from X.collect_batches(chunk_size=step)
    else:
        for start in range(0, X.shape[0], step):
            yield X[start : min(start + step, X.shape[0])]
