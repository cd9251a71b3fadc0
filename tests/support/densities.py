"""Log density of a forest's outputs by the numbers that its target gives to the kernels.

Without compilation of PyTensor's graphs: they are interpreted. Formulas of conjugate leaves are
written out here; rows with latent variables and written laws are asked as the sweeps ask them.
"""

from collections.abc import Callable
from functools import singledispatch

import numpy as np
import pytensor

from pymc_trees.core.leaves.coefficients import BasisData
from pymc_trees.core.leaves.latent.rows import log_row
from pymc_trees.core.leaves.normal import NormalData
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget, part_value


@singledispatch
def log_density(target, point) -> Callable[[np.ndarray], float]:
    """Function of the (n, K) outputs at the training rows, up to a constant."""
    raise TypeError(type(target))


@log_density.register
def _conjugate(target: ConjugateTarget, point):
    settings, seen = target.at(point)

    def at(fit):
        leaf, _ = target.leaf_data(settings, seen, fit)
        assert type(leaf) in (NormalData, BasisData), "no formula here for this leaf"
        return -0.5 * float(np.sum(leaf.w * leaf.r**2))

    return at


@log_density.register
def _latent(target: LatentTarget, point):
    numbers, slope, offset, of_leaves, _ = target.at(point)[1]
    path = target.augmentation()

    def at(fit):
        eta = slope * target.leaves.function(fit, of_leaves)[:, 0] + offset
        return sum(log_row(path, row, one) for row, one in zip(numbers, eta, strict=True))

    return at


@log_density.register
def _law(target: KernelTarget, point):
    seen = target.at(point)[1]
    numbers = seen.data.reshape(seen.table)
    value = target.likelihood.value
    value = part_value(value) if target.value.is_component else value

    def at(fit):
        if target.leaves is not None:
            fit = target.leaves.function(fit, seen.of_leaves)
        return sum(value(row, f) for row, f in zip(numbers, fit[:, 0], strict=True))

    return at


@log_density.register
def _rowwise(target: RowwiseTarget, point):
    seen, n, at, parts = target.at(point)[1], target.layout.n_rows, 1, []
    for group, result in zip(target.value.groups, target.value.choices[0], strict=True):
        free, at = _read(group.free, seen, at)
        inputs = [group.outputs, group.rows, group.units, *group.free]
        parts.append((group, _interpreted(inputs, result), free))
    units = []
    for group, *_ in parts:
        if group.row_of is None:
            units.append((np.arange(n), np.arange(n)))
            continue
        pointers = seen.table[seen.table[at] : seen.table[at] + n + 1]
        members = seen.table[seen.table[at + 1] :][: pointers[-1]]
        units.append((np.repeat(np.arange(n), np.diff(pointers)), members))
        at += 2

    def density(fit):
        if target.leaves is not None:
            fit = target.leaves.function(fit, seen.of_leaves)
        given = zip(parts, units, strict=True)
        return sum(
            float(function(fit[rows], rows, number, *free).sum())
            for (_, function, free), (rows, number) in given
        )

    return density


@log_density.register
def _joint(target: JointTarget, point):
    whole, seen = target.value, target.at(point)[1]
    free, _ = _read(whole.free, seen, 1)
    function = _interpreted([whole.outputs, *whole.free], whole.choices[0])
    return lambda fit: float(function(fit, *free)[0, 0])


def _read(variables, seen, at):
    """Arrays of the data, as compiled code reads them, and the next place of the table."""
    found = []
    for variable in variables:
        start, stop, *shape = seen.table[at : at + 2 + variable.ndim]
        found.append(seen.data[start:stop].reshape(shape))
        at += 2 + variable.ndim
    return found, at


def _interpreted(inputs, result):
    return pytensor.function(inputs, result, mode="FAST_COMPILE", on_unused_input="ignore")
