"""`to_shap`: Shapley values for the plots of the package shap."""

import numpy as np
import xarray as xr

from pymc_trees.posterior.check.check_draws import SAMPLE


def to_shap(explanation: xr.Dataset, quantile: float | None = None):
    """A `shap.Explanation` of the posterior mean, or of a quantile, of Shapley values.

    Posterior means add up to the posterior mean of f, as Shapley values do; quantiles do not.

    Parameters
    ----------
    explanation : xarray.Dataset
        Result of `shap_values` or `shap_interactions` for one output; with several, choose one with
        ``explanation.isel`` first.
    quantile : float in [0, 1], optional
        Default: the mean.

    Returns
    -------
    shap.Explanation
        Of the rows, with names of the columns and, as data, the rows, levels as codes.

    Raises
    ------
    ImportError
        Without the package shap.
    ValueError
        For several outputs, or a quantile outside [0, 1].

    Examples
    --------
    >>> import shap, pymc_trees as pmt  # doctest: +SKIP
    >>> found = pmt.shap_values(idata, model)  # doctest: +SKIP
    >>> shap.plots.beeswarm(pmt.to_shap(found))  # doctest: +SKIP
    """
    if not isinstance(explanation, xr.Dataset) or "base_values" not in explanation:
        raise ValueError("explanation must be a result of shap_values or shap_interactions.")
    several = [dim for dim in explanation["base_values"].dims if dim not in SAMPLE]
    if several:
        raise ValueError(
            f"explanation has several outputs, along {several}: choose one, as in "
            f"explanation.isel({several[0]}=0)."
        )
    if quantile is not None and not (isinstance(quantile, int | float) and 0 <= quantile <= 1):
        raise ValueError(f"quantile={quantile!r}: must be between 0 and 1, or None for the mean.")
    try:
        from shap import Explanation
    except ImportError as error:
        raise ImportError("to_shap needs the package shap: pip install shap.") from error
    of_draws = explanation[["values", "base_values"]]
    one = of_draws.mean(SAMPLE) if quantile is None else of_draws.quantile(quantile, SAMPLE)
    data = explanation["data"].to_numpy()
    return Explanation(
        values=one["values"].to_numpy(),
        base_values=np.full(len(data), float(one["base_values"])),
        data=data,
        feature_names=[str(name) for name in explanation["feature"].to_numpy()],
    )
