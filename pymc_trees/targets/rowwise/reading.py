"""Likelihood terms of single rows, cut out of a model's graph.

A term is row-wise if its entry i is a function of row i of the forest's outputs and of numbers that
do not depend on the forest. This is decided from the Ops between the two, each of which must act on
each row separately and in the same way (`row_ops`); anything else is `NotRowwiseError`, never a
guess. The result is a graph over *some* rows: subexpressions that do not depend on the forest are
cut off, become data, and are indexed by those rows.

Indexing makes a term of one row a term of several: ``mu[group]`` has as many entries as ``group``,
and entry j depends on row ``group[j]``. Entries of terms are called units.
"""

from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.op import Op
from pytensor.graph.traversal import graph_inputs

from pymc_trees.targets.affine import passes_through
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.terms import Term, log_indicator


class NotRowwiseError(Exception):
    """An expression is not known to act row by row; the message names the Op."""


class MixedRowsError(NotRowwiseError):
    """An Op between the two certainly combines several rows."""


@dataclass
class Aligned:
    """An expression over some units, made from one over all of them."""

    var: Variable
    axis: int
    """Axis of the rows, or of the units once ``index`` is set."""
    index: Variable | None = None
    """Row of each unit; None where units are rows."""


@dataclass
class FreeInput:
    """An expression that does not depend on the forest, and the input that replaces it."""

    expression: Variable
    input: Variable
    """float64, with the number of dimensions of the expression, but at least one."""


@dataclass
class UnitTerm:
    """Log-likelihood of single units of a term."""

    value: Variable
    """(u,) log-likelihood of the requested units."""
    outputs: Variable
    """(u, K) input: the forest's outputs at the row of each."""
    rows: Variable
    """(u,) int64 input: row of each unit."""
    units: Variable
    """(u,) int64 input: number of each unit; not used where units are rows."""
    index: Variable | None
    """Row of each unit, an expression; None where units are rows."""
    free: list[FreeInput]


@dataclass
class Reader:
    """State of the reading of one term."""

    outputs: Variable
    seeing: set[Variable]
    some_outputs: Variable
    rows: Variable = field(default_factory=lambda: pt.lvector("rows"))
    units: Variable = field(default_factory=lambda: pt.lvector("units"))
    free: list[FreeInput] = field(default_factory=list)
    memo: dict = field(default_factory=dict)
    indices: list[Variable] = field(default_factory=list)
    """Indices of rows found so far."""

    def read(self, var: Variable) -> Aligned:
        """Expression that depends on the forest, over some units."""
        if var is self.outputs:
            return Aligned(self.some_outputs, 0)
        if var not in self.memo:
            inner = passes_through(var)
            if inner is not None:
                self.memo[var] = self.read(inner)
            else:
                self.memo[var] = read_op(var.owner.op, self, var)
        return self.memo[var]

    def take(
        self, var: Variable, axis: int, index: Variable | None, full: bool = False
    ) -> Variable:
        """Expression that does not depend on the forest, at the units if it has an entry for each.

        With ``full`` it keeps an entry for each; otherwise one number may stand for all.
        """
        known = None if full else self.known_now(var)
        narrow = all(b or k == axis for k, b in enumerate(var.type.broadcastable))
        if narrow and known is not None and known.size and (known == known.flat[0]).all():
            # one number for all rows, such as that no count is negative: checks of it fall away
            return pt.constant(np.full((1,) * var.ndim, known.flat[0], dtype=var.type.dtype))
        new = self._input(var)
        if axis >= 0 and not var.type.broadcastable[axis]:
            at = self.rows if index is None else self.units
            new = new[(slice(None),) * axis + (at,)]
        elif var.ndim == 0:
            new = new[0]
        return pt.neq(new, 0.0) if var.type.dtype == "bool" else new.astype(var.type.dtype)

    def _input(self, var):
        for known in self.free:
            if known.expression is var:
                return known.input
        shape = tuple(1 if b else None for b in var.type.broadcastable)
        new = pt.tensor(f"free_{len(self.free)}", dtype="float64", shape=shape or (1,))
        self.free.append(FreeInput(var, new))
        return new

    def same_index(self, index: Variable) -> Variable:
        """A previously found index that certainly has the same values, else this one."""
        known = self.known_now(index)
        for other in self.indices:
            numbers = self.known_now(other)
            if other is index or (
                known is not None and numbers is not None and np.array_equal(known, numbers)
            ):
                return other
        self.indices.append(index)
        return index

    def known_now(self, var: Variable) -> np.ndarray | None:
        """Values of an expression of constants and shapes only, else None."""
        if isinstance(var, Constant):
            return np.asarray(var.data)
        roots = graph_inputs([var])  # shared variables too: model data may be set anew
        if var in self.seeing or not all(
            v is self.outputs or isinstance(v, Constant) for v in roots
        ):
            return None
        if not isinstance(var.type, pt.TensorType):
            var = pt.as_tensor(var)
        zero = np.zeros(self.outputs.type.shape)
        return var.eval({self.outputs: zero}, on_unused_input="ignore", mode="FAST_COMPILE")


@singledispatch
def read_op(op: Op, reader: Reader, var: Variable) -> Aligned:
    """Result ``var`` of an Op, over some units; `row_ops` gives the rules."""
    raise NotRowwiseError(str(op))


def read_rows(term: Term, outputs: Variable) -> list[UnitTerm]:
    """Cut the log-likelihood of single units out of a term.

    Parameters
    ----------
    term : Term
        Summand of the log-likelihood.
    outputs : (n, K) variable
        The forest's outputs, an input of it.

    Returns
    -------
    units : list of UnitTerm
        One for the term and the conditions on its units, and one for each condition on other units,
        for example on the rows if the term indexes them.

    Raises
    ------
    NotRowwiseError
        Names the Op that mixes rows, or is not supported.
    """
    n, n_values = outputs.type.shape
    if n == 1:
        raise NotRowwiseError("a single row")  # broadcasting could be mistaken for alignment
    some = pt.tensor("some_outputs", dtype="float64", shape=(None, n_values))
    reader = Reader(outputs, dependent_on([term.value, *term.conditions], outputs), some)
    found = reader.read(term.value)
    value = sum_units(found)
    others = []
    for condition in term.conditions:
        holds = reader.read(condition)
        if holds.index is not found.index:
            others += read_rows(log_indicator(condition), outputs)
            continue
        across = [k for k in range(holds.var.ndim) if k != holds.axis]
        everywhere = pt.all(holds.var, axis=across) if across else holds.var
        value = pt.switch(everywhere, value, -np.inf)
    unit = UnitTerm(
        value.astype("float64"), some, reader.rows, reader.units, found.index, reader.free
    )
    return [unit, *others]


def sum_units(found: Aligned) -> Variable:
    """Sum over every axis but that of the units."""
    others = [k for k in range(found.var.ndim) if k != found.axis]
    return found.var.sum(axis=others) if others else found.var
