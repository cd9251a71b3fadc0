"""Terms of a formula on a data frame: design matrices, groups and responses, at any rows."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pymc_trees.formula.parse import ForestTerm, Parsed

SPECIAL = ("weighted", "censored", "truncated")
"""Functions of the response, as Bambi names them."""


@dataclass
class Response:
    """Values of the response, and what is known of each row."""

    name: str
    values: np.ndarray
    levels: list | None = None
    known: dict[str, np.ndarray] = field(default_factory=dict)
    """n, weights, lower, upper."""


class Terms:
    """Terms of a formula with what they remember of the training rows."""

    def __init__(self, parsed: Parsed, data: pd.DataFrame, namespace: dict[str, Any]):
        from formulae.categorical import ENCODINGS
        from formulae.environment import Environment
        from formulae.transforms import TRANSFORMS

        self.description, self.forests = parsed.description, parsed.forests
        self.env = Environment([namespace])
        self.calls = Environment([{**TRANSFORMS, **ENCODINGS}, namespace])
        description = self.description
        if description.response is None:
            raise ValueError("formula: give a response before the ~.")
        self.outcome = description.response.term.components[0]
        description.eval(data, self.env)
        for one in self.forests:
            if one.factor is not None:
                one.factor.set_type(data, self.env)
                one.factor.set_data(False)
                self.factor(one, data)
        terms = description.common_terms
        self.intercept = any(term.kind == "intercept" for term in terms)
        self.common = [t for t in terms if t.kind not in ("intercept", "offset")]
        self.offsets = [t for t in terms if t.kind == "offset"]
        self.groups = list(description.group_terms)

    # ----------------------------------------------------------------- Numbers at rows of a frame

    def columns(self, term, data: pd.DataFrame) -> np.ndarray:
        """(n, p) columns of a common term, or of what is on the left of a bar."""
        if term.kind == "intercept":
            return np.ones((len(data), 1))
        values = np.asarray(term.eval_new_data(data), dtype=np.float64)
        return values.reshape(len(data), -1)

    def factor(self, one: ForestTerm, data: pd.DataFrame) -> np.ndarray:
        """(n,) what a forest of coefficients is multiplied by."""
        assert one.factor is not None
        values = self.columns(one.factor, data)
        if values.shape[1] > 1 or any(c.kind != "numeric" for c in one.factor.components):
            raise ValueError(
                f"{one.factor_name}:{one.text}: {one.factor_name} must be one column of numbers; "
                "make a column of 0 and 1 for each level."
            )
        return values[:, 0]

    def offset(self, data: pd.DataFrame) -> np.ndarray | None:
        """(n,) sum of the offsets."""
        found = [np.asarray(t.eval_new_data(data), dtype=np.float64) for t in self.offsets]
        if not found:
            return None
        return np.sum([np.broadcast_to(v.reshape(-1), (len(data),)) for v in found], axis=0)

    def group_index(self, term, data: pd.DataFrame) -> tuple[np.ndarray, list]:
        """(n,) groups of the rows, and labels of those beyond the training groups."""
        columns, codes, sizes = [], [], []
        for one in term.factor.components:
            values = one.call.eval(data, one.env) if hasattr(one, "call") else data[one.name]
            values = np.asarray(
                values.data if type(values).__name__ == "CategoricalBox" else values
            )
            columns.append(values)
            code = pd.Index(one.levels).get_indexer(values)
            _check_types(one, values[code < 0])
            codes.append(code)
            sizes.append(len(one.levels))
        known = np.all([code >= 0 for code in codes], axis=0)
        index = np.full(len(data), -1, dtype=np.int64)
        index[known] = np.ravel_multi_index([code[known] for code in codes], sizes)
        labels: dict[str, int] = {}
        for row in np.flatnonzero(~known):
            label = ":".join(str(values[row]) for values in columns)
            index[row] = labels.setdefault(label, int(np.prod(sizes)) + len(labels))
        return index, list(labels)

    # --------------------------------------------------------------------------------- The response

    @property
    def callee(self) -> str | None:
        """Function of the response: one of `SPECIAL`, proportion, or another one."""
        return getattr(getattr(self.outcome, "call", None), "callee", None)

    def _parts(self, data: pd.DataFrame, names: tuple[str, ...], start: int = 0) -> dict[str, Any]:
        call = self.outcome.call
        lazy = dict(zip(names, call.args, strict=False)) | call.kwargs
        wrong = [name for name in lazy if name not in names]
        if wrong or len(call.args) > len(names):
            raise ValueError(f"{self.outcome.name}: the arguments are {list(names)}.")
        return {k: v.eval(data, self.calls) for k, v in lazy.items() if k in names[start:]}

    def known(self, data: pd.DataFrame, training: bool = False) -> dict[str, np.ndarray]:
        """What is known of the response at rows: trials, weights and bounds."""
        n, start = len(data), 0 if training else 1

        def rows(value):
            return np.broadcast_to(np.asarray(value, dtype=np.float64), (n,)).copy()

        if self.callee in ("p", "prop", "proportion"):
            parts = self._parts(data, ("successes", "trials"), start)
            trials = rows(parts["trials"])
            wrong = ~np.isfinite(trials) | (trials < 0) | (trials != np.round(trials))
            if wrong.any():
                raise ValueError(
                    f"{self.outcome.name}: the number of trials is {trials[wrong][0]:g} in a row, "
                    "but must be a whole number of at least 0: count the trials of each row."
                )
            return {"n": trials.astype(np.int64)}
        if self.callee == "weighted":
            if not training:
                return {"weights": np.ones(n)}
            weights = rows(self._parts(data, ("x", "weights"))["weights"])
            if not (np.isfinite(weights) & (weights > 0)).all():
                raise ValueError(f"{self.outcome.name}: weights must be positive and finite.")
            return {"weights": weights}
        if self.callee == "censored":
            if not training:
                return {"lower": np.full(n, -np.inf), "upper": np.full(n, np.inf)}
            parts = self._parts(data, ("x", "status"))
            status = np.asarray(parts["status"])
            if not np.isin(status, ("left", "none", "right")).all():
                raise ValueError(
                    f"{self.outcome.name}: the status of a row must be 'none', 'left' or 'right'."
                )
            y = rows(parts["x"])
            return {
                "lower": np.where(status == "left", y, -np.inf),
                "upper": np.where(status == "right", y, np.inf),
            }
        if self.callee == "truncated":
            parts = self._parts(data, ("x", "lb", "ub"), 1)
            low, high = parts.get("lb"), parts.get("ub")
            return {
                "lower": rows(-np.inf if low is None else low),
                "upper": rows(np.inf if high is None else high),
            }
        return {}

    def _has_order(self, data: pd.DataFrame, levels: list) -> bool:
        """Whether levels of the response are numbers, or come in an order that was given."""
        if all(isinstance(level, int | float | np.number) for level in levels):
            return True
        one = self.outcome
        values = one.call.eval(data, one.env) if hasattr(one, "call") else data[one.name]
        given = getattr(values, "levels", None) is not None  # C(y, levels=...)
        return given or bool(getattr(getattr(values, "dtype", None), "ordered", False))

    def response(self, data: pd.DataFrame, family: str, kind: str) -> Response:
        """Values of the training rows, checked against the family."""
        from formulae.terms.call import Call

        one, name = self.outcome, self.outcome.name
        trials = self.callee in ("p", "prop", "proportion")
        if trials != (kind == "trials"):
            raise ValueError(
                f"family={family!r} with the response {name}: write proportion(successes, trials) "
                "for a binomial, and for no other family."
            )
        if self.callee in SPECIAL and kind not in ("number", "binary"):
            raise ValueError(
                f"{name} with family={family!r}: {self.callee}() is for numbers; "
                "give the column alone."
            )
        if trials:
            values = np.asarray(self._parts(data, ("successes", "trials"))["successes"])
            return Response(name, values, None, self.known(data, True))
        if self.callee in SPECIAL:
            parts = one.call.args[:1] or [one.call.kwargs["x"]]
            values = np.asarray(parts[0].eval(data, self.calls), dtype=np.float64)
            return Response(name, values, None, self.known(data, True))
        one.set_type(data, self.env) if isinstance(one, Call) else one.set_type(data)
        one.set_data(True)
        values = np.asarray(one.value)
        levels = None if one.kind == "numeric" else one.levels
        categorical = kind in ("ordered", "classes")
        if categorical and (levels is None or values.ndim != 2 or len(levels) < 3):
            raise ValueError(
                f"family={family!r} with the response {name}: it needs a column of three or more "
                f"levels; give data[{name!r}].astype('category')."
            )
        if kind == "ordered" and not self._has_order(data, levels or []):
            raise ValueError(
                f"family={family!r} with the response {name}: its levels {levels} have no order. "
                f"Give data[{name!r}] = pandas.Categorical(data[{name!r}], categories=[...], "
                "ordered=True), with the levels from the lowest to the highest."
            )
        if categorical:
            return Response(name, values.argmax(axis=1), list(one.levels))
        if kind == "binary" and levels is not None and values.ndim == 2:
            if len(levels) != 2:
                raise ValueError(
                    f"family={family!r} with the response {name}, of levels {levels}: name the one "
                    f"that counts as success, as in {name}['{levels[0]}'] ~ ..."
                )
            return Response(name, values[:, 0].astype(np.int64), list(levels))
        if one.kind not in ("numeric", "categoric") or values.ndim != 1:
            raise ValueError(
                f"family={family!r} with the response {name}: it needs a column of numbers."
            )
        return Response(name, values.astype(np.float64))


def _check_types(component, new: np.ndarray) -> None:
    """Raise an error for groups that are those of training but for their type."""
    known = {str(level): level for level in component.levels}
    for one in new:
        if str(one) in known:
            types = type(one).__name__, type(known[str(one)]).__name__
            raise ValueError(
                f"data[{component.name!r}] holds {str(one)!r} as {types[0]}, but in training it "
                f"was of type {types[1]}: convert the column to its type in training."
            )
