"""A predictor as a query: trees as CASE expressions, the mean over draws of a function.

The program runs at one row, whose cells are the columns of the table: values are arrays of
expressions and numbers, with the draws first. At mean trees of all draws where the function is
linear in them, otherwise draw by draw.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_trees.core.columns.cells import MAX_CUT
from pymc_trees.predictors import program
from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.elsewhere.asked import (
    Asked,
    check_hard,
    commutes_with_mean,
    leaves_of,
    levels_in,
    splits_of,
)
from pymc_trees.predictors.elsewhere.tensors import NotCarriedError
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.packed import PackedForest

# ---------------- Words of SQL: names, text and numbers in a dialect, and operations on expressions


EXACT_DIGITS = 15
"""Decimals of so many digits and a small exponent are the same float64 in every reader."""


class Text(str):
    """An expression of SQL: a number for each row."""

    __slots__ = ()


class LevelColumn(str):
    """A column of levels; its cells are no numbers."""

    __slots__ = ()


class Dialect(NamedTuple):
    """What differs between databases."""

    name: str
    double: str
    """The type of float64."""
    greatest: str
    least: str
    has_nan: bool
    """Whether cells may be NaN, which is above all numbers there."""

    def number(self, value: float) -> str:
        """A number that the database reads to the last bit or so."""
        text = repr(float(value))
        exponent = "" if self.name == "sqlite" or "e" in text else "e0"
        return f"{text}{exponent}"

    def real(self, column: str) -> str:
        """A column as float64, whatever numbers it holds: else 7 / 2 is 3 where they are whole."""
        return f"({column}+0.0)" if self.name == "sqlite" else f"{column}::{self.double}"

    def cut(self, value: float) -> str:
        """A number that it reads to the last bit, so that ties are ties.

        SQLite rounds some decimals of more than 15 digits to a neighbour. A whole number below
        2**53, divided or multiplied by powers of two, is exact.
        """
        text = repr(float(value))
        digits = text.split("e")[0].strip("-").replace(".", "").strip("0")
        short = len(digits) <= EXACT_DIGITS and (1e-5 < abs(value) < 1e15 or value == 0.0)
        if self.name != "sqlite" or short:
            return self.number(value)
        share, exponent = np.frexp(value)
        whole, exponent = int(share * 2.0**53), int(exponent) - 53
        while whole % 2 == 0:
            whole, exponent = whole // 2, exponent + 1
        text, sign = str(whole), "*" if exponent > 0 else "/"
        for start in range(0, abs(exponent), 50):
            text += f"{sign}{2 ** min(50, abs(exponent) - start)}.0"
        return f"({text})"

    def level(self, value) -> str:
        """A level as a literal."""
        if isinstance(value, bool):
            return ("1" if value else "0") if self.name == "sqlite" else str(value).upper()
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value) if isinstance(value, int) else self.number(value)


DIALECTS = {
    "duckdb": Dialect("duckdb", "DOUBLE", "greatest", "least", True),
    "sqlite": Dialect("sqlite", "REAL", "max", "min", False),
    "postgres": Dialect("postgres", "float8", "greatest", "least", True),
}


def quoted(name: str) -> str:
    """A name, whatever it is made of."""
    return '"' + name.replace('"', '""') + '"'


def total(parts: Sequence[str]) -> str:
    """Sum, in pairs, so that no expression is deeper than databases read."""
    parts = list(parts)
    while len(parts) > 1:
        pairs = [f"({a} + {b})" for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


# ------------------------------------------------------------------------------------- Operations


class Words:
    """Operations of programs on arrays of expressions and numbers.

    Parameters
    ----------
    dialect : Dialect
        Of the database.
    """

    def __init__(self, dialect: Dialect):
        self.dialect = dialect
        both = {"greatest": dialect.greatest, "least": dialect.least}
        zero, half, one, two = map(dialect.number, (0.0, 0.5, 1.0, 2.0))
        self._texts: dict[str, Callable[..., str]] = {
            "add": lambda *of: total(of),
            "mul": lambda *of: f"({' * '.join(of)})",
            "sub": lambda a, b: f"({a} - {b})",
            "true_div": lambda a, b: f"({a} / {b})",
            "pow": lambda a, b: f"power({a}, {b})",
            "sqr": lambda a: f"power({a}, 2)",
            "neg": lambda a: f"(-{a})",
            "abs": lambda a: f"abs({a})",
            "sqrt": lambda a: f"sqrt({a})",
            "reciprocal": lambda a: f"({one} / {a})",
            "exp": lambda a: f"exp({a})",
            "expm1": lambda a: f"(tanh({a} / {two}) * (exp({a}) + {one}))",
            "log": lambda a: f"ln({a})",
            "log1p": lambda a: (
                f"CASE WHEN abs({a}) < {half} THEN asinh({a} / {two} * ({one} + {one} / ({one} + "
                f"{a}))) ELSE ln({one} + {a}) END"
            ),
            "sigmoid": lambda a: f"({one} / (1 + exp(-{a})))",
            "softplus": lambda a: f"({both['greatest']}({a}, {zero}) + ln(1 + exp(-abs({a}))))",
            "maximum": lambda *of: f"{both['greatest']}({', '.join(of)})",
            "minimum": lambda *of: f"{both['least']}({', '.join(of)})",
            "clip": lambda a, low, high: f"{both['least']}({both['greatest']}({a}, {low}), {high})",
            "identity": lambda a: a,
            "second": lambda like, a: a,
            **{
                name: (
                    lambda a, b, sign=sign: f"CASE WHEN {a} {sign} {b} THEN {one} ELSE {zero} END"
                )
                for name, sign in zip(
                    ("lt", "le", "gt", "ge", "eq"), ("<", "<=", ">", ">=", "="), strict=True
                )
            },
            "neq": lambda a, b: f"CASE WHEN {a} = {b} THEN {zero} ELSE {one} END",
            "switch": lambda c, a, b: f"CASE WHEN {c} <> {zero} THEN {a} ELSE {b} END",
        }

    def apply(self, op: str, of: Sequence[np.ndarray]) -> np.ndarray:
        """An elementwise operation."""
        if op not in program.ELEMENTWISE:
            raise NotCarriedError(f"the operation {op}")
        if not any(one.dtype == object for one in of):
            return program.ELEMENTWISE[op](*of)
        if op not in self._texts:
            raise NotCarriedError(f"the operation {op}")
        texts = np.frompyfunc(self.word, 1, 1)
        written = np.frompyfunc(lambda *cells: Text(self._texts[op](*cells)), len(of), 1)
        return np.asarray(written(*(texts(one) for one in of)), dtype=object)

    def word(self, cell) -> str:
        """An expression, or a number as one."""
        if isinstance(cell, LevelColumn):
            raise NotCarriedError(f"arithmetic with the levels of {cell}")
        if isinstance(cell, Text):
            return cell
        if not np.isfinite(float(cell)):
            raise NotCarriedError("a number that is not finite")
        return f"({self.dialect.number(cell)})" if cell < 0 else self.dialect.number(cell)

    def summed(self, values: np.ndarray, axis) -> np.ndarray:
        """Sums along axes."""
        axes = [axis] if isinstance(axis, int) else list(axis)
        kept = [k for k in range(values.ndim) if k not in axes]
        moved = np.transpose(values, [*kept, *axes])
        flat = moved.reshape(*moved.shape[: len(kept)], -1)
        found = np.empty(flat.shape[:-1], dtype=object)
        for at in np.ndindex(found.shape):
            found[at] = Text(total([self.word(cell) for cell in flat[at]]))
        return found


# -------------------------------------------------------------------------------------------------


ROW = "t"
"""Name of a row of the table. Names of columns follow it: SQLite takes others for text."""
LARGE = "1e308"
"""Above all cells that are numbers, and below NaN, which databases sort last."""


class TooLongError(Exception):
    """How many draws would fit."""


def columns_of(evaluator: Evaluator, columns, name: str) -> list[list[str]]:
    """Names of the columns of each table, as the database has them."""
    tables = evaluator.tables
    if columns is not None:
        p = len(tables[0].schema.rules)
        if len(tables) > 1 or isinstance(columns, str) or len(columns) != p:
            raise ValueError(
                f"columns={columns!r}: {[t.name for t in tables]} has {p} columns; give the names "
                "of so many, or leave columns out where the training frame has the names."
            )
        names = [[str(one) for one in columns]]
    else:
        lacking = [t.name for t in tables if t.schema.names is None]
        if lacking:
            raise ValueError(
                f"to_sql: the columns of {lacking} have no names. Give columns=, their names in "
                "the table."
            )
        names = [list(t.schema.names or ()) for t in tables]
    taken = [*(one for some in names for one in some), *(d.name for d in evaluator.data)]
    if name.lower() in [one.lower() for one in taken]:
        raise ValueError(f"name={name!r}: the table has this column. Give another name.")
    return names


def text_of(query: "Query", table: Sequence[str], name: str) -> str:
    """The query."""
    means = query.means()
    found = [
        f"{text} AS {quoted(name + ''.join(f'_{k}' for k in at))}"
        for at, text in np.ndenumerate(means)
    ]
    place = ".".join(quoted(str(one)) for one in table)
    text = f"SELECT {ROW}.*, {', '.join(found)} FROM {place} AS {ROW}"
    query.check_size(text)
    return text


class Query:
    """What a query is written from.

    Parameters
    ----------
    evaluator : Evaluator
        Forests and tables.
    arrays : mapping of str and array
        Draws and constants.
    asked : Asked
        The function.
    dialect : Dialect
        Of the database.
    columns : list of list of str
        Names of the columns of each table of the predictor.
    most : int
        Bytes of trees at the most.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        arrays: Mapping[str, np.ndarray],
        asked: Asked,
        dialect: Dialect,
        columns: Sequence[Sequence[str]],
        most: int,
    ):
        self._evaluator, self._asked = evaluator, asked
        self._arrays = {**arrays, **asked.constants}
        self._dialect, self._columns, self._most = dialect, columns, most
        self._words = Words(dialect)
        self._averaged = commutes_with_mean(asked.program, asked.of)

    def means(self) -> np.ndarray:
        """Expressions of the posterior mean, in the shape of the function at a row."""
        values: dict[int, np.ndarray] = {}
        steps = self._asked.program
        with np.errstate(all="ignore"):
            for k in program.needed(steps, [self._asked.of]):
                of = [values[i] for i in steps[k].get("of", ())]
                values[k] = np.asarray(self._step(steps[k], of))
        found = np.take(values[self._asked.of], 0, axis=self._asked.axis)
        means = np.empty(found.shape[1:], dtype=object)
        for at in np.ndindex(means.shape):
            parts = [self._words.word(cell) for cell in found[(slice(None), *at)]]
            many = self._dialect.number(len(parts))
            means[at] = parts[0] if len(parts) == 1 else f"({total(parts)} / {many})"
        return means

    def check_size(self, text: str) -> None:
        """Raise an error where it is too long."""
        size, n_draws = len(text.encode()), self._evaluator.n_draws
        if size > self._most:
            raise TooLongError(max(1, int(0.9 * n_draws * self._most / size)))

    # ----------------------------------------------------------------------------- Instructions

    def _step(self, step: Mapping[str, Any], of: list[np.ndarray]) -> np.ndarray:
        op = step["op"]
        if op == "rows":
            schema = self._evaluator.tables[step["table"]].schema
            cells = [self._cell(n, s) for n, s in zip(self._columns[step["table"]], schema.levels,
                                                      strict=True)]  # fmt: skip
            row = np.empty((1, 1, len(cells)), dtype=object)
            row[0, 0] = cells
            return row
        if op == "data":
            return self._beside(step["data"])
        if op == "constant":
            return self._arrays[f"constant/{step['number']}"]
        if op == "draws":
            drawn = self._arrays[f"draws/{step['name']}"]
            return drawn.mean(axis=0, keepdims=True) if self._averaged else drawn
        if op == "forest":
            forest = self._evaluator.forests[step["forest"]]
            check_hard(forest, "to_sql")
            table = self._table_of(step)
            return _Trees(self, forest, table, of[0]).outputs()
        if not any(one.dtype == object for one in of):
            return program.ELEMENTWISE[op](*of) if op in program.ELEMENTWISE else \
                program._shaped(op, step, of)  # fmt: skip
        return self._of_rows(op, step, of)

    def _of_rows(self, op: str, step: Mapping[str, Any], of: list[np.ndarray]) -> np.ndarray:
        x = of[0]
        if op in ("order", "pick", "join", "set"):
            return program._shaped(op, step, of)
        if op == "cast" and step["dtype"].startswith("float"):
            return x
        if op == "sum":
            return self._words.summed(x, program._axes(step))
        if op == "softmax":
            return self._softmax(x, *program._axes(step))
        if op == "take":
            return self._taken(x, of[1], step["axes"][0])
        if op == "matmul" and x.ndim == 3 and of[1].ndim == 2:
            product = self._words.apply("mul", [x, of[1][:, None]])
            return self._words.summed(product, 2)
        return self._words.apply(op, of)

    def _softmax(self, x: np.ndarray, axis: int) -> np.ndarray:
        """Of differences: a power that is too large for float64 divides, and gives 0."""
        cells = np.moveaxis(x, axis, -1)
        apart = self._words.apply("sub", [cells[..., None, :], cells[..., None]])
        powers = self._words.apply("exp", [apart])
        powers[..., range(x.shape[axis]), range(x.shape[axis])] = 1.0
        below = self._words.summed(powers, powers.ndim - 1)
        return np.moveaxis(self._words.apply("reciprocal", [below]), -1, axis)

    def _table_of(self, step: Mapping[str, Any]) -> Schema:
        """Schema of the rows that a forest is evaluated at."""
        [number] = [
            self._asked.program[k]["table"]
            for k in program.needed(self._asked.program, step["of"])
            if self._asked.program[k]["op"] == "rows"
        ]
        return self._evaluator.tables[number].schema

    def _cell(self, name: str, levels: tuple | None) -> str:
        column = f"{ROW}.{quoted(name)}"
        return Text(self._dialect.real(column)) if levels is None else LevelColumn(column)

    def _beside(self, k: int) -> np.ndarray:
        data = self._evaluator.data[k]
        if len(data.shape) != 1:
            raise NotCarriedError(f"{data.name}, which has several numbers for each row")
        found = np.empty((1, 1), dtype=object)
        found[0, 0] = self._cell(data.name, data.levels if data.is_named else None)
        return found

    def _taken(self, x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
        """Entries by the number, or the name, of a row's group."""
        if index.shape != (1, 1):
            raise NotCarriedError("entries by numbers that are made of others")
        cell, n = index[0, 0], x.shape[axis + 1]
        levels: Sequence[Any] = range(n)
        if isinstance(cell, LevelColumn):
            own = [d for d in self._evaluator.data if f"{ROW}.{quoted(d.name)}" == cell]
            levels = own[0].levels or levels
        moved = np.moveaxis(x, axis + 1, -1)
        found = np.empty(moved.shape[:-1], dtype=object)
        for at in np.ndindex(found.shape):
            cases = " ".join(
                f"WHEN {self._dialect.level(level)} THEN {self._words.word(value)}"
                for level, value in zip(levels, moved[at], strict=False)
            )
            found[at] = Text(f"(CASE {cell} {cases} END)")
        return np.expand_dims(found, axis + 1)

    # -------------------------------------------------------------------------------- Conditions

    def condition(self, cell, levels: Sequence | None, left, missing_left: bool):
        """A condition, and whether rows of which it holds go left; or where all rows go.

        Parameters
        ----------
        cell : str or number
            A column, or what it is set to.
        levels : sequence or None
            Of the column, by code.
        left : float or set of int
            A cut, or the codes that go left.
        missing_left : bool
            Where missing cells go.
        """
        if not isinstance(cell, str):
            return None, bool(cell in left if isinstance(left, set) else cell <= left)
        if levels is not None:
            inside = left if isinstance(left, set) else {k for k in range(len(levels)) if k <= left}
            chosen = [
                level for k, level in enumerate(levels) if (k in inside) != bool(missing_left)
            ]
            if not chosen:
                return None, bool(missing_left)
            words = ", ".join(self._dialect.level(level) for level in chosen)
            return f"{cell} IN ({words})", not missing_left
        if left == -MAX_CUT and not missing_left or left == MAX_CUT and missing_left:
            return None, bool(missing_left)
        above_nan = f" AND {cell} < {LARGE}" if self._dialect.has_nan else ""
        if abs(left) == MAX_CUT:
            return f"{cell} < {LARGE}", not missing_left
        if missing_left:
            return f"{cell} > {self._dialect.cut(left)}{above_nan}", False
        return f"{cell} <= {self._dialect.cut(left)}", True


class _Trees:
    """CASE expressions of the trees of a forest at the cells of a row."""

    def __init__(self, query: Query, forest: PackedForest, schema: Schema, X: np.ndarray):
        if len(X) != 1:
            raise NotCarriedError("trees at rows that are drawn")
        self._query, self._forest, self._cells = query, forest, X[0, 0]
        self._averaged = query._averaged
        splits, leaves = splits_of(forest), leaves_of(forest)
        self._values, self._slopes = leaves.values, leaves
        if self._averaged:
            self._values = self._values / forest.draws
        known = forest.arrays["levels"].tolist() if forest.mixed else [0] * forest.p
        conditions: dict[tuple, tuple] = {}
        self._conditions = []
        for j, cut, is_set, missing_left in zip(*(one.tolist() for one in splits), strict=True):
            key = (j, cut, is_set, missing_left)
            if key not in conditions:
                levels = schema.levels[j]
                left: Any = cut
                if is_set:
                    levels = range(known[j]) if levels is None else levels[: known[j]]
                    left = set(levels_in(cut, known[j]))
                conditions[key] = query.condition(self._cells[j], levels, left, missing_left)
            self._conditions.append(conditions[key])
        self._size = 0

    def outputs(self) -> np.ndarray:
        """(draws or 1, 1, K) expressions."""
        forest, width = self._forest, self._values.shape[1]
        n_draws = 1 if self._averaged else forest.draws
        found = np.empty((n_draws, 1, width), dtype=object)
        each = forest.draws * forest.trees // n_draws
        roots = forest.links.roots[:-1].tolist()
        for draw in range(n_draws):
            for k in range(width):
                trees = range(draw * each, (draw + 1) * each)
                found[draw, 0, k] = self._sum_of(trees, roots, k)
        if not len(self._slopes.columns):
            return found
        return self._with_slopes(found)

    def _sum_of(self, trees: Sequence[int], roots: Sequence[int], k: int) -> Text:
        constant, texts = 0.0, []
        for tree in trees:
            text = self._node(roots[tree], k)
            if isinstance(text, float):
                constant += text
            else:
                texts.append(text)
                self._count(text, tree, k)
        query = self._query
        texts += [query._words.word(constant)] if constant or not texts else []
        return Text(f"CAST({total(texts)} AS {query._dialect.double})")

    def _count(self, text: str, tree: int, k: int) -> None:
        self._size += len(text.encode()) + 6
        if self._size > self._query._most:
            forest = self._forest
            share = ((tree + 1) / (forest.draws * forest.trees) + k) / self._values.shape[1]
            raise TooLongError(max(1, int(0.8 * share * forest.draws)))

    def _node(self, node: int, k: int) -> str | float:
        """A leaf as a number, what is below a split as an expression."""
        links, query = self._forest.links, self._query
        if self._forest.arrays["rules"][node] == 0:
            return float(self._values[links.leaf[node], k])
        s = links.split_of[node]
        condition, to_left = self._conditions[s]
        left, right = node + 1, int(links.right[s])
        if condition is None:
            return self._node(left if to_left else right, k)
        holds, fails = (left, right) if to_left else (right, left)
        first, second = self._node(holds, k), self._node(fails, k)
        if first == second:
            return first
        first, second = (
            query._dialect.number(one) if isinstance(one, float) else one for one in (first, second)
        )
        return f"CASE WHEN {condition} THEN {first} ELSE {second} END"

    def _with_slopes(self, found: np.ndarray) -> np.ndarray:
        """Intercepts plus slopes times standardised cells, where these are not missing."""
        words, leaves, dialect = self._query._words, self._slopes, self._query._dialect
        k = self._forest.n_outputs
        whole = found[:, :, :k]
        for q, j in enumerate(leaves.columns):
            mean, sd, low, high = leaves.scale[q]
            cell = self._cells[j]
            if isinstance(cell, LevelColumn):
                raise NotCarriedError(f"a slope in the codes of the levels of {cell}")
            x = np.array([[[cell]]], dtype=object)
            if leaves.clipped:
                x = words.apply("clip", [x, *(np.array([[[v]]]) for v in (low, high))])
            z = words.apply("sub", [x, np.array([[[mean]]])])
            z = words.apply("true_div", [z, np.array([[[sd]]])])
            if isinstance(cell, Text):
                present = f"CASE WHEN {cell} < {LARGE} THEN {z[0, 0, 0]} ELSE {dialect.number(0.0)}"
                z[0, 0, 0] = Text(f"{present} END")
            slopes = found[:, :, k * (1 + q) : k * (2 + q)]
            product = words.apply("mul", [slopes, z])
            whole = words.apply("add", [whole, product])
        return whole
