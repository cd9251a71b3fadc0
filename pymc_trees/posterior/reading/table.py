"""The rows at which a function of a model is asked for, as one table.

Its columns are those of X, and one for each number that model data beside X have for a row: an
exposure, a treatment, the group of each row. Columns of the same name and contents are one, so that
a change of it reaches all that the model makes of it. Where the function takes other numbers of the
model's rows, such as constants, a last column has the number of the row.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.named import present
from pymc_trees.distributions.data.table import encode
from pymc_trees.predictors.columns import CONTINUOUS, SUBSET, Schema
from pymc_trees.predictors.rows import encode_partly

ANY_X = "X"
"""Name of the inputs of all forests where they are one, beside that of their model data."""


class Beside(NamedTuple):
    """Model data with an entry for each row."""

    variable: Variable
    axis: int
    """Of the rows."""


class Source(NamedTuple):
    """What a table's columns are made of, and what is made of them."""

    name: str
    variables: list[Variable]
    """Of the model: all have these columns."""
    values: np.ndarray
    """(n, columns) numbers that the model has now."""
    schema: Schema | None
    """Of the inputs of a forest; None for data beside them."""
    names: tuple[str, ...]
    levels: tuple[tuple | None, ...]
    axis: int = 0
    """Of the rows in the variable."""
    inner: tuple[tuple[Variable, list[int]], ...] = ()
    """Variables of the model that are some of these columns."""
    n_random: int = 0
    """Columns that are random variables, the last ones: they may be left out."""

    @property
    def is_whole(self) -> bool:
        """Whether they are data beside X that hold whole numbers, or bools."""
        return self.schema is None and np.dtype(self.variables[0].dtype).kind in "biu"


class RowTable:
    """Columns of the rows of a function.

    Parameters
    ----------
    sources : list of Source
        The first is X.

    Raises
    ------
    ValueError
        Where two have a column of one name with different contents.
    """

    def __init__(self, sources: Sequence[Source], taken: str = ""):
        self.sources = list(sources)
        self.taken, self.numbered = taken, bool(taken)
        """Whether a last column has the number of the row in the model, and what is taken by it."""
        X, *beside = self.sources
        names, levels, owner = list(X.names), list(X.levels), [X] * len(X.names)
        self.places = [list(range(len(X.names)))]
        """For each source the columns of the table that are its own."""
        for source in beside:
            place = []
            for k, (name, known) in enumerate(zip(source.names, source.levels, strict=True)):
                if name in names:
                    _check_same(name, owner[names.index(name)], source, k)
                else:
                    names, levels, owner = [*names, name], [*levels, known], [*owner, source]
                place.append(names.index(name))
            self.places.append(place)
        self.names = names
        self.n_columns = len(names)
        self.schema = X.schema
        if beside:
            rules = tuple(CONTINUOUS if one is None else SUBSET for one in levels)
            self.schema = Schema(tuple(names), rules, tuple(levels))
        all_places = zip(self.sources, self.places, strict=True)
        self.of_whole = sorted(
            {k for source, place in all_places for k in place if source.is_whole}
        )
        """Columns of data that are whole numbers, such as the group of a row."""

    def check(self, rows: np.ndarray) -> None:
        """Raise an error for rows whose data beside X are none that the model can hold."""
        for source, place in zip(self.sources, self.places, strict=True):
            if source.schema is not None:
                continue
            [variable] = source.variables
            for k in place:
                cells = rows[:, k]
                if (cells == MISSING).any():
                    raise ValueError(
                        f"{self.names[k]!r} is data of the model beside X, which has no missing "
                        "cells: give finite numbers."
                    )
                kept = cells.astype(variable.dtype).astype(np.float64)
                if source.is_whole and (kept != cells).any():
                    wrong = cells[kept != cells][0]
                    raise ValueError(
                        f"{self.names[k]!r} is {variable.dtype} in the model, which cannot hold "
                        f"{wrong:g}: give whole numbers, or declare it as floats."
                    )

    @property
    def width(self) -> int:
        """Columns, that of the row's number too."""
        return self.n_columns + self.numbered

    def parts(self, at: Variable) -> dict[Variable, Variable]:
        """What each variable of the model is, for a matrix of rows."""
        parts: dict[Variable, Variable] = {}
        for source, place in zip(self.sources, self.places, strict=True):
            parts |= {v: _part(at, source, v, place, self.width) for v in source.variables}
            for v, own in source.inner:
                some = [place[j] for j in own]
                one = at[:, some[0]] if v.ndim == 1 else _matrix(at, some, self.width)
                parts[v] = one.astype(v.dtype)
        return parts

    def columns_of(self, base: Variable) -> list[int]:
        """Columns that inputs of trees are."""
        found = []
        for source, place in zip(self.sources, self.places, strict=True):
            found += [place for v in source.variables if v is base]
            found += [[place[j] for j in own] for v, own in source.inner if v is base]
        return found[0]

    def cells(self, k: int) -> np.ndarray:
        """(n,) numbers that the model has now in a column."""
        all_places = zip(self.sources, self.places, strict=True)
        [own, *_] = [(source, place) for source, place in all_places if k in place]
        return own[0].values[:, own[1].index(k)]

    def now(self) -> np.ndarray:
        """(n, width) rows that the model has now."""
        _check_lengths({source.name: len(source.values) for source in self.sources})
        return self._filled({s.name: s.values for s in self.sources}, numbered=True)

    def first(self) -> np.ndarray:
        """(1, width) the first row of each."""
        return self._filled({s.name: s.values[:1] for s in self.sources}, numbered=True)

    def _filled(self, values: Mapping[str, np.ndarray], numbered: bool = False) -> np.ndarray:
        if len(self.sources) == 1 and not self.numbered:
            return values[self.sources[0].name]
        n = max(len(one) for one in values.values())
        rows = np.full((n, self.width), np.nan)
        for source, place in zip(self.sources, self.places, strict=True):
            if source.name in values:
                rows[:, place] = values[source.name]
        if self.numbered and numbered:
            rows[:, -1] = np.arange(n)
        return rows

    def rows(self, data: Any, name: str, argument: str) -> np.ndarray:
        """(m, width) table of other rows: those of X, or a dict of X and the data beside it.

        Parameters
        ----------
        data : array, frame or mapping
            As users give them, in the argument of that name.
        name : str
            Of the function, for errors.
        argument : str
            For errors.
        """
        inputs = [source.name for source in self.sources if source.schema is not None]
        given = dict(data) if isinstance(data, Mapping) else {inputs[0]: data}
        if ANY_X in given and len(inputs) == 1:
            given[inputs[0]] = given.pop(ANY_X)
        values = {}
        for source in self.sources:
            key = next((k for k in given if k in (source.name, *_names_of(source))), None)
            if key is not None:
                told = key if isinstance(data, Mapping) else ANY_X
                values[source.name] = _numbers(source, given[key], told)
        if not values:
            return self.now()
        own_X = not set(inputs) & set(values)
        n = self._length(values, inputs[0] if own_X else None)
        if own_X:  # the model's rows, of which some numbers are others
            values = {source.name: source.values for source in self.sources} | values
            _check_lengths(
                {key: len(one) for key, one in values.items() if len(one) != 1} | {inputs[0]: n}
            )
        places = dict(zip((source.name for source in self.sources), self.places, strict=True))
        filled = {k for key in values for k in places[key]}
        if lacking := [key for key, place in places.items() if not set(place) <= filled]:
            raise ValueError(
                f"{name} depends on {lacking}, with an entry for each row: give these for the new "
                f"rows too, {argument}={{{inputs[0]!r}: ..., {lacking[0]!r}: ...}}."
            )
        if self.numbered and not own_X:
            raise ValueError(
                f"{name} takes {self.taken} for each row of the model, which is unknown at other "
                "rows: ask about the rows of the model, make indices and numbers of rows pm.Data "
                "and give them too, or use the function of trees inside it."
            )
        values = {key: np.broadcast_to(one, (n, one.shape[1])) for key, one in values.items()}
        self._check_shared(values, argument)
        return self._filled(values, numbered=own_X)

    def _length(self, values: Mapping[str, np.ndarray], own_X: str | None) -> int:
        """Number of rows: of what is given, or of the model's X, whose name is given."""
        lengths = {key: len(one) for key, one in values.items() if len(one) != 1}
        if own_X is not None:
            n = len(self.sources[0].values)
            wrong = {key: length for key, length in lengths.items() if length != n}
            if wrong:
                raise ValueError(
                    f"data: {wrong} entries for the {n} rows of {own_X}: give one for each row, a "
                    f"single number, or other rows of {own_X} too."
                )
            return n
        if len(set(lengths.values())) > 1:
            raise ValueError(
                f"data: the new rows have different numbers, {lengths}: give one entry for each "
                "row, or a single number for all."
            )
        return next(iter(lengths.values()), 1)

    def _check_shared(self, values: Mapping[str, np.ndarray], argument: str) -> None:
        """Columns that two sources have are given alike."""
        seen: dict[int, np.ndarray] = {}
        for source, place in zip(self.sources, self.places, strict=True):
            for k, column in zip(place, values.get(source.name, np.empty((0, 0))).T, strict=False):
                if not np.array_equal(seen.setdefault(k, column), column, equal_nan=True):
                    raise ValueError(
                        f"{argument}: {source.name} has other numbers in the column "
                        f"{source.names[place.index(k)]!r} than what was given beside it: they "
                        "are one column, so give it the same numbers in both."
                    )


def _check_lengths(lengths: Mapping[str, int]) -> None:
    """Raise an error unless the model's data have as many rows as each other."""
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"The data have different numbers of rows now, {dict(lengths)}: set them together with "
            "pymc_trees.set_data, or give all of them, data={...}."
        )


def _names_of(source: Source) -> list[str]:
    inner = [v for v, _ in source.inner if v.ndim == 2]
    return [str(v.name) for v in [*source.variables, *inner]]


def _check_same(name: str, one: Source, other: Source, k: int) -> None:
    """Raise an error unless a column of one name has the same contents in both."""
    mine, theirs = one.values[:, one.names.index(name)], other.values[:, k]
    levels = {one.levels[one.names.index(name)], other.levels[k]} - {None}
    if len(levels) > 1 or not np.array_equal(mine, theirs, equal_nan=True):
        raise ValueError(
            f"{name!r} is a column of {one.name} and of {other.name}, with other contents: give "
            "one of them another name in the model."
        )


def _part(at, source, variable, place, width):
    """The columns of one source, as its variable has them."""
    part = _matrix(at, place, width)
    if source.schema is not None:
        return part
    if variable.ndim == 1:
        return at[:, place[0]].astype(variable.dtype)
    shape = np.moveaxis(present(variable), source.axis, 0).shape[1:]
    if len(shape) > 1:
        part = part.reshape((part.shape[0], *shape))
    return pt.moveaxis(part, 0, source.axis).astype(variable.dtype)


def _matrix(at: Variable, place: list[int], width: int) -> Variable:
    """Some columns of a matrix of rows."""
    if len(place) == width and place == list(range(width)):
        return at
    if place == list(range(place[0], place[0] + len(place))):
        return at[:, place[0] : place[0] + len(place)]
    return pt.stack([at[:, k] for k in place], axis=1)


def _numbers(source: Source, given: Any, key: str) -> np.ndarray:
    """(m, columns) numbers of what users give for a source; a single row stands for all."""
    if source.schema is not None:
        return encode_partly(given, source.schema, source.n_random, key, encode)
    [variable] = source.variables
    values = np.asarray(given)
    if values.dtype.kind in "OUS" and source.levels[0] is not None:
        values = np.array([_code(source, key, one) for one in values.ravel().tolist()]).reshape(
            values.shape
        )
    shape = np.moveaxis(present(variable), source.axis, 0).shape[1:]
    if values.ndim == variable.ndim:
        values = np.moveaxis(values, source.axis, 0)
    elif values.ndim == variable.ndim - 1:
        values = values[None]
    if values.shape[1:] != shape or values.ndim != variable.ndim or values.dtype.kind not in "biuf":
        wanted = list(present(variable).shape)
        wanted[source.axis] = "rows"
        raise ValueError(
            f"data: {key} has the shape {np.shape(given)} and the type {values.dtype}: give "
            f"numbers of shape ({', '.join(map(str, wanted))},), as the model has them."
        )
    flat = values.reshape(len(values), -1).astype(np.float64)
    if not np.isfinite(flat).all():
        raise ValueError(f"data: {key} holds numbers that are not finite: leave those rows out.")
    return flat


def _code(source: Source, key: str, level: Any) -> float:
    known = source.levels[0] or ()
    if level not in known:
        raise ValueError(f"data: {level!r} is no label of {key}: choose from {list(known)}.")
    return float(known.index(level))


# ---------------------------------------------------------------------------- Making the sources


def inputs_source(
    name, bases: Sequence[Variable], X: np.ndarray, schema: Schema, random: Any = None
) -> Source:
    """Inputs of forests; ``random`` are those with random columns, taken apart."""
    names = schema.names or tuple(f"x{j}" for j in range(X.shape[1]))
    source = Source(name, list(dict.fromkeys(bases)), X, schema, names, schema.levels)
    if random is None:
        return source
    return source._replace(inner=tuple(random.inner), n_random=len(random.columns))


def beside_source(model: pm.Model, data: Beside, levels_of: Callable) -> Source:
    """Model data beside them, with an entry for each row."""
    variable, axis = data
    name = str(variable.name)
    values = np.moveaxis(np.asarray(present(variable)), axis, 0)
    each = values.shape[1:]
    flat = values.reshape(len(values), -1).astype(np.float64)
    names: tuple[str, ...] = (name,)
    if each:
        dims = model.named_vars_to_dims.get(name) or ()
        known = model.coords.get(dims[1 - axis]) if len(dims) == 2 else None
        if known is not None and len(set(map(str, known))) == flat.shape[1]:
            names = tuple(map(str, known))
        else:
            places = [", ".join(map(str, at)) for at in np.ndindex(*each)]
            names = tuple(f"{name}[{at}]" for at in places)
    levels = (levels_of(variable) if not each else None,) * flat.shape[1]
    return Source(name, [variable], flat, None, names, levels, axis)
