"""`predict`: the response of a formula's model at new rows, and for groups that were not seen."""

from typing import Any

import pandas as pd
import pymc as pm
import xarray as xr

from pymc_trees.formula.build import (
    FORMULAS,
    Formula,
    build,
    check_frame,
    complete_rows,
    set_rows,
)
from pymc_trees.hooks.groups import WITHOUT_TREES
from pymc_trees.posterior.draws import check_draws


def predict(idata, model, data, *, random_seed=None, progressbar=True):
    """Predict at the rows of a frame, with groups that were not seen drawn from their population.

    Parameters
    ----------
    idata : xarray.DataTree
        Draws of the model.
    model : pymc.Model
        Made by `pymc_trees.model` in this process. It is not changed.
    data : pandas.DataFrame
        New rows, with the columns of the formula; the response is not needed. Levels, splines and
        centred columns are those of training. Missing cells are allowed in columns of forests.
    random_seed : int, optional
        Of the new groups and the responses.
    progressbar : bool, default True

    Returns
    -------
    xarray.DataTree
        Its group ``predictions`` holds the Deterministic of the family's mean, ``mu`` or ``p``,
        and responses, by chain, draw and row. Each draw uses all parameters of that draw. Rows of
        one new group share its effects.

    Raises
    ------
    ValueError
        A model that `pymc_trees.model` did not make, columns that are not there, missing cells
        outside the forests' columns, a level of a common term that was not in training, or
        draws without some parameters of the model.

    Notes
    -----
    The effects of a group that was not seen are drawn, for each draw, from Normal(0, sigma) with
    the sigma of that draw. A weighted response is predicted with weight 1, a censored one without
    censoring, a truncated one with the bounds of its rows.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> data = pd.DataFrame({"x": rng.random(40), "g": rng.choice(list("abc"), 40)})
    >>> data["y"] = data["x"] + rng.normal(size=40)
    >>> m = pmt.model("y ~ bart(x, m=5) + (1 | g)", data)
    >>> idata = pm.sample(5, tune=10, chains=1, model=m, random_seed=1, progressbar=False,
    ...                   compute_convergence_checks=False)
    >>> new = pd.DataFrame({"x": [0.1, 0.9], "g": ["a", "new"]})
    >>> dict(pmt.formula.predict(idata, m, new, progressbar=False).predictions["mu"].sizes)
    {'chain': 1, 'draw': 5, '__obs__': 2}
    """
    made = FORMULAS.get(model)
    if made is None:
        raise ValueError(
            "model was not made by pymc_trees.model in this process; call it with the "
            "training data first, or predict with pymc.sample_posterior_predictive."
        )
    check_draws(idata, model)
    rows = _new_rows(made, data)
    index, labels = {}, {}
    for term in made.terms.groups:
        index[term.factor.name], labels[term.factor.name] = made.terms.group_index(term, rows)
    wide = build(made, labels)
    WITHOUT_TREES.add(wide)
    set_rows(made, wide, rows, index)
    posterior = idata["posterior"].to_dataset()
    # free variables alone: PyMC computes the others anew, and draws effects of further groups
    free = [rv.name for rv in wide.free_RVs]
    absent = [name for name in free if name not in posterior]
    if absent:
        raise ValueError(
            f"idata lacks the parameters {absent} of the model, so that they would be drawn from "
            "their priors: keep them among var_names of pm.sample()."
        )
    with wide:
        return pm.sample_posterior_predictive(
            xr.DataTree.from_dict({"posterior": posterior[free]}),
            var_names=[made.family.parent, made.response.name],
            predictions=True,
            random_seed=random_seed,
            progressbar=progressbar,
        )


def _new_rows(made: Formula, data) -> pd.DataFrame:
    """The rows, checked for the columns that the formula needs of them."""
    check_frame(data)
    terms = made.terms
    used = {name for term in terms.description.terms for name in term.var_names}
    for one in terms.forests:
        used |= set() if one.factor is None else set(one.factor.var_names)
    call: Any = getattr(terms.outcome, "call", None)
    if terms.callee in ("p", "prop", "proportion", "truncated"):
        for part in [*call.args[1:], *call.kwargs.values()]:
            used |= {part.name} if hasattr(part, "name") else set()
    used &= set(made.data.columns)
    needed = used | {c for one in terms.forests for c in one.columns}
    missing = sorted(needed - set(data.columns))
    if missing:
        raise ValueError(f"data lacks the columns {missing} of the formula: add them.")
    return complete_rows(data, used, dropna=False)
