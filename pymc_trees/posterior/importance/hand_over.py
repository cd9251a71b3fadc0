"""The order of columns for another package: `vi_to_kulprit`."""

import xarray as xr

from pymc_trees.posterior.importance.submodels import check_submodels


def vi_to_kulprit(found: xr.Dataset) -> list[list[str]]:
    """Submodels as kulprit takes them: lists of columns, from none to all.

    Parameters
    ----------
    found : xarray.Dataset
        Result of `compute_variable_importance`.

    Returns
    -------
    list of list of str
        p + 1 lists, each with one column more, for ``user_terms`` of
        ``kulprit.ProjectionPredictive.project``.

    Raises
    ------
    ValueError
        When ``found`` is something else.

    Examples
    --------
    >>> import pymc_trees as pmt, xarray as xr
    >>> found = xr.Dataset({"r2": ("submodel", [0.7, 1.0])}, {"submodel": [1, 2]})
    >>> pmt.vi_to_kulprit(found.assign_coords(feature=("submodel", ["dose", "age"])))
    [[], ['dose'], ['dose', 'age']]
    """
    check_submodels(found)
    names = [str(name) for name in found["feature"].to_numpy()]
    return [names[:size] for size in range(len(names) + 1)]
