"""`plot_ice`: how f depends on each column, row by row."""

import pymc as pm

from pymc_trees.plots.curves import draw_curves
from pymc_trees.plots.dependence import asked, curve_of
from pymc_trees.plots.figure import picture
from pymc_trees.posterior.check_draws import SAMPLE
from pymc_trees.posterior.dependence import partial_dependence


@picture
def plot_ice(
    idata,
    model: pm.Model | None = None,
    features=None,
    X=None,
    *,
    var_name: str | None = None,
    func=None,
    grid=None,
    draws: int | None = 200,
    subsample: int | None = 30,
    centred: bool = False,
    ci_prob: float | None = None,
    rug: bool = True,
    group: str = "posterior",
    backend: str | None = None,
    random_state=None,
    progressbar: bool = True,
    **pc_kwargs,
):
    """Individual conditional expectations: f along each column, a line for each row.

    Thin lines are posterior means at single rows of X with the column set to each value; the thick
    one, with its interval, is their mean over the rows shown. Lines that are not parallel show an
    interaction with another column. The numbers are those of `partial_dependence`.

    Parameters
    ----------
    idata, model, features, X, var_name, func, grid, draws, ci_prob, rug, group, backend, \
random_state, progressbar, **pc_kwargs
        As for `plot_pdp`.
    subsample : int or None, default 30
        Number of rows of X taken at random; None for all.
    centred : bool, default False
        Whether every line starts at 0, at the first value of the grid.

    Returns
    -------
    arviz_plots.PlotCollection

    Raises
    ------
    ValueError
        For a column or function that does not exist; the message lists those that do.

    References
    ----------
    Goldstein, Kapelner, Bleich and Pitkin (2015). Peeking inside the black box: visualizing
    statistical learning with plots of individual conditional expectation. Journal of Computational
    and Graphical Statistics 24(1).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> drawn = pmt.plot_ice(idata, model, backend="none", subsample=10, progressbar=False)
    """
    idata, pair, columns, rows = asked(idata, model, features, X, var_name, draws, group)
    if pair:
        raise ValueError(
            f"features={features!r}: a tuple is a pair of columns, which only plot_pdp supports; "
            "give a list for one panel per column."
        )
    given = {"var_name": var_name, "func": func, "grid": grid, "subsample": subsample}
    given |= {"random_state": random_state, "progressbar": progressbar}
    curves = {}
    for feature in columns:
        given["kind"] = "individual"
        found = partial_dependence(idata, model, feature, X, **given)["individual"]
        if centred:
            found = found - found.isel({found.dims[-1]: 0})
        curve = curve_of(found.mean("row"), feature, rows)
        curves[str(found.dims[-1])] = curve._replace(individual=found.mean(SAMPLE))
    what = "f of single rows and their mean" + ", centred" * centred
    return draw_curves(curves, ci_prob, rug, backend, what, **pc_kwargs)
