"""`open`: draws from a file, in memory where they fit."""

from os import PathLike
from pathlib import Path

import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.posterior.draws import check_draws

MOST_BYTES = 2**32
"""Of a file that is read as a whole."""


def open(
    path: str | PathLike, model: pm.Model | None = None, *, max_bytes: int = MOST_BYTES
) -> xr.DataTree:
    """Read the draws in a file, as a whole where they fit.

    Draws that are read lazily are read again in every call that asks for them, which makes
    predictions slow.

    Parameters
    ----------
    path : str or path
        A file that `save` wrote, or any netCDF file of draws.
    model : pymc.Model, optional
        Their model: the draws are checked against it, as by `check_draws`.
    max_bytes : int, default 2**32
        Memory up to which all groups are read; a larger file is read when its parts are needed.

    Returns
    -------
    xarray.DataTree
        With all groups.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file holds no draws, or is damaged; or the draws are not those of the model.

    Examples
    --------
    >>> import tempfile, numpy as np, xarray as xr, pymc_trees as pmt
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), np.zeros((2, 5)))})
    >>> idata = xr.DataTree.from_dict({"posterior": draws})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = pmt.open(pmt.save(idata, f"{folder}/fit.nc"))
    >>> again.identical(idata)
    True
    """
    most = check_number("max_bytes", max_bytes, 0)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path={str(path)!r}: there is no such file.")
    try:
        tree = xr.open_datatree(path, engine="h5netcdf")
        if tree.nbytes <= most:
            with tree:
                tree = tree.load()
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise ValueError(
            f"path={str(path)!r} holds no draws that can be read ({error}): give a file that "
            "pymc_trees.save wrote, or copy it again."
        ) from error
    if model is not None:
        check_draws(tree, model)
    return tree
