"""`expected_events`: how many events there are by a time, where they can happen again."""

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.tensor.random.basic import BernoulliRV

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.posterior.check_draws import model_of
from pymc_trees.posterior.comparisons import means_over
from pymc_trees.survival.curves import STEPWISE, each_curve
from pymc_trees.survival.laws import GridLaw, observed_of

HISTORY = 3
"""Columns before those of the subject: time, since, count."""


def expected_events(
    idata,
    model: pm.Model | None = None,
    X=None,
    times=None,
    *,
    by=None,
    paths: int = 1,
    random_seed=None,
    var_name: str | None = None,
    group: str = "posterior",
    progressbar: bool = True,
) -> xr.Dataset:
    """Expected number of events by each time, draw by draw, where they can happen again.

    The probability of an event depends on previous events, so histories are simulated for each draw
    and subject, starting without events at time 0. The expected number by t is the sum of the
    probabilities of an event over the times of the grid up to t, averaged over the histories.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack. From `recurrent_events`, or like it: the first
        columns are time, time since the last event, and events so far.
    X : (n, p) array or frame
        Subjects, without these columns.
    times : increasing array, optional
        Default: the grid of the long form.
    by : bool or column, optional
        As for `survival_function`.
    paths : int, default 1
        Number of histories per subject and draw. The mean over draws is correct with one; the
        spread over draws includes the variation between histories besides the uncertainty of the
        mean, and this part decreases with the number of histories.
    random_seed : int, Generator or None
        Seed of the histories.
    var_name : str, optional
        Observed variable, where several depend on trees.
    group, progressbar
        As for `survival_function`.

    Returns
    -------
    xarray.Dataset
        ``expected`` with the dimensions chain, draw, ``row`` (none, or that of ``by``) and time.

    Raises
    ------
    ValueError
        As `survival_function`.

    References
    ----------
    Sparapani, Rein, Tarima, Jackson and Meurer (2020). Non-parametric recurrent events analysis
    with BART and an application to the hospital admissions of patients with diabetes.
    Biostatistics 21(1).

    Examples
    --------
    >>> import pymc as pm
    >>> from pymc_trees import survival
    >>> time, event = [1.0, 2.0, 3.0, 1.5, 3.0, 3.0], [1, 1, 0, 1, 0, 0]
    >>> X = [[0.1], [0.2], [0.9]]
    >>> model = survival.recurrent_events(X, time, event, [0, 0, 0, 1, 1, 2], m=5)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> found = survival.expected_events(idata, model, X, paths=4, random_seed=1)["expected"]
    >>> dict(found.sizes), bool((found.diff("time") > 0).all())
    ({'chain': 1, 'draw': 5, 'row': 3, 'time': 3}, True)
    """
    rv = observed_of(model := model_of(model), var_name)
    if not isinstance(rv.owner.op, BernoulliRV):
        raise ValueError(
            f"{rv.name} is not a Bernoulli: hazards are read from a Bernoulli on the long form."
        )
    law = GridLaw(idata, model, rv, times, group, HISTORY)
    rows, rng = law.rows(X), check_seed(random_seed)
    many = np.repeat(rows, check_number("paths", paths, 1), axis=0)
    share, dims = means_over(law.columns, rows, by)

    def curves(chain, draw):
        p = simulated(law.expression.at(chain, draw), many, law.grid, rng)
        mean = p.reshape(law.grid.size, len(rows), -1).mean(axis=-1)
        return share(law.up_to(np.cumsum(mean, axis=0), 0.0))

    found = each_curve(law, curves, dims, progressbar)
    return xr.Dataset({"expected": found}, attrs={STEPWISE: 1})


def simulated(function, rows: np.ndarray, grid: np.ndarray, rng) -> np.ndarray:
    """(grid, n) probabilities of an event at each time, along a history of each row."""
    n = len(rows)
    last, count = np.zeros(n), np.zeros(n)
    found = np.empty((grid.size, n))
    for k, time in enumerate(grid):
        found[k] = function(np.column_stack([np.full(n, time), time - last, count, rows]))
        happens = rng.random(n) < found[k]
        last[happens] = time
        count += happens
    return found
