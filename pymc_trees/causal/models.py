"""The PyMC models of causal forests, and nothing that PyMC users could not write."""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.causal.treatment import Treatment
from pymc_trees.distributions.bart import BART
from pymc_trees.distributions.data.table import Table
from pymc_trees.distributions.data.variables import register_data
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.estimators.models import residual_sd, usual_leaf

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
