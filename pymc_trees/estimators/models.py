"""The PyMC models that the estimators build, of public functions only."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import ndtri

from pymc_trees.core.columns.cells import MAX_LEVELS, MISSING
from pymc_trees.distributions.bart import BART
from pymc_trees.distributions.data.random_columns import with_columns
from pymc_trees.distributions.data.table import Table
from pymc_trees.distributions.data.variables import register_data
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.distributions.tree_priors.read import excluded_columns, read_split_prior
from pymc_trees.posterior.reading.features import free_name

NOISES = ("forest", "constant", "student", "density")
LINKS = ("probit", "logit")
SPREAD = 1.0
"""Scale of the half-normal prior of the sd of the log of the noise, at a row."""
BELOW = 1.0344
"""0.9 quantile of a Normal with half-normal sd: noise is below the residual sd of a linear fit with
prior probability 0.9."""

INDEX_TREES = 4
"""Trees of g, the centre of the latent column of a density, for each tree of f."""
LATENT_WEIGHT = 0.25
"""Probability that a split of f or of the log of the noise is one of the latent column."""
LATENT_CUTS = 99
"""Cuts of the latent column: quantiles of its law where g has its prior, N(0, 2)."""
WATCHED = (0.1, 0.5, 0.9)
"""Probabilities of the quantiles of f given x on which chains should agree."""

COARSE = 0.01
"""Ratio of the sd of rounding to that of residuals from which on rounding enters the model."""


def regression(
    table: Table,
    y: np.ndarray,
    weights: np.ndarray | None,
    noise: str,
    scale_trees: int,
    k: float,
    settings: dict[str, Any],
) -> pm.Model:
    """Normal or StudentT rows about a forest; the log of their scale may be another forest."""
    residual = residual_sd(table, y)
    leaf = usual_leaf(y, settings["m"], k)
    by_weight = 1.0 if weights is None else 1.0 / np.sqrt(weights)
    with pm.Model() as model:
        data = register_data("X", table)
        f = BART("f", data, leaf=leaf, **settings)
        if noise == "forest":
            centre = np.log(residual) - BELOW * SPREAD
            # A forest of even noise would be as wide as any: its sd is learnt from the data.
            spread = pm.HalfNormal("log_sigma_sd", SPREAD)
            of_scale = NormalLeaf(centre / scale_trees, spread / np.sqrt(scale_trees))
            included = ~excluded_columns(settings.get("split_prior"), table.schema.labels)
            log_sigma = BART(
                "log_sigma", data, leaf=of_scale, m=scale_trees, split_prior=included.astype(float)
            )
            least = least_noise(y, residual)
            if least > 0.0:  # two variances: a likelihood that is written out
                own = pm.math.exp(2 * log_sigma) * by_weight**2
                sigma = pm.math.sqrt(own + (least * by_weight) ** 2)
            else:
                sigma = pm.math.exp(log_sigma) * by_weight
        else:
            sigma = pm.HalfNormal("sigma", residual) * by_weight
        shared = {"sigma": sigma, "observed": y, "shape": f.shape}
        if noise == "student":
            pm.StudentT("y", nu=pm.Gamma("nu", 2, 0.1), mu=f, **shared)
        else:
            pm.Normal("y", f, **shared)
    return model


def density(
    table: Table,
    y: np.ndarray,
    scale_trees: int,
    k: float,
    settings: dict[str, Any],
    watched: np.ndarray,
) -> pm.Model:
    """Normal rows about a forest of x and of a latent column, whose centre is a forest of x.

    ``f_quantiles``, at the rows that are watched, are the quantiles of f(x, z) given x: f increases
    in z, and they are f at the quantiles of z. Chains can differ in z, f and g and agree on these.
    """
    residual = residual_sd(table, y)
    leaf, m, labels = usual_leaf(y, settings["m"], k), settings["m"], table.schema.labels
    name = free_name("z", labels)
    shared = {"alpha": settings["alpha"], "n_cuts": settings["n_cuts"]}
    with pm.Model() as model:
        data = register_data("X", table)
        index_trees = INDEX_TREES * m
        of_index = NormalLeaf(0.0, 1.0 / np.sqrt(index_trees))
        split_prior = settings["split_prior"]
        g = BART(
            "g", data, leaf=of_index, m=index_trees, beta=1.0, split_prior=split_prior, **shared
        )
        z = pm.Normal("z", g, 1.0, shape=g.shape)
        cuts = np.sqrt(2.0) * ndtri(np.arange(1, LATENT_CUTS + 1) / (LATENT_CUTS + 1))
        columns = with_columns(data, cuts={name: cuts}, **{name: z})
        shared |= {"beta": settings["beta"]}
        weights = _with_latent(_split_weights(split_prior, labels))
        increasing = {name: 1}
        f = BART("f", columns, leaf=leaf, m=m, split_prior=weights, monotone=increasing, **shared)
        centre = np.log(residual) - BELOW * SPREAD
        spread = pm.HalfNormal("log_sigma_sd", SPREAD)
        of_scale = NormalLeaf(centre / scale_trees, spread / np.sqrt(scale_trees))
        weights = _with_latent((~excluded_columns(split_prior, labels)).astype(float))
        log_sigma = BART(
            "log_sigma", columns, leaf=of_scale, m=scale_trees, split_prior=weights, **shared
        )
        least = least_noise(y, residual)
        sigma = pm.math.exp(log_sigma)
        if least > 0.0:
            sigma = pm.math.sqrt(pm.math.exp(2 * log_sigma) + least**2)
        pm.Normal("y", f, sigma, observed=y, shape=f.shape)
        forest = model["f_forest"]
        at = [
            evaluate(forest, pt.concatenate([data[watched], (g[watched] + c)[:, None]], 1))
            for c in ndtri(WATCHED)
        ]
        pm.Deterministic("f_quantiles", pt.stack(at))
    return model


def _split_weights(split_prior, labels: list) -> np.ndarray:
    _, weights = read_split_prior(split_prior, labels)
    if isinstance(weights, str) or weights.dtype == bool:
        raise ValueError(
            "split_prior: noise='density' takes numbers, a weight for each column, or a dict."
        )
    return weights


def _with_latent(weights: np.ndarray) -> np.ndarray:
    """Split weights with that of a latent column behind them."""
    total = weights.sum() or 1.0
    return np.append(weights * (1.0 - LATENT_WEIGHT) / total, LATENT_WEIGHT)


def classification(
    table: Table,
    codes: np.ndarray,
    n_classes: int,
    weights: np.ndarray | None,
    link: str,
    k: float,
    settings: dict[str, Any],
) -> pm.Model:
    """Bernoulli or Categorical rows; with more than two classes, each has a forest."""
    leaf = NormalLeaf(0.0, 3.0 / (k * np.sqrt(settings["m"])))
    with pm.Model() as model:
        data = register_data("X", table)
        if n_classes > 2:
            f = BART("f", data, leaf=leaf, shape=(n_classes, len(codes)), **settings)
            p = pm.math.softmax(f, axis=0).T
            if weights is None:
                pm.Categorical("y", p=p, observed=codes, shape=f.shape[1:])
                return model
            own = (p * np.eye(n_classes)[codes]).sum(axis=-1)
        else:
            f = BART("f", data, leaf=leaf, **settings)
            if weights is None:
                one = {"logit_p": f} if link == "logit" else {"p": pm.math.invprobit(f)}
                pm.Bernoulli("y", **one, observed=codes, shape=f.shape)
                return model
            own = (pm.math.invlogit if link == "logit" else pm.math.invprobit)((2 * codes - 1) * f)
        shape = f.shape[-1:]  # that of its function, as in the models without weights
        pm.CustomDist("y", own, weights, logp=_weighted, observed=codes, shape=shape)
    return model


def usual_leaf(y: np.ndarray, m: int, k: float) -> NormalLeaf:
    """Leaf under which the range of y spans 2 k sd of f (Chipman 2010, section 2.2.3)."""
    low, high = float(y.min()), float(y.max())
    spread = (high - low) or 1.0  # one value: any scale
    return NormalLeaf((high + low) / (2 * m), spread / (2 * k * np.sqrt(m)))


def _weighted(value, own, weights):
    """Log-likelihood of a row, ``own`` the probability of its class, times its weight."""
    return weights * pt.log(own)


def least_noise(y: np.ndarray, residual: float) -> float:
    """Standard deviation of the rounding of y, if coarse compared to residuals; otherwise 0.

    Values d apart are uniform within d / 2 of the number that was rounded, which has sd
    d / sqrt(12) (Sheppard). Without it the noise of repeated rows that agree could be arbitrarily
    small.
    """
    steps = np.diff(np.unique(y))
    steps = steps[steps > 1e-9 * np.ptp(y)]  # less is error of floating point
    least = float(steps.min()) / np.sqrt(12.0) if steps.size else 0.0
    return least if least > COARSE * residual else 0.0


def residual_sd(table: Table, y: np.ndarray) -> float:
    """Residual sd of a linear fit on all columns (Chipman 2010, section 2.2.4).

    Levels have a column each, missing cells the mean; columns with too many levels to be split are
    left out. With too few rows it is the sd of y.
    """
    columns = _linear(table)
    freedom = len(y) - columns.shape[1]
    residual = np.std(y)
    if freedom > 0:
        residuals = y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]
        residual = np.sqrt(residuals @ residuals / freedom)
    floor = 1e-6 * (np.std(y) or 1.0)
    return float(max(residual, floor))


def _linear(table: Table) -> np.ndarray:
    """(n, 1 + columns) regressors."""
    columns = [np.ones(len(table))]
    for cells, levels in zip(table.values.T, table.schema.levels, strict=True):
        present = cells != MISSING
        if levels is not None and len(levels) > MAX_LEVELS:
            continue  # excluded from splits
        if levels is not None:
            columns += [(cells == code).astype(float) for code in range(1, len(levels))]
        elif present.any():
            mean = cells[present].mean()
            columns.append(np.where(present, cells - mean, 0.0))
    return np.column_stack(columns)
