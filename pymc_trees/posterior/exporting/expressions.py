"""Graphs of PyTensor as programs of `predictors.program`, which numpy runs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, explicit_graph_inputs
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalars
from pytensor.scalar import math as scalar_math
from pytensor.tensor.basic import (
    Alloc,
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
    get_underlying_scalar_constant_value,
)
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.exceptions import NotScalarConstantError
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Dot, Max, Min, Prod, Sum
from pytensor.tensor.random import basic as random
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.special import LogSoftmax, Softmax
from pytensor.tensor.subtensor import (
    AdvancedSubtensor,
    IncSubtensor,
    Subtensor,
    indices_from_subtensor,
)

from pymc_trees.core.columns.cells import SET
from pymc_trees.core.leaves.coefficients import read_linear
from pymc_trees.core.leaves.contract import constant_leaf
from pymc_trees.core.leaves.vector_lines import read_vector_lines
from pymc_trees.core.soft_forest.encode import BANDWIDTHS
from pymc_trees.core.value.fields import CHECKSUM, UNUSED
from pymc_trees.distributions.forest_inputs import (
    FunctionOfRows,
    declared,
    evaluation,
    forest_inputs,
    training_rows,
)
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.posterior.draws import StoredDraws
from pymc_trees.posterior.reading.indices import PYTHON
from pymc_trees.predictors.packed import CONSTANT, LINEAR, SOFT, smallest

# ------------------------------ Encoded draws of a forest as the ragged arrays of predictors.packed


def packed_forest(
    forest: Variable, draws: StoredDraws, which: np.ndarray
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `PackedForest` takes: facts, and arrays.

    Parameters
    ----------
    forest : Variable
        The random variable.
    draws : StoredDraws
        Checked draws of it.
    which : (each,) int
        Draws of each chain that are taken.

    Raises
    ------
    ValueError
        For trees of another kind.
    """
    kind = kind_of(forest)
    layout, X = forest.owner.op.layout, training_rows(forest)
    p = X.shape[1]
    taken = [draws[chain, draw] for chain in range(draws.shape[0]) for draw in which]
    arrays = packed_values(taken, layout.max_nodes, layout.n_values)
    about = {
        "name": str(forest.name),
        "kind": kind,
        "draws": len(taken),
        "trees": layout.m,
        "columns": p,
        "outputs": layout.n_outputs,
        "mixed": kind != SOFT and layout.mixed,
    }
    certificate = np.array(
        [value[layout.max_nodes :].reshape(-1)[: BANDWIDTHS + layout.m] for value in taken]
    )
    if kind == SOFT:
        inputs = forest_inputs(forest)
        for name, one in zip(("knots", "heights", "offsets"), inputs.unit_map, strict=True):
            arrays[name] = np.asarray(one.data)
        arrays["offsets"] = arrays["offsets"].astype(np.int64)
        arrays["hard"] = np.asarray(inputs.hard.data, dtype=bool)
        arrays["bandwidths"] = certificate[:, BANDWIDTHS:].reshape(-1)
        return about, arrays
    if layout.mixed:
        arrays["levels"] = levels_of_rules(X, arrays["rules"])
    else:
        arrays["seeds"] = certificate[:, CHECKSUM].astype(np.uint64)
    if kind == LINEAR:
        arrays["slopes"] = np.asarray(declared(forest).constants, dtype=np.float64)
    return about, arrays


def packed_values(
    values: Sequence[np.ndarray], max_nodes: int, n_values: int
) -> dict[str, np.ndarray]:
    """Trees of encoded forests, one after another."""
    columns, numbers = [], []
    for value in values:
        used = int((value[:max_nodes, 0] > UNUSED).sum())
        columns.append(value[:used, 0].astype(np.int64))
        numbers.append(value[:used, 1 : 1 + n_values])
    column, number = np.concatenate(columns), np.concatenate(numbers)
    is_split = column >= 0
    cuts, places = np.unique(number[is_split, 0], return_inverse=True)
    return {
        "sizes": smallest(_sizes(column)),
        "rules": smallest(column + 1),
        "places": smallest(places.reshape(-1)),
        "cuts": cuts,
        "values": number[~is_split],
    }


def kind_of(forest: Variable) -> str:
    """Kind of the trees in a predictor, or an error where it has none."""
    if is_soft_forest(forest):
        return SOFT
    outputs = forest.owner.op.leaf_type.outputs if is_forest(forest) else None
    if outputs is constant_leaf:
        return CONSTANT
    if outputs in (read_linear, read_vector_lines):
        return LINEAR
    raise ValueError(
        f"{forest.name} has trees or leaves that a predictor cannot hold: it takes BART, "
        "DecisionTree and SoftBART with the leaves of the package. Use predictions(idata, model)."
    )


def _sizes(column: np.ndarray) -> np.ndarray:
    """Nodes of each tree, of trees in preorder one after another."""
    below = np.cumsum(np.where(column >= 0, 1, -1))
    lowest = np.minimum.accumulate(np.minimum(below, 0))
    ends = np.flatnonzero(np.diff(lowest, prepend=0) < 0)
    return np.diff(ends, prepend=-1)


def levels_of_rules(X: np.ndarray, rules: np.ndarray) -> np.ndarray:
    """(p,) numbers of levels in training rows, of columns that some rule splits by them."""
    p = X.shape[1]
    split = rules[rules > 0].astype(np.int64) - 1
    levels = np.zeros(p, dtype=np.int64)
    for j in np.unique(split[split // p >= SET] % p):
        levels[j] = int(X[:, j].max()) + 1
    return levels


# ------- The law of an observed variable: its family by the name of predictors.laws, and parameters


FAMILIES: dict[type, str] = {
    random.NormalRV: "normal",
    random.LogNormalRV: "lognormal",
    random.StudentTRV: "studentt",
    random.BernoulliRV: "bernoulli",
    random.PoissonRV: "poisson",
    random.NegBinomialRV: "negative_binomial",
    random.GammaRV: "gamma",
    random.ExponentialRV: "exponential",
    random.CategoricalRV: "categorical",
    pm.Weibull.rv_type: "weibull",
}


class Response(NamedTuple):
    """An observation given the parameters of its distribution."""

    name: str
    law: str
    parameters: list[Variable]
    """As PyTensor's random variables have them."""
    ndim: int
    """Axes of the observations."""


class NoLawError(Exception):
    """Why the law of the response is not known."""


def response_of(model: pm.Model, name: str | None) -> Response:
    """The response of a model, by its name or the only one.

    Raises
    ------
    ValueError
        There is none of this name.
    NoLawError
        Its distribution is another one.
    """
    observed = {str(rv.name): rv for rv in model.observed_RVs}
    if name is not None and name not in observed:
        raise ValueError(f"response={name!r} is not observed: choose from {list(observed)}.")
    if not observed:
        raise NoLawError("the model has no observed variable")
    if name is None and len(observed) > 1:
        raise NoLawError(f"the model observes {list(observed)}; response= chooses one")
    name = next(iter(observed)) if name is None else name
    rv = observed[name]
    if rv.owner and isinstance(rv.owner.op, pm.Censored.rv_type):  # the law of the whole time
        rv = rv.owner.op.dist_params(rv.owner)[0]
    op = rv.owner.op if rv.owner else None
    if op is None or type(op) not in FAMILIES:
        raise NoLawError(f"{name} has a distribution that a predictor does not know")
    return Response(name, FAMILIES[type(op)], list(op.dist_params(rv.owner)), rv.ndim)


# -------------------------------------------------------------------------------------------------


SCALARS: dict[type, str] = {
    scalars.Add: "add",
    scalars.Mul: "mul",
    scalars.Sub: "sub",
    scalars.TrueDiv: "true_div",
    scalars.IntDiv: "int_div",
    scalars.Mod: "mod",
    scalars.Pow: "pow",
    scalars.Neg: "neg",
    scalars.Abs: "abs",
    scalars.Sign: "sign",
    scalars.Sqr: "sqr",
    scalars.Sqrt: "sqrt",
    scalars.Reciprocal: "reciprocal",
    scalars.Exp: "exp",
    scalars.Exp2: "exp2",
    scalars.Expm1: "expm1",
    scalars.Log: "log",
    scalars.Log1p: "log1p",
    scalars.Log2: "log2",
    scalars.Log10: "log10",
    scalars.Sin: "sin",
    scalars.Cos: "cos",
    scalars.Tan: "tan",
    scalars.Tanh: "tanh",
    scalars.Sinh: "sinh",
    scalars.Cosh: "cosh",
    scalars.ArcTan: "arctan",
    scalars.Floor: "floor",
    scalars.Ceil: "ceil",
    scalars.RoundHalfToEven: "round",
    scalars.ScalarMaximum: "maximum",
    scalars.ScalarMinimum: "minimum",
    scalars.Clip: "clip",
    scalars.LT: "lt",
    scalars.LE: "le",
    scalars.GT: "gt",
    scalars.GE: "ge",
    scalars.EQ: "eq",
    scalars.NEQ: "neq",
    scalars.AND: "and",
    scalars.OR: "or",
    scalars.IsNan: "isnan",
    scalars.IsInf: "isinf",
    scalars.Switch: "switch",
    scalars.Identity: "identity",
    scalars.Second: "second",
    scalar_math.Sigmoid: "sigmoid",
    scalar_math.Softplus: "softplus",
    scalar_math.Log1mexp: "log1mexp",
    scalar_math.Erf: "erf",
    scalar_math.Erfc: "erfc",
    scalar_math.Erfcx: "erfcx",
}
REDUCTIONS = {Sum: "sum", Prod: "prod", Max: "max", Min: "min"}
SAME = (ViewOp, CheckAndRaise, SpecifyShape, ScalarFromTensor, TensorFromScalar)
"""Ops that return their first input."""


class NotCarriedError(Exception):
    """What in an expression no program can have."""


def widened(numbers: np.ndarray) -> np.ndarray:
    """Numbers in the types that files have: bool, int64 and float64."""
    kind = numbers.dtype.kind
    return numbers.astype(bool if kind == "b" else np.int64 if kind in "iu" else np.float64)


class Translation:
    """A program that grows by the expressions that are asked for.

    Parameters
    ----------
    known : mapping of Variable and dict
        Instructions for variables where graphs end: rows, data beside them, and draws.
    forests : list of Variable
        Random variables of trees, in the order of the predictor's.
    """

    def __init__(self, known: Mapping[Variable, dict[str, Any]], forests: list[Variable]):
        self.program: list[dict[str, Any]] = []
        self.constants: list[np.ndarray] = []
        self._known, self._forests = known, forests
        self._numbers: dict[Variable, int] = {}

    def number(self, v: Variable) -> int:
        """Instruction of a variable, added if it is new."""
        if v not in self._numbers:
            before = (len(self.program), len(self.constants))
            try:
                self._numbers[v] = self._add(v)
            except NotCarriedError:
                del self.program[before[0] :], self.constants[before[1] :]
                kept = {k: n for k, n in self._numbers.items() if n < before[0]}
                self._numbers = kept
                raise
        return self._numbers[v]

    def _append(self, op: str, of: list[int] | None = None, **settings) -> int:
        self.program.append({"op": op, "of": of or [], **settings})
        return len(self.program) - 1

    def _add(self, v: Variable) -> int:
        if v in self._known:
            known = dict(self._known[v])
            index = known.pop("index", None)
            if index is not None:  # some columns of a table
                rows = {"op": known["op"], "of": [], "place": known["place"]}
                known_rows = [k for k, step in enumerate(self.program) if step == rows]
                at = known_rows[0] if known_rows else self._append("rows", place=known["place"])
                picked = self._append("pick", [at], index=index)
                if v.dtype == "float64":
                    return picked
                return self._append("cast", [picked], dtype=str(np.dtype(v.dtype)))
            return self._append(known["op"], **{k: x for k, x in known.items() if k != "op"})
        if isinstance(v, Constant | SharedVariable):
            return self._constant(v, v.data if isinstance(v, Constant) else v.get_value())
        if v.owner is None:
            raise NotCarriedError(f"{v} has no value")
        op, inputs = v.owner.op, list(v.owner.inputs)
        if isinstance(op, FunctionOfRows):
            one = evaluation(v)
            if one.tree not in self._forests:
                raise NotCarriedError(f"{one.tree} is no forest of the predictor")
            return self._append(
                "forest", [self.number(one.X)], forest=self._forests.index(one.tree)
            )
        if isinstance(op, SAME):
            return self.number(inputs[0])
        if isinstance(op, Elemwise):
            return self._elementwise(v, op.scalar_op, inputs)
        try:
            return self._shaped(v, op, inputs)
        except NotCarriedError:
            if not self._is_fixed(v):
                raise
            return self._constant(v, v.eval(mode=PYTHON))

    def _constant(self, v: Variable, value) -> int:
        value = np.asarray(value)
        if value.dtype.kind not in "biuf":
            raise NotCarriedError(f"{v} is no array of numbers")
        self.constants.append(widened(value))
        return self._append("constant", number=len(self.constants) - 1)

    def _is_fixed(self, v: Variable) -> bool:
        """Whether it is made of constants and of model data that are the same for all rows."""
        above = explicit_graph_inputs([v])
        return all(
            isinstance(one, Constant)
            or (isinstance(one, SharedVariable) and one not in self._known)
            for one in above
        ) and not any(one in self._known for one in ancestors([v]))

    def _elementwise(self, v: Variable, scalar_op, inputs: list[Variable]) -> int:
        of = [self.number(one) for one in inputs]
        if isinstance(scalar_op, scalars.Cast):
            return self._append("cast", of, dtype=str(np.dtype(v.dtype)))
        if isinstance(scalar_op, scalars.Invert) and v.dtype == "bool":
            return self._append("not", of)
        if type(scalar_op) not in SCALARS:
            raise NotCarriedError(f"the operation {scalar_op}")
        number = self._append(SCALARS[type(scalar_op)], of)
        if v.dtype in ("float16", "float32"):  # rounded, as the model does
            number = self._append("cast", [number], dtype=v.dtype)
        return number

    def _shaped(self, v: Variable, op, inputs: list[Variable]) -> int:
        if isinstance(op, Blockwise) and all(one.ndim == 2 for one in inputs):
            op = op.core_op
        if isinstance(op, DimShuffle):
            axes = [-1 if k == "x" else int(k) for k in op.new_order]
            return self._append("order", [self.number(inputs[0])], axes=axes)
        if type(op) in REDUCTIONS:
            return self._append(
                REDUCTIONS[type(op)], [self.number(inputs[0])], axes=_axes(op, inputs)
            )
        if isinstance(op, Softmax | LogSoftmax):
            name = "softmax" if isinstance(op, Softmax) else "log_softmax"
            return self._append(name, [self.number(inputs[0])], axes=_axes(op, inputs))
        if isinstance(op, CumOp) and op.mode == "add" and op.axis is not None:
            return self._append("cumsum", [self.number(inputs[0])], axes=[int(op.axis)])
        if isinstance(op, Join):
            of = [self.number(one) for one in inputs]
            return self._append("join", of, axes=[int(op.axis) % v.ndim])
        if isinstance(op, MakeVector):
            each = [self._append("order", [self.number(one)], axes=[-1]) for one in inputs]
            return self._append("join", each, axes=[0])
        if isinstance(op, Alloc):  # repeated numbers: broadcast where they are used
            axes = [-1] * (v.ndim - inputs[0].ndim) + list(range(inputs[0].ndim))
            return self._append("order", [self.number(inputs[0])], axes=axes)
        if isinstance(op, Dot) and all(one.ndim in (1, 2) for one in inputs):
            return self._append("matmul", [self.number(one) for one in inputs])
        if isinstance(op, Subtensor):
            index = _fixed(indices_from_subtensor(inputs[1:], op.idx_list))
            return self._append("pick", [self.number(inputs[0])], index=index)
        if isinstance(op, IncSubtensor) and op.set_instead_of_inc:
            index = _fixed(indices_from_subtensor(inputs[2:], op.idx_list))
            return self._append("set", [self.number(one) for one in inputs[:2]], index=index)
        if isinstance(op, AdvancedSubtensor):
            return self._taken(op, inputs)
        raise NotCarriedError(f"the operation {op}")

    def _taken(self, op, inputs: list[Variable]) -> int:
        index = indices_from_subtensor(inputs[1:], op.idx_list)
        by = [k for k, one in enumerate(index) if not _is_whole(one)]
        if len(by) != 1 or getattr(index[by[0]], "dtype", "bool") == "bool":
            raise NotCarriedError(f"the operation {op}")
        of = [self.number(inputs[0]), self.number(index[by[0]])]
        return self._append("take", of, axes=[by[0]])


def _is_whole(index) -> bool:
    return isinstance(index, slice) and index == slice(None)


def _axes(op, inputs) -> list[int]:
    axis = op.axis
    ndim = inputs[0].ndim
    if axis is None:
        return list(range(ndim))
    return [int(k) % ndim for k in ([axis] if isinstance(axis, int) else axis)]


def _fixed(index) -> list:
    """Indices as numbers and ``[start, stop, step]``."""
    fixed: list = []
    for one in index:
        if isinstance(one, slice):
            fixed.append([_whole(k) for k in (one.start, one.stop, one.step)])
        else:
            fixed.append(_whole(one))
    return fixed


def _whole(k) -> int | None:
    if k is None or isinstance(k, int):
        return k
    try:
        return int(get_underlying_scalar_constant_value(k))
    except NotScalarConstantError as error:
        raise NotCarriedError("an index that depends on other numbers") from error
