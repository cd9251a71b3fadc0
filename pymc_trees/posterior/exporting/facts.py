"""Tables and labels as facts of a predictor, which JSON has."""

from typing import Any

import numpy as np

from pymc_trees.distributions.data.named import present
from pymc_trees.posterior.reading.table import Source


def table_facts(source: Source) -> dict[str, Any]:
    """Of inputs of forests."""
    schema = source.schema
    assert schema is not None
    levels = [None if one is None else _levels(source.name, one) for one in schema.levels]
    return {
        "name": source.name,
        "names": None if schema.names is None else list(schema.names),
        "rules": list(schema.rules),
        "levels": levels,
        "complete": schema.complete,
    }


def data_facts(source: Source) -> dict[str, Any]:
    """Of data beside them."""
    [variable] = source.variables
    shape = list(present(variable).shape)
    shape[source.axis] = -1
    levels = source.levels[0] if len(shape) == 1 else None
    return {
        "name": source.name,
        "dtype": str(np.dtype(variable.dtype)),
        "shape": shape,
        "levels": None if levels is None else _levels(source.name, levels),
    }


def first_row(source: Source, n: int) -> np.ndarray:
    """The first row of data beside X, n times, with an axis for the draws."""
    [variable] = source.variables
    return np.take(np.asarray(present(variable)), [0] * n, axis=source.axis)[None]


def _levels(name: str, levels: tuple) -> list:
    plain = [one.item() if isinstance(one, np.generic) else one for one in levels]
    wrong = [one for one in plain if not isinstance(one, str | bool | int | float)]
    if wrong:
        raise ValueError(
            f"{name} has levels of type {type(wrong[0]).__name__}, which a predictor cannot hold: "
            "convert the column to text or numbers before you fit."
        )
    return plain


def plain_labels(labels: np.ndarray) -> list:
    """Labels as text, numbers and bools."""
    kept = labels.tolist() if labels.dtype.kind in "biufUO" else labels.astype(str).tolist()
    return [one if isinstance(one, str | bool | int | float) else str(one) for one in kept]
