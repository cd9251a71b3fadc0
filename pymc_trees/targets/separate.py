"""Target of trees with two outputs in a hurdle: one in psi, one in what is not zero.

The log-likelihood of a row is the sum of one term of each output, each with hand-written kernels:
its matrix of second derivatives is diagonal, and needs no derivatives by PyTensor.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from numba import carray, cfunc
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import toposort
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.basic import BernoulliRV, LogNormalRV, NormalRV
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.latent.augmentations import log_tail
from pymc_trees.core.leaves.nonconjugate.native import SIGNATURE
from pymc_trees.targets.contract import check_proposals
from pymc_trees.targets.graph import (
    ForestGraph,
    NotASliceError,
    NotRecognisedError,
    dependent_on,
    stripped,
)
from pymc_trees.targets.likelihoods.binary import PROBIT
from pymc_trees.targets.likelihoods.contract import (
    ROW_LIKELIHOODS,
    KernelLikelihood,
    logs_of,
    rows_of,
    sole_term,
)
from pymc_trees.targets.likelihoods.counts import logistic_slopes, logistic_value
from pymc_trees.targets.likelihoods.expressions import (
    affine_pair,
    argument_of,
    argument_of_link,
    is_unchanged,
    output_column,
    require_fixed,
)
from pymc_trees.targets.likelihoods.observed import HURDLE, parts_of_hurdle
from pymc_trees.targets.native import LazilyCompiled, UnitData
from pymc_trees.targets.rowwise import RowwiseTarget, part_slopes, part_value
from pymc_trees.targets.settings import PointFunction

# --------------------------- Kernels of likelihoods that otherwise are Gaussian, perhaps by latents
#
# y ~ Bernoulli(Phi(e)), e = slope f + offset; numbers: 1 or -1 for y, slope, offset.


HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(cache=True)
def _log_phi(x):
    return log_tail(-x) if x < 0.0 else math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))


@njit(cache=True)
def probit_value(numbers, f):
    """Log-likelihood of a row."""
    return _log_phi(numbers[0] * (numbers[1] * f + numbers[2]))


@njit(cache=True)
def probit_slopes(numbers, f):
    """Its first and second derivative: of log Phi they are h and -h (x + h), h = phi / Phi."""
    x = numbers[0] * (numbers[1] * f + numbers[2])
    h = math.exp(-0.5 * x * x - HALF_LOG_2_PI - _log_phi(x))
    return numbers[0] * numbers[1] * h, -numbers[1] * numbers[1] * h * (x + h)


@njit(cache=True)
def normal_value(numbers, f):
    """Log-likelihood of a row; numbers: y, sd, slope, offset, constant."""
    z = (numbers[0] - numbers[2] * f - numbers[3]) / numbers[1]
    return numbers[4] - 0.5 * z * z


@njit(cache=True)
def normal_slopes(numbers, f):
    """Its first and second derivative."""
    rate = numbers[2] / numbers[1]
    z = (numbers[0] - numbers[2] * f - numbers[3]) / numbers[1]
    return rate * z, -rate * rate


class LogitKernels(KernelLikelihood):
    """``Bernoulli(invlogit(e))``."""

    of = (BernoulliRV,)
    value = staticmethod(logistic_value)
    slopes = staticmethod(logistic_slopes)

    def read(self, term):
        """Logit of p."""
        [p], outputs = term.opened()
        return affine_pair(argument_of_link(p, outputs), outputs), outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        return [y, np.ones(1), *parameters, np.zeros(1)]


class ProbitKernels(KernelLikelihood):
    """``Bernoulli(invprobit(e))``."""

    of = (BernoulliRV,)
    value = staticmethod(probit_value)
    slopes = staticmethod(probit_slopes)

    def read(self, term):
        """Probit of p."""
        [p], outputs = term.opened()
        return affine_pair(argument_of(p, outputs, PROBIT), outputs), outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        return [2.0 * y - 1.0, *parameters]


class NormalKernels(KernelLikelihood):
    """``LogNormal(e, sd)`` or ``Normal(e, sd)``."""

    of = (NormalRV, LogNormalRV)
    value = staticmethod(normal_value)
    slopes = staticmethod(normal_slopes)

    def read(self, term):
        """Sd and mean."""
        (mean, sd), outputs = term.opened()
        require_fixed([sd], outputs)
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        return [sd, *affine_pair(mean, outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        sd, *pair = parameters
        logs = logs_of(y) if self.of_logs else y
        constant = -np.log(sd) - HALF_LOG_2_PI - (logs if self.of_logs else 0.0)
        return [logs, sd, *pair, constant]


OTHER_KERNELS: list[type[KernelLikelihood]] = [LogitKernels, ProbitKernels, NormalKernels]


def kernels_of(part) -> tuple[KernelLikelihood, list[Variable]]:
    """The first likelihood with kernels that supports a part, and the expressions it wants."""
    op = part.rv.owner.op
    known = [
        each for of, several in ROW_LIKELIHOODS.items() if isinstance(op, of) for each in several
    ]
    for each in [*known, *OTHER_KERNELS]:
        if issubclass(each, KernelLikelihood) and isinstance(op, each.of):
            try:
                likelihood = each()
                return likelihood, likelihood.read(part)[0]
            except NotRecognisedError:
                continue
    raise NotRecognisedError(part.distribution)


# ----------------------------------------------------------------- Which outputs a graph depends on


def singled(
    expressions: list[Variable], outputs: Variable
) -> tuple[list[Variable], list[Variable]]:
    """Expressions as functions of (n, 1) variables, one for each output, where they pick one."""
    n, k = outputs.type.shape
    singles = [pt.tensor(f"output_{j}", dtype="float64", shape=(n, 1)) for j in range(k)]
    picked = {}
    for node in toposort(expressions):
        for var in node.outputs:
            column = _column(var, outputs)
            if column is not None:
                picked[var] = singles[column][:, 0]
    return clone_replace(expressions, picked, rebuild_strict=False), singles


def _column(var: Variable, outputs: Variable) -> int | None:
    """Column k if a vector is ``outputs[:, k]`` or ``outputs.T[k]``, else None."""
    if not (var.owner and isinstance(var.owner.op, Subtensor) and var.ndim == 1):
        return None
    if (column := output_column(var, outputs)) is not None:
        return column
    array = stripped(var.owner.inputs[0])
    op = array.owner.op if array.owner else None
    if not isinstance(op, DimShuffle) or op.new_order != (1, 0):
        return None
    indices = indices_from_subtensor(var.owner.inputs[1:], var.owner.op.idx_list)
    if not is_unchanged(array.owner.inputs[0], outputs) or indices[1:] not in ((), (slice(None),)):
        return None
    index = indices[0].data if hasattr(indices[0], "data") else indices[0]
    return int(index) % outputs.type.shape[1] if np.ndim(index) == 0 else None


# --------------------------------------------------------------------------------------------------


@dataclass
class SumFunction(LazilyCompiled):
    """A native function of two terms; compiled when its address is first asked for."""

    kinds: tuple[type[KernelLikelihood], type[KernelLikelihood]]
    columns: tuple[int, int]
    split: int
    """Where the numbers of the second begin."""
    with_slopes: bool

    def __post_init__(self):
        self.choices = [self.kinds]

    def _compile(self, kinds):
        make = native_slopes_of_sum if self.with_slopes else native_value_of_sum
        return make(*kinds, *self.columns, self.split)


@functools.cache
def native_value_of_sum(one, other, j, k, split):
    """Native function of the log-likelihood, the second of which may not be of all rows."""
    first, second = one.value, part_value(other.value)

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n, 2), np.float64)
        result, shape = carray(result, (n,), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            row = numbers[rows[i]]
            result[i] = first(row[:split], outputs[i, j]) + second(row[split:], outputs[i, k])
        return 1

    return cfunc(SIGNATURE)(evaluate)


@functools.cache
def native_slopes_of_sum(one, other, j, k, split):
    """Native function of its derivatives."""
    first, second = one.slopes, part_slopes(other.value, other.slopes)

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n, 2), np.float64)
        result, shape = carray(result, (n, 6), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            row = numbers[rows[i]]
            result[i, 3] = result[i, 4] = 0.0
            result[i, j], result[i, 2 + 3 * j] = first(row[:split], outputs[i, j])
            result[i, k], result[i, 2 + 3 * k] = second(row[split:], outputs[i, k])
        return 1

    return cfunc(SIGNATURE)(evaluate)


class SeparateTarget(RowwiseTarget):
    """Prior settings and likelihood of one forest of two outputs in a hurdle.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model, with a `NormalLeaf` of two values.

    Raises
    ------
    NotRecognisedError, NotConjugateError
        If they are not one in psi and one in the positive distribution, or have no kernels.
    """

    def __init__(self, graph: ForestGraph):
        check_proposals(graph)
        self.name, self.layout, self.leaves = graph.rv.name, graph.layout, None
        term, layout = sole_term(graph), self.layout
        if term is None or not isinstance(term.rv.owner.op, HURDLE) or layout.n_rows == 1:
            raise NotRecognisedError("no hurdle")
        if (layout.n_values, layout.n_outputs, term.value.ndim) != (2, 2, 1):
            raise NotRecognisedError("another number of outputs")
        expressions, outputs = term.opened()
        expressions, singles = singled(expressions, outputs)
        dependent = dependent_on(expressions, outputs)
        if any(v in dependent for v in expressions):
            raise NotRecognisedError("several outputs at once")
        try:
            parts = parts_of_hurdle(term, expressions, singles)
        except NotASliceError:
            raise NotRecognisedError("weights of several") from None
        (some, j), (rest, k) = parts
        (one, of_one), (other, of_other) = kernels_of(some), kernels_of(rest)
        self._likelihoods, self._n_first = (one, other), len(of_one)
        expressions = [some.value, rest.value, *of_one, *of_other]
        places = {single: outputs[:, c : c + 1] for c, single in enumerate(singles)}
        expressions = clone_replace(expressions, places, rebuild_strict=False)
        self._numbers_at = PointFunction(graph.model, graph.rv, expressions, outputs, self._rows)
        kinds = type(one), type(other)
        self.value: LazilyCompiled = SumFunction(kinds, (j, k), SPLIT, False)
        self.slopes: LazilyCompiled = SumFunction(kinds, (j, k), SPLIT, True)

    def _rows(self, values):
        n, end = self.layout.n_rows, 2 + self._n_first
        is_some, y = rows_of(values[0], n), rows_of(values[1], n)
        parameters = [np.asarray(v, dtype=np.float64) for v in values]
        one, other = self._likelihoods
        columns = one.numbers(is_some, parameters[2:end])
        columns += [np.zeros(1)] * (SPLIT - len(columns))
        columns += other.numbers(y, parameters[end:])
        # log(exp(a) + exp(b + l)) is l where there is something, and 0 elsewhere
        log_of = np.where(is_some > 0, 0.0, -np.inf)
        columns += [np.where(is_some > 0, -np.inf, 0.0), log_of]
        numbers = np.stack([np.broadcast_to(np.ravel(c), (n,)) for c in columns], axis=1)
        if np.isnan(numbers).any():
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        return UnitData(np.array(numbers.shape, dtype=np.int64), np.ravel(numbers))


SPLIT = 5
"""Columns of the Bernoulli."""
