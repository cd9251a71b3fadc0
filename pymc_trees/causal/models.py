"""The PyMC models of causal forests, and nothing that PyMC users could not write."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.arguments import check_choice
from pymc_trees.distributions.bart import BART
from pymc_trees.distributions.data.numbers import row_numbers
from pymc_trees.distributions.data.table import Table
from pymc_trees.distributions.data.variables import register_data
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.estimators.models import residual_sd, usual_leaf

# -------------------------------------- What is let in as treatment, outcome, propensity and groups


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
        law = "pm.Bernoulli" if is_binary(values) else "pm.Poisson"
        if values[0] < 0:
            law = "a distribution of such numbers"
        raise ValueError(
            f"y holds {_listed(values)} only, and the noise of these models is normal. Say "
            'outcome="normal" if differences of means by a normal model are meant; otherwise give '
            f"z to a BART as a column of X, observe y by {law}, and ask comparisons() for the "
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


# -------------------------------------------------------------------------------------------------


HALF_NORMAL = 0.6745
"""Median of the absolute value of a standard normal variable."""
PROPENSITY, TREATMENT = "propensity", "treatment"
"""Names of the columns that are put behind those of X."""
ARMS = ("control", "treated")
"""Of a binary treatment, 0 and 1."""
EFFECT, CONTRAST = "effect", "contrast"
"""The effect, a Deterministic of every model, and the two doses it compares, which are data."""


class Rows(NamedTuple):
    """Data of the n rows other than X."""

    y: np.ndarray
    treatment: Treatment
    propensity: np.ndarray
    group: np.ndarray | None
    """(n,) codes."""
    groups: np.ndarray | None
    """Names of the codes."""


def two_forests(
    table: Table,
    rows: Rows,
    prognostic: dict[str, Any],
    effect: dict[str, Any],
) -> pm.Model:
    """A prognostic forest and one of the effect (Hahn, Murray and Carvalho 2020, section 5).

    y = mu(x, propensity) + b_z tau(x) + noise for a binary treatment, with b_0, b_1 ~ N(0, 1/2), so
    that the effect (b_1 - b_0) tau(x) is coded alike from both sides and its scale is half-normal
    with median sd(y); tau(x) z for doses. mu = mean(y) + scale_mu times a forest of prior sd 1,
    scale_mu half-Cauchy with median 2 sd(y).
    """
    y, treatment = rows.y, rows.treatment
    spread = np.std(y) or 1.0
    m, m_effect = prognostic["m"], effect["m"]
    per_unit = 1.0 if treatment.binary else 1.0 / np.std(treatment.z)
    with pm.Model() as model:
        covariates = register_data("X", table)
        joined = table.with_numbers({PROPENSITY: rows.propensity})
        level = BART(
            "prognosis",
            register_data("X_prognosis", joined),
            leaf=NormalLeaf(0.0, 1.0 / np.sqrt(m)),
            **prognostic,
        )
        # A start near the data: from 0 the forest would have nothing to say.
        scale = pm.HalfCauchy("scale_prognosis", 2.0 * spread, initval=spread)
        sd = per_unit * spread / HALF_NORMAL / np.sqrt(m_effect)
        tau = BART("tau", covariates, leaf=NormalLeaf(0.0, sd), **effect)
        if treatment.binary:
            # Apart at the start, as the two are interchangeable with the sign of tau.
            b = pm.Normal("b", 0.0, np.sqrt(0.5), shape=2, initval=np.array([-0.5, 0.5]))
            share = b[treatment.arm] * tau
            pm.Deterministic(EFFECT, (b[1] - b[0]) * tau)
        else:
            share = (treatment.z - treatment.z.mean()) * tau
            first, second = _compared(rows)
            pm.Deterministic(EFFECT, (second - first) * tau)
        mean = y.mean() + scale * level + share + _intercepts(rows, spread)
        _observe(table, rows, mean, level)
    return model


def one_forest(table: Table, rows: Rows, settings: dict[str, Any]) -> pm.Model:
    """One forest of covariates, propensity and treatment (Hill 2011; Hahn 2020, section 4)."""
    added = {PROPENSITY: rows.propensity, TREATMENT: rows.treatment.z}
    with pm.Model() as model:
        data = register_data("X", table.with_numbers(added))
        f = BART("f", data, leaf=usual_leaf(rows.y, settings["m"], k=2.0), **settings)
        _observe(table, rows, f + _intercepts(rows, np.std(rows.y) or 1.0), f)
        under = [
            evaluate(model["f_forest"], pt.set_subtensor(data[:, -1], z)) for z in _compared(rows)
        ]
        pm.Deterministic(EFFECT, under[1] - under[0])
    return model


def forest_of_each_arm(table: Table, rows: Rows, settings: dict[str, Any]) -> pm.Model:
    """A forest, and a noise, of the rows of each arm: covariates and propensity are its columns."""
    joined = table.with_numbers({PROPENSITY: rows.propensity})
    with pm.Model() as model:
        intercepts = np.zeros(rows.y.size) + _intercepts(rows, np.std(rows.y) or 1.0)
        for code, arm in enumerate(ARMS):
            which = np.flatnonzero(rows.treatment.arm == code)
            own, y = joined.rows(which), rows.y[which]
            leaf = usual_leaf(y, settings["m"], k=2.0)
            f = BART(f"f_{arm}", register_data(f"X_{arm}", own), leaf=leaf, **settings)
            sigma = pm.HalfNormal(f"sigma_{arm}", residual_sd(own, y))
            pm.Normal(f"y_{arm}", f + intercepts[which], sigma, observed=y, shape=f.shape)
        everybody = register_data("X", joined)
        control, treated = (evaluate(model[f"f_{arm}_forest"], everybody) for arm in ARMS)
        pm.Deterministic(EFFECT, treated - control)
    return model


def _compared(rows: Rows) -> tuple[Any, Any]:
    """The treatments that the effect compares: 0 and 1, or those of data that can be set anew."""
    if rows.treatment.binary:
        return 0.0, 1.0
    contrast = pm.Data(CONTRAST, np.array([0.0, 1.0]))
    return contrast[0], contrast[1]


def _intercepts(rows: Rows, spread: float):
    """Of the groups, normal about 0; nothing without groups."""
    if rows.group is None:
        return 0.0
    model = pm.modelcontext(None)
    model.add_coord("group", rows.groups)
    sd = pm.HalfNormal("sd_group", spread)
    return pm.Normal("intercept", 0.0, sd, dims="group")[rows.group]


def _observe(table: Table, rows: Rows, mean, f) -> None:
    """Declare y, with as many rows as a function ``f`` has."""
    joined = table.with_numbers({TREATMENT: rows.treatment.z})
    sigma = pm.HalfNormal("sigma", residual_sd(joined, rows.y))
    pm.Normal("y", mean, sigma, observed=rows.y, shape=f.shape)
