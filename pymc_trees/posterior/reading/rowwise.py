"""Whether entry i of an expression is a function of row i of X: read from the graph.

The Ops between trees and expression are followed as for a likelihood (`targets.rows`). If one of
them is unknown there, numbers decide: one row of the trees' outputs is changed, and the entries of
the other rows must not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.raise_op import CheckAndRaise

import pymc_trees.targets.rows  # noqa: F401  (the rules of `Reader.read`)
from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.rows import MixedRowsError, NotRowwiseError, Reader

PROBED = 5
"""Rows of a probe."""


class OtherRowsError(ValueError):
    """An expression whose entries are not functions of single rows of X."""


def check_rowwise(
    variable: Variable,
    evaluated: list[Evaluation],
    bases: list[Variable],
    name: str,
    others: Mapping[Variable, np.ndarray] = MappingProxyType({}),
) -> None:
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

    Raises
    ------
    OtherRowsError
        When an entry depends on other rows, or on data of the model's rows other than X.
    """
    # inputs in their place: a copy of the graph would draw them anew
    free = {rv: rv.type(rv.name) for rv in others}
    known = {free[rv]: value for rv, value in others.items()}
    made = [(partial(_of_one_matrix, variable, evaluated, bases, free), bases[0])]
    for one, base in zip(evaluated, bases, strict=True):
        if one.X is not base:
            made.append((partial(_of_rows, one.X, base, free), base))
    for make, base in made:
        _check_independent(make, _rows_now(base), name, known)


def _check_independent(make, n, name, others) -> None:
    """The same of what is made for n rows, or for any: a matrix and an expression of its rows."""
    try:
        rows, whole = make(n)
        follower = _Follower(rows, dependent_on([whole], rows), rows, name=name, others=others)
        if whole not in follower.dependent:
            raise NotRowwiseError("nothing but a shape")
        if rows.type.shape[0] == 1:
            raise NotRowwiseError("a single row")  # broadcasting would look like alignment
        if follower.read(whole).index is not None:
            raise MixedRowsError("rows taken by an index")
    except (MixedRowsError, OtherRowsError) as error:
        raise _refusal(name, error) from error
    except (NotRowwiseError, IndexError, TypeError, ValueError) as error:
        if not _rows_are_independent(make, others):
            raise _refusal(name, error) from error


@dataclass
class _Follower(Reader):
    """Follows the rows, and refuses data of single rows other than X."""

    name: str = ""
    others: Mapping[Variable, np.ndarray] = MappingProxyType({})
    """Values of inputs that stand for other random variables."""

    def read(self, var):
        if var.owner and isinstance(var.owner.op, CheckAndRaise):
            checked, *_ = list(var.owner.inputs)  # a failed check refuses all rows
            return self.read(checked)
        return super().read(var)

    def take(self, var, axis, index, full=False):
        each = 0 <= axis < var.ndim and not var.type.broadcastable[axis]
        if each and not self._follows_length(var, axis):
            random = [rv.name for rv in self.others if rv in set(ancestors([var]))]
            raise _own_draws(self.name, random) if random else _own_numbers(self.name)
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
            except ValueError:  # other data of the model's rows
                return False
            if values.shape[axis] != n or np.any(values != values.take([0], axis)):
                return False
        return True


def _of_one_matrix(variable, evaluated, bases, free, n) -> tuple[Variable, Variable]:
    """A matrix of what all trees return at n rows, and of X; the expression as its function."""
    p = bases[0].type.shape[1] or np.shape(present(bases[0]))[1]
    sizes = [*(one.outputs.type.shape[1] for one in evaluated), p]
    rows = pt.tensor("rows", dtype="float64", shape=(n, sum(sizes)))
    ends = np.cumsum([0, *sizes])
    parts = [rows[:, a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]
    replaced = {one.outputs: part for one, part in zip(evaluated, parts, strict=False)}
    # where X is used outside the trees, which are replaced first
    [whole] = clone_replace([variable], replaced | free, rebuild_strict=False)
    [whole] = clone_replace([whole], dict.fromkeys(bases, parts[-1]), rebuild_strict=False)
    return rows, whole


def _of_rows(made, base, free, n) -> tuple[Variable, Variable]:
    """A matrix of n rows of X, and what is made of them."""
    p = base.type.shape[1] or np.shape(present(base))[1]
    rows = pt.tensor("rows", dtype="float64", shape=(n, p))
    [whole] = clone_replace([made], {base: rows} | free, rebuild_strict=False)
    return rows, whole


def _rows_are_independent(make, others) -> bool:
    """Whether no entry changed where another row did, in a few numbers."""
    values = list(others.values())
    rng = np.random.default_rng(0)
    try:
        rows, whole = make(None)
        compiled = pm.compile([rows, *others], whole, on_unused_input="ignore")
        width = rows.type.shape[1]
        for at in (rng.normal(size=(PROBED, width)), rng.random((PROBED, width))):
            here, longer = compiled(at, *values), compiled(at[[*range(PROBED), 0]], *values)
            grown = [k for k in range(here.ndim) if here.shape[k] != longer.shape[k]]
            if len(grown) != 1 or here.shape[grown[0]] != PROBED:
                return False
            here = np.moveaxis(here, grown[0], 0)
            for row, other in _with_one_changed(at):
                there = np.moveaxis(compiled(other, *values), grown[0], 0)
                kept = np.arange(PROBED) != row
                if not np.array_equal(here[kept], there[kept], equal_nan=True):
                    return False
    except (IndexError, TypeError, ValueError):
        return False
    return True


def _with_one_changed(at):
    """Number of a row, and the rows with others in its place."""
    for row in range(PROBED):
        for change in (at[(row + 1) % PROBED], 1e3 * at[row], -at[row]):
            other = at.copy()
            other[row] = change
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


def _own_numbers(name: str) -> OtherRowsError:
    return OtherRowsError(
        f"{name} depends on more than the columns of X row by row: its other inputs are unknown "
        "at other rows. Use the function of trees inside it."
    )


def _own_draws(name: str, random: list[str]) -> OtherRowsError:
    return OtherRowsError(
        f"{name} takes an entry of {random} for each row of the model, and which one is unknown at "
        "other rows: use the function of trees inside it."
    )
