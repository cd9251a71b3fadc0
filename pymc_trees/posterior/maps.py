"""Predictions of many rows in little memory: some of the rows, and summaries over the draws.

A map of millions of cells times a thousand draws is no array that fits. Rows are read in blocks;
for each block the values of all draws are made, of which a few numbers are kept.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.posterior.draws import SAMPLE, check_answer
from pymc_trees.posterior.reading.marginal import MarginalFunction
from pymc_trees.progress import track

READ = 2**18
"""Rows that are read at once."""
ROOM = 2**23
"""Values of all draws that are held at once, 64 MiB; twice that while they are summarised."""
PRESENT = "present"
WORDS = ("mean", "sd")

# --------------------------------------------------------------------------- Summaries over draws


def check_summary(summary: Any) -> list[str | float]:
    """Words and probabilities, or an error."""
    asked = [summary] if isinstance(summary, str) or np.ndim(summary) == 0 else list(summary)
    for one in asked:
        number = isinstance(one, int | float | np.number) and not isinstance(one, bool)
        if not (one in WORDS if isinstance(one, str) else number and 0 <= one <= 1):
            raise ValueError(
                f"summary={summary!r}: {one!r} is no summary; give some of {list(WORDS)} and "
                "probabilities of quantiles from 0 to 1, such as ('mean', 'sd', 0.05, 0.95)."
            )
    if not asked or len(set(map(str, asked))) < len(asked):
        raise ValueError(f"summary={summary!r}: give at least one, and each once.")
    return [one if isinstance(one, str) else float(one) for one in asked]


def summaries(values: np.ndarray, asked: list[str | float]) -> np.ndarray:
    """(summaries, ...) of (draws, ...) values, which are put in another order."""
    probabilities = [one for one in asked if not isinstance(one, str)]
    found: dict[str | float, np.ndarray] = {}
    if "mean" in asked:
        found["mean"] = values.mean(axis=0)
    if "sd" in asked:
        found["sd"] = values.std(axis=0)
    if probabilities:
        quantiles = np.quantile(values, probabilities, axis=0, overwrite_input=True)
        found |= dict(zip(probabilities, quantiles, strict=True))
    return np.stack([found[one] for one in asked])


def labels(asked: list[str | float]) -> np.ndarray:
    """Of a coordinate."""
    return np.array([str(one) for one in asked])


def summarised(array: xr.DataArray, asked: list[str | float]) -> xr.DataArray:
    """Summaries of an array of draws."""
    array = array.transpose(*SAMPLE, ...)
    values = array.to_numpy().reshape(-1, *array.shape[2:])
    dims = ("summary", *array.dims[2:])
    coords = {name: one for name, one in array.coords.items() if not set(SAMPLE) & set(one.dims)}
    return xr.DataArray(
        summaries(values, asked), coords=coords | {"summary": labels(asked)}, dims=dims
    )


# -------------------------------------------------------------------------------- Some of the rows


class Rows:
    """Rows that are asked for, in blocks.

    Parameters
    ----------
    function : MarginalFunction
        What is asked.
    data : array, frame, mapping or None
        As for `pymc_trees.predictions`.
    where : (n,) array of bool, "present" or None
        Which rows are taken.
    """

    def __init__(self, function: MarginalFunction, data: Any, where: Any):
        self.function = function
        of_rows = isinstance(data, np.ndarray) or hasattr(data, "iloc")
        in_pieces = of_rows and np.ndim(data) == 2 and len(data) > 0 and not function.is_beside
        self._data = data if in_pieces else function.rows(data)
        self._made = not in_pieces
        self.n = int(self._data.shape[0])
        """Rows, also those that are left out."""
        self.present, self.mask = _check_where(where, self.n)

    @property
    def all(self) -> bool:
        """Whether no row is left out."""
        return not self.present and self.mask is None

    @property
    def n_blocks(self) -> int:
        """Blocks in which they are read."""
        return -(-self.n // READ)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Numbers of the rows that are taken, and these rows."""
        for start in range(0, self.n, READ):
            at = np.arange(start, min(start + READ, self.n))
            if self.mask is not None:
                at = at[self.mask[at]]
            if at.size == 0:
                continue
            rows = _taken(self._data, at, start)
            rows = rows if self._made else self.function.rows(rows)
            if self.present:
                of_X = self.function.table.places[0]
                kept = (rows[:, of_X] != MISSING).any(axis=1)
                at, rows = at[kept], rows[kept]
            if at.size:
                yield at, rows

    def together(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of all rows that are taken, and these rows."""
        if self.all and self._made:
            return np.arange(self.n), self._data
        parts = list(self.blocks())
        if not parts:
            raise ValueError("where: no row is left; give a mask with at least one True.")
        numbers, rows = zip(*parts, strict=True)
        return np.concatenate(numbers), np.concatenate(rows)


def _taken(data, at, start):
    """Rows of an array or a frame by number; a view where they follow one another."""
    which = slice(start, start + at.size) if at[-1] - start + 1 == at.size else at
    return data.iloc[which] if hasattr(data, "iloc") else data[which]


def _check_where(where: Any, n: int) -> tuple[bool, np.ndarray | None]:
    """Whether rows without any cell are left out, and a mask."""
    if where is None:
        return False, None
    if isinstance(where, str):
        if where != PRESENT:
            raise ValueError(f"where={where!r}: give 'present', or a mask of the rows.")
        return True, None
    mask = np.asarray(where)
    if mask.dtype != bool or mask.size != n:
        raise ValueError(
            f"where has the shape {mask.shape} and the type {mask.dtype}: give a mask, True or "
            f"False for each of the {n} rows."
        )
    return False, mask.ravel()


# --------------------------------------------------------------------------------------------------


def values_at(rows: Rows, progressbar: bool) -> xr.DataArray:
    """(chain, draw, ..., row) values, NaN at rows that are left out."""
    function = rows.function
    lead = (*function.shape, *function.outputs)
    remedy = "summary=, draws= or where="
    check_answer("predictions", int(np.prod(lead)) * rows.n, remedy)
    dims = {"row": np.arange(rows.n)}
    if rows.all:
        _, taken = rows.together()
        return function.reduced(taken, lambda values: values, dims, progressbar)
    at, taken = rows.together()

    def spread(values):
        whole = np.full((*values.shape[:-1], rows.n), np.nan)
        whole[..., at] = values
        return whole

    return function.reduced(taken, spread, dims, progressbar)


def summaries_at(rows: Rows, asked: list[str | float], progressbar: bool) -> xr.DataArray:
    """(summary, ..., row) summaries of the values, NaN at rows that are left out."""
    function = rows.function
    chains, draws = function.shape
    each = chains * draws * max(1, int(np.prod(function.outputs)))
    width = max(1, ROOM // each)
    numbers = len(asked) * int(np.prod(function.outputs)) * rows.n
    check_answer("predictions", numbers, "fewer summaries, or maps in parts")
    found = np.full((len(asked), *function.outputs, rows.n), np.nan)
    for at, block in track(rows.blocks(), function.name, rows.n_blocks, progressbar):
        function.check(block)
        for start in range(0, len(block), width):
            some = block[start : start + width]
            values = np.empty((chains, draws, *function.outputs, len(some)))
            for chain, draw, one in function.each_draw(some):
                values[chain, draw] = one
            values = values.reshape(chains * draws, *values.shape[2:])
            found[..., at[start : start + width]] = summaries(values, asked)
    coords = {dim: function.coords[dim] for dim in function.dims if dim in function.coords}
    coords |= {"summary": labels(asked), "row": np.arange(rows.n)}
    return xr.DataArray(found, coords=coords, dims=("summary", *function.dims, "row"))
