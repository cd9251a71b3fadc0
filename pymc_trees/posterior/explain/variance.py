"""`sobol_indices`: shares of the variance of f, exactly, draw by draw."""

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.core.explain.variance import Leaves, leaves_of, variance_shares
from pymc_trees.posterior.draws import SAMPLE, for_each_draw, thinned
from pymc_trees.posterior.explain.additive import AdditiveFunction


def sobol_indices(
    idata,
    model: pm.Model | None = None,
    X=None,
    *,
    draws: int | None = None,
    cores: int | None = None,
    var_name: str | None = None,
    func=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Sobol indices of f, exactly, draw by draw.

    The shares of the variance of f due to each column when the columns are independent, each with
    its empirical distribution in X: alone (first order), and including its interactions (total).
    The difference between 1 and the sum of the first orders is due to interactions.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (n, p) array or frame, optional
        Rows whose cells give the distribution of each column. Default: the rows currently in the
        model.
    draws : int, optional
        Number of draws to use, evenly spaced. Default: all.
    cores : int, optional
        Threads. Default: one for each core.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f; for a single tree only.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``first_order`` and ``total`` with the dimensions chain, draw, those of the outputs and
        feature, NaN in a draw where f is constant; ``variance`` without the last.

    Raises
    ------
    ValueError
        A function that is not a sum of trees with hard splits, or invalid arguments.

    Notes
    -----
    Nothing is sampled: over two leaves the integrals are products of the columns' shares. The time
    grows with the square of the leaves in a draw.

    References
    ----------
    Sobol (1993). Sensitivity estimates for nonlinear mathematical models. Mathematical Modelling
    and Computational Experiments 1.
    Homma and Saltelli (1996). Importance measures in global sensitivity analysis of nonlinear
    models. Reliability Engineering and System Safety 52 (total indices).
    Horiguchi, Pratola and Santner (2021). Assessing variable activity for Bayesian regression
    trees. Reliability Engineering and System Safety 207 (of BART).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.sobol_indices(idata, model, progressbar=False)
    >>> dict(found["total"].sizes)
    {'chain': 1, 'draw': 5, 'feature': 2}
    """
    additive = AdditiveFunction(idata, pm.modelcontext(model), var_name, func)
    function = additive.function
    X = function.rows(X)
    n_chains, n_draws = additive.forests[0].shape
    at = thinned(n_chains, n_draws, draws)
    shape, n_outputs = (n_chains, at.size), additive.n_outputs
    shares = np.zeros((2, *shape, X.shape[1], n_outputs))
    variance, rounding = np.zeros((2, *shape, n_outputs))

    def one(chain, place):
        drawn = additive.draws_at(chain, at[place])
        f = additive.sum_of_leaves(drawn, X) + additive.constant(chain, at[place])
        additive.check_sum(chain, at[place], drawn, X, f)
        parts = [
            leaves_of(value, X, forest.X_train, outputs, forest.sizes)
            for forest, value, outputs in drawn
        ]
        together = _together(parts)
        first, total = shares[:, chain, place]
        variance[chain, place] = variance_shares(together, len(X), first, total)
        # of products of deviations in the sum, and of the leaves from which these are taken
        rounding[chain, place] = 1e-14 * (together.outputs**2).max(axis=0)
        rounding[chain, place] += 1e-28 * sum((leaves**2).max(axis=0) for _, _, leaves in drawn)

    for_each_draw(one, shape, "Sobol indices", cores, progressbar)
    with np.errstate(invalid="ignore", divide="ignore"):
        known = np.where(variance > rounding, variance, np.nan)
        first, total = np.moveaxis(shares / known[:, :, None], -1, 3)
    coords = function.coords | {"draw": function.coords["draw"][at], "feature": function.names}
    lead = (*SAMPLE, *function.dims)
    own = (*shape, *function.outputs)
    variables = {
        "first_order": ((*lead, "feature"), first.reshape(*own, -1)),
        "total": ((*lead, "feature"), total.reshape(*own, -1)),
        "variance": (lead, variance.reshape(own)),
    }
    return xr.Dataset(variables, coords)


def _together(parts: list[Leaves]) -> Leaves:
    """Leaves of several forests as those of one."""
    if len(parts) == 1:
        return parts[0]
    starts = np.cumsum([0, *(one.columns.size for one in parts)])
    first = [one.first[:-1] + start for one, start in zip(parts, starts, strict=False)]
    whole = [np.concatenate([one[k] for one in parts]) for k in range(1, len(Leaves._fields))]
    return Leaves(np.concatenate([*first, starts[-1:]]), *whole)
