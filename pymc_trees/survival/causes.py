"""`cumulative_incidence`: of each cause, the probability that it has happened by a time."""

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV

from pymc_trees.posterior.check_draws import model_of
from pymc_trees.posterior.comparisons import means_over
from pymc_trees.posterior.reading.expressions import Expression
from pymc_trees.survival.curves import STEPWISE, each_curve
from pymc_trees.survival.laws import GridLaw, at_each_time, observed_of


def cumulative_incidence(
    idata,
    model: pm.Model | None = None,
    X=None,
    times=None,
    *,
    by=None,
    event: str = "event",
    cause: str = "cause",
    group: str = "posterior",
    progressbar: bool = True,
) -> xr.Dataset:
    """Probability that an event of each cause has happened by a time, draw by draw.

    F_k(t) is the sum, over the times of the grid up to t, of the probability of no event before,
    times the hazard, times the probability of cause k given an event (Sparapani et al. 2020).
    Survival and the incidences of all causes add up to one.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack. From `competing_risks`, or like it.
    X : (n, p) array or frame
        Subjects, without a column for the time.
    times : increasing array, optional
        Default: the grid of the long form.
    by : bool or column, optional
        As for `survival_function`.
    event, cause : str, default "event" and "cause"
        Observed variables: a Bernoulli on the long form, and a Bernoulli or Categorical on its rows
        with an event.
    group, progressbar
        As for `survival_function`.

    Returns
    -------
    xarray.Dataset
        ``incidence`` with the dimensions chain, draw, cause, ``row`` (none, or that of ``by``) and
        time, and ``survival`` without cause. Causes are named by the coords ``causes`` of the
        model, where it has them.

    Raises
    ------
    ValueError
        As `survival_function`; variables that are not those of competing risks.

    References
    ----------
    Sparapani, Logan, McCulloch and Laud (2020). Nonparametric competing risks analysis using
    Bayesian Additive Regression Trees. Statistical Methods in Medical Research 29(1).

    Examples
    --------
    >>> import numpy as np, pymc as pm
    >>> from pymc_trees import survival
    >>> rng = np.random.default_rng(1)
    >>> X = rng.random((60, 1))
    >>> time, cause = rng.exponential(size=60), rng.choice([0, 1, 2], 60)
    >>> model = survival.competing_risks(X, time, cause, times=5, m=5)
    >>> idata = pm.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> found = survival.cumulative_incidence(idata, model, X, by=True, progressbar=False)
    >>> total = found["incidence"].sum("cause") + found["survival"]
    >>> dict(found["incidence"].sizes), bool(np.allclose(total, 1.0, rtol=0, atol=1e-12))
    ({'chain': 1, 'draw': 5, 'cause': 2, 'time': 5}, True)
    """
    model = model_of(model)
    happens, kind = observed_of(model, event), observed_of(model, cause)
    if not isinstance(happens.owner.op, BernoulliRV):
        raise ValueError(
            f"{event} is not a Bernoulli: hazards are read from a Bernoulli on the long form."
        )
    law = GridLaw(idata, model, happens, times, group)
    given_event = _Causes(idata, model, kind, group)
    if given_event.expression.n_columns != law.expression.n_columns:
        raise ValueError(
            f"{event} and {cause} have forests on different columns: give both the same columns."
        )
    rows = law.rows(X)
    share, dims = means_over(law.columns, rows, by)

    def curves(chain, draw):
        hazards = law.hazards(chain, draw, rows)
        survival = np.cumprod(1.0 - hazards, axis=0)
        before = np.concatenate([np.ones((1, len(rows))), survival[:-1]])
        steps = before * hazards * given_event.at(chain, draw, rows, law.grid)
        incidence = np.moveaxis(law.up_to(np.cumsum(np.moveaxis(steps, 1, 0), 0), 0.0), 1, 0)
        return share(np.concatenate([law.up_to(survival, 1.0)[None], incidence]))

    known = model.coords.get("causes")
    names = np.arange(given_event.number) if known is None else np.asarray(known)
    # survival is put before the causes, so that all are averaged and stored together
    parts = {"part": np.arange(given_event.number + 1)}
    found = each_curve(law, curves, dims, progressbar, parts)
    incidence = found.isel(part=slice(1, None)).rename(part="cause").assign_coords(cause=names)
    survival = found.isel(part=0, drop=True)
    return xr.Dataset({"incidence": incidence, "survival": survival}, attrs={STEPWISE: 1})


class _Causes:
    """Probabilities of the causes, given an event."""

    def __init__(self, idata, model: pm.Model, rv, group: str):
        if not isinstance(rv.owner.op, BernoulliRV | CategoricalRV):
            raise ValueError(f"{rv.name} is neither Bernoulli nor Categorical, as causes must be.")
        [p] = rv.owner.op.dist_params(rv.owner)
        self.expression = Expression(idata, model, p, rv.name, group)
        self.number = self.expression.outputs[0] if self.expression.outputs else 2

    def at(self, chain, draw, rows, grid) -> np.ndarray:
        """(causes, grid, n) probabilities."""
        p = at_each_time(self.expression.at(chain, draw), rows, grid)
        return p if self.expression.outputs else np.stack([1.0 - p, p])
