"""Increase of a loss when a column is shuffled: `permutation_importance`."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_choice, check_number, check_seed
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.posterior.reading.features import renamed
from pymc_trees.posterior.reading.functions import Function
from pymc_trees.progress import track

METRICS: dict[str, Callable] = {
    "squared_error": lambda y, f: (y - f) ** 2,
    "absolute_error": lambda y, f: np.abs(y - f),
}


@renamed
def permutation_importance(
    idata,
    model: pm.Model | None = None,
    X=None,
    y=None,
    *,
    metric: str | Callable = "squared_error",
    n_repeats: int = 10,
    var_name: str | None = None,
    func=None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """How much larger a loss becomes when a column of X is shuffled, draw by draw.

    The mean loss of f at the rows with one column permuted, minus the mean loss at the rows
    themselves (Breiman 2001, section 10). No model is refitted. Give rows that were not used for
    fitting: on the training rows a column that was fitted to noise looks important.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (n, p) array or frame, optional
        Rows. Default: the rows currently in the model.
    y : array, optional
        Responses at the rows, with the shape of the function there: (n,) for one output. Default: f
        at the rows, draw by draw; the loss then measures how much f changes.
    metric : {"squared_error", "absolute_error"} or callable, default "squared_error"
        Loss. A callable takes two arrays of one shape, responses and values of the function, whose
        last axis is that of the rows, and returns the loss of each.
    n_repeats : int, default 10
        Number of permutations of each column; all columns and draws use the same permutations.
    var_name : str, optional
        Name of the function, if the model has several.
    func : callable, optional
        Applied elementwise to the values of f before the loss; an inverse link such as `numpy.exp`,
        for example.
    random_state : numpy.random.Generator or seed, optional
        For the permutations.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``importance`` with the dimensions chain, draw, those of the outputs, repeat and feature;
        ``loss``, at the rows without a permutation, without the last two.

    Raises
    ------
    ValueError
        For responses of another shape or with missing values, and for a metric or function that
        does not exist.

    Notes
    -----
    f is evaluated at n times ``n_repeats`` rows for each column in each draw; use
    ``idata.isel(draw=slice(None, None, 10))`` for fewer draws. Dependent columns can substitute for
    each other, and shuffling one of them makes rows that do not occur.

    References
    ----------
    Breiman (2001). Random forests. Machine Learning 45, section 10.
    Fisher, Rudin and Dominici (2019). All models are wrong, but many are useful: learning a
    variable's importance by studying an entire class of prediction models simultaneously. Journal
    of Machine Learning Research 20(177).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.random((30, 2)), rng.random((20, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.permutation_importance(idata, model, X_new, X_new[:, 0], n_repeats=3,
    ...                                    random_state=1, progressbar=False)
    >>> dict(found["importance"].sizes)
    {'chain': 1, 'draw': 5, 'repeat': 3, 'feature': 2}
    """
    loss = METRICS[check_choice("metric", metric, METRICS)] if not callable(metric) else metric
    n_repeats = check_number("n_repeats", n_repeats, 1)
    function = Function(idata, pm.modelcontext(model), var_name, func)
    rows = function.rows(X)
    responses = None if y is None else _responses(y, function, len(rows))
    rng = check_seed(random_state, "random_state")
    orders = np.stack([rng.permutation(len(rows)) for _ in range(n_repeats)])

    at_rows = function.reduced(rows, lambda f: f, {"row": np.arange(len(rows))}).to_numpy()
    shape = at_rows.shape[:-1]
    base, importance = np.empty(shape), np.empty((*shape, n_repeats, function.n_columns))
    for at in np.ndindex(shape[:2]):
        base[at] = _mean_loss(loss, at_rows[at] if responses is None else responses, at_rows[at])
    p = function.n_columns
    for j in track(range(p), "Shuffled columns", p, progressbar):
        shuffled = np.tile(rows, (n_repeats, 1))
        shuffled[:, j] = rows[orders, j].ravel()
        for chain, draw, f in function.each_draw(shuffled):
            f = f.reshape(*f.shape[:-1], n_repeats, -1)
            known = at_rows[chain, draw] if responses is None else responses
            more = _mean_loss(loss, known[..., None, :], f) - base[chain, draw][..., None]
            importance[chain, draw][..., j] = more
    lead = (*SAMPLE, *function.dims)
    variables = {"importance": ((*lead, "repeat", "feature"), importance), "loss": (lead, base)}
    coords = function.coords | {"repeat": np.arange(n_repeats), "feature": function.names}
    return xr.Dataset(variables, coords)


def _responses(y, function: Function, n: int) -> np.ndarray:
    """Responses, rows last, or an error."""
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("y must hold numbers only: encode labels as numbers.") from error
    shape = (*function.outputs[: function.axis], n, *function.outputs[function.axis :])
    if y.shape != shape:
        raise ValueError(
            f"y has the shape {y.shape}: it must be {shape}, the shape of {function.name} at the "
            "rows of X."
        )
    if not np.isfinite(y).all():
        raise ValueError("y holds missing or infinite values: leave those rows out of X and y.")
    return np.moveaxis(y, function.axis, -1)


def _mean_loss(loss: Callable, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Mean over the last axis, or an error."""
    losses = np.asarray(loss(np.broadcast_to(y, f.shape), f))
    if losses.shape != f.shape:
        raise ValueError(
            f"metric returned the shape {losses.shape} for values of the shape {f.shape}: it must "
            "return the loss of each value."
        )
    return losses.mean(axis=-1)
