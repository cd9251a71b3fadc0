"""Whether entry i of an expression is a function of row i of X: read from the graph.

The Ops between trees and expression are followed as for a likelihood (`targets.rows`). If one of
them is unknown there, numbers decide: one row of the trees' outputs is changed, and the entries of
the other rows must not change. What else has an entry for each row is found on the way: model data
beside X, and numbers or variables of the model's own rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Shape_i
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor

import pymc_trees.targets.rows  # noqa: F401  (the rules of `Reader.read`)
from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.posterior.reading.random_inputs import inputs_at
from pymc_trees.posterior.reading.table import Beside, RowTable
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.rows import Aligned, MixedRowsError, NotRowwiseError, Reader

PROBED = 5
"""Rows of a probe."""


class OtherRowsError(ValueError):
    """An expression whose entries are not functions of single rows of X."""


class DataBesideError(Exception):
    """An expression takes model data with an entry for each row that its table does not have."""

    def __init__(self, beside: list[Beside]):
        super().__init__(", ".join(str(one.variable.name) for one in beside))
        self.beside = beside


class Opened(NamedTuple):
    """An expression as a function of rows."""

    rows: Variable
    """(n, outputs and columns) input: what all trees return, and the table."""
    whole: Variable
    free: dict[Variable, Variable]
    """Inputs that stand for other variables."""
    own: list[tuple[Variable, int]]
    """What has an entry for each row of the model and depends on nothing that is asked, with the
    axis of the rows."""


def check_rowwise(
    variable: Variable,
    evaluated: list[Evaluation],
    bases: list[Variable],
    name: str,
    others: Mapping[Variable, np.ndarray] = MappingProxyType({}),
    table: RowTable | None = None,
) -> Opened:
    """Raise an error unless each entry of an expression is a function of its own row of X.

    Parameters
    ----------
    variable : Variable
        The expression.
    found : list of Evaluation
        The trees that it evaluates.
    bases : list of Variable
        The variable that holds the rows of X, for each of these.
    name : str
        Of the expression, for the error.
    others : mapping, optional
        Values of the other random variables below it.
    table : RowTable, optional
        Of the rows of X, and of data beside them. Without it nothing beside X is taken.

    Raises
    ------
    OtherRowsError
        When an entry depends on other rows; without a table also on data of the model's rows other
        than X.
    DataBesideError
        When it depends on data of the model's rows that the table does not have.
    """
    # inputs in their place: a copy of the graph would draw them anew
    free = {rv: rv.type(rv.name) for rv in others}
    known = {free[rv]: value for rv, value in others.items()}
    for one, base in zip(evaluated, bases, strict=True):
        if one.X is not base:
            make = partial(_of_rows, one.X, base, free)
            _check_independent(make, _rows_now(base), name, known, None)
    make = partial(_of_one_matrix, variable, evaluated, bases, free, table)
    n = _rows_now(bases[0])
    n = n if table is None else max(n, 2)  # data of one row could be taken for a number
    rows, whole, own = _check_independent(make, n, name, known, table)
    return Opened(rows, whole, free, own)


def _check_independent(make, n, name, others, table):
    """The same of what is made for n rows, or for any: a matrix and an expression of its rows.

    Returns both, and what has an entry for each row of the model.
    """
    rows, whole = None, None
    own: list[tuple[Variable, int]] = []
    try:
        rows, whole = make(n)
        follower = _Follower(
            rows, dependent_on([whole], rows), rows, name=name, others=others, table=table, own=own
        )
        if whole not in follower.dependent:
            raise NotRowwiseError("nothing but a shape")
        if rows.type.shape[0] == 1:
            raise NotRowwiseError("a single row")  # broadcasting would look like alignment
        if follower.read(whole).index is not None:
            raise MixedRowsError("rows taken by an index")
    except (MixedRowsError, OtherRowsError) as error:
        raise _refusal(name, error) from error
    except (NotRowwiseError, IndexError, TypeError, ValueError) as error:
        if table is not None and whole is not None:
            _check_all_in_table(whole, len(table.sources[0].values))
        if own or not _rows_are_independent(make, others, table):
            raise _refusal(name, error) from error
    return rows, whole, own


def _check_all_in_table(whole, n) -> None:
    """Where an Op is unknown: data of as many entries as rows are taken for those of the rows."""
    data = [v for v in ancestors([whole]) if _is_model_data(v)]
    beside = [Beside(v, 0) for v in data if v.ndim and len(present(v)) == n]
    if beside:
        raise DataBesideError(beside)


def _is_model_data(v: Variable) -> bool:
    return isinstance(v, SharedVariable) and isinstance(v.type, pt.TensorType)


@dataclass
class _Follower(Reader):
    """Follows the rows; without a table it refuses data of single rows other than X."""

    name: str = ""
    others: Mapping[Variable, np.ndarray] = MappingProxyType({})
    """Values of inputs that stand for other random variables."""
    table: RowTable | None = None
    own: list[tuple[Variable, int]] = field(default_factory=list)

    def read(self, var):
        op = var.owner.op if var.owner else None
        if isinstance(op, CheckAndRaise):
            checked, *_ = list(var.owner.inputs)  # a failed check refuses all rows
            return self.read(checked)
        if self.table is not None and isinstance(op, AdvancedSubtensor):
            array, *numbers = list(var.owner.inputs)
            if array not in self.dependent:
                if var not in self.memo:
                    indices = indices_from_subtensor(numbers, op.idx_list)
                    self.memo[var] = self._picked(array, list(indices))
                return self.memo[var]
        return super().read(var)

    def _picked(self, array, indices) -> Aligned:
        """``a[g]``: of a vector that is no function of rows, the entry that each row names."""
        taken, advanced = [], []
        for k, index in enumerate(indices):
            if isinstance(index, slice):
                if any(v in self.dependent for v in (index.start, index.stop, index.step)):
                    raise NotRowwiseError("a slice that depends on it")
                taken.append(index)
                continue
            advanced.append(k)
            if index in self.dependent:
                aligned = self.read(index)
                if aligned.var.ndim != 1 or index.dtype == "bool":
                    raise NotRowwiseError("rows taken by a matrix or a mask")
                taken.append(aligned.var)
            elif getattr(index, "ndim", 0) == 0:
                taken.append(index)
            elif index.ndim == 1:
                taken.append(self.take(index, 0, None, full=True))
            else:
                raise NotRowwiseError("rows taken by a matrix")
        together = advanced == list(range(advanced[0], advanced[-1] + 1))
        axis = advanced[0] if together else 0
        picked = self.take(array, -1, None, full=True)[tuple(taken)]
        return Aligned(picked, axis, None)

    def take(self, var, axis, index, full=False):
        each = 0 <= axis < var.ndim and not var.type.broadcastable[axis]
        if each and not self._follows_length(var, axis):
            if self.table is None or index is not None:
                random = [rv.name for rv in self.others if rv in set(ancestors([var]))]
                raise _own_draws(self.name, random) if random else no_row_of_its_own(self.name)
            data = [Beside(*leaf) for leaf in _lengths_from(var, axis) if _is_model_data(leaf[0])]
            if data:
                raise DataBesideError(list(dict.fromkeys(data)))
            self.own.append((var, axis))
        return super().take(var, axis, index, full)

    def _follows_length(self, var, axis):
        """Whether it holds the same for each row, however many there are: zeros_like(f), say."""
        free = pt.tensor("rows", dtype="float64", shape=(None, self.outputs.type.shape[1]))
        known = {v: pt.constant(value) for v, value in self.others.items()}
        [var] = clone_replace([var], {self.outputs: free} | known, rebuild_strict=False)
        for n in (2, 3):
            zero = np.zeros((n, free.type.shape[1]))
            try:
                values = var.eval({free: zero}, on_unused_input="ignore", mode="FAST_COMPILE")
            except (ValueError, IndexError):  # other data of the model's rows
                return False
            if values.shape[axis] != n or np.any(values != values.take([0], axis)):
                return False
        return True


def _lengths_from(var: Variable, axis: int) -> list[tuple[Variable, int]]:
    """Inputs of a graph, and their axes, from which it has the length of an axis."""
    if var.owner is None:
        return [(var, axis)]
    op, inputs = var.owner.op, list(var.owner.inputs)
    if isinstance(op, Elemwise):
        wide = [v for v in inputs if not v.type.broadcastable[axis]]
        return [leaf for v in wide for leaf in _lengths_from(v, axis)]
    if isinstance(op, DimShuffle):
        return _lengths_from(inputs[0], op.new_order[axis])
    length = rewrite_graph(var.shape[axis], include=("ShapeOpt", "canonicalize"))
    found = []
    for v in ancestors([length]):
        if v.owner is not None and isinstance(v.owner.op, Shape_i):
            [of] = list(v.owner.inputs)
            found += [(of, v.owner.op.i)]
    return [(v, k) for v, k in found if v.owner is None]


def _of_one_matrix(variable, evaluated, bases, free, table, n) -> tuple[Variable, Variable]:
    """A matrix of what all trees return at n rows, and of X; the expression as its function."""
    p = bases[0].type.shape[1] or np.shape(present(bases[0]))[1] if table is None else table.width
    sizes = [*(one.outputs.type.shape[1] for one in evaluated), p]
    rows = pt.tensor("rows", dtype="float64", shape=(n, sum(sizes)))
    ends = np.cumsum([0, *sizes])
    parts = [rows[:, a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    replaced = {one.outputs: part for one, part in zip(evaluated, parts, strict=False)}
    at = inputs_at(evaluated, bases, parts[-1]) if table is None else table.parts(parts[-1])
    # random columns of X have no copy either
    free = free | {v: column for v, column in at.items() if v.ndim == 1}
    # where X is used outside the trees, which are replaced first
    [whole] = clone_replace([variable], replaced | free, rebuild_strict=False)
    [whole] = clone_replace([whole], at, rebuild_strict=False)
    return rows, whole


def _of_rows(made, base, free, n) -> tuple[Variable, Variable]:
    """A matrix of n rows of X, and what is made of them."""
    p = base.type.shape[1] or np.shape(present(base))[1]
    rows = pt.tensor("rows", dtype="float64", shape=(n, p))
    [whole] = clone_replace([made], {base: rows} | free, rebuild_strict=False)
    return rows, whole


def _rows_are_independent(make, others, table=None) -> bool:
    """Whether no entry changed where another row did, in a few numbers."""
    values = list(others.values())
    rng = np.random.default_rng(0)
    try:
        rows, whole = make(None)
        compiled = pm.compile([rows, *others], whole, on_unused_input="ignore")
        width = rows.type.shape[1]
        for at in (rng.normal(size=(PROBED, width)), rng.random((PROBED, width))):
            kept_columns = np.zeros(width, dtype=bool)
            if table is not None and table.of_whole:
                columns = [k - table.width for k in table.of_whole]
                at[:, columns] = _different_rows(table)
                if np.any(np.ptp(at[:, columns], axis=0) == 0):
                    return False  # nothing says what another number would change
                kept_columns[columns] = True
            here, longer = compiled(at, *values), compiled(at[[*range(PROBED), 0]], *values)
            grown = [k for k in range(here.ndim) if here.shape[k] != longer.shape[k]]
            if len(grown) != 1 or here.shape[grown[0]] != PROBED:
                return False
            here = np.moveaxis(here, grown[0], 0)
            for row, other in _with_one_changed(at, kept_columns):
                there = np.moveaxis(compiled(other, *values), grown[0], 0)
                kept = np.arange(PROBED) != row
                if not np.array_equal(here[kept], there[kept], equal_nan=True):
                    return False
    except (IndexError, TypeError, ValueError):
        return False
    return True


def _different_rows(table: RowTable) -> np.ndarray:
    """(PROBED, columns) of data that are whole numbers, in each column at least two of them."""
    data = table.now()[:, table.of_whole]
    first = np.argmax(data != data[0], axis=0)
    rows = [0, *first, *np.linspace(0, len(data) - 1, PROBED).astype(int)]
    chosen = data[np.array(list(dict.fromkeys(rows))[:PROBED])]
    return np.resize(chosen, (PROBED, data.shape[1]))


def _with_one_changed(at, as_they_are):
    """Number of a row, and the rows with others in its place."""
    for row in range(PROBED):
        for other_row in range(PROBED):
            if other_row != row:
                other = at.copy()
                other[row] = at[other_row]
                yield row, other
        for change in (1e3 * at[row], -at[row]):
            other = at.copy()
            other[row] = np.where(as_they_are, at[row], change)
            yield row, other


def _rows_now(X: Variable) -> int:
    return X.type.shape[0] or len(present(X))


def _refusal(name: str, error: Exception) -> OtherRowsError:
    if isinstance(error, OtherRowsError):
        return error
    return OtherRowsError(
        f"row i of {name} depends on other rows than row i of X ({error}), so it is not defined "
        "for a single row: use the function of trees inside it."
    )


def no_row_of_its_own(name: str) -> OtherRowsError:
    """The error of numbers that are unknown at other rows."""
    return OtherRowsError(
        f"{name} depends on more than the columns of X row by row: its other inputs are unknown "
        "at other rows. Use the function of trees inside it."
    )


def _own_draws(name: str, random: list[str]) -> OtherRowsError:
    return OtherRowsError(
        f"{name} takes an entry of {random} for each row of the model, and which one is unknown at "
        "other rows: use the function of trees inside it."
    )
