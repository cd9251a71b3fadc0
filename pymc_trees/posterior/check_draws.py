"""Whether draws can predict: a model, complete draws, and the forests of that model."""

from collections import OrderedDict
from threading import Lock

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV
from pymc_trees.distributions.ops.soft_tree_rv import SoftTreeRV
from pymc_trees.distributions.tree_variable import TreeVariable, tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.posterior.differences import (
    FOREST,
    SOFT_FOREST,
    SOFT_TREE,
)

# ---------- The model that draws are asked with, or an error that says what was given in its place


def model_of(model) -> pm.Model:
    """The model given, or that on the context stack, without named dimensions (`without_dims`).

    Raises
    ------
    TypeError
        For anything else, such as a frame or a variable of the model; without a model at all.
    """
    found = pm.modelcontext(model)
    if not isinstance(found, pm.Model):
        raise TypeError(
            f"model={type(model).__name__}: must be the pymc.Model of the draws. Give other rows "
            "by keyword, X=, and a function of the model by name, var_name='mu'."
        )
    return without_dims(found)


# --------------------------------------------------- Draws of one variable, in memory or in a file


SAMPLE = ("chain", "draw")
HELD = 2**30
"""Bytes of a variable that are read as a whole; more are read, and held, by blocks of draws."""


class StoredDraws:
    """(chain, draw, ...) numbers of a variable, read from their file once, not draw by draw.

    xarray keeps what it has read as a whole with the variable, so that later calls read nothing.
    More than `HELD` bytes are read in blocks of consecutive draws, of which two are held, since
    threads are at several draws at once.

    Parameters
    ----------
    array : xarray.DataArray
        The variable, with the dimensions chain and draw.
    """

    def __init__(self, array: xr.DataArray):
        whole = array.nbytes <= HELD
        if whole:  # before it is transposed: xarray would read a transposed one, and not keep it
            array = array.copy(deep=False, data=array.values)
        self._array = array.transpose(*SAMPLE, ...)
        self.shape: tuple[int, ...] = self._array.shape
        each = max(1, array.nbytes // max(1, int(np.prod(self.shape[:2]))))
        self._width = max(1, self.shape[1] if whole else HELD // (2 * each))
        self._blocks: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._lock = Lock()

    def __getitem__(self, place: tuple[int, int]) -> np.ndarray:
        """One draw, which may be a view: chain and draw, from 0, or from the end if negative."""
        chain, draw = (int(k) % n for k, n in zip(place, self.shape, strict=False))
        block, within = divmod(draw, self._width)
        with self._lock:
            found = self._blocks.get((chain, block))
            if found is None:
                found = self._read(chain, block * self._width)
                self._blocks[chain, block] = found
                if len(self._blocks) > 2:
                    self._blocks.popitem(last=False)
        return found[within]

    def _read(self, chain: int, start: int) -> np.ndarray:
        return self._array[chain, start : start + self._width].to_numpy()


# ------------------------------------------------------- Whether draws hold the forests of a model


LOOKED_AT = 10
"""Draws that are searched for what is wrong with all of them."""
OF_ANY_GROUP = (
    "partial_dependence, accumulated_effects, plot_pdp, plot_ice and the curves of "
    "pymc_trees.survival"
)
"""Functions that have ``group``."""
DIFFERENCES = {ForestRV: FOREST, SoftTreeRV: SOFT_TREE, SoftForestRV: SOFT_FOREST}
"""What says in what the draws differ from the model, by the type of the Op."""


def check_draws(idata, model: pm.Model | None = None) -> None:
    """Raise an error when draws cannot predict with the forests of a model.

    Every draw of every forest and soft tree is checked against the declaration: whether it is
    there, which `pymc.sample_posterior_predictive` asks too, and whether it is a forest of this
    model.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file; its ``posterior`` is checked.
    model : pymc.Model, optional
        Default: the model on the context stack.

    Raises
    ------
    ValueError
        When a forest is missing from the draws, has another shape, or was altered. If the draws
        allow it, the message names the setting in which their model differs from this one.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=3)
    ...     prior = pm.sample_prior_predictive(5, random_seed=1)
    >>> draws = prior.copy()
    >>> draws["posterior"] = prior["prior"].copy()
    >>> pmt.check_draws(draws, model)
    """
    checked_draws(idata, model_of(model))


def checked_draws(idata, model: pm.Model) -> dict[str, StoredDraws]:
    """Draws of every forest and soft tree, by name, that `check_draws` has passed."""
    children = getattr(idata, "children", None)
    if children is None:
        raise TypeError("idata must be the result of pm.sample() or of xarray.open_datatree().")
    posterior = idata["posterior"] if "posterior" in children else None
    if posterior is None:
        prior = f" {OF_ANY_GROUP} take its prior with group='prior'." if "prior" in children else ""
        raise ValueError(f"idata has no posterior group: pass the result of pm.sample().{prior}")
    found = {}
    for tree in tree_variables(model):
        if tree.name not in posterior:
            raise ValueError(
                f"idata lacks {tree.name}: predictions would use trees drawn from the prior. Keep "
                f"it among var_names of pm.sample (and in the file you saved)."
            )
        found[tree.name] = _stored(posterior[tree.name])
        _check(tree, found[tree.name])
    return found


def _stored(array: xr.DataArray) -> StoredDraws:
    """(chain, draw, rows, fields) float64 draws."""
    name, dims = array.name, tuple(array.dims)
    lost = [dim for dim in SAMPLE if dim not in dims]
    if lost:
        stacked = {dim for one in lost if one in array.coords for dim in array.coords[one].dims}
        if stacked:
            raise ValueError(
                f"{name} has its chains and draws stacked into {sorted(map(str, stacked))}: pass "
                "the unchanged result of pm.sample(), or unstack it."
            )
        kept = " and ".join(f"idata.isel({dim}=[0])" for dim in lost)
        raise ValueError(
            f"{name} has no dimension {lost} in idata. Select with a list, which keeps the "
            f"dimension, as in {kept}."
        )
    if len(dims) != 4:
        raise ValueError(
            f"{name} has the dimensions {dims} in idata, but draws of a forest have (chain, draw, "
            "rows, fields): pass the unchanged result of pm.sample()."
        )
    if array.dtype != np.float64:
        raise ValueError(
            f"{name} was altered: it is {array.dtype} in idata, but trees in another precision "
            "are different trees. Save and keep it as float64."
        )
    draws = StoredDraws(array)
    if 0 in draws.shape:
        raise ValueError(f"{name} has no draws in idata: its shape is {draws.shape}.")
    return draws


def _check(tree: TreeVariable, draws: StoredDraws) -> None:
    """One forest or soft tree."""
    about, shape = DIFFERENCES[type(tree.op)], tree.shape
    if draws.shape[2:] != shape:
        if draws.shape[2:] == shape[::-1]:
            raise ValueError(
                f"{tree.name} is transposed in idata: its dimensions are (chain, draw, rows, "
                "fields)."
            )
        what = about.differing_sizes(tree.rv, np.ascontiguousarray(draws[0, 0]))
        raise ValueError(
            f"{tree.name} has shape {draws.shape[2:]} in idata, but {shape} in the model: the "
            f"draws belong to another model, with other {what}. Declare the model as it was."
        )
    wrong = [at for at in np.ndindex(*draws.shape[:2]) if not tree.is_intact(draws[at])]
    if not wrong:
        return
    (chain, draw), total = wrong[0], draws.shape[0] * draws.shape[1]
    who = f"{tree.name}, chain {chain}, draw {draw}, is not a {tree.what} of this model"
    if len(wrong) < total:
        raise ValueError(
            f"{who}. That holds for {len(wrong)} of {total} draws: they were altered, or joined "
            "from the draws of another model."
        )
    some = [wrong[k] for k in np.unique(np.linspace(0, total - 1, LOOKED_AT).astype(int))]
    what = about.differing_settings(tree.rv, [np.ascontiguousarray(draws[at]) for at in some])
    raise ValueError(
        f"{who}, nor is any other: {what}. Declare the model as it was, with the training X, then "
        "pm.set_data the new one."
    )
