"""What users name: columns of X, values that stand for each, and keywords of pymc-bart."""

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_trees.arguments import check_choice
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.distributions.data.schema import column_index, listed_columns
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.predictors.columns import Schema, is_real

POINTS = 20
"""Values of a numeric column in a grid, at the most (as scikit-learn's and marginaleffects')."""
MISSING_LABEL = "(missing)"
GRIDS = ("quantile", "linear")
RESERVED = (*SAMPLE, "row", "average", "individual", "effect", "prediction", "summary")
"""Dimensions and variables of results, which no column can share its name with."""

OF_ANSWERS = (*RESERVED, "feature", "other", "repeat", "submodel")
"""The same of all answers, which no dimension of outputs can share its name with."""


class Feature(NamedTuple):
    """A column of X."""

    column: int
    name: Hashable
    """As in the training frame; its number for arrays."""
    levels: tuple | None
    """By their code; None for numbers."""

    def code(self, value: Any) -> float:
        """A value as X holds it, or an error."""
        if is_missing(value):
            return MISSING
        if self.levels is None:
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if not np.isfinite(number):
                raise ValueError(
                    f"{value!r} is not a value of the column {self.name!r}: give a finite number, "
                    "or None for a missing cell."
                )
            return number
        if value not in self.levels:
            raise ValueError(
                f"{value!r} is not a level of the column {self.name!r}: choose from "
                f"{list(self.levels)}, or None for a missing cell."
            )
        return float(self.levels.index(value))

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """Values for a coordinate: numbers, NaN where missing, or levels by name."""
        if self.levels is None:
            return np.where(codes == MISSING, np.nan, codes)
        numeric = all(is_real(one) and not isinstance(one, bool | np.bool_) for one in self.levels)
        missing = np.nan if numeric else MISSING_LABEL
        return np.array([missing if c == MISSING else self.levels[int(c)] for c in codes])


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing cell: None, NaN, NA of pandas, or "(missing)"."""
    if isinstance(value, str):
        return value == MISSING_LABEL
    return np.ndim(value) == 0 and bool(pd.isna(value))


def column_words(names: tuple[str, ...] | None, n_columns: int) -> list[str]:
    """Columns as results call them: as in the training frame, or x0, x1, ..."""
    return [f"x{j}" for j in range(n_columns)] if names is None else list(names)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with underscores after it where it is taken."""
    while name in taken:
        name += "_"
    return name


def dimension_of(feature: Feature, taken: Collection[str] = ()) -> str:
    """Name of a column in results, with an underscore after it where that is taken, or ours."""
    name = feature.name if isinstance(feature.name, str) else f"x{feature.name}"
    return free_name(name, {*RESERVED, *taken})


def output_dims(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the dimensions of outputs, with underscores after those that answers give theirs."""
    found: list[str] = []
    for name in names:
        others = {one for one in names if one != name}
        found.append(free_name(name, {*OF_ANSWERS, *others, *found}))
    return tuple(found)


def dimensions_of(features: Sequence[Feature], taken: Collection[str]) -> list[str]:
    """Names of different columns in results."""
    names: list[str] = []
    for one in features:
        names.append(dimension_of(one, {*taken, *names}))
    return names


def feature_of(which: Any, schema: Schema | None, n_columns: int) -> Feature:
    """Column by its name, or by its number; x0, x1, ... where X was an array.

    One that is known already is returned, and the one of a list of one.
    """
    if isinstance(which, Feature):
        return which
    [which, *others] = listed_columns(which) or [None]
    if others:
        raise ValueError(f"{[which, *others]} are several columns: give one here.")
    labels = list(range(n_columns)) if schema is None else schema.labels
    column = column_index(which, labels)
    if column is None:
        names = schema.names if schema is not None else None
        if isinstance(which, int) and not isinstance(which, bool):
            raise ValueError(f"{which} is not a column of X, which has {n_columns}.")
        known = column_words(names, n_columns)
        choices = known if names is not None else f"numbers from 0 to {n_columns - 1}"
        raise ValueError(f"{which!r} is not a column of X: choose from {choices}.")
    return _feature_at(column, schema)


def features_of(name: str, given: Any, schema: Schema | None, n_columns: int) -> list[Feature]:
    """Columns by name or number: one, or several in a list, a tuple, an array or an index."""
    features = [feature_of(one, schema, n_columns) for one in _listed(given)]
    if not features:
        raise ValueError(f"{name} is empty: give at least one column.")
    if len({one.column for one in features}) < len(features):
        raise ValueError(f"{name}={given!r}: give different columns, each once.")
    return features


def pair_or_features(
    name: str, given: Any, schema: Schema | None, n_columns: int
) -> tuple[bool, list[Feature]]:
    """Whether a pair is requested, by a tuple of two or a list of one such; and the columns."""
    listed = _listed(given)
    if len(listed) == 1 and _is_tuple(listed[0]):
        [given] = listed
    elif any(_is_tuple(one) for one in listed):
        raise ValueError(f"{name}={given!r}: give a pair of columns alone.")
    pair = _is_tuple(given) and len(given) > 1
    if pair and len(given) > 2:
        raise ValueError(f"{name}={given!r}: a tuple is a pair of columns: give a tuple of two.")
    return pair, features_of(name, given, schema, n_columns)


def _is_tuple(given: Any) -> bool:
    return isinstance(given, tuple) and not isinstance(given, Feature)


def _listed(given: Any) -> list:
    return [given] if isinstance(given, Feature) else listed_columns(given)


def all_features(schema: Schema | None, n_columns: int) -> list[Feature]:
    """The columns of X, in their order."""
    return [_feature_at(column, schema) for column in range(n_columns)]


def _feature_at(column: int, schema: Schema | None) -> Feature:
    if schema is None:
        return Feature(column, column, None)
    name = column if schema.names is None else schema.names[column]
    return Feature(column, name, schema.levels[column])


def grids_by_column(features: list[Feature], grid: Any, schema: Schema | None, n: int) -> list:
    """The grid of each column: the same for all, or the entries of a dict.

    Keys are names or numbers of columns among them, of n; anything else is an error.
    """
    if not isinstance(grid, Mapping):
        return [grid] * len(features)
    by_column = {feature_of(key, schema, n).column: value for key, value in grid.items()}
    wanted = {one.column for one in features}
    if other := [key for key in grid if feature_of(key, schema, n).column not in wanted]:
        names = [one.name for one in features]
        raise ValueError(f"grid has {other}, which features does not: give values of {names}.")
    return [by_column.get(one.column) for one in features]


def grid_of(feature: Feature, cells: np.ndarray, grid: Any = None) -> np.ndarray:
    """Codes of the values at which a column is held.

    Parameters
    ----------
    feature : Feature
        The column.
    cells : (n,) array
        What it holds.
    grid : None, str, int or sequence
        A sequence gives the values. For numbers, "quantile", the default, and "linear" make at
        most 20 of them from the cells, an int as many quantiles; few distinct values are all taken.
        Levels are all taken, and a missing cell where there is one.
    """
    if isinstance(grid, bool | np.bool_):
        raise ValueError(f"grid={grid}: give values, their number, or one of {list(GRIDS)}.")
    if is_real(grid) and not isinstance(grid, int | np.integer):
        raise ValueError(f"grid={grid}: give an int, a number of values, or a list of values.")
    if grid is not None and not isinstance(grid, str | int | np.integer):
        values = np.array([feature.code(value) for value in np.ravel(np.asarray(grid, object))])
        if values.size == 0:
            raise ValueError(f"grid has no values for the column {feature.name!r}.")
        return values
    if isinstance(grid, str):
        check_choice("grid", grid, GRIDS)
    points = POINTS if grid is None or isinstance(grid, str) else int(grid)
    if points < 1:
        raise ValueError(f"grid={grid}: give at least one value.")
    present = cells[cells != MISSING]
    missing = [MISSING] if present.size < cells.size else []
    if feature.levels is not None:
        values = np.arange(len(feature.levels), dtype=np.float64)
    else:
        values = np.unique(present)
        if values.size > points:
            shares = np.linspace(0.0, 1.0, points)
            low, high = values[0], values[-1]
            even = grid == "linear"
            values = (
                low + shares * (high - low) if even else np.unique(np.quantile(present, shares))
            )
    return np.concatenate([values, missing])


# --------------- Keywords of pymc-bart with another name here, and the error that names the latter


RENAMED = {
    "bartrv": "idata and model come first",
    "Y": "leave it out: the model knows its response",
    "var_idx": "features=",
    "var_discrete": "leave it out: levels and up to six numbers are found in the data",
    "xs_interval": 'grid="quantile" or grid="linear"',
    "xs_values": "grid=, a number or the values themselves",
    "samples": "draws=, evenly spaced",
    "instances": "subsample=",
    "centered": "centred=",
    "random_seed": "random_state=, where rows are taken at random; draws are evenly spaced",
    "smooth": "leave it out: f has steps, and is shown with them",
    "smooth_kwargs": "leave it out: f has steps, and is shown with them",
    "ref_line": "leave it out: the picture has its own",
    "grid": "col_wrap=, the number of panels in a row",
    "sharey": 'figure_kwargs={"sharey": ...}',
    "figsize": 'figure_kwargs={"figsize": ...}',
    "ax": "leave it out: plots are ArviZ-plots' collections, with figures of their own",
    "color_mean": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "plot_kwargs": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "labels": "leave it out: columns have the names of the training frame",
    "bart_var_name": "forest=",
    "to_kulprit": "vi_to_kulprit, of what compute_variable_importance returns",
}
"""What does the work here, by the keyword there. `docs/from_pymc_bart.md` has the same table."""


def renamed[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an error for each keyword of pymc-bart that is none of its own."""
    foreign = RENAMED.keys() - inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in foreign:
                raise TypeError(
                    f"{function.__name__} has no {name}=, a keyword of pymc-bart. Here: "
                    f"{RENAMED[name]}."
                )
        return function(*args, **kwargs)

    return checked
