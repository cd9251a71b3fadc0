"""Draws of a model: as users have them, whether they can predict, fewer of them, work on each."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import perf_counter

import joblib
import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.core.value.fields import LEAF, UNUSED
from pymc_trees.distributions.tree_variable import TreeVariable, tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.progress import track

# -------------------------------------------------------------- The model that the draws belong to


def model_of(model) -> pm.Model:
    """The model given, or that on the context stack, without named dimensions (`without_dims`).

    Raises
    ------
    TypeError
        For anything else, such as a frame or a variable of the model; without a model at all.
    """
    context = pm.modelcontext(model)
    if not isinstance(context, pm.Model):
        raise TypeError(
            f"model={type(model).__name__}: must be the pymc.Model of the draws. Give other rows "
            "by keyword, X=, and a function of the model by name, var_name='mu'."
        )
    return without_dims(context)


# --------------------------------------------------- Draws of one variable, in memory or in a file


SAMPLE = ("chain", "draw")
DATA = ("constant_data", "observed_data")
"""Groups without draws, of what a model was fitted to."""
STATES = "sampling_state"
"""Group of the states from which chains go on, with a group for each chain."""
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
        whole, self._name = array.nbytes <= HELD, str(array.name)
        self._is_whole = whole
        if whole:  # before it is transposed: xarray would read a transposed one, and not keep it
            begin, is_kept = perf_counter(), array.chunks is None
            array = array.copy(deep=False, data=array.values)
            if not is_kept:
                warn_of_reading(self._name, perf_counter() - begin)
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
            held = self._blocks.get((chain, block))
            if held is None:
                held = self._read(chain, block * self._width)
                self._blocks[chain, block] = held
                if len(self._blocks) > 2:
                    self._blocks.popitem(last=False)
        return held[within]

    def _read(self, chain: int, start: int) -> np.ndarray:
        begin = perf_counter()
        block = self._array[chain, start : start + self._width].to_numpy()
        if not self._is_whole:
            warn_of_reading(self._name, perf_counter() - begin)
        return block


SLOW = 0.5
"""Seconds of reading draws, again in each call, from which there is a warning."""
_slow: set[str] = set()
"""Variables of which there was one."""


def warn_of_reading(name: str, seconds: float) -> None:
    """Warn, once for each variable, that draws are read in every call, and that this is slow."""
    if seconds < SLOW or name in _slow:
        return
    _slow.add(name)
    warnings.warn(
        f"The draws of {name} are read lazily, anew in each call, which took {seconds:.1f} s. Read "
        "them once, with pymc_trees.open(path), or with idata.load() where they fit in memory.",
        skip_file_prefixes=(str(Path(__file__).parents[1]),),
    )


# ------------------------------------------------------- Whether draws hold the forests of a model


OF_ANY_GROUP = (
    "partial_dependence, accumulated_effects, plot_pdp, plot_ice and the curves of "
    "pymc_trees.survival"
)
"""Functions that have ``group``."""


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
        When a forest is missing from the draws, has another shape, or was altered. The message
        names the sizes in which their model differs from this one, or settings that may differ.

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
    draws = {}
    for tree in tree_variables(model):
        if tree.name not in posterior:
            raise ValueError(
                f"idata lacks {tree.name}: predictions would use trees drawn from the prior. Keep "
                f"it among var_names of pm.sample (and in the file you saved)."
            )
        draws[tree.name] = _stored(posterior[tree.name])
        _check(tree, draws[tree.name])
    return draws


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
    shape = tree.shape
    if draws.shape[2:] != shape:
        if draws.shape[2:] == shape[::-1]:
            raise ValueError(
                f"{tree.name} is transposed in idata: its dimensions are (chain, draw, rows, "
                "fields)."
            )
        raise ValueError(
            f"{tree.name} has shape {draws.shape[2:]} in idata, but {shape} in the model: "
            f"{mismatch(tree, np.array(draws[0, 0]))}. Rebuild it with the original settings."
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
    raise ValueError(
        f"{who}, nor is any other: {mismatch(tree, np.array(draws[wrong[0]]))}. Rebuild the model "
        "with the original settings and the training X, then pm.set_data the new one."
    )


# ------------------------------------------------ In what draws differ from those of another model


LARGEST_KIND = 2.0**32
"""More than any split column; a checksum of 52 bits is below it once in a million draws."""


def mismatch(tree: TreeVariable, value: np.ndarray) -> str:
    """What is wrong with the value of a tree variable that is not one of its model."""
    (rows, fields), same_shape = tree.shape, value.shape == tree.shape
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = value.any() and np.array_equal(value.astype(np.float32), value)
    if same_shape and rounded:
        return "the draws were altered: they are rounded to float32"
    if same_shape and not np.isfinite(value).all():
        return "the draws were altered: they hold NaN or infinite values"
    named = []
    if value.shape[1] != fields:
        what = tree.field_settings
        named.append(f"{what} ({value.shape[1]} instead of {fields} numbers a node)")
    layout = getattr(tree.op, "layout", None)
    sizes = None if named or layout is None else _sizes_of(value)
    default = "the default follows alpha, beta, m and the number of rows"
    if layout is not None and sizes is not None:
        m, max_nodes = sizes
        if m != layout.m:
            named.append(f"m ({m} instead of {layout.m})")
        if max_nodes != layout.max_nodes:
            named.append(
                f"max_nodes ({max_nodes} instead of {layout.max_nodes}, where {default}: give "
                f"max_nodes={max_nodes})"
            )
    if len(value) != rows and (layout is None or not named):
        what = "max_nodes" if layout is None else "m or max_nodes"
        named.append(f"{what} ({len(value)} instead of {rows} rows of the value; {default})")
    if named:
        return f"the draws belong to another model, with other {', '.join(named)}"
    return (
        "the draws were altered (for example rounded), or belong to another model, with other "
        f"{tree.settings}"
    )


def _sizes_of(value: np.ndarray) -> tuple[int, int] | None:
    """Trees, and rows for nodes, of an encoded forest; None where it is none."""
    kinds = value[:, 0]
    after = np.flatnonzero(kinds >= LARGEST_KIND)
    max_nodes = int(after[0]) if after.size else 0
    nodes = kinds[:max_nodes]
    leaves, splits = int((nodes == LEAF).sum()), int((nodes >= 0).sum())
    if leaves <= splits or leaves + splits + (nodes == UNUSED).sum() != max_nodes:
        return None
    return leaves - splits, max_nodes


# ------------ Draws as users have them: a tree, a dataset, another group, chains and draws stacked


def draws_of(idata, group: str = "posterior"):
    """A tree whose ``posterior`` is the requested group, with the dimensions chain and draw.

    Chains and draws that `arviz.extract` stacked are unstacked. A random subset of draws becomes a
    single chain. Groups of data come along. Anything else is returned unchanged: `check_draws`
    raises the error.
    """
    if isinstance(idata, xr.Dataset):
        return _tree(_unstacked(idata))
    children = getattr(idata, "children", {})
    if group not in children:
        if group == "posterior":
            return idata
        raise ValueError(f"idata has no group {group!r}: choose from {sorted(children)}.")
    dims = idata[group].dims
    if group == "posterior" and all(dim in dims for dim in SAMPLE):
        return idata
    data = {name: children[name].to_dataset() for name in DATA if name in children}
    return _tree(_unstacked(idata[group].to_dataset()), **data)


def _tree(posterior: xr.Dataset, **data: xr.Dataset) -> xr.DataTree:
    return xr.DataTree.from_dict({"posterior": posterior, **data})


def _unstacked(ds: xr.Dataset) -> xr.Dataset:
    """The same draws with chain and draw, where a dimension holds both."""
    for dim in list(ds.dims):
        index = ds.indexes.get(dim)
        if not isinstance(index, pd.MultiIndex) or not set(SAMPLE) <= set(index.names):
            continue
        sizes = [index.get_level_values(name).nunique() for name in SAMPLE]
        if index.is_unique and len(index) == np.prod(sizes):
            return ds.unstack([dim])
        numbered = ds.drop_vars([dim, *index.names]).rename({dim: "draw"})
        return numbered.assign_coords(draw=np.arange(len(index))).expand_dims(chain=[0])
    return ds


# ----------- Work on one draw after another, or on several at once in threads, with a progress bar


LARGEST = 2_000_000_000
"""Bytes of a result."""


def thinned(n_chains: int, n_draws: int, wanted: int | None) -> np.ndarray:
    """Evenly spaced draws of each chain: ``wanted`` draws over all chains, or all."""
    each = n_draws
    if wanted is not None:
        each = min(-(-check_number("draws", wanted, 1) // n_chains), n_draws)
    return np.linspace(0, n_draws - 1, each).round().astype(int)


def with_fewer_draws(idata: xr.DataTree, draws: int | None) -> xr.DataTree:
    """The same with ``draws`` draws of its posterior; other groups may have other numbers."""
    posterior = idata["posterior"].to_dataset()
    taken = thinned(posterior.sizes["chain"], posterior.sizes["draw"], draws)
    fewer = idata.copy(deep=False)
    fewer["posterior"] = xr.DataTree(posterior.isel(draw=taken))
    return fewer


def rows_chosen(n: int, subsample: int | None, random_state) -> np.ndarray:
    """Numbers of the rows that are taken, in order."""
    if subsample is None:
        return np.arange(n)
    subsample = min(check_number("subsample", subsample, 1), n)
    return np.sort(check_seed(random_state, "random_state").choice(n, subsample, replace=False))


def check_answer(what: str, numbers: int, remedy: str) -> None:
    """Raise an error for a result with too many numbers for the memory of most machines."""
    if 8 * numbers > LARGEST:
        raise ValueError(
            f"{what}: the result would have {numbers:,} numbers, {8 * numbers / 1e9:.1f} GB; "
            f"reduce it by {remedy}."
        )


def for_each_draw(
    work: Callable[[int, int], None],
    shape: tuple[int, int],
    title: str,
    cores: int | None,
    progressbar: bool,
    most: int | None = None,
) -> None:
    """Call a function of chain and draw for each, in as many threads as there are cores.

    At most ``most``, where memory bounds them. An interrupt waits for the draws that have begun.
    """
    jobs = joblib.cpu_count() if cores is None else check_number("cores", cores, 1)
    jobs = jobs if most is None else max(1, min(jobs, most))
    run = joblib.Parallel(jobs, require="sharedmem", return_as="generator_unordered")
    done = run(joblib.delayed(work)(chain, draw) for chain, draw in np.ndindex(shape))
    for _ in track(done, title, int(np.prod(shape)), progressbar):
        pass
