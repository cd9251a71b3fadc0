"""`plot_pdp` and `plot_ale`: how f depends on each column, or on a pair."""

import numpy as np
import pymc as pm

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.plots.curves import FEW, Curve, draw_curves, stands_at
from pymc_trees.plots.figure import picture
from pymc_trees.plots.pairs import draw_pair
from pymc_trees.posterior.accumulated_effects import accumulated_effects
from pymc_trees.posterior.dependence import partial_dependence
from pymc_trees.posterior.reading.draw_by_draw import thinned
from pymc_trees.posterior.reading.features import all_features, pair_or_features
from pymc_trees.posterior.reading.functions import Function
from pymc_trees.posterior.reading.given import draws_of


@picture
def plot_pdp(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    grid=None,
    draws: int | None = 200,
    subsample: int | None = None,
    centred: bool = False,
    ci_prob: float | None = None,
    rug: bool = True,
    group: str = "posterior",
    backend: str | None = None,
    random_state=None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Partial dependence of f on each column, with intervals, or on a pair.

    The numbers are those of `partial_dependence`. If one column of a pair has levels or few values,
    a curve of the other is drawn for each of them. Two numeric columns give a map of the posterior
    mean, with the rows as dots: away from the rows it is an extrapolation by the prior and the
    steps of the trees.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    features : column, list of columns, or tuple of two, optional
        By name if X was a frame, otherwise by number or as "x0". ``["a", "b"]`` has a panel for
        each; ``("a", "b")``, also within a list, is a pair. Default: all, a panel for each.
    X : (n, p) array or frame, optional
        Rows to average over. Default: the rows currently in the model.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f before the mean; an inverse link such as `numpy.exp`,
        for example.
    grid : optional
        Values of the columns, as for `partial_dependence`.
    draws : int or None, default 200
        Number of draws to use, evenly spaced; None for all.
    subsample : int, optional
        Number of rows of X taken at random. Default: all rows.
    centred : bool, default False
        Whether every draw is shifted to 0 at the first value of the grid; not for a pair.
    ci_prob : float, optional
        Probability of the intervals, equal-tailed. Default: that of ArviZ.
    rug : bool, default True
        Whether to mark where the cells of the column are.
    group : str, default "posterior"
        Group of ``idata`` that holds the draws; "prior" gives the same quantity under the prior.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Default: that of ArviZ-plots.
    random_state : numpy.random.Generator or seed, optional
        For the subsample.
    progressbar : bool, default True
        Whether to show a progress bar.
    **pc_kwargs
        For `arviz_plots.PlotCollection.wrap`.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_pdp(idata, model, backend="none")
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws, group)
    if pair and centred:
        raise ValueError(
            "centred=True: the picture of a pair of columns cannot be centred: leave it out, or "
            "give a list for one panel per column."
        )
    given = {"var_name": var_name, "func": func, "grid": grid, "subsample": subsample}
    given |= {"random_state": random_state, "progressbar": progressbar}
    if pair:
        both = tuple(columns)
        found = partial_dependence(idata, model, both, X, **given)["average"]
        axes = zip(columns, found.dims[-2:], strict=True)
        stand = [_on_axis(found[dim].to_numpy(), one, rows) for one, dim in axes]
        cells, few = np.stack([at for at, _ in stand], axis=1), [few for _, few in stand]
        what = "partial dependence"
        return draw_pair(found, cells, few, ci_prob, rug, backend, what, **pc_kwargs)
    curves = {}
    for feature in columns:
        found = partial_dependence(idata, model, feature, X, **given)["average"]
        if centred:
            found = found - found.isel({found.dims[-1]: 0})
        curves[str(found.dims[-1])] = curve_of(found, feature, rows)
    what = "partial dependence" + ", centred" * centred
    return draw_curves(curves, ci_prob, rug, backend, what, **pc_kwargs)


@picture
def plot_ale(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    intervals: int = 20,
    draws: int | None = 200,
    ci_prob: float | None = None,
    rug: bool = True,
    backend: str | None = None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Accumulated local effects of each column on f, with intervals.

    The numbers are those of `accumulated_effects`.

    Parameters
    ----------
    idata, model, X, var_name, func, draws, ci_prob, rug, backend, progressbar, **pc_kwargs
        As for `plot_pdp`.
    features : column or list of columns, optional
        By name if X was a frame, otherwise by number. Default: all but constant ones, which have no
        effect, a panel for each.
    intervals : int, default 20
        Maximum number of quantile intervals of a numeric column.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_ale(idata, model, backend="none")
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws)
    if pair:
        raise ValueError(
            f"features={features!r}: a tuple is a pair of columns, which only accumulated_effects "
            "supports; give a list for one panel per column."
        )
    given = {"var_name": var_name, "func": func, "intervals": intervals}
    given["progressbar"] = progressbar
    if features is None:
        vary = [one for one in columns if _varies(rows[:, one.column])]
        columns = vary or columns  # the error of a constant column says what is wrong
    curves = {}
    for feature in columns:
        found = accumulated_effects(idata, model, feature, X, **given)["effect"]
        curves[str(found.dims[-1])] = curve_of(found, feature, rows)
    return draw_curves(curves, ci_prob, rug, backend, "accumulated effect", **pc_kwargs)


def asked(idata, model, features, X, var_name, draws, group="posterior"):
    """Draws to take, whether columns are a pair, the columns, and rows as the model holds them."""
    idata = draws_of(idata, group)
    function = Function(idata, pm.modelcontext(model), var_name)
    known = (function.schema, function.n_columns)
    pair, columns = False, all_features(*known)
    if features is not None:
        pair, columns = pair_or_features("features", features, *known)
    return idata.isel(draw=thinned(*function.shape, draws)), pair, columns, function.rows(X)


def _varies(cells) -> bool:
    return np.unique(cells[cells != MISSING]).size > 1


def curve_of(found, feature, rows) -> Curve:
    """What is drawn of one column."""
    cells, few = _on_axis(found[found.dims[-1]].to_numpy(), feature, rows)
    return Curve(found, cells[~np.isnan(cells)], few)


def _on_axis(labels, feature, rows) -> tuple[np.ndarray, bool]:
    """Where rows stand on the axis of a column, and whether its values are few."""
    cells = stands_at(feature, rows[:, feature.column], labels)
    return cells, feature.levels is not None or labels.size <= FEW
