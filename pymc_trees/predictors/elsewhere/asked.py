"""What a predictor is asked for elsewhere: one instruction of its program, and where the rows are.

The mean of a response is written as instructions too, by the formulas of `predictors.laws`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import LEFT, SET
from pymc_trees.predictors.elsewhere.tensors import NotCarriedError
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.hard import hashed_sides
from pymc_trees.predictors.laws import OWN_AXES
from pymc_trees.predictors.packed import CONSTANT, LINEAR, SOFT, PackedForest
from pymc_trees.predictors.program import needed

# -------- Splits and leaves of hard trees in plain terms: coins are thrown, slopes stand in columns


class Splits(NamedTuple):
    """Of all split nodes."""

    column: np.ndarray
    """(S,) int."""
    cut: np.ndarray
    """(S,) a number; of a set of levels its bits."""
    is_set: np.ndarray
    """(S,) bool."""
    missing_left: np.ndarray
    """(S,) bool: where a missing cell goes."""


def splits_of(forest: PackedForest) -> Splits:
    """Splits of trees that are not soft."""
    links = forest.links
    if forest.mixed:
        left = links.rule_kind & LEFT != 0
    else:
        left = hashed_sides(forest)
    is_set = links.rule_kind >= SET
    return Splits(links.column.astype(np.int64), links.cut, is_set, left)


def levels_in(bits: float, levels: int) -> list[int]:
    """Codes of the levels in a set."""
    return [k for k in range(levels) if (int(bits) >> k) & 1]


class Leaves(NamedTuple):
    """Leaf values, and the columns that they multiply where leaves have slopes."""

    values: np.ndarray
    """(L, K (1 + q)) K outputs; where q columns have slopes these are intercepts, and K slopes for
    each column follow."""
    columns: np.ndarray
    """(q,) columns with slopes."""
    scale: np.ndarray
    """(q, 4) mean, sd, least and greatest cell of each of them."""
    clipped: bool
    """Whether lines end at the extremes."""


def leaves_of(forest: PackedForest) -> Leaves:
    """Leaves of trees that are not soft."""
    if forest.kind != LINEAR:
        return Leaves(forest.values, np.zeros(0, np.int64), np.zeros((0, 4)), False)
    slopes, values, k = forest.arrays["slopes"], forest.values, forest.n_outputs
    scale = slopes[2:].reshape(-1, 4)
    columns = np.flatnonzero(scale[:, 1] > 0)
    dense = np.zeros((len(values), k * (1 + len(columns))))
    dense[:, :k] = values[:, :k]
    if slopes[0] == 0.0:  # one slope, in the column that the code names
        code = np.abs(values[:, -1]).astype(np.int64)
        own = np.flatnonzero((code > 0) & (code <= len(columns)))
        dense[own[:, None], k * code[own, None] + np.arange(k)] = values[own, k : 2 * k]
    else:
        dense[:, k:] = values[:, k:-1]
    return Leaves(dense, columns, scale[columns], bool(slopes[1] != 0.0))


def check_hard(forest, what: str, soft: bool = False) -> None:
    """Raise an error for trees of other kinds; soft ones may be allowed."""
    if forest.kind in (CONSTANT, LINEAR) or (soft and forest.kind == SOFT):
        return
    trees = "soft trees, in which a row goes both ways at each split"
    if forest.kind != SOFT:
        trees = "Mondrian trees, which a row may leave at any node"
    raise ValueError(f"{what}: {forest.about['name']} has {trees}. Use save() and load() instead.")


# -------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A function of rows."""

    program: list[dict[str, Any]]
    """That of the predictor, and what was added."""
    constants: dict[str, np.ndarray]
    """Arrays beside the predictor's."""
    of: int
    """The instruction."""
    axis: int
    """Of the rows, behind that of the draws."""
    name: str


class _Writer:
    """Adds instructions behind a program."""

    def __init__(self, program: Sequence[Mapping[str, Any]]):
        self.program = [dict(step) for step in program]
        self.constants: dict[str, np.ndarray] = {}

    def op(self, op: str, *of: int, **settings) -> int:
        self.program.append({"op": op, "of": list(of), **settings})
        return len(self.program) - 1

    def number(self, value: float) -> int:
        key = f"asked {len(self.constants)}"
        self.constants[f"constant/{key}"] = np.array([value])
        return self.op("constant", number=key)


def _lognormal(w: _Writer, mu: int, sigma: int) -> int:
    half = w.op("mul", w.number(0.5), w.op("sqr", sigma))
    return w.op("exp", w.op("add", mu, half))


def _negative_binomial(w: _Writer, n: int, p: int) -> int:
    return w.op("true_div", w.op("mul", n, w.op("sub", w.number(1.0), p)), p)


def _weibull(w: _Writer, alpha: int, beta: int) -> int:
    raise NotCarriedError("the mean of a Weibull")


MEANS: dict[str, Callable[..., int]] = {
    "lognormal": _lognormal,
    "bernoulli": lambda w, p: p,
    "poisson": lambda w, mu: mu,
    "negative_binomial": _negative_binomial,
    "gamma": lambda w, alpha, scale: w.op("mul", alpha, scale),
    "exponential": lambda w, scale: scale,
    "categorical": lambda w, p: p,
    "normal_mixture": lambda w, parts: parts,  # refused where trees are written
    "weibull": _weibull,
}
"""Means of laws as instructions, those of `laws.LAWS`; of a Categorical the probabilities."""
LOCATION = {"normal": 0, "studentt": 1}
"""The parameter that is the mean; the others lend it their shape at the most."""


def function_of_rows(evaluator: Evaluator, about: Mapping[str, Any], name: str) -> Asked:
    """A function of the predictor by its name."""
    one = about["functions"][name]
    return Asked(list(about["program"]), {}, one["of"], 1 + one["axis"], name)


def mean_of_response(evaluator: Evaluator, about: Mapping[str, Any]) -> Asked:
    """The expected response of each draw; of a Categorical the probabilities of its classes."""
    response, writer = about["response"], _Writer(about["program"])
    ndim = response["ndim"] + OWN_AXES.get(response["law"], 0)
    of, shapes = [], [one.shape[1:] for one in at_one_row(evaluator, response["of"])]
    for number, shape in zip(response["of"], shapes, strict=True):
        new = ndim - len(shape)
        if new:
            axes = [*[-1] * new, *range(len(shape))]
            number = writer.op("order", number, axes=axes)
        of.append(number)
    law = response["law"]
    if law not in LOCATION:
        result = MEANS[law](writer, *of)
    else:
        result = of.pop(LOCATION[law])
        if not _has_whole_shape(evaluator, response):
            for like in of:
                result = writer.op("second", like, result)
    return Asked(writer.program, writer.constants, result, 1 + response["axis"], response["name"])


def _has_whole_shape(evaluator: Evaluator, response: Mapping[str, Any]) -> bool:
    """Whether the mean of a response has the shape of all its parameters together."""
    two = [one.shape[1:] for one in at_one_row(evaluator, response["of"], n=2)]
    own = two[LOCATION[response["law"]]]
    return own == np.broadcast_shapes(*two) and len(own) == response["ndim"]


def at_one_row(evaluator: Evaluator, results: Sequence[int], n: int = 1) -> list[np.ndarray]:
    """Values of instructions at rows of zeros, for their shapes."""
    tables = [np.zeros((n, len(t.schema.rules))) for t in evaluator.tables]
    beside = [
        np.zeros((1, *[n if k < 0 else k for k in d.shape]), dtype=d.dtype) for d in evaluator.data
    ]
    return evaluator.values(results, tables, beside)


LINEAR_OPS = {"rows", "data", "forest", "draws", "constant", "order", "pick", "identity", "add",
              "sub", "neg", "sum", "join", "second"}  # fmt: skip
ONE_SIDED_OPS = {"mul", "true_div", "matmul", "take"}
"""Linear where all but one of what they take is the same for all draws."""


def commutes_with_mean(program: Sequence[Mapping[str, Any]], of: int) -> bool:
    """Whether a value at mean trees and mean parameters is the mean over draws of the values."""
    steps = needed(program, [of])
    varies: set[int] = set()
    for k in steps:
        step = program[k]
        varying = [i for i in step.get("of", ()) if i in varies]
        if step["op"] in ("forest", "draws"):
            if varying:  # trees at rows that are drawn
                return False
            varies.add(k)
        elif varying:
            varies.add(k)
            first = step["op"] != "true_div" or varying == step["of"][:1]
            one_sided = step["op"] in ONE_SIDED_OPS and len(varying) == 1 and first
            if step["op"] not in LINEAR_OPS and not one_sided:
                return False
    return True
