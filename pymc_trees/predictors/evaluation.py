"""Values of a program at rows, some rows at a time, in threads if wanted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np

from pymc_trees.arguments import check_number
from pymc_trees.predictors import hard, mondrian, program, soft
from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.mondrian import MONDRIAN, MondrianTrees
from pymc_trees.predictors.packed import SOFT, PackedForest
from pymc_trees.predictors.random_columns import Part, Unknown
from pymc_trees.predictors.rows import Data, Table, read_rows

BLOCK = 4_000_000
"""Numbers of a function that are held at once, beside the result."""


class Evaluator:
    """Trees, tables and expressions of a predictor.

    Parameters
    ----------
    about, arrays
        What is in a file.
    """

    def __init__(self, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
        self._arrays = arrays
        self.n_draws = int(about["chains"]) * int(about["draws"])
        self.forests: list[Any] = [
            (MondrianTrees if one["kind"] == MONDRIAN else PackedForest)(
                under(arrays, f"forest{k}/"), one
            )
            for k, one in enumerate(about["forests"])
        ]
        self.unknown = Unknown(about, self.forests)
        self.tables = [
            Table(
                t["name"],
                Schema(
                    optional_tuple(t["names"]),
                    tuple(t["rules"]),
                    tuple(map(optional_tuple, t["levels"])),
                    t["complete"],
                ),
                self.unknown.in_table(k),
            )
            for k, t in enumerate(about["tables"])
        ]
        self.data = [
            Data(d["name"], d["dtype"], tuple(d["shape"]), optional_tuple(d["levels"]))
            for d in about["data"]
        ]
        self._program = list(about["program"])
        program.check(self._program)

    def values(
        self, results: Sequence[int], tables: list[np.ndarray], beside: list[np.ndarray]
    ) -> list[np.ndarray]:
        """Values of instructions at rows, (draws or 1, ...).

        Parameters
        ----------
        results : list of int
            Instructions.
        tables : list of (n, p) array
            Of each table.
        beside : list of array
            Data beside them, with an axis for the draws.
        """

        def outer(step: Mapping[str, Any], of: list[np.ndarray]) -> np.ndarray:
            op = step["op"]
            if op == "rows":
                return tables[step["table"]][None]
            if op == "data":
                return beside[step["data"]]
            if op == "draws":
                return self._arrays[f"draws/{step['name']}"]
            if op == "constant":
                return self._arrays[f"constant/{step['number']}"]
            forest, X = self.forests[step["forest"]], of[0][0]
            if forest.kind == MONDRIAN:
                return mondrian.evaluate(forest, X, bool(step.get("means")))
            return soft.evaluate(forest, X) if forest.kind == SOFT else hard.evaluate(forest, X)

        return program.run(self._program, results, outer)

    def _outputs(self, results: Sequence[int]) -> int:
        """Most numbers for a row and a draw that forests make."""
        steps = [self._program[k] for k in program.needed(self._program, results)]
        each = [
            1 if step.get("means") else self.forests[step["forest"]].n_outputs
            for step in steps
            if step["op"] == "forest"
        ]
        return max(each, default=1)

    def blocks(self, X, results: Sequence[int], n_jobs: int, progressbar: bool) -> Iterator[Part]:
        """Values of instructions at some rows of users at a time, (draws, ...)."""
        tables, data, _ = read_rows(X, self.tables, self.data)
        yield from self.at_encoded(tables, data, results, n_jobs, progressbar)

    def at_encoded(
        self,
        tables: list[np.ndarray],
        data: list[np.ndarray],
        results: Sequence[int],
        n_jobs: int,
        progressbar: bool,
    ) -> Iterator[Part]:
        """The same at rows that are read."""
        n, lacking = len(tables[0]), self.unknown.lacking(tables, results)
        jobs = (cpu_count() or 1) if n_jobs == -1 else check_number("n_jobs", n_jobs, 1)
        each = self._outputs(results) * self.unknown.cells(lacking)
        width = max(1, BLOCK // (self.n_draws * each * jobs))
        width = min(width, max(1, -(-n // jobs)))
        starts = range(0, n, width)

        def work(start):
            stop = min(start + width, n)
            axes = [1 + d.shape.index(-1) for d in self.data]
            some = [rows[start:stop] for rows in tables]
            beside = [
                np.take(one, np.arange(start, stop), axis=axis)
                for one, axis in zip(data, axes, strict=True)
            ]
            weights = None
            if lacking:
                asked = (lacking, results, self.values, self.n_draws)
                some, beside, weights = self.unknown.expanded(*asked, some, beside, axes)
            values = self.values(results, some, beside)
            part = Part(np.broadcast_to(v, (self.n_draws, *v.shape[1:])) for v in values)
            part.weights = weights
            return part

        track = _tracker(progressbar)
        if jobs == 1 or len(starts) == 1:
            yield from track(map(work, starts), "rows", len(starts), progressbar)
            return
        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield from track(pool.map(work, starts), "rows", len(starts), progressbar)
            except BaseException:
                pool.shutdown(cancel_futures=True)  # an interrupt waits for blocks that have begun
                raise


def _tracker(progressbar: bool) -> Callable:
    """What shows how far it is; the progress bar is a package of its own."""
    if not progressbar:
        return lambda items, title, total, shown: items
    from pymc_trees.progress import track

    return track


def optional_tuple(values) -> tuple | None:
    """A list of JSON as a tuple, or None."""
    return None if values is None else tuple(values)


def under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Arrays whose names begin so, by the rest of the name."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
