"""`save`: draws in a compressed file, written atomically."""

from os import PathLike
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.posterior.declarations import declarations_in
from pymc_trees.posterior.draws import SAMPLE, check_draws
from pymc_trees.predictors.file import check_path, write

PACKED = {"zlib": True, "complevel": 4, "shuffle": True}
"""How an array is kept; nothing is rounded, for a rounded forest is another forest."""
SMALL = 1000
"""Bytes up to which arrays are not compressed."""


ROWS = ("constant_data", "observed_data", "log_likelihood", "sampling_state")
"""Groups that hold training rows, or values at them."""
TOPOLOGIES = "topologies"
"""Group of `sample_dcc`, with an entry for each topology."""
LEFT_OUT = "training_rows_left_out"
"""Attribute of draws without them."""


def save(idata, path, *, training_data: bool = True) -> Path:
    """Write draws to a compressed netCDF file, completely or not at all.

    Parameters
    ----------
    idata : xarray.DataTree
        What `pymc.sample` or any function of this package returned, with all its groups.
    path : str or path
        The file. An existing file is replaced once the new one is complete and on disk.
    training_data : bool, default True
        Whether to write the training rows and everything with an entry for each of them, see Notes.

    Returns
    -------
    pathlib.Path
        Where the file is.

    Raises
    ------
    TypeError
        `idata` is not a DataTree, or has a variable of Python objects other than text; `path` is
        not a path.
    ValueError
        The folder does not exist, or `path` is a folder. Without training data: the draws do not
        say how many rows there are.
    OSError
        The file could not be written, because the disk is full for example; an existing file is
        unchanged.

    Notes
    -----
    Numbers are kept to the last bit. Arrays of more than a thousand bytes are compressed (zlib,
    level 4, bytes shuffled); ``xarray.open_datatree`` and ArviZ read such files like any other.
    Unused capacity in the encoded forests compresses to almost nothing. The content of the file is
    built in memory, and the disk needs enough free space for it next to the file that it replaces.

    Without training data, the groups ``constant_data``, ``observed_data``, ``log_likelihood`` and
    ``sampling_state`` are left out, and so is every variable with as many entries along an axis as
    there are training rows or observations: functions at these rows, predictions, latent variables.
    Parameters and the encoded trees stay, and so do names and levels of columns (group
    ``forests``). Predictions need the model, which needs the rows; a predictor does without.

    Examples
    --------
    >>> import tempfile, numpy as np, xarray as xr, pymc_trees as pmt
    >>> draws = xr.Dataset({"mu": (("chain", "draw"), np.zeros((2, 5000)))})
    >>> idata = xr.DataTree.from_dict({"posterior": draws})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pmt.save(idata, f"{folder}/fit.nc")
    ...     with xr.open_datatree(path) as again:
    ...         print(again.identical(idata), path.stat().st_size < 50_000)
    True True
    """
    if not isinstance(idata, xr.DataTree):
        raise TypeError(
            f"idata: {type(idata).__name__} is not a DataTree: give the result of pm.sample."
        )
    path = check_path("path", path)
    if not training_data:
        idata = without_rows(idata)
    encoding = {node.path: _encoding(node) for node in idata.subtree if node.data_vars}
    # In memory first: HDF5 that runs out of room may end the process, now or when it closes.
    content = idata.to_netcdf(engine="h5netcdf", encoding=encoding)
    write(path, content)
    return path


def _encoding(node: xr.DataTree) -> dict[str, dict]:
    encoding = {}
    for name, values in node.data_vars.items():
        if values.dtype == object and not all(isinstance(one, str) for one in values.values.flat):
            raise TypeError(
                f"idata: {name!r} of group {node.path!r} holds Python objects, which netCDF "
                "cannot store: remove it with idata[group].dataset.drop_vars."
            )
        if np.issubdtype(values.dtype, np.number) and values.nbytes > SMALL and values.ndim:
            encoding[str(name)] = PACKED
    return encoding


def without_rows(idata: xr.DataTree) -> xr.DataTree:
    """Draws without training rows, and without everything that has an entry for each of them."""
    forests = declarations_in(idata)
    declared = {one["rows"] for one in forests.values()}
    lengths = set(declared)
    observed = idata.children.get("observed_data")
    if observed is not None:
        for array in observed.data_vars.values():
            # of several axes that of the rows is known by its length; else each may be that
            sizes = set(array.shape)
            lengths |= (sizes & declared) or sizes
    if not lengths:
        raise ValueError(
            "training_data=False: idata has neither the group forests nor observed_data, which say "
            "how many rows there are. Give the whole result of pm.sample, or leave training_data "
            "out."
        )
    kept = {}
    for name, node in idata.children.items():
        if name in ROWS:
            continue
        if node.children:
            raise ValueError(
                f"training_data=False: the group {name!r} has groups of its own, which may hold "
                f"rows: remove it with del idata[{name!r}]."
            )
        ds = node.to_dataset()
        names = [
            v
            for v, array in ds.data_vars.items()
            if name == TOPOLOGIES or v in forests or not _has(array, lengths) or _is_tree(array)
        ]
        if names or not ds.data_vars:
            kept[name] = ds[names]
    result = xr.DataTree.from_dict(kept)
    result.attrs = idata.attrs | {LEFT_OUT: 1}
    return result


def _has(array: xr.DataArray, lengths: set[int]) -> bool:
    sizes = [n for dim, n in array.sizes.items() if dim not in ("chain", "draw")]
    return bool(lengths & set(sizes))


def _is_tree(array: xr.DataArray) -> bool:
    """Whether all draws are encoded soft trees, which the group of forests does not name.

    Nodes are in preorder, and field 0 is 0 at a split: the first node with which leaves outnumber
    splits is the last one, and unused rows follow.
    """
    dims = [dim for dim in array.dims if dim not in SAMPLE]
    if len(dims) != 2 or not {*SAMPLE} <= {*array.dims} or 0 in array.shape:
        return False
    kinds = array.transpose(*SAMPLE, *dims)[..., 0].to_numpy()
    is_leaf, is_split = kinds == LEAF, kinds == 0
    excess = np.cumsum(is_leaf.astype(int) - is_split, axis=-1)
    ended = np.maximum.accumulate(excess, axis=-1) == 1
    expected = np.roll(ended, 1, axis=-1)  # unused: all nodes after the last one
    expected[..., 0] = False
    is_unused = kinds == UNUSED
    known = is_leaf | is_split | is_unused
    return bool(known.all() and ended[..., -1].all() and (is_unused == expected).all())


# ------------------------------------------------ open: draws from a file, in memory where they fit


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
