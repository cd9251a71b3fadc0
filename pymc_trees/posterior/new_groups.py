"""Draws of variables whose coordinates have grown: entries of groups that were not seen.

A variable with named dimensions has an entry for each label. Where the model has other labels than
the draws, as after `pymc_trees.set_data`, entries of known labels keep their draws and entries of
new ones are drawn given these and the hyperparameters of the same draw:

============================ ======================================================================
prior                        a new entry
============================ ======================================================================
entries are independent      from the prior, whatever the distribution: the axis is one of the batch
``MvNormal``, along the      from the conditional Gaussian given the known entries (Matheron's rule)
vector itself
random walks, along time     the walk goes on after the last known entry, with any innovation
``ZeroSumNormal``, along     a further group of the population whose K members were known: its
the axis that sums to zero   deviation from their mean, N(0, sigma^2 (1 + 1/K)), in which the mean
                             of the K is common to all new entries
============================ ======================================================================

Any other prior of a whole vector is refused, and so is a vector whose known entries would change
because the model mixes them with the new ones.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import MvNormalRV

from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.posterior.reading.indices import PYTHON, contractions, name_of, picks

REMEDY = (
    "Declare the model with all of them from the start: those without rows are drawn with the "
    "others"
)


class Change(NamedTuple):
    """A dimension of a variable that has other labels in the model than in the draws."""

    axis: int
    dim: str
    known: np.ndarray
    """Labels of the draws."""
    labels: np.ndarray
    """Labels of the model."""
    places: np.ndarray
    """Of each label of the model, among those of the draws; -1 for a new one."""


def changed_dims(
    model: pm.Model, draws: xr.Dataset, outputs: Iterable[Variable], left_out: Iterable[str] = ()
) -> dict[Variable, list[Change]]:
    """Free variables below some outputs whose coordinates are not those of the draws."""
    below, found = set(ancestors(list(outputs))), {}
    for rv in model.free_RVs:
        if rv not in below or is_tree_variable(rv) or rv.name in left_out or rv.name not in draws:
            continue
        changes = []
        for axis, dim in enumerate(model.named_vars_to_dims.get(rv.name) or ()):
            now, array = model.coords.get(dim), draws[rv.name]
            if now is None or dim not in array.coords or array.coords[dim].dims != (dim,):
                continue
            change = _compare(axis, dim, array.coords[dim].to_numpy(), np.asarray(now))
            if change is not None:
                changes.append(change)
        if changes:
            found[rv] = changes
    return found


def _compare(axis: int, dim: str, known: np.ndarray, now: np.ndarray) -> Change | None:
    old, new = pd.Index(known), pd.Index(now)
    if len(old) == len(new) and bool((old == new).all()):
        return None
    for labels in (old, new):
        if not labels.is_unique:
            repeated = list(labels[labels.duplicated()][:3])
            raise ValueError(f"coords: {dim} has the labels {repeated} twice: give each group one.")
    numbers = [pd.api.types.is_numeric_dtype(labels) for labels in (old, new)]
    if numbers[0] != numbers[1]:
        raise ValueError(
            f"coords: {dim} has labels such as {now[0]!r}, and in the draws such as {known[0]!r}: "
            "give labels of the same type, so that known groups are recognised."
        )
    return Change(axis, dim, known, now, old.get_indexer(new))


def with_new_groups(
    model: pm.Model,
    draws: xr.Dataset,
    changes: Mapping[Variable, Sequence[Change]],
    constant_data: Mapping[str, np.ndarray],
    sample_dims: Sequence[str],
    rng: np.random.Generator,
) -> xr.Dataset:
    """Draws with an entry for each label that the model has now.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions (`without_dims`).
    draws : xarray.Dataset
        Of the model as it was fitted.
    changes : mapping
        Of `changed_dims`.
    constant_data : mapping of str to array
        Data of the model as it was fitted, by name.
    sample_dims : sequence of str
        Of the draws.
    rng : numpy.random.Generator

    Returns
    -------
    xarray.Dataset
        Without functions of the variables that were completed: PyMC computes them anew.
    """
    completed: dict[Variable, np.ndarray] = {}
    n = int(np.prod([draws.sizes[dim] for dim in sample_dims]))

    def flat(name):
        values = draws[name].transpose(*sample_dims, ...).to_numpy()
        return values.reshape(n, *values.shape[len(sample_dims) :])

    fitted = Fitted(model, changes, constant_data)
    for rv, changed in changes.items():
        completed[rv] = _completed(fitted, rv, changed, flat, completed, draws, rng)
    _check_unmixed(fitted, flat, completed, draws)
    return _assembled(model, draws, changes, completed, sample_dims)


class Fitted:
    """Expressions of a model as it was fitted: with the data and lengths of that time."""

    def __init__(self, model: pm.Model, changes, constant_data):
        self.model, self.changes = model, changes
        lengths = {change.dim: len(change.known) for all_ in changes.values() for change in all_}
        self.dims = lengths
        self._lengths = {model.dim_lengths[dim]: length for dim, length in lengths.items()}
        self._constant_data = constant_data

    def before(self, expressions: list[Variable], stands: Mapping) -> list[Variable]:
        """Expressions of inputs, and of the data that the model was fitted to."""
        below = set(ancestors(expressions, blockers=stands))
        replaced, unknown = dict(stands), []
        for variable, length in self._lengths.items():
            if variable.owner is None:
                replaced[variable] = pt.constant(length, dtype=variable.dtype)
        for data in (v for v in self.model.data_vars if v in below):
            if data.name in self._constant_data:
                values = np.asarray(self._constant_data[data.name]).astype(data.dtype)
                replaced[data] = pt.constant(values)
            elif set(self.model.named_vars_to_dims.get(data.name) or ()) & set(self.dims):
                unknown.append(data.name)
        if unknown:
            raise ValueError(
                f"idata has no {unknown} in its group constant_data, which are needed to predict "
                "new groups: pass the unchanged result of pm.sample()."
            )
        # at once: a copy of a random variable would be drawn anew
        return clone_replace(expressions, replaced, rebuild_strict=False)

    def has_other_rows(self, array: Variable) -> bool:
        """Whether it is made of data, other than of groups, that are not those of the fit."""
        below = set(ancestors([array]))
        return any(
            not set(self.model.named_vars_to_dims.get(data.name) or (None,)) <= set(self.dims)
            and not np.array_equal(self._constant_data.get(data.name), data.get_value())
            for data in self.model.data_vars
            if data in below
        )


def _inputs(model: pm.Model, expressions: list[Variable]) -> tuple[list, dict]:
    """Random variables directly below expressions, and inputs that stand for them."""
    below = set(ancestors(expressions, blockers=model.basic_RVs))
    parents = [rv for rv in model.basic_RVs if rv in below]
    stands = {}
    for rv in parents:
        shape = tuple(1 if is_one else None for is_one in rv.type.broadcastable)
        stands[rv] = pt.TensorType(rv.dtype, shape=shape)(rv.name)
    return parents, stands


def _values_of(rv: Variable, flat, completed, draws, model) -> Callable[[int], np.ndarray]:
    """The values of a variable in each draw: completed ones, or those of the draws."""
    if rv in completed:
        return completed[rv].__getitem__
    if rv in model.observed_RVs:
        value = model.rvs_to_values[rv].eval()
        return lambda k: value
    if rv.name not in draws:
        raise ValueError(
            f"The draws lack {rv.name}, on which the prior of new entries depends: keep it among "
            "var_names of pm.sample()."
        )
    return flat(rv.name).__getitem__


def _completed(fitted, rv, changed, flat, completed, draws, rng) -> np.ndarray:
    """(draws, ...) values of one variable with the entries of new groups."""
    model, op = fitted.model, rv.owner.op
    of_batch = rv.ndim - getattr(op, "ndim_supp", rv.ndim)
    inside = [change for change in changed if change.axis >= of_batch]
    law = None
    if inside:
        law = LAWS.get(type(op))
        [change, *others] = inside
        if law is None or others or len(changed) > 1:
            raise ValueError(_not_known(rv, change, several=len(changed) > 1))
    wanted = [] if law is None else law.parameters(rv)
    parents, stands = _inputs(model, [*rv.owner.inputs, *wanted])
    values = [_values_of(p, flat, completed, draws, model) for p in parents]
    graphs = clone_replace([rv, *wanted], stands, rebuild_strict=False)
    function = pm.compile(
        list(stands.values()),
        graphs,
        random_seed=int(rng.integers(2**31)),
        mode=PYTHON,
        on_unused_input="ignore",
    )
    stored, shape = flat(rv.name), list(flat(rv.name).shape[1:])
    for change in changed:
        shape[change.axis] = len(change.labels)
    result = np.empty((len(stored), *shape), dtype=stored.dtype)
    if law is not None:
        law.check(fitted, rv, inside[0], wanted, stands, [v(0) for v in values])
    for k in range(len(stored)):
        try:
            drawn, *numbers = function(*(v(k) for v in values))
        except ValueError as error:
            raise _lengths_differ(rv, changed) from error
        if drawn.shape != tuple(shape):
            raise _lengths_differ(rv, changed)
        if law is None:
            result[k] = drawn
            result[k][_at(changed, shape, known=False)] = stored[k][_at(changed, shape, known=True)]
        else:
            result[k] = law.draw(inside[0], stored[k], drawn, numbers, rng)
    return result


def _at(changed, shape, known: bool):
    """Index of the entries with known labels: in the draws, or in the model."""
    axes = [np.arange(size) for size in shape]
    for change in changed:
        has = np.flatnonzero(change.places >= 0)
        axes[change.axis] = change.places[has] if known else has
    return np.ix_(*axes)


def _lengths_differ(rv, changed) -> ValueError:
    dims = [change.dim for change in changed]
    return ValueError(
        f"{rv.name} has no entries for the new labels of {dims}: its shape, or a parameter of its "
        f"prior, has the length that it had when the model was declared. Declare it with dims= and "
        f"without shape=, and what is known of groups as pm.Data with dims={dims[0]!r}, which is "
        "set together with the coordinates."
    )


def _not_known(rv, change, several: bool) -> str:
    kind = type(rv.owner.op).__name__.removesuffix("RV")
    where = f"new labels of {change.dim} for {rv.name}"
    if several:
        return (
            f"{where}: its entries are not independent ({kind}), and two of its dimensions have "
            "other labels. Change one at a time."
        )
    return (
        f"{where}: its entries are not independent ({kind}), and their law given the known ones is "
        f"not known here. {REMEDY}."
    )


# ----------------------------------------------------- Priors of whole vectors, by the Op they have


class Law:
    """New entries of a vector given the known ones."""

    def parameters(self, rv: Variable) -> list[Variable]:
        """Expressions that it needs."""
        return []

    def check(self, fitted, rv, change, wanted, stands, values) -> None:
        """Raise an error for labels that it does not support."""

    def draw(self, change, stored, drawn, parameters, rng) -> np.ndarray:
        """One draw with an entry for each label, given one of the whole prior."""
        raise NotImplementedError


def _check_all_kept(rv, change, first: bool) -> None:
    """An error unless all known labels are there; at the front and in their order, if asked."""
    k = len(change.known)
    kept = change.places[change.places >= 0]
    if len(kept) < k or (first and not np.array_equal(change.places[:k], np.arange(k))):
        how = "first and in their order" if first else "too"
        raise ValueError(
            f"coords: {change.dim} must hold the {k} labels of the draws {how}, since new entries "
            f"of {rv.name} depend on the known ones."
        )


class _Walk(Law):
    """Increments are independent: those of a walk drawn anew go on from the last known entry."""

    def check(self, fitted, rv, change, wanted, stands, values):
        if change.axis != rv.ndim - rv.owner.op.ndim_supp:
            raise ValueError(_not_known(rv, change, several=False))
        _check_all_kept(rv, change, first=True)

    def draw(self, change, stored, drawn, parameters, rng):
        drawn, stored = np.moveaxis(drawn, change.axis, 0), np.moveaxis(stored, change.axis, 0)
        k = len(stored)
        new = stored[-1] + (drawn[k:] - drawn[k - 1])
        return np.moveaxis(np.concatenate([stored, new]), 0, change.axis)


class _ZeroSum(Law):
    """Deviations from the mean of the known groups, of further groups of their population."""

    def parameters(self, rv):
        return [rv.owner.op.dist_params(rv.owner)[0]]

    def check(self, fitted, rv, change, wanted, stands, values):
        if rv.owner.op.ndim_supp > 1:
            raise ValueError(_not_known(rv, change, several=False))

    def draw(self, change, stored, drawn, parameters, rng):
        [sd] = parameters
        mean_of_known = rng.normal(size=(*drawn.shape[:-1], 1)) / np.sqrt(len(change.known))
        result = sd * (rng.normal(size=drawn.shape) + mean_of_known)
        has = change.places >= 0
        result[..., has] = stored[..., change.places[has]]
        return result


class _MvNormal(Law):
    """A draw of the whole prior, shifted by what the known entries say of the new ones."""

    def parameters(self, rv):
        return list(rv.owner.op.dist_params(rv.owner))

    def check(self, fitted, rv, change, wanted, stands, values):
        _check_all_kept(rv, change, first=False)
        before = fitted.before(wanted, stands)
        now = clone_replace(wanted, stands, rebuild_strict=False)
        function = pytensor.function(
            list(stands.values()), [*before, *now], mode=PYTHON, on_unused_input="ignore"
        )
        mean, cov, mean_now, cov_now = function(*values)
        has = change.places >= 0
        at = change.places[has]
        same = _equal(cov[..., at, :][..., at], cov_now[..., has, :][..., has])
        if not same or (mean.shape[-1] > 1 and not _equal(mean[..., at], mean_now[..., has])):
            raise ValueError(
                f"The prior of the known entries of {rv.name} is another one with the new labels "
                f"of {change.dim}: give data under which their mean and covariance stay as they "
                f"were. {REMEDY}."
            )

    def draw(self, change, stored, drawn, parameters, rng):
        cov, has = parameters[1], change.places >= 0
        apart = stored[..., change.places[has]] - drawn[..., has]
        within = cov[..., has, :][..., has]
        solved = np.linalg.solve(within, apart[..., None])
        result = drawn + (cov[..., has] @ solved)[..., 0]
        result[..., has] = stored[..., change.places[has]]
        return result


LAWS: dict[type, Law] = {
    MvNormalRV: _MvNormal(),
    pm.RandomWalk.rv_type: _Walk(),
    pm.ZeroSumNormal.rv_type: _ZeroSum(),
}
"""By the type of the Op."""


# -------- Known groups keep their values where the model makes something of all entries of a vector


def _check_unmixed(fitted: Fitted, flat, completed, draws) -> None:
    """Raise an error if what is picked for a known group is not what it was.

    A mean that is subtracted, or a matrix that multiplies the vector, may change with its length.
    The arrays from which entries are picked, by numbers or by a product with indicators of the
    rows, are computed twice, for one draw: as the model was fitted, and with the new entries.
    """
    model = fitted.model
    outputs = [*model.basic_RVs, *model.deterministics]
    picked = dict.fromkeys((one.array, one.axis) for one in picks(outputs))
    for array, axis in [*picked, *(one for one in contractions(outputs) if one not in picked)]:
        if array in completed or ((array, axis) not in picked and fitted.has_other_rows(array)):
            continue
        parents, stands = _inputs(model, [array])
        changed = [rv for rv in parents if rv in completed]
        others = [rv for rv in parents if rv not in completed and rv not in model.observed_RVs]
        if not changed or any(is_tree_variable(rv) or rv.name not in draws for rv in others):
            continue
        old, new = {}, {}
        for rv in parents:
            new[rv] = _values_of(rv, flat, completed, draws, model)(0)
            old[rv] = flat(rv.name)[0] if rv in completed else new[rv]
        [before] = fitted.before([array], stands)
        [now] = clone_replace([array], stands, rebuild_strict=False)
        inputs = list(stands.values())

        was, is_now = (
            np.moveaxis(_evaluated(graph, inputs, numbers.values()), axis, 0)
            for graph, numbers in ((before, old), (now, new))
        )
        for change in {c.dim: c for rv in changed for c in fitted.changes[rv]}.values():
            if len(was) != len(change.known) or len(is_now) != len(change.labels):
                continue
            has = change.places >= 0
            if not _equal(was[change.places[has]], is_now[has]):
                raise ValueError(
                    f"{name_of(array)}: what it holds for known labels of {change.dim} changes "
                    "with the new ones, since each entry is made of several. Keep the known "
                    "labels first and in their order; if that is not enough, make each entry of "
                    "its own entry alone (pm.ZeroSumNormal instead of a mean that is subtracted)."
                )


def _evaluated(graph, inputs, values) -> np.ndarray:
    return pytensor.function(inputs, graph, mode=PYTHON, on_unused_input="ignore")(*values)


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Up to rounding."""
    scale = max(1e-300, float(np.abs(a).max(initial=0.0)))
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-6, atol=1e-9 * scale))


def _assembled(model, draws, changes, completed, sample_dims) -> xr.Dataset:
    dims = {change.dim: change.labels for all_ in changes.values() for change in all_}
    stale = [
        v.name
        for v in model.deterministics
        if v.name in draws and set(ancestors([v])) & set(completed)
    ]
    stale += [str(name) for name, array in draws.data_vars.items() if set(array.dims) & set(dims)]
    kept = draws.drop_vars({*stale, *(rv.name for rv in completed)})
    kept = kept.drop_dims([dim for dim in dims if dim in kept.dims])
    sizes = [draws.sizes[dim] for dim in sample_dims]
    new = {
        rv.name: (
            (*sample_dims, *model.named_vars_to_dims[rv.name]),
            values.reshape(*sizes, *values.shape[1:]),
        )
        for rv, values in completed.items()
    }
    return kept.assign(new).assign_coords({dim: labels for dim, labels in dims.items()})


def labels_of(changes: Mapping[Variable, Sequence[Change]]) -> dict[str, list]:
    """New labels by dimension."""
    return {
        change.dim: change.labels[change.places < 0].tolist()
        for all_ in changes.values()
        for change in all_
    }
