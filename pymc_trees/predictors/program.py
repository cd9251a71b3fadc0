"""Expressions of trees and of other variables at rows, for all draws at once.

A program is a list of instructions, each a dict with ``op``, the numbers of the instructions that
it takes (``of``), and settings. Every value has the draws as its first axis, of length 1 where it
is the same for all of them; an axis k of the model's own array is axis k + 1. `posterior.exporting`
writes programs; `run` refuses an unknown name, so that a file cannot ask for anything else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pymc_trees.predictors import special


def _softplus(x):
    return np.logaddexp(0.0, x)


def _log1mexp(x):
    return np.where(x > -np.log(2.0), np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


ELEMENTWISE: dict[str, Callable] = {
    "add": lambda *of: _reduced(np.add, of),
    "mul": lambda *of: _reduced(np.multiply, of),
    "sub": np.subtract,
    "true_div": np.true_divide,
    "int_div": np.floor_divide,
    "mod": np.mod,
    "pow": np.power,
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "sqr": np.square,
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1.0 / x,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "arctan": np.arctan,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "maximum": lambda *of: _reduced(np.maximum, of),
    "minimum": lambda *of: _reduced(np.minimum, of),
    "clip": np.clip,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "neq": np.not_equal,
    "and": lambda *of: _reduced(np.bitwise_and, of),
    "or": lambda *of: _reduced(np.bitwise_or, of),
    "not": np.logical_not,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "switch": np.where,
    "sigmoid": special.sigmoid,
    "softplus": _softplus,
    "log1mexp": _log1mexp,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "identity": lambda x: x,
    "second": lambda like, x: np.broadcast_to(x, np.broadcast_shapes(like.shape, x.shape)),
}
"""By the names of PyTensor's scalar operations."""

OUTER = ("rows", "data", "draws", "constant", "forest")
"""Instructions whose values `run` is given."""
SHAPED = ("cast", "order", "sum", "prod", "max", "softmax", "log_softmax", "join", "pick", "take",
          "matmul", "set", "cumsum", "min")  # fmt: skip
NAMES = {*OUTER, *SHAPED, *ELEMENTWISE}
DTYPES = {
    "bool",
    "float16",
    "float32",
    "float64",
    *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)),
}


def _reduced(function, of):
    total = of[0]
    for one in of[1:]:
        total = function(total, one)
    return total


def check(program: Sequence[Mapping[str, Any]]) -> None:
    """Raise an error unless each instruction is known and takes earlier ones."""
    for k, step in enumerate(program):
        known = isinstance(step, dict) and step.get("op") in NAMES
        known = known and step.get("dtype", "bool") in DTYPES
        if not known or not all(isinstance(i, int) and 0 <= i < k for i in step.get("of", ())):
            raise ValueError("its program has an unknown instruction")


def needed(program: Sequence[Mapping[str, Any]], results: Sequence[int]) -> list[int]:
    """Instructions that some results take, in order."""
    found, waiting = set(), list(results)
    while waiting:
        k = waiting.pop()
        if k not in found:
            found.add(k)
            waiting += program[k].get("of", ())
    return sorted(found)


def run(
    program: Sequence[Mapping[str, Any]],
    results: Sequence[int],
    outer: Callable[[Mapping[str, Any], list[np.ndarray]], np.ndarray],
) -> list[np.ndarray]:
    """Values of some instructions.

    Parameters
    ----------
    program : list of dict
        Instructions.
    results : list of int
        Which of them are asked for.
    outer : callable
        Value of an instruction of `OUTER`, given the values that it takes.
    """
    values: dict[int, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for k in needed(program, results):
            step = program[k]
            of = [values[i] for i in step.get("of", ())]
            op = step["op"]
            if op in OUTER:
                values[k] = outer(step, of)
            elif op in ELEMENTWISE:
                values[k] = ELEMENTWISE[op](*of)
            else:
                values[k] = _shaped(op, step, of)
    return [values[k] for k in results]


def _shaped(op: str, step: Mapping[str, Any], of: list[np.ndarray]) -> np.ndarray:
    """Operations that know axes; those of the settings are the model's, without the draws."""
    x = of[0]
    if op == "cast":
        return x.astype(step["dtype"])
    if op == "order":  # axes in another order, -1 for a new one
        kept = [k + 1 for k in step["axes"] if k >= 0]
        dropped = tuple(k for k in range(1, x.ndim) if k not in kept)
        x = np.transpose(x, (0, *kept, *dropped))
        x = x.reshape(x.shape[: len(kept) + 1])
        new = tuple(k + 1 for k, axis in enumerate(step["axes"]) if axis < 0)
        return np.expand_dims(x, new)
    if op in ("sum", "prod", "max", "min"):
        return getattr(np, op)(x, axis=_axes(step))
    if op == "softmax":
        return special.softmax(x, _axes(step))
    if op == "log_softmax":
        above = x - x.max(axis=_axes(step), keepdims=True)
        return above - np.log(np.exp(above).sum(axis=_axes(step), keepdims=True))
    if op == "cumsum":
        return np.cumsum(x, axis=step["axes"][0] + 1)
    if op == "join":
        return _joined(of, step["axes"][0] + 1)
    if op == "pick":
        return x[(slice(None), *map(_index, step["index"]))]
    if op == "take":
        return _taken(x, of[1], step["axes"][0])
    if op == "matmul":
        return _product(x, of[1])
    changed = np.array(np.broadcast_to(x, (max(len(x), len(of[1])), *x.shape[1:])))
    changed[(slice(None), *map(_index, step["index"]))] = of[1]
    return changed


def _joined(of: list[np.ndarray], axis: int) -> np.ndarray:
    """Arrays after one another along an axis; along others they are broadcast."""
    others = np.broadcast_shapes(*(np.delete(one.shape, axis) for one in of))
    shapes = [(*others[:axis], one.shape[axis], *others[axis:]) for one in of]
    return np.concatenate([np.broadcast_to(a, s) for a, s in zip(of, shapes, strict=True)], axis)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Product of matrices or vectors in each draw."""
    is_row, is_column = a.ndim == 2, b.ndim == 2
    product = np.matmul(a[:, None] if is_row else a, b[..., None] if is_column else b)
    if is_column:
        product = product[..., 0]
    return product[:, 0] if is_row else product


def _axes(step):
    return tuple(k + 1 for k in step["axes"])


def _index(one):
    return one if isinstance(one, int) else slice(*one)


def _taken(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """Entries of x along an axis by whole numbers, which are the same for all draws."""
    n = x.shape[axis + 1]
    numbers = index[0]
    wrong = (numbers < -n) | (numbers >= n)
    if wrong.any():
        raise IndexError(
            f"a row picks entry {int(numbers[wrong].flat[0])} of a vector that has {n}: give "
            "numbers of groups that the model had."
        )
    return np.take(x, numbers, axis=axis + 1)
