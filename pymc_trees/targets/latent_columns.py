"""A random column of forests: its prior, its measurements, and the likelihood of its rows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import CategoricalRV, NormalRV

from pymc_trees.core.value.fields import sizes
from pymc_trees.distributions.data.random_columns import (
    cells_at,
    latent_part,
    split_inputs,
    support_of,
)
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.targets.graph import (
    UnsupportedModelError,
    depends_on,
    parameters_of,
    read_graph,
    stripped,
)
from pymc_trees.targets.native import Group, LazilyCompiled, NativeFunction, UnitData, pack
from pymc_trees.targets.rows import NotRowwiseError, read_rows
from pymc_trees.targets.settings import compile_values
from pymc_trees.targets.terms import summands


class UnsupportedColumnError(UnsupportedModelError):
    """A random column that `LatentColumn` cannot draw; the message says what to do."""


def column_of(model: pm.Model, rv: Variable) -> Variable | None:
    """The random column of forests that a free variable is, or whose missing cells it has."""
    graphs = [*model.basic_RVs, *model.deterministics, *model.potentials]
    for one in evaluations(graphs):
        parts = split_inputs(one.X, n_random_columns(one.tree))
        for column in [] if parts is None else parts[1]:
            if latent_part(model, column) is rv:
                return column
    return None


class ColumnOfForest(NamedTuple):
    """Where a forest has the column, as functions of values."""

    name: str
    """Of the value of the forest."""
    X_train: np.ndarray
    cuts: np.ndarray
    """Where it may cut the column."""
    place: int
    """Number of the column."""
    sizes: tuple
    first: int
    """First of its outputs, among those of all forests."""
    n_outputs: int


class ColumnData(NamedTuple):
    """Numbers of a point."""

    parameters: list[np.ndarray]
    """Of the prior; of a Normal mean and sd given the measurements, of a discrete column the (C, n)
    log probabilities."""
    seen: UnitData
    """Of the likelihood."""
    inputs: list[np.ndarray]
    """(n, p) training rows of each forest."""


class LatentColumnTarget:
    """What is known of a random column given all else.

    Parameters
    ----------
    model : pymc.Model
        A model of tensors.
    rv : TensorVariable
        A free variable of it, for which `column_of` is not None.

    Raises
    ------
    UnsupportedColumnError
        For a prior without quantiles, or a likelihood that mixes rows.
    """

    def __init__(self, model: pm.Model, rv: Variable):
        column = column_of(model, rv)
        assert column is not None
        self.rv_name, self.value_name = rv.name, model.rvs_to_values[rv].name
        self.n = int(column.shape[0].eval())
        self.rows = np.arange(self.n)
        if column is not rv:
            self.rows = np.flatnonzero(cells_at(model, column, rv)[1])
        graph = read_graph(model, rv)
        parameters = parameters_of(rv)
        self.is_normal = isinstance(rv.owner.op, NormalRV)
        self.support = support_of(rv)
        if self.support is not None:
            parameters = [_log_table(rv, self.support)]
        measured = []
        if self.is_normal:
            measured = [m for t in graph.terms if (m := _measurement(model, t, column, rv))]
        others = [t for t in graph.terms if not any(t is one[0] for one in measured)]
        self._read_likelihood(model, rv, column, [*others, *graph.potentials])
        wanted = [v for _, *pair in measured for v in pair]
        self._n_parameters, self._n_measured = len(parameters), len(measured)
        wanted = model.replace_rvs_by_values([*parameters, *wanted])
        at = [*(v.astype("float64") for v in wanted), *self._free, *self._indices, *self._inputs]
        self._numbers, self._names = compile_values(model, at, [self._outputs])
        self._zero = np.zeros(self._outputs.type.shape)
        self._dtype = rv.dtype
        if self.support is None and not self.is_normal:
            self._logp, self._cdf, self._icdf = _functions_of(rv, parameters)
        self._transform(model, rv)

    def _read_likelihood(self, model, rv, column, terms):
        """The rows as functions of the column and of the outputs of forests."""
        expressions = model.logp(vars=terms, sum=False) if terms else []
        value = model.rvs_to_values[rv]
        found = [one for one in evaluations(expressions) if depends_on([one.X], value, set())]
        forests = {model.rvs_to_values[v]: v for v in model.free_RVs if n_random_columns(v)}
        self.forests: list[ColumnOfForest] = []
        replaced, cells, width = {}, [], 1
        for one in found:
            forest = forests.get(one.tree)
            parts = None if forest is None else split_inputs(one.X, n_random_columns(forest))
            columns = [] if parts is None else parts[1]
            own = [k for k, v in enumerate(columns) if depends_on([v], value, set())]
            if forest is None or len(own) != 1 or _is_other(one, found):
                raise UnsupportedColumnError(_elsewhere(rv.name))
            known, layout = declared(forest), forest.owner.op.layout
            place = known.X.shape[1] - n_random_columns(forest) + own[0]
            assert known.cuts is not None
            self.forests.append(
                ColumnOfForest(
                    one.tree.name,
                    known.X,
                    known.cuts[place],
                    place,
                    sizes(layout),
                    width,
                    layout.n_outputs,
                )
            )
            replaced[one.outputs] = (width, layout.n_outputs)
            cells.append(columns[own[0]])
            width += layout.n_outputs
        self.n_outputs = width
        self._inputs = [one.X for one in found]
        outputs = pt.tensor("outputs", dtype="float64", shape=(self.n, width))
        self._outputs = outputs
        named = {out: outputs[:, a : a + k] for out, (a, k) in replaced.items()}
        without = clone_replace(expressions, named, rebuild_strict=False) if named else expressions
        self.is_direct = depends_on(without, value, set())
        if self.is_direct:
            # the column as these expressions have it, which is that of the forests
            cells += model.replace_rvs_by_values([column])
            seen = [v for v in ancestors(without) if any(_is_same(v, one) for one in cells)]
            here = {v: outputs[:, 0].astype(v.dtype) for v in seen}
            without = clone_replace(without, here, rebuild_strict=False)
        if depends_on(without, value, set()):
            raise UnsupportedColumnError(_elsewhere(rv.name))
        try:
            units = [u for t in summands(without, outputs) for u in read_rows(t, outputs)]
        except NotRowwiseError as reason:
            raise UnsupportedColumnError(
                f"{rv.name} is a random column, and something that depends on it is not known to "
                f"act row by row ({reason}). Write the likelihood with one term for each row."
            ) from reason
        groups = [
            Group(u.outputs, u.rows, u.units, [f.input for f in u.free], u.index) for u in units
        ]
        self.value: LazilyCompiled | None = None
        if units:
            self.value = NativeFunction(groups, [[u.value[:, None] for u in units]], width, 1)
        free = [f.expression for u in units for f in u.free]
        self._free = [(f if f.ndim else f[None]).astype("float64") for f in free]
        self._indices = [u.index for u in units if u.index is not None]

    def _transform(self, model, rv):
        """Between the variable and the value that PyMC samples."""
        transform = model.rvs_to_transforms.get(rv)
        self._forward = None
        if transform is not None:
            plain = pt.tensor("cells", dtype="float64", shape=(None,))
            inputs = model.replace_rvs_by_values(list(rv.owner.inputs))
            there = transform.forward(plain, *inputs)
            back = transform.backward(model.rvs_to_values[rv], *inputs)
            self._forward = compile_values(model, [there], [plain])
            self._backward = compile_values(model, [back], [])

    def cells(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Cells of the column that are drawn, at a point."""
        if self._forward is None:
            return np.array(point[self.value_name], dtype=np.float64)
        function, names = self._backward
        return np.asarray(function(*(point[name] for name in names))[0], dtype=np.float64)

    def value_of(self, point: Mapping[str, np.ndarray], cells: np.ndarray) -> np.ndarray:
        """Value of the variable with other cells."""
        if self._forward is None:
            return cells.astype(self._dtype)
        function, names = self._forward
        return function(cells, *(point[name] for name in names))[0]

    def at(self, point: Mapping[str, np.ndarray]) -> ColumnData:
        """Numbers of a point."""
        numbers = self._numbers(self._zero, *(point[name] for name in self._names))
        k = self._n_parameters
        shape: tuple[int, ...] = self.rows.shape
        if self.support is not None:
            shape = (len(self.support), *shape)
        parameters = [np.broadcast_to(v, shape).copy() for v in numbers[:k]]
        end = k + 2 * self._n_measured
        if self._n_measured:
            parameters = self._given(parameters, numbers[k:end])
        free, end = numbers[end : end + len(self._free)], end + len(self._free)
        rows_of, inputs = (
            numbers[end : end + len(self._indices)],
            numbers[end:][len(self._indices) :],
        )
        seen = pack(free, [_units_of(rows, self.n) for rows in rows_of])
        return ColumnData(parameters, seen, [np.ascontiguousarray(X) for X in inputs])

    def _given(self, prior, measured):
        """Mean and sd of a Normal given measurements of it."""
        mean, sd = prior
        precision = 1.0 / sd**2
        total = mean * precision
        for y, error in zip(measured[::2], measured[1::2], strict=True):
            y, error = (np.broadcast_to(v, (self.n,))[self.rows] for v in (y, error))
            total = total + y / error**2
            precision = precision + 1.0 / error**2
        return [total / precision, 1.0 / np.sqrt(precision)]

    def logp(self, data: ColumnData, cells: np.ndarray) -> np.ndarray:
        """Log prior density of each row, given measurements that are part of it."""
        if self.is_normal:
            mean, sd = data.parameters
            return -0.5 * ((cells - mean) / sd) ** 2 - np.log(sd)
        with np.errstate(all="ignore"):
            return self._logp(cells, *data.parameters)

    def cdf(self, data: ColumnData, cells: np.ndarray) -> np.ndarray:
        """Prior distribution function of each row."""
        with np.errstate(all="ignore"):
            return self._cdf(cells, *data.parameters)

    def icdf(self, data: ColumnData, shares: np.ndarray) -> np.ndarray:
        """Prior quantiles of each row."""
        with np.errstate(all="ignore"):
            return self._icdf(shares, *data.parameters)


def _measurement(model, term, column, rv) -> tuple | None:
    """A vector of Normals around the column itself, its value and its sd."""
    if not isinstance(term.owner.op, NormalRV) or term.ndim != 1:
        return None
    if model.rvs_to_transforms.get(term) is not None:
        return None
    mean, sd = term.owner.op.dist_params(term.owner)
    if stripped(mean) is not column or depends_on([sd], rv, set()):
        return None
    return term, model.rvs_to_values[term], sd


def _is_same(v: Variable, other: Variable) -> bool:
    """Whether two variables are one expression: a transform is written anew for each term."""
    if v is other or v.owner is None or other.owner is None:
        return v is other
    return v.owner.op == other.owner.op and equal_computations([v], [other])


def _is_other(one, found) -> bool:
    """Whether a tree is evaluated at other inputs, too."""
    return any(other.tree is one.tree and other is not one for other in found)


def _elsewhere(name: str) -> str:
    return (
        f"{name} is a random column that enters the model in another way than through "
        "with_columns or row by row, such as sorted, or in one forest twice. Use the variable as "
        "it is."
    )


def _units_of(rows, n):
    rows = np.asarray(rows) % n
    pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return pointers, np.argsort(rows, kind="stable")


def _log_table(rv: Variable, support: np.ndarray) -> Variable:
    """(C, n) log prior probability of each category of a discrete column."""
    if isinstance(rv.owner.op, CategoricalRV):
        [p] = parameters_of(rv)
        return pt.log(p).T if p.ndim == 2 else pt.log(p)[:, None]
    return pm.logp(rv, pt.constant(support.astype(rv.dtype))[:, None])


def _functions_of(rv, parameters):
    """Log density, distribution function and quantiles of the prior, given its parameters too."""
    cells = pt.tensor("cells", dtype="float64", shape=(None,))
    given = [
        pt.tensor(f"parameter_{k}", dtype="float64", shape=(None,)) for k in range(len(parameters))
    ]
    _, law = rv.owner.op(*given, rng=pt.random.shared_rng(seed=None), return_next_rng=True)
    try:
        graphs = [pm.logp(law, cells), pt.exp(pm.logcdf(law, cells)), pm.icdf(law, cells)]
    except (NotImplementedError, TypeError) as error:
        raise UnsupportedColumnError(
            f"{rv.name} is a random column whose prior has no quantiles in PyMC ({error}). Give it "
            "a distribution for which pm.icdf is implemented, such as pm.Normal, pm.Uniform or "
            "pm.StudentT."
        ) from error
    mode = "FAST_COMPILE"
    return [pm.compile([cells, *given], one, mode=mode, on_unused_input="ignore") for one in graphs]
