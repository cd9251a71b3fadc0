"""Inputs of forests some of whose columns are random variables, as the rows of functions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.random_columns import split_inputs
from pymc_trees.distributions.data.table import n_random_columns, schema_of
from pymc_trees.distributions.forest_inputs import Evaluation, training_rows


class RandomInputs(NamedTuple):
    """Inputs of a forest, taken apart."""

    tree: Variable
    constant: Variable
    """(n, p) the first columns."""
    columns: dict[str, Variable]
    """(n,) the last ones, by name."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        schema = schema_of(self.tree)
        assert schema is not None and schema.names is not None
        return schema.names

    @property
    def inner(self) -> list[tuple[Variable, list[int]]]:
        """What they are made of, with the columns that it is."""
        p = training_rows(self.tree).shape[1]
        first = p - len(self.columns)
        each = enumerate(self.columns.values(), start=first)
        return [(self.constant, list(range(first))), *((v, [j]) for j, v in each)]

    def now(self) -> np.ndarray:
        """(n, p) rows that the model has now: cells of random columns are missing."""
        known = np.asarray(self.constant.eval(), dtype=np.float64)
        return np.column_stack([known, np.full((len(known), len(self.columns)), MISSING)])


def random_inputs(
    evaluated: Sequence[Evaluation], bases: Sequence[Variable]
) -> dict[Variable, RandomInputs]:
    """Those among the inputs of evaluations that have random columns."""
    found = {}
    for one, base in zip(evaluated, bases, strict=True):
        n, schema = n_random_columns(one.tree), schema_of(one.tree)
        parts = split_inputs(base, n) if n else None
        if parts is not None and schema is not None and schema.names is not None:
            constant, columns = parts
            names = dict(zip(schema.names[-n:], columns, strict=True))
            found[base] = RandomInputs(one.tree, constant, names)
    return found


def inputs_at(
    evaluated: Sequence[Evaluation], bases: Sequence[Variable], at: Variable
) -> dict[Variable, Variable]:
    """What each variable of rows is, for a matrix of them."""
    parts = dict.fromkeys(bases, at)
    for one in random_inputs(evaluated, bases).values():
        parts |= {v: _columns(at, v, own) for v, own in one.inner}
    return parts


def _columns(at: Variable, v: Variable, own: list[int]) -> Variable:
    part = at[:, own[0]] if v.ndim == 1 else at[:, own[0] : own[-1] + 1]
    return part.astype(v.dtype)


def columns_of(evaluated: Sequence[Evaluation], bases: Sequence[Variable]) -> list[Variable]:
    """Random columns of all inputs."""
    found = random_inputs(evaluated, bases).values()
    return list(dict.fromkeys(v for one in found for v in one.columns.values()))


def check_not_random(
    evaluated: Sequence[Evaluation], name: str, argument: str, rows: np.ndarray | None = None
) -> None:
    """Raise an error for the model's own rows, or rows with a cell that is unknown.

    Unless no column of the inputs is a random variable; those are the last columns of the rows.
    """
    for one in evaluated:
        n, schema = n_random_columns(one.tree), schema_of(one.tree)
        if n and (rows is None or (rows[:, -n:] == MISSING).any()):
            names = [] if schema is None else list(schema.names or ())
            raise ValueError(
                f"{name} depends on random columns of X, whose cells differ from draw to draw: "
                f"give a frame with the columns {names} as {argument}, without missing cells in "
                f"{names[-n:]}. predictions() integrates over what is unknown."
            )
