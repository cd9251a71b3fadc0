"""What is let in as treatment, outcome, propensity and groups."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pymc_trees.arguments import check_choice
from pymc_trees.distributions.data.numbers import row_numbers

KINDS = ("binary", "dose")
"""Of treatments."""
OUTCOMES = ("normal",)
"""What is said of the noise."""
FEW = 10
"""Distinct whole numbers up to which they may be codes of arms, or counts."""


class Treatment(NamedTuple):
    """Of n rows."""

    z: np.ndarray
    """(n,) float64: 0 and 1, or doses."""
    binary: bool
    """Whether it is 0 and 1, and no dose."""

    @property
    def arm(self) -> np.ndarray:
        """(n,) 0 and 1 as whole numbers."""
        return self.z.astype(np.int64)


def check_treatment(z: Any, n: int | None = None, kind: str | None = None) -> Treatment:
    """A treatment that varies: of the kind that was said, or the only one that z can be."""
    if kind is not None:
        check_choice("treatment", kind, KINDS)
    numbers = row_numbers("z", _one_column(z), n)
    values = np.unique(numbers)
    if values.size < 2:
        raise ValueError(
            f"z is {values[0]:g} in every row: an effect can only be estimated with rows of "
            "another treatment."
            if values.size
            else "z is empty: give the treatment of each row."
        )
    binary = is_binary(values)
    if kind == "dose":
        return Treatment(numbers, False)
    if not binary and (kind == "binary" or values.size == 2):
        raise ValueError(
            f"z holds {_listed(values)}: give 0 for untreated and 1 for treated rows, or say "
            'treatment="dose" if they are doses.'
        )
    if not binary and are_few(values):
        raise ValueError(
            f"z holds {_listed(values)}, which may be doses or numbers of arms. Say "
            'treatment="dose" for doses. Compare arms two by two: of the rows in which z is '
            f"{values[0]:g} or {values[1]:g}, give z == {values[1]:g}."
        )
    return Treatment(numbers, binary)


def is_binary(values: np.ndarray) -> bool:
    """Whether all numbers are 0 or 1."""
    return bool(np.isin(values, (0.0, 1.0)).all())


def _flat(values: Any) -> Any:
    """A single column as a vector; anything else unchanged."""
    if np.ndim(values) == 2 and np.shape(values)[1] == 1:
        return values.iloc[:, 0] if hasattr(values, "iloc") else np.reshape(values, -1)
    return values


def _one_column(z: Any) -> Any:
    """What may be a treatment, or an error for arms by name or by column."""
    z = _flat(z)
    if np.ndim(z) == 2:
        n_columns = np.shape(z)[1]
        raise ValueError(
            f"z has {n_columns} columns: give one vector of 0 and 1. Where they are arms, compare "
            "these two by two: of the rows that are in column 0 or 1, give column 1."
        )
    entries = np.asarray(z).tolist() if np.ndim(z) == 1 else []
    if named := sorted({entry for entry in entries if isinstance(entry, str)}):
        several = f" Of the arms {named[:5]}, keep the rows of two." if len(named) > 2 else ""
        raise TypeError(
            f"z must hold numbers: 0 for untreated and 1 for treated rows, as z == {named[0]!r} "
            f"says it.{several}"
        )
    return z


def check_outcome(y: Any, n: int, kind: str | None) -> np.ndarray:
    """(n,) numbers, for a model with normal noise."""
    if kind is not None:
        check_choice("outcome", kind, OUTCOMES)
    numbers = row_numbers("y", _flat(y))
    if numbers.size != n:
        raise ValueError(f"y has {numbers.size} numbers, but X has {n} rows: give one for each.")
    values = np.unique(numbers)
    if kind is None and values.size > 1 and are_few(values):
        law = "Bernoulli" if is_binary(values) else "Poisson"
        raise ValueError(
            f"y holds {_listed(values)} only, and the noise of these models is normal. Say "
            'outcome="normal" if differences of means by a normal model are meant; otherwise give '
            f"z to a BART as a column of X, observe y by pm.{law}, and ask comparisons() for the "
            "effect of that column."
        )
    return numbers


def are_few(values: np.ndarray) -> bool:
    """Whether distinct values are few whole numbers: codes or counts, say."""
    return values.size <= FEW and bool((values == np.floor(values)).all())


def _listed(values: np.ndarray) -> str:
    *first, last = (f"{v:g}" for v in values)
    if len(first) > 5:
        return f"{', '.join(first[:4])}, ... and {last}"
    return f"{', '.join(first)} and {last}" if first else last


def check_order(X: Any, **others: Any) -> None:
    """An error where something has the rows of X, by their labels, in another order."""
    index = getattr(X, "index", None)
    if not isinstance(index, pd.Index):
        return
    for name, one in others.items():
        own = getattr(one, "index", None)
        if not isinstance(own, pd.Index) or own.size != index.size or own.equals(index):
            continue
        if index.is_unique and own.is_unique and own.isin(index).all():
            raise ValueError(
                f"{name} has the rows of X in another order, by its index: give "
                f"{name}.loc[X.index], or {name}.to_numpy() if its order is that of X."
            )


def check_propensity(values: Any, treatment: Treatment, n: int) -> np.ndarray:
    """(n,) probabilities of treatment, or expected doses."""
    numbers = row_numbers("propensity", values, n)
    if treatment.binary and ((numbers < 0) | (numbers > 1)).any():
        raise ValueError(
            "propensity must hold probabilities of treatment, between 0 and 1; it holds "
            f"{numbers[(numbers < 0) | (numbers > 1)][0]:g}."
        )
    return numbers


def check_group(group: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Sorted names of the groups, and (n,) codes."""
    names = np.asarray(group)
    if names.shape != (n,):
        raise ValueError(f"group has shape {names.shape}: give {n} names, one for each row of X.")
    try:
        labels, codes = np.unique(names, return_inverse=True)
    except TypeError as error:
        raise TypeError("group must hold numbers or text, without missing values.") from error
    if names.dtype.kind == "f" and np.isnan(names).any():
        raise ValueError("group holds missing values: leave those rows out.")
    return labels, codes.astype(np.int64)
