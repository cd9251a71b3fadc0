"""Words of SQL: names, text and numbers in a dialect, and operations on expressions."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pymc_trees.predictors import program
from pymc_trees.predictors.elsewhere.tensors import NotCarriedError

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
    "postgres": Dialect("postgres", "double precision", "greatest", "least", True),
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
            "reciprocal": lambda a: f"({self.dialect.number(1.0)} / {a})",
            "exp": lambda a: f"exp({a})",
            "expm1": lambda a: f"(exp({a}) - 1)",
            "log": lambda a: f"ln({a})",
            "log1p": lambda a: f"ln(1 + {a})",
            "sigmoid": lambda a: f"({self.dialect.number(1.0)} / (1 + exp(-{a})))",
            "softplus": lambda a: f"ln(1 + exp({a}))",
            "maximum": lambda *of: f"{both['greatest']}({', '.join(of)})",
            "minimum": lambda *of: f"{both['least']}({', '.join(of)})",
            "clip": lambda a, low, high: f"{both['least']}({both['greatest']}({a}, {low}), {high})",
            "identity": lambda a: a,
            "second": lambda like, a: a,
            **{
                name: (lambda a, b, sign=sign: f"({a} {sign} {b})")
                for name, sign in zip(
                    ("lt", "le", "gt", "ge", "eq", "neq"),
                    ("<", "<=", ">", ">=", "=", "<>"),
                    strict=True,
                )
            },
            "switch": lambda c, a, b: f"CASE WHEN {c} THEN {a} ELSE {b} END",
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
