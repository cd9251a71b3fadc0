"""How often trees split on each column, and on pairs of columns along a path, draw by draw."""

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.core.explain.paths import count_choices
from pymc_trees.posterior.draws import SAMPLE, model_of
from pymc_trees.posterior.reading.features import renamed
from pymc_trees.posterior.reading.forests import ForestDraws, forests_of


@renamed
def get_variable_inclusion(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Splits on each column, draw by draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    forest : str, optional
        Name of a forest, or of a function, if the model has several forests. For a function with
        one forest per output, the splits of all its forests are counted.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        With the dimensions chain, draw and feature: ``count``, the split nodes on the column over
        all trees, and ``share``, their share of all split nodes of the draw, NaN where there is
        none (the variable inclusion proportion of Chipman, George and McCulloch 2010, section 5.1).

    Raises
    ------
    ValueError
        For a model without a forest, or with several; the message lists their names.

    References
    ----------
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), section 5.1.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> dict(pmt.get_variable_inclusion(idata, model)["share"].sizes)
    {'chain': 1, 'draw': 5, 'feature': 2}
    """
    draws, counts, _ = _choices(idata, model, forest, False, progressbar)
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        share = counts / np.where(total > 0, total, np.nan)
    dims = (*SAMPLE, "feature")
    variables = {"count": (dims, counts), "share": (dims, share)}
    return xr.Dataset(variables, draws.coords | {"feature": draws.names})


@renamed
def get_interaction_inclusion(
    idata,
    model: pm.Model | None = None,
    *,
    forest: str | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Pairs of splits on a common path, by their columns, draw by draw.

    Columns interact in a tree only where one split is below the other. A count does not measure the
    size of an interaction: `interaction_strength` and `shap_interactions` do.

    Parameters
    ----------
    idata, model, forest, progressbar
        As for `get_variable_inclusion`.

    Returns
    -------
    xarray.Dataset
        With the dimensions chain, draw, feature and other: ``count``, the pairs of split nodes on
        one path, one on either column, symmetric (on the diagonal two on the same column), and
        ``share``, their share of all such pairs of the draw, NaN where there is none; over
        ``feature`` not after ``other`` it adds up to 1.

    Raises
    ------
    ValueError
        For a model without a forest, or with several; the message lists their names.

    References
    ----------
    Kapelner and Bleich (2016). bartMachine: machine learning with Bayesian additive regression
    trees. Journal of Statistical Software 70(4), section 4.7.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> dict(pmt.get_interaction_inclusion(idata, model)["count"].sizes)
    {'chain': 1, 'draw': 5, 'feature': 2, 'other': 2}
    """
    draws, _, ordered = _choices(idata, model, forest, True, progressbar)
    total = ordered.sum(axis=(-2, -1), keepdims=True)
    counts = ordered + np.swapaxes(ordered, -2, -1)
    every = np.arange(counts.shape[-1])
    counts[..., every, every] //= 2
    with np.errstate(invalid="ignore"):
        share = counts / np.where(total > 0, total, np.nan)
    dims = (*SAMPLE, "feature", "other")
    variables = {"count": (dims, counts), "share": (dims, share)}
    return xr.Dataset(variables, draws.coords | {"feature": draws.names, "other": draws.names})


def _alike(one: ForestDraws, other: ForestDraws) -> bool:
    """Whether columns of two forests are the same; those of arrays have no names that say it."""
    unnamed = any(draws.schema is None or draws.schema.names is None for draws in (one, other))
    return one.names == other.names and not (
        unnamed and not np.array_equal(one.X_train, other.X_train)
    )


def _choices(idata, model, forest, with_pairs: bool, progressbar: bool):
    """Draws of a forest, (chain, draw, p) counts, and (chain, draw, p, p) of one above another.

    Counts add up over the selected forests, which have the same columns.
    """
    model = model_of(model)
    names = forests_of(model, forest, soft_too=True)
    several = [ForestDraws(idata, model, name, soft_too=True) for name in names]
    names = several[0].names
    if not all(_alike(several[0], one) for one in several[1:]):
        raise ValueError(
            f"forest={forest!r} has forests with different columns: choose from "
            f"{[one.name for one in several]}."
        )
    p, shape = len(names), several[0].shape
    counts = np.zeros((*shape, p), dtype=np.int64)
    q = p if with_pairs else 0
    pairs = np.zeros((*shape, q, q), dtype=np.int64)
    own, own_pairs = np.empty(p, dtype=np.int64), np.empty((q, q), dtype=np.int64)
    for one in several:
        for chain, draw, value in one.each_draw(progressbar):
            count_choices(value, p, one.layout.m, own, own_pairs)
            counts[chain, draw] += own
            pairs[chain, draw] += own_pairs
    return several[0], counts, pairs
