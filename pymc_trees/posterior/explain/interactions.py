"""`interaction_strength`: how far f is from additive in its columns, draw by draw."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.core.explain.dependence import add_dependence
from pymc_trees.posterior.draws import SAMPLE, check_answer, for_each_draw, rows_chosen, thinned
from pymc_trees.posterior.explain.additive import AdditiveFunction
from pymc_trees.posterior.reading.features import features_of

LARGEST = 2**29
"""Bytes for the pairs of columns at all rows, over all draws processed at the same time."""
SINGLE = 12
"""Further numbers for each column at each row."""


def interaction_strength(
    idata,
    model: pm.Model | None = None,
    features: Any = None,
    X=None,
    *,
    subsample: int | None = None,
    draws: int | None = None,
    cores: int | None = None,
    var_name: str | None = None,
    func=None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Friedman's H statistics of f, exactly, draw by draw.

    H of two columns is the root of the share of the variance of their joint partial dependence that
    is not the sum of those on either (Friedman and Popescu 2008, eq. 44); H of one column that of
    the variance of f that is not the sum of its partial dependence on the column and on all others
    (eq. 45). 0 means no interaction. For a pair that hardly matters, H is a ratio of two small
    variances; ``unexplained`` is the root mean square itself, in units of f.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    features : column, or list or tuple of columns, optional
        By name if X was a frame, otherwise by number. Default: all.
    X : (n, p) array or frame, optional
        Rows over which means are taken. Default: the rows currently in the model.
    subsample : int, optional
        Number of rows of X taken at random. Default: all rows.
    draws : int, optional
        Number of draws to use, evenly spaced. Default: all.
    cores : int, optional
        Threads. Default: one for each core; fewer where the pairs of columns in several draws at
        once would take more than half a gigabyte.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f; for a single tree only.
    random_state : numpy.random.Generator or seed, optional
        For the subsample.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``pairwise`` (H) and ``unexplained`` with the dimensions chain, draw, those of the outputs,
        feature and other, symmetric, NaN on the diagonal; ``overall`` (H of one column with all
        others) without the last. H is NaN where its denominator is 0.

    Raises
    ------
    ValueError
        A function that is not a sum of trees with hard splits, a column that does not exist, or for
        rows and columns that would take too much memory.

    References
    ----------
    Friedman and Popescu (2008). Predictive learning via rule ensembles. Annals of Applied
    Statistics 2(3), section 8.1.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.interaction_strength(idata, model, progressbar=False)
    >>> dict(found["pairwise"].sizes)
    {'chain': 1, 'draw': 5, 'feature': 2, 'other': 2}
    """
    additive = AdditiveFunction(idata, pm.modelcontext(model), var_name, func)
    function = additive.function
    columns, names = _asked(function, features)
    X = function.rows(X)
    X = X[rows_chosen(len(X), subsample, random_state)]
    n, q, n_outputs = len(X), len(columns), additive.n_outputs
    size = 8 * n * n_outputs * q * (q + SINGLE)
    if size > LARGEST:
        raise ValueError(
            f"{q} columns at {n} rows take {size / 1e9:.1f} GB a draw: choose fewer columns with "
            "features, or fewer rows with subsample."
        )
    place = np.full(X.shape[1], -1)
    place[columns] = np.arange(q)
    n_chains, n_draws = additive.forests[0].shape
    at = thinned(n_chains, n_draws, draws)
    shape = (n_chains, at.size)
    check_answer("H statistics", 2 * n_chains * at.size * n_outputs * q * q, "features= or draws=")
    pairwise = np.empty((*shape, n_outputs, q, q))
    unexplained, overall = np.empty_like(pairwise), np.empty((*shape, n_outputs, q))

    def one(chain, at_place):
        single, but_one = np.zeros((2, n, q, n_outputs))
        pairs = np.zeros((n, q, q, n_outputs))
        drawn = additive.draws_at(chain, at[at_place])
        for forest, value, outputs in drawn:
            arguments = (value, X, forest.X_train, outputs, forest.sizes, place)
            add_dependence(*arguments, single, but_one, pairs)
        f = additive.sum_of_leaves(drawn, X)
        additive.check_sum(
            chain, at[at_place], drawn, X, f + additive.constant(chain, at[at_place])
        )
        strengths = _strengths(single, but_one, pairs, f)
        pairwise[chain, at_place], unexplained[chain, at_place], overall[chain, at_place] = (
            strengths
        )

    for_each_draw(one, shape, "H statistics", cores, progressbar, LARGEST // size)
    coords = function.coords | {"draw": function.coords["draw"][at]}
    lead, own = (*SAMPLE, *function.dims), (*shape, *function.outputs)
    variables = {
        "pairwise": ((*lead, "feature", "other"), pairwise.reshape(*own, q, q)),
        "unexplained": ((*lead, "feature", "other"), unexplained.reshape(*own, q, q)),
        "overall": ((*lead, "feature"), overall.reshape(*own, q)),
    }
    return xr.Dataset(variables, coords | {"feature": names, "other": names})


def _asked(function, features) -> tuple[list[int], np.ndarray]:
    """Numbers and names of the columns."""
    if features is None:
        return list(range(function.n_columns)), function.names
    chosen = features_of("features", features, function.schema, function.n_columns)
    columns = [one.column for one in chosen]
    return columns, function.names[columns]


def _strengths(single, but_one, pairs, f):
    """H of pairs, root mean squares behind it, and H of single columns; outputs first.

    The arguments are overwritten, and pairs are processed column by column: all of them at once
    would need several arrays of their size.
    """
    for one in (single, but_one, f):
        one -= one.mean(axis=0)
    q, n_outputs = single.shape[1:]
    unexplained, spread = np.full((2, q, q, n_outputs), np.nan)
    for j in range(q - 1):
        excess = pairs[:, j, j + 1 :]
        excess -= excess.mean(axis=0)
        unexplained[j, j + 1 :] = unexplained[j + 1 :, j] = (excess**2).mean(axis=0)
        excess += single[:, j + 1 :] + single[:, j, None]
        spread[j, j + 1 :] = spread[j + 1 :, j] = (excess**2).mean(axis=0)
    but_one -= single
    variance = (f**2).mean(axis=0)
    pairwise = _share(unexplained, spread, 1e-28 * variance)
    overall = _share((but_one**2).mean(axis=0), variance, 1e-28 * variance)
    return tuple(np.moveaxis(one, -1, 0) for one in (pairwise, np.sqrt(unexplained), overall))


def _share(part, whole, size):
    """Root of a share, NaN where the whole is nothing but rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(np.where(whole > size, part / whole, np.nan))
