"""Arrays that write themselves down: NumPy's functions of a `Tensor` become nodes of an ONNX graph.

The formulas of `predictors.program` and `predictors.special` run as they are; what depends on no
row is an array of numbers, which numpy computes at once.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

ROWS = -1
"""Length of the axis of the rows in a shape."""
TYPES = {"bool": 9, "int64": 7, "float32": 1, "float64": 11, "float16": 10}
"""Numbers of ONNX for types."""
OWN = "pymc_trees/"
"""What names begin with that are not those of columns."""
AGGREGATE_INPUT = {"ReduceSum"}
"""Reductions that take their axes as an input in the operators of version 17."""


class NotCarriedError(Exception):
    """What in an expression no operator can do."""


class Graph:
    """Nodes and constants, as they are written.

    Parameters
    ----------
    onnx : module
        The package.
    """

    def __init__(self, onnx):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[tuple, str] = {}

    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **settings):
        """Add a node; returns the names of its outputs."""
        names = [f"{OWN}v{len(self.nodes)}_{k}" for k in range(outputs)]
        make = self.onnx.helper.make_node
        self.nodes.append(make(op, list(inputs), names, domain=domain, **settings))
        return names

    def constant(self, value) -> str:
        """Name of a constant."""
        array = widened(np.asarray(value))
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._known[key] = f"{OWN}c{len(self.constants)}"
            self.constants.append(self.tensor(array, self._known[key]))
        return self._known[key]

    def tensor(self, array: np.ndarray, name: str = ""):
        """An array as ONNX has it."""
        return self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape),
                                                 name)  # fmt: skip


def widened(array: np.ndarray) -> np.ndarray:
    """In a type that tensors have here."""
    kind = array.dtype.kind
    if kind == "f" and array.dtype.itemsize == 4:
        return array
    return array.astype(bool if kind == "b" else np.int64 if kind in "iu" else np.float64)


class Tensor(NDArrayOperatorsMixin):
    """A value that depends on the rows.

    Parameters
    ----------
    graph : Graph
        Where it stands.
    name : str
        Its name there.
    shape : tuple of int
        `ROWS` for the axis of the rows.
    dtype : dtype
        bool, int64, float32 or float64.
    """

    def __init__(self, graph: Graph, name: str, shape: Sequence[int], dtype):
        self.graph, self.name, self.shape = graph, name, tuple(shape)
        self.dtype, self.ndim = np.dtype(dtype), len(shape)

    # ------------------------------------------------------------------------ NumPy's protocols

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        if method != "__call__" or settings or ufunc.__name__ not in UFUNCS:
            raise NotCarriedError(f"the function {ufunc.__name__}")
        return UFUNCS[ufunc.__name__](ufunc, *inputs)

    def __array_function__(self, func, types, args, settings):
        if func.__name__ not in FUNCTIONS:
            raise NotCarriedError(f"the function {func.__name__}")
        function = FUNCTIONS[func.__name__]
        return function(*args, **settings)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, index):
        return _pick(self, index if isinstance(index, tuple) else (index,))

    # -------------------------------------------------------------------------------- Own nodes

    def then(self, op: str, shape=None, dtype=None, more: Sequence[str] = (), **settings):
        """What an operator makes of it."""
        [name] = self.graph.node(op, [self.name, *more], **settings)
        shape = self.shape if shape is None else shape
        return Tensor(self.graph, name, shape, dtype or self.dtype)

    def astype(self, dtype, copy=True):
        """In another type."""
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            dtype = np.dtype(np.int64)
        if dtype == self.dtype:
            return self
        return self.then("Cast", dtype=dtype, to=TYPES[str(dtype)])

    def reshape(self, *lengths):
        """In another shape; one axis at most is that of the rows."""
        is_one = len(lengths) == 1 and isinstance(lengths[0], tuple | list)
        shape = list(lengths[0] if is_one else lengths)
        return self.then("Reshape", shape, more=[self.graph.constant(np.array(shape, np.int64))])

    def transposed(self, axes):
        """With its axes in another order."""
        if list(axes) == list(range(self.ndim)):
            return self
        perm = [int(k) for k in axes]
        return self.then("Transpose", [self.shape[k] for k in perm], perm=perm)

    def squeezed(self, axes):
        """Without axes of length 1."""
        shape = [n for k, n in enumerate(self.shape) if k not in axes]
        return self.then("Squeeze", shape, more=[self.graph.constant(np.array(axes, np.int64))])

    def expanded(self, axes):
        """With new axes of length 1."""
        axes = [axes] if isinstance(axes, int) else list(axes)
        if not axes:
            return self
        shape = list(self.shape)
        for k in sorted(axes):
            shape.insert(k, 1)
        return self.then("Unsqueeze", shape, more=[self.graph.constant(np.array(axes, np.int64))])

    def reduced(self, op: str, axis=None, keepdims=False):
        """Over some axes."""
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = [int(k) % self.ndim for k in axes]
        shape = [1 if k in axes else n for k, n in enumerate(self.shape)]
        if not keepdims:
            shape = [n for k, n in enumerate(self.shape) if k not in axes]
        if op in AGGREGATE_INPUT:
            more, settings = [self.graph.constant(np.array(axes, np.int64))], {}
        else:
            more, settings = [], {"axes": axes}
        value = self.astype(np.int64) if self.dtype == bool else self
        return value.then(op, shape, more=more, keepdims=int(keepdims), **settings)

    def sum(self, axis=None, keepdims=False):
        """Sum over axes."""
        return self.reduced("ReduceSum", axis, keepdims)

    def prod(self, axis=None, keepdims=False):
        """Product over axes."""
        return self.reduced("ReduceProd", axis, keepdims)

    def max(self, axis=None, keepdims=False):
        """Greatest along axes."""
        return self.reduced("ReduceMax", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        """Least along axes."""
        return self.reduced("ReduceMin", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        """Mean along axes."""
        return self.reduced("ReduceMean", axis, keepdims)


# ------------------------------------------------------------------------------------------ Pieces


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape of arrays together."""
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    found = []
    for lengths in zip(*padded, strict=True):
        wide = {n for n in lengths if n != 1}
        if len(wide) > 1:
            raise NotCarriedError(f"shapes {list(shapes)} that do not fit")
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def _graph_of(values) -> Graph:
    return next(v.graph for v in values if isinstance(v, Tensor))


def as_tensor(graph: Graph, value, dtype=None) -> Tensor:
    """A tensor, or an array as a constant."""
    if isinstance(value, Tensor):
        return value if dtype is None else value.astype(dtype)
    array = widened(np.asarray(value) if dtype is None else np.asarray(value, dtype=dtype))
    return Tensor(graph, graph.constant(array), array.shape, array.dtype)


def _type(value) -> np.dtype:
    return value.dtype if isinstance(value, Tensor) else widened(np.asarray(value)).dtype


def operator(op: str, *values, dtype=None, result=None) -> Tensor:
    """Elementwise operator at values of one type."""
    graph = _graph_of(values)
    dtype = np.result_type(*map(_type, values)) if dtype is None else dtype
    tensors = [as_tensor(graph, v, dtype) for v in values]
    shape = broadcast([t.shape for t in tensors])
    return tensors[0].then(op, shape, result or dtype, more=[t.name for t in tensors[1:]])


def _same(op):
    """A function in the type of its values: numbers, at least float64 where numpy makes floats."""

    def apply(ufunc, *values):
        kinds = [np.ones((), dtype=_type(v)) for v in values]
        return operator(op, *values, dtype=ufunc(*kinds).dtype)

    return apply


def _compare(op, negate=False):
    def apply(ufunc, *values):
        kind = np.result_type(*map(_type, values))
        kind = np.dtype(np.int64) if kind.kind == "b" else kind
        found = operator(op, *values, dtype=kind, result=np.dtype(bool))
        return found.then("Not") if negate else found

    return apply


def _logical(op):
    return lambda ufunc, *values: operator(op, *values, dtype=np.dtype(bool))


def _by(function):
    """A function made of others."""
    return lambda ufunc, *values: function(*values)


def _float(x):
    return x.astype(np.float64) if isinstance(x, Tensor) and x.dtype.kind != "f" else x


def _expm1(x):
    half = np.tanh(0.5 * _float(x))
    return 2.0 * half / (1.0 - half)


def _log1p(x):
    """By the rounding of 1 + x, which the ratio undoes."""
    u = 1.0 + _float(x)
    near = u == 1.0
    return np.where(near, x, np.log(u) * x / np.where(near, 1.0, u - 1.0))


def _copysign(x, y):
    return np.where(y < 0, -np.abs(x), np.abs(x))


def _logaddexp(x, y):
    return np.maximum(x, y) + np.log1p(np.exp(-np.abs(x - y)))


def _floor_divide(x, y):
    return np.floor(_float(x) / y)


def _matmul(ufunc, a, b):
    graph = _graph_of((a, b))
    kind = np.dtype(np.float64)
    a, b = as_tensor(graph, a, kind), as_tensor(graph, b, kind)
    shape = (*broadcast([a.shape[:-2], b.shape[:-2]]), a.shape[-2], b.shape[-1])
    return a.then("MatMul", shape, more=[b.name])


UFUNCS: dict[str, Callable] = {
    **{name: _same(op) for name, op in {
        "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg",
        "absolute": "Abs", "sign": "Sign", "sqrt": "Sqrt", "exp": "Exp", "log": "Log",
        "tanh": "Tanh", "sin": "Sin", "cos": "Cos", "floor": "Floor", "ceil": "Ceil",
        "maximum": "Max", "minimum": "Min", "power": "Pow"}.items()},
    "greater": _compare("Greater"), "greater_equal": _compare("GreaterOrEqual"),
    "less": _compare("Less"), "less_equal": _compare("LessOrEqual"),
    "equal": _compare("Equal"), "not_equal": _compare("Equal", negate=True),
    "bitwise_and": _logical("And"), "bitwise_or": _logical("Or"), "logical_not": _logical("Not"),
    "isnan": lambda ufunc, x: operator("IsNaN", x, result=np.dtype(bool)),
    "isinf": lambda ufunc, x: operator("IsInf", x, result=np.dtype(bool)),
    "matmul": _matmul,
    "square": _by(lambda x: x * x),
    "expm1": _by(_expm1),
    "log1p": _by(_log1p),
    "log2": _by(lambda x: np.log(x) / np.log(2.0)),
    "log10": _by(lambda x: np.log(x) / np.log(10.0)),
    "exp2": _by(lambda x: np.exp(x * np.log(2.0))),
    "sinh": _by(lambda x: 0.5 * (np.exp(x) - np.exp(-x))),
    "cosh": _by(lambda x: 0.5 * (np.exp(x) + np.exp(-x))),
    "tan": _by(lambda x: np.sin(x) / np.cos(x)),
    "trunc": _by(lambda x: np.where(x < 0, np.ceil(x), np.floor(x))),
    "copysign": _by(_copysign),
    "logaddexp": _by(_logaddexp),
    "floor_divide": _by(_floor_divide),
    "remainder": _by(lambda x, y: x - _floor_divide(x, y) * y),
}  # fmt: skip


# --------------------------------------------------------------- NumPy's functions of whole arrays


def where(condition, x, y) -> Tensor:
    """One value where a condition holds, another elsewhere."""
    values = (condition, x, y)
    graph = _graph_of(values)
    kind = np.result_type(_type(x), _type(y))
    condition = as_tensor(graph, condition, np.dtype(bool))
    x, y = as_tensor(graph, x, kind), as_tensor(graph, y, kind)
    shape = broadcast([condition.shape, x.shape, y.shape])
    return condition.then("Where", shape, kind, more=[x.name, y.name])


def like(x, other):
    """A value in the shape that it has together with another."""
    return where(np.zeros((), dtype=bool), other, x)


def _pick(x: Tensor, index: tuple) -> Tensor:
    """Entries by numbers and slices of axes that are not the rows'."""
    dropped = []
    for axis, one in enumerate(index):
        n = x.shape[axis]
        if isinstance(one, slice):
            if one == slice(None) or (one.start, one.stop, one.step) == (0, None, 1):
                continue
            _check_axis(n)
            numbers = np.arange(n)[one]
        else:
            _check_axis(n)
            numbers = np.array([int(one) % n])
            dropped.append(axis)
        shape = [*x.shape[:axis], len(numbers), *x.shape[axis + 1 :]]
        x = x.then("Gather", shape, more=[x.graph.constant(numbers)], axis=axis)
    return x.squeezed(dropped) if dropped else x


def _check_axis(n):
    if n == ROWS:
        raise NotCarriedError("an entry that belongs to one row")


def joined(values, axis: int):
    """Arrays after one another along an axis; along others they are broadcast."""
    graph = _graph_of(values)
    kind = np.result_type(*map(_type, values))
    tensors = [as_tensor(graph, v, kind) for v in values]
    others = broadcast([(*t.shape[:axis], *t.shape[axis + 1 :]) for t in tensors])
    if ROWS in [t.shape[axis] for t in tensors]:
        raise NotCarriedError("rows after other rows")
    whole = []
    for t in tensors:
        own = (*others[:axis], t.shape[axis], *others[axis:])
        if t.shape != own:  # a number for each row, from whoever has them
            donors = [o.reduced("ReduceMax", axis, keepdims=True) for o in tensors if o is not t]
            for donor in donors:
                t = like(t, donor)
        whole.append(t)
    length = sum(t.shape[axis] for t in tensors)
    shape = (*others[:axis], length, *others[axis:])
    if any(t.shape[:axis] + t.shape[axis + 1 :] != others for t in whole):
        raise NotCarriedError("arrays of different shapes after one another")
    return whole[0].then("Concat", shape, kind, more=[t.name for t in whole[1:]], axis=axis)


def taken(x, index: Tensor, axis: int):
    """Entries along an axis of the model's, by numbers that rows have."""
    graph = index.graph
    x = as_tensor(graph, x)
    if x.shape[axis + 1] == ROWS or index.shape[0] != 1:
        raise NotCarriedError("entries by numbers that are drawn")
    numbers = index.astype(np.int64).squeezed([0])
    shape = [*x.shape[: axis + 1], *numbers.shape, *x.shape[axis + 2 :]]
    return x.then("Gather", shape, more=[numbers.name], axis=axis + 1)


def changed(x, value, index):
    """With some entries set, by numbers and slices."""
    if any(isinstance(one, slice) and one != slice(None) for one in index):
        raise NotCarriedError("a range of entries that is set")
    shape = x.shape[1:]
    mask = np.ones((1, *[1] * len(shape)), dtype=bool)
    chosen = [k for k, one in enumerate(index) if isinstance(one, int)]
    for k in chosen:
        _check_axis(shape[k])
        own = np.arange(shape[k]) == index[k] % shape[k]
        mask = mask & own.reshape(-1, *[1] * (len(shape) - k - 1))
    missing = len(shape) - len(chosen) - (len(value.shape) - 1)
    value = np.expand_dims(value, tuple(range(1, 1 + missing)))
    return np.where(mask, np.expand_dims(value, tuple(1 + k for k in chosen)), x)


FUNCTIONS: dict[str, Callable] = {
    "where": where,
    "sum": lambda x, axis=None, keepdims=False: x.sum(axis, keepdims),
    "prod": lambda x, axis=None, keepdims=False: x.prod(axis, keepdims),
    "max": lambda x, axis=None, keepdims=False: x.max(axis, keepdims),
    "min": lambda x, axis=None, keepdims=False: x.min(axis, keepdims),
    "transpose": lambda x, axes: x.transposed(axes),
    "expand_dims": lambda x, axis: x.expanded(axis),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "round": lambda x: operator("Round", _float(x)),
    "cumsum": lambda x, axis: x.then("CumSum", more=[x.graph.constant(np.int64(axis))]),
}
