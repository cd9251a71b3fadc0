"""Target of a forest under any likelihood that is a product over rows."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from numba import carray
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.compile.generated import c_function
from pymc_trees.core.leaves.latent.mixtures import log_sum
from pymc_trees.core.leaves.nonconjugate.coefficients import make_coefficient_rows
from pymc_trees.core.leaves.nonconjugate.native import SIGNATURE
from pymc_trees.core.leaves.nonconjugate.rowwise import make_rowwise
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import ForestGraph
from pymc_trees.targets.leaf_rows import leaf_rows
from pymc_trees.targets.likelihoods.contract import (
    KernelLikelihood,
    recognise_rows,
    rows_of,
    with_others,
)
from pymc_trees.targets.likelihoods.observed import Part
from pymc_trees.targets.native import Group, LazilyCompiled, NativeFunction, UnitData, pack
from pymc_trees.targets.rows import UnitTerm, read_rows
from pymc_trees.targets.settings import PointFunction, Settings
from pymc_trees.targets.terms import likelihood_terms, slope


class RowwiseTarget(Target):
    """Prior settings and row-wise likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model.

    Raises
    ------
    NotRowwiseError
        If a term of the likelihood is not known to act row by row.
    NotRecognisedError
        If the graph is one of a combination of outputs, and there is none.
    LeafNotProposedError
        For leaves that do not read Gaussian rows.
    ForestUseError
        If the forest is used other than through its function at the training inputs.
    """

    kind = "rowwise"
    needs_surrogate = True

    def __init__(self, graph: ForestGraph):
        self.name, self.layout = graph.rv.name, graph.layout
        terms, outputs = likelihood_terms(graph)
        self.leaves = leaf_rows(graph, outputs)
        units = [unit for term in terms for unit in read_rows(term, outputs)]
        groups = [
            Group(u.outputs, u.rows, u.units, [f.input for f in u.free], u.index) for u in units
        ]
        k = outputs.type.shape[1]
        self.value: LazilyCompiled = NativeFunction(
            groups, [[u.value[:, None] for u in units]], k, 1
        )
        # a distribution may leave one of its parameters out of its density: then there are no units
        slopes = [list(one) for one in zip(*(_slopes(u, k) for u in units), strict=True)] or [[]]
        self.slopes: LazilyCompiled = NativeFunction(groups, slopes, k, k + k * k)
        free = [_at_least_1d(f) for u in units for f in u.free]
        indices = [u.index for u in units if u.index is not None]
        self._n_free, more = len(free), self._wanted_of_leaves()
        self._numbers_at = PointFunction(
            graph.model, graph.rv, [*free, *indices, *more], outputs, self._pack
        )
        self._rows_of: list[tuple] = [(None, None)] * len(indices)

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        if self.leaves is not None and not self.leaves.is_constant:
            return self.leaves.n_stats
        k = self.layout.n_values
        return 1 + 2 * k + k * k

    @property
    def has_coefficients(self) -> bool:
        """Whether leaf values are coefficients of what the likelihood sees."""
        return self.leaves is not None and not self.leaves.is_constant

    def at(self, point: dict) -> tuple[Settings, UnitData]:
        """Settings; the parameters of the likelihood other than f, and numbers of the leaves."""
        return self._numbers_at(point)

    def _wanted_of_leaves(self):
        return [] if self.leaves is None else self.leaves.wanted

    def _pack(self, numbers):
        end = self._n_free + len(self._rows_of)
        units_of = [self._invert(i, rows) for i, rows in enumerate(numbers[self._n_free : end])]
        seen = pack(numbers[: self._n_free], units_of)
        return seen._replace(of_leaves=tuple(numbers[end:]))

    def leaf_data(self, settings: Settings, seen: UnitData, fit: np.ndarray, rng=None):
        """Leaf model over the outputs ``fit``; None, since there is no residual."""
        addresses, numbers = (self.value.address, self.slopes.address), seen[:2]
        leaves, more, n = self.leaves, seen.of_leaves, self.layout.n_rows
        if leaves is not None and not leaves.is_constant:
            gaussian = leaves.leaf_data(settings, more, np.zeros(n), np.ones(n))
            mean, sd = leaves.typical(settings, more)
            offset = leaves.function(fit, more)
            return make_coefficient_rows(gaussian, mean, sd, addresses, numbers, offset), None
        mean, sd = settings.leaf
        max_nodes = self.layout.max_nodes
        return make_rowwise(mean, sd, rng, *addresses, numbers, fit.copy(), max_nodes), None

    def log_scale(self, seen: UnitData) -> float:
        """Log-likelihood not included in the leaf model: 0."""
        return 0.0

    def _invert(self, i, rows):
        """Units of each row, from the row of each unit."""
        n = self.layout.n_rows
        rows = np.asarray(rows)
        known, answer = self._rows_of[i]
        if known is None or not np.array_equal(known, rows):
            if ((rows < -n) | (rows >= n)).any():
                raise IndexError(
                    f"An index into the function of {self.name} is out of range: it has {n} rows."
                )
            place = rows % n
            pointers = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=n))])
            answer = (pointers, np.argsort(place, kind="stable"))
            self._rows_of[i] = (rows, answer)
        return answer


def _at_least_1d(free):
    expression = free.expression
    expression = expression if expression.ndim else expression[None]
    return expression.astype("float64")


def _slopes(unit: UnitTerm, k: int) -> list[Variable]:
    """(u, K + K^2) gradient and second derivatives; then NaN for these; then for both."""
    gradient = slope(unit.value.sum(), unit.outputs)
    second = [slope(gradient[:, j].sum(), unit.outputs) for j in range(k)]
    none = pt.full_like(unit.outputs, np.nan)
    return [
        pt.concatenate([gradient, *second], axis=1),
        pt.concatenate([gradient, *[none] * k], axis=1),
        pt.concatenate([none] * (1 + k), axis=1),
    ]


# -------- A likelihood as native functions; ``data`` are its numbers by row, ``table`` their shape


@functools.cache  # cached: many models share one likelihood
def native_value(value):
    """Native function of the log-likelihood, from a kernel of one row."""

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n,), np.float64)
        result, shape = carray(result, (n,), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            result[i] = value(numbers[rows[i]], outputs[i])
        return 1

    return c_function(evaluate, SIGNATURE, _key(value, "value"), (__name__,))


@functools.cache
def native_slopes(slopes):
    """Native function of its derivatives, from a kernel of one row."""

    def evaluate(n, rows, outputs, table, data, result):
        rows, outputs = carray(rows, (n,), np.int64), carray(outputs, (n,), np.float64)
        result, shape = carray(result, (n, 2), np.float64), carray(table, (2,), np.int64)
        numbers = carray(data, (shape[0], shape[1]), np.float64)
        for i in range(n):
            result[i, 0], result[i, 1] = slopes(numbers[rows[i]], outputs[i])
        return 1

    return c_function(evaluate, SIGNATURE, _key(slopes, "slopes"), (__name__,))


def _key(kernel, of: str) -> str | None:
    """Name of a kernel of this package, whose sources are known; None for one of a user's own."""
    function = kernel.py_func
    own = function.__module__.startswith("pymc_trees.") and "<" not in function.__qualname__
    return f"{of} {function.__module__}.{function.__qualname__}" if own else None


# ---------------------- Component of a mixture: L = log(exp(a) + exp(b + l)), l from such kernels
#
# With the share r of the component, L' = r l' and L'' = r l'' + r (1 - r) l'^2. The last two
# numbers of a row are a and b.


@functools.cache
def part_value(value):
    """Kernel of the log-likelihood of a row of a mixture, from that of a component."""

    @njit(cache=False)  # it is compiled into the native function
    def of_mixture(numbers, f):
        a, b = numbers[-2], numbers[-1]
        return a if b == -np.inf else log_sum(a, b + value(numbers, f))

    return of_mixture


@functools.cache
def part_slopes(value, slopes):
    """Kernel of its derivatives."""

    @njit(cache=False)  # it is compiled into the native function
    def of_mixture(numbers, f):
        a, b = numbers[-2], numbers[-1]
        if b == -np.inf:
            return 0.0, 0.0
        first, second = slopes(numbers, f)
        if a == -np.inf:
            return first, second
        share = 1.0 / (1.0 + math.exp(a - b - value(numbers, f)))
        return share * first, share * (second + (1.0 - share) * first * first)

    return of_mixture


# ------------------------------------ Target of a forest whose likelihood has hand-written kernels


@dataclass
class KernelFunction(LazilyCompiled):
    """A native function of a likelihood; compiled when its address is first asked for."""

    likelihood: type[KernelLikelihood]
    with_slopes: bool
    is_component: bool

    def __post_init__(self):
        self.choices = [self.likelihood]

    def _compile(self, of):
        value, slopes = of.value, of.slopes
        if self.is_component:
            value, slopes = part_value(value), part_slopes(value, slopes)
        return native_slopes(slopes) if self.with_slopes else native_value(value)


class KernelTarget(RowwiseTarget):
    """Prior settings and likelihood of one forest, for which there are hand-written kernels.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model, of which the likelihood sees one function.

    Raises
    ------
    NotRecognisedError, NotConjugateError
        If its likelihood is not recognised.
    LeafNotProposedError
        For leaves that do not read Gaussian rows.
    """

    def __init__(self, graph: ForestGraph):
        self.name, self.layout = graph.rv.name, graph.layout
        term, self.likelihood, (wanted, outputs) = recognise_rows(graph, KernelLikelihood)
        others = term.others if isinstance(term, Part) else ()
        self.leaves = leaf_rows(graph, outputs)
        kind, self._n_others, self._n_wanted = type(self.likelihood), len(others), len(wanted)
        self.value, self.slopes = (KernelFunction(kind, one, bool(others)) for one in (False, True))
        wanted = [*others, term.value, *wanted, *self._wanted_of_leaves()]
        self._numbers_at = PointFunction(graph.model, graph.rv, wanted, outputs, self._rows)

    def _rows(self, values):
        n = self.layout.n_rows
        others, (observed, *rest) = values[: self._n_others], values[self._n_others :]
        parameters = [np.asarray(v, dtype=np.float64) for v in rest[: self._n_wanted]]
        columns = self.likelihood.numbers(rows_of(observed, n), parameters)
        numbers = np.stack([np.broadcast_to(np.ravel(c), (n,)) for c in columns], axis=1)
        if np.isnan(numbers).any():
            raise ValueError("Parameters of the observed variable are not finite at this point.")
        if others:
            numbers = with_others(numbers, *(np.broadcast_to(v, (n,)) for v in others))
        shape = np.array(numbers.shape, dtype=np.int64)
        return UnitData(shape, np.ravel(numbers), tuple(rest[self._n_wanted :]))
