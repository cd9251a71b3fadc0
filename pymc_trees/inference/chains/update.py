"""`update`: chains of a model of other rows that start from the trees of a fit."""

from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.core.columns.cells import LEFT, MAX_CUT, SET
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.forest.trees import Trees, make_trees, reset_tree
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.order.contract import is_ordered
from pymc_trees.core.soft_forest.encode import soft_sizes
from pymc_trees.core.value.adopt import adopt, subtree_sizes
from pymc_trees.core.value.encode import encode
from pymc_trees.core.value.fields import CHECKSUM, UNUSED, compute_checksum, sizes
from pymc_trees.distributions.data.numbers import present_numbers
from pymc_trees.distributions.forest_inputs import declared, forest_inputs
from pymc_trees.distributions.ops.forest_rv import order_of
from pymc_trees.distributions.tree_variable import ForestVariable, tree_variables
from pymc_trees.inference.chains.sample import check_cores, check_options, sample_chains
from pymc_trees.inference.chains.states import with_axes
from pymc_trees.posterior.declarations import (
    LEVELS,
    declaration,
    differences,
    forests_of,
    is_of,
    read_declarations,
)
from pymc_trees.posterior.draws import SAMPLE
from pymc_trees.predictors.columns import ONEHOT

# ------------- Encoded trees of one declaration made those of another: other rows, the same columns


def adopted(
    value: np.ndarray, old: dict[str, Any], new: dict[str, Any], tree: ForestVariable, stumps
) -> np.ndarray:
    """The value of a forest whose trees are those of another value, valid under its own rows.

    Splits that its rows do not bear are left out, with the branch that fewer of them are in. Where
    the leaf values then need not be possible (those in order, and lines along the column of the
    parent), the tree is a stump.

    Parameters
    ----------
    value : (rows, fields) float64
        An intact value of the old declaration.
    old, new : dict
        The declarations (`posterior.declarations`), which have no `differences`.
    tree : ForestVariable
        The new forest.
    stumps : (rows, fields) float64
        A value of the new forest whose trees are stumps.
    """
    kinds = np.where(value[:, 0] >= 0, 1, -1).cumsum()
    n = int(np.flatnonzero(kinds == -old["trees"])[0]) + 1
    nodes = np.array(value[:n], dtype=np.float64)  # a copy, which is written to
    if tree.is_soft:
        bandwidths = value[old["nodes"] :].reshape(-1)[1 : 1 + old["trees"]]
        return _soft(nodes, bandwidths, tree, stumps)
    return _hard(nodes, old, new, tree, stumps)


# --------------------------------------------------------------------------------------- Hard trees


def _hard(nodes, old, new, tree: ForestVariable, stumps: np.ndarray) -> np.ndarray:
    op, layout, known = tree.op, tree.op.layout, declared(tree.rv)
    design = make_design(known.X, known.cuts, known.kinds)
    weights = present_numbers(forest_inputs(tree.rv).weights)
    if weights is None:  # random; the kernel of the step computes its terms at each point
        weights = np.ones(known.X.shape[1])
    else:
        design = design._replace(varies=design.varies & (weights > 0))
    _translate(nodes, old, new, known)
    prior = op.prior_type.kernel(0.5, 0.0, np.array(weights, dtype=np.float64))
    trees = make_trees(layout.m, layout.max_nodes, layout.n_values, layout.n_rows)
    rows, buffer = np.empty((2, layout.n_rows), dtype=np.uint32)
    altered, order = np.empty(layout.m, dtype=bool), order_of(op, known.constants, known.kinds)
    scratch = np.empty(layout.max_nodes, dtype=np.int32)
    with deferred_interrupts():
        size = subtree_sizes(nodes, len(nodes))
        adopt(nodes, size, design, prior, sizes(layout), trees, rows, buffer, altered)
        for t in range(layout.m):
            if not op.leaf_type.is_constant():
                is_stump = altered[t]
            else:
                is_stump = order is not None and not is_ordered(order, trees, t)
            if is_stump:
                _make_stump(trees, t, scratch, stumps[t, 1 : 1 + layout.n_values])
        return encode(trees, design, prior, sizes(layout), tree.fingerprint, scratch)


def _make_stump(trees: Trees, t: int, scratch: np.ndarray, values: np.ndarray) -> None:
    reset_tree(trees, t, scratch)
    root = trees.roots[t]
    trees.leaf_of[t] = root
    trees.values[root] = values


def _translate(nodes: np.ndarray, old, new, known) -> None:
    """Write rules as the new design has them: kinds of columns, codes of levels, cuts of a grid."""
    p, is_mixed = known.X.shape[1], len(known.kinds) > 0
    split = np.flatnonzero(nodes[:, 0] >= 0)
    columns, kinds = nodes[split, 0].astype(np.int64) % p, nodes[split, 0].astype(np.int64) // p
    cuts = nodes[split, 1]
    for j in np.unique(columns):
        mine = np.flatnonzero(columns == j)
        before, now = (one["columns"][j] for one in (old, new))
        if is_mixed and known.kinds[j] != 0:
            n_levels = abs(int(known.kinds[j]))
            for k in mine:
                side = bool(kinds[k] & LEFT) and now["rule"] != ONEHOT
                cuts[k] = _levels(int(cuts[k]), before[LEVELS], now[LEVELS], n_levels, side)
        elif (kinds[mine] >= SET).any():  # a column that is excluded now
            kinds[mine], cuts[mine] = 0, MAX_CUT
        elif known.cuts is not None and len(known.cuts[j]):
            inside = mine[np.abs(cuts[mine]) < MAX_CUT]
            cuts[inside] = _nearest(known.cuts[j], cuts[inside])
    nodes[split, 0] = columns + p * kinds * is_mixed
    nodes[split, 1] = cuts


def _levels(levels: int, before, now, n_levels: int, new_ones_left: bool) -> float:
    """A set of levels by their new codes; a new level is where missing cells are."""
    known = {level: code for code, level in enumerate(before or range(n_levels))}
    names = now or range(n_levels)
    bits = 0
    for code in range(n_levels):
        at = known.get(names[code]) if code < len(names) else None
        is_left = new_ones_left if at is None else bool(levels >> at & 1)
        bits |= int(is_left) << code
    return float(bits)


def _nearest(grid: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    above = np.searchsorted(grid, cuts).clip(0, len(grid) - 1)
    below = (above - 1).clip(0)
    return np.where(
        np.abs(grid[below] - cuts) < np.abs(grid[above] - cuts), grid[below], grid[above]
    )


# --------------------------------------------------------------------------------------- Soft trees


def _soft(nodes, bandwidths, tree: ForestVariable, stumps: np.ndarray) -> np.ndarray:
    """Every soft tree is possible whatever the rows; cuts are on the scale of their quantiles."""
    numbers = soft_sizes(tree.op.layout)
    weights = present_numbers(forest_inputs(tree.rv).weights)
    excluded = np.zeros(0) if weights is None else np.flatnonzero(weights == 0)
    ends = np.flatnonzero(np.diff(np.minimum.accumulate(_depths(nodes)), prepend=0) < 0) + 1
    value, row = np.zeros_like(stumps), 0
    for t, trunk in enumerate(np.split(nodes, ends[:-1])):
        room = numbers.max_nodes - row - (numbers.m - 1 - t)
        if len(trunk) > room or np.isin(trunk[:, 0], excluded).any():
            trunk = stumps[t : t + 1]
        value[row : row + len(trunk)] = trunk
        row += len(trunk)
    value[row : numbers.max_nodes, 0] = UNUSED
    rest = value[numbers.max_nodes :].reshape(-1)
    rest[1 : 1 + numbers.m] = bandwidths
    rest[CHECKSUM] = compute_checksum(value, numbers.max_nodes, tree.fingerprint)
    return value


def _depths(nodes: np.ndarray) -> np.ndarray:
    """Open branches after each node row, minus one for each tree that has ended."""
    return np.where(nodes[:, 0] >= 0, 1, -1).cumsum()


TUNE = 200
RESERVED = {
    "chains": "are those of the draws",
    "initvals": "are the trees and parameters of the draws",
}
"""Arguments of `pymc.sample` that the draws determine, and how."""


def update(
    idata,
    model=None,
    draws=1000,
    *,
    tune=TUNE,
    start=-1,
    random_seed=None,
    cores=-1,
    progressbar=True,
    checkpoint=None,
    every=None,
    **options,
) -> xr.DataTree:
    """Sample a model of more rows, or of other ones, from where the chains of a fit ended.

    Each chain starts from the trees and parameters of a draw of the fit, which under the new rows
    are usually close to where its posterior is. Only the start is taken from the fit: the draws are
    those of the new model given all its rows, and of nothing else.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, `sample_chains`, `resume` or `update`, or a file of it.
    model : pymc.Model, optional
        The model to sample, declared with all rows that it is to know, old ones included. Its
        forests have the names, columns, trees and kinds of leaves of the fit. Default: the model on
        the context stack.
    draws : int, default 1000
        Draws of each chain.
    tune : int, default 200
        Iterations before them: samplers adapt, and chains forget the old rows. More where the new
        rows change much.
    start : int, default -1
        Number of the draw from which each chain starts, from 0, or from the end if negative.
    random_seed, cores, progressbar, checkpoint, every
        As for `sample_chains`.
    **options
        Other arguments of `pymc.sample`, such as ``step`` and ``target_accept``.

    Returns
    -------
    xarray.DataTree
        As `pymc.sample` returns it, with as many chains as the fit had, and none of its draws.

    Raises
    ------
    ValueError
        For draws without a forest of the model; where columns, their levels or split rules, the
        number of trees, leaves or ``tree_prior`` differ; for trees that were altered.
    TypeError
        For an argument that `pymc.sample` does not have, or that follows from the draws.

    Notes
    -----
    All that a declaration takes from its data is the new model's own: the grid of ``n_cuts``, the
    leaf prior that follows from the range of Y, room for nodes. A cut that is not on the new grid
    moves to the nearest one. A split that sends no row to one side has probability 0 under the
    prior: the branch in which most rows are takes its place. With a `LinearLeaf`, or with monotone
    columns whose leaf values are then out of order, the whole tree is a stump instead.

    Columns that are split by sets of levels may have new levels, which begin on the side of missing
    cells, where predictions of the old fit have them; levels may also be gone. Columns of levels
    that are split by cuts must have the same ones.

    Parameters that have another shape or other labels than in the draws, or are not in them, start
    where they start in any run. Step sizes of NUTS are tuned anew.

    R-hat compares chains that all started from the old fit. Where the new rows contradict it, give
    more ``tune``, or sample anew once in a while.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((40, 2))
    >>> def build(X):
    ...     with pm.Model() as model:
    ...         mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...         y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     return model
    >>> options = {"cores": 1, "progressbar": False, "compute_convergence_checks": False}
    >>> idata = pm.sample(5, tune=10, chains=2, random_seed=1, model=build(X[:30]), **options)
    >>> new = pmt.update(idata, build(X), draws=4, tune=5, random_seed=2, **options)
    >>> dict(new.posterior["mu"].sizes)
    {'chain': 2, 'draw': 4, 'mu_dim_0': 40}
    """
    model = pm.modelcontext(model)
    check_number("draws", draws, 1)
    check_number("tune", tune, 0)
    check_cores(cores)
    for name, why in RESERVED.items():
        if name in options:
            raise TypeError(f"update takes no {name}=, which {why}: leave it out.")
    check_options("update", options)
    starts = starts_from(idata, model, start)
    return sample_chains(
        model,
        len(starts),
        draws=draws,
        tune=tune,
        random_seed=random_seed,
        cores=cores,
        progressbar=progressbar,
        checkpoint=checkpoint,
        every=every,
        initvals=starts,
        **options,
    )


def starts_from(idata, model: pm.Model, start: int = -1) -> list[dict[str, Any]]:
    """Initial values of each chain, from a draw of a fit of other rows.

    Parameters
    ----------
    idata : xarray.DataTree
        The fit.
    model : pymc.Model
        The model whose chains start.
    start : int, default -1
        Number of the draw.
    """
    old = read_declarations(idata)
    posterior = with_axes(idata["posterior"].to_dataset())
    chains, length = (posterior.sizes[dim] for dim in SAMPLE)
    if isinstance(start, bool) or not isinstance(start, int | np.integer):
        raise TypeError(f"start={start!r}: give the number of a draw, such as -1 for the last.")
    if not -length <= start < length:
        raise ValueError(f"start={start}: choose from the draws 0 to {length - 1} of each chain.")
    posterior = posterior.isel(draw=int(start))
    new = _new_declarations(model, old, posterior)
    point = model.initial_point()
    starts: list[dict[str, Any]] = [{} for _ in range(chains)]
    for tree in forests_of(model):
        stumps = point[model.rvs_to_values[tree.rv].name]
        values = posterior[tree.name].transpose("chain", ...).to_numpy()
        for k, value in enumerate(values):
            if not is_of(old[tree.name], np.ascontiguousarray(value)):
                raise ValueError(
                    f"idata: {tree.name} of chain {k} was altered since it was drawn, rounded for "
                    "example, or joined from the draws of another model. Give the unchanged draws."
                )
            starts[k][tree.name] = adopted(value, old[tree.name], new[tree.name], tree, stumps)
    for name, values in _parameters(model, posterior).items():
        for k, value in enumerate(values):
            starts[k][name] = value
    return starts


def _new_declarations(model: pm.Model, old: dict[str, dict], posterior) -> dict[str, dict]:
    """Declarations of the forests of a model, of which there are draws with the same columns."""
    forests = {tree.name: tree for tree in forests_of(model)}
    others = [tree.name for tree in tree_variables(model) if tree.name not in forests]
    if others or not forests:
        what = f"{others} is no forest" if others else "the model has no forest"
        raise ValueError(
            f"model: {what}: update takes forests of BART, DecisionTree and SoftBART. Sample the "
            "model from the beginning."
        )
    new = {name: declaration(model, tree) for name, tree in forests.items()}
    for name, now in new.items():
        if name not in old or name not in posterior:
            words = [f"it is not among the forests of the draws, {sorted(set(old))}"]
        else:
            words = differences(old[name], now)
        if words:
            raise ValueError(
                f"idata: its trees cannot be a start of {name} ({'; '.join(words)}). Declare the "
                "new model like that of the draws, or sample it from the beginning."
            )
    return new


def _parameters(model: pm.Model, posterior: xr.Dataset) -> dict[str, np.ndarray]:
    """(chains, ...) values of the variables other than forests that are those of the model."""
    values = {}
    for rv in model.free_RVs:
        if rv.name not in posterior or rv.name in {tree.name for tree in tree_variables(model)}:
            continue
        drawn = posterior[rv.name].transpose("chain", ...)
        for dim in drawn.dims[1:]:
            labels = model.coords.get(str(dim))
            if labels is None or dim not in drawn.indexes:
                continue
            if set(labels) == set(drawn.indexes[dim]) and drawn.indexes[dim].is_unique:
                drawn = drawn.reindex({dim: list(labels)})
            else:
                break
        else:
            shape = tuple(int(n) for n in rv.shape.eval(mode="FAST_COMPILE"))
            if drawn.shape[1:] == shape:
                values[str(rv.name)] = drawn.to_numpy()
    return values
