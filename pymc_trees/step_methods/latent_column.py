"""`LatentColumn`: a random column of X, given the forests that split on it."""

import numpy as np
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable

from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.compile.threads import by_rows, given_threads, taken_threads
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.samplers.latent_column import (
    TRIES,
    cell_trees,
    choose_cells,
    choose_normal_cells,
    cuts_in_use,
    draw_normals,
    largest_of_rows,
    log_likelihoods,
    middle_points,
    outputs_by_cell,
    try_proposals,
)
from pymc_trees.step_methods.variable_step import VariableStep
from pymc_trees.targets.latent_columns import ColumnData, LatentColumnTarget, column_of

CELLS = 32_768
"""Cells of rows that are looked at together."""
WORTH = 400_000
"""Rows times trees from which on threads pay off."""
STEPS_OUT = 16
"""Most scales of the prior that a slice reaches."""


@dataclass_state
class LatentColumnState(StepMethodState):
    """Nothing but the generator is kept between steps."""


class LatentColumn(VariableStep):
    """Draw random columns of X given the forests that split on them.

    Given the trees, the functions of a row are constant between two cuts of its cell: one pass
    through the trees has them at all of these intervals, or at all categories of a discrete column.
    Each row is an exact draw of its conditional where all that depends on the column are forests,
    Normal measurements of a Normal column, ``pm.Normal("w", z, error, observed=w)``, or anything
    row by row if the column is discrete. It is a draw from the prior, accepted in proportion to the
    likelihood; after a few failures it is drawn from the table of prior mass times likelihood of
    each interval. Whatever else depends on a continuous column row by row takes part by a point of
    each interval: a Metropolis-Hastings step accepts the draw, and slice sampling follows, which
    finds its way from any start.

    ``pm.sample()`` assigns this step to each column of `with_columns`.

    Parameters
    ----------
    vars : list of variables, optional
        Free variables that are columns of `with_columns`, or the missing cells of one,
        ``x_unobserved``. Default: all of them.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that is no such column.
    UnsupportedModelError
        For a prior without quantiles (`pymc.icdf`), or a likelihood that mixes rows.

    Notes
    -----
    ``accept_column`` in ``sample_stats`` is the share of rows whose draw was accepted, 1 where
    draws are exact; it does not count slices. Large tables are drawn on the threads that the chain
    may use, and draws do not depend on their number. Columns and trees are drawn in turn. Where a
    column is known only through the function itself they hold each other: compare chains, of
    predictions rather than of the column.

    References
    ----------
    Neal (2003). Slice sampling. Annals of Statistics 31(3), 705-767.

    See Also
    --------
    with_columns : declares such a column.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(1).random((30, 2))
    >>> with pm.Model():
    ...     z = pm.Uniform("z", shape=30)
    ...     f = pmt.BART("f", pmt.with_columns(X, z=z), X[:, 0], m=5)
    ...     y = pm.Normal("y", f, 0.1, observed=X[:, 0])
    ...     step = pmt.LatentColumn([z])
    >>> step.name
    'latentcolumn'
    """

    name = "latentcolumn"
    _state_class = LatentColumnState
    stats_dtypes_shapes = {"accept_column": (np.float64, [])}

    @staticmethod
    def read(model, rv):
        """Whether a variable is a column of forests."""
        if not isinstance(rv, Variable) or not any(rv is one for one in model.free_RVs):
            return False
        return column_of(model, rv) is not None

    @staticmethod
    def error_for(unable):
        """The error for other variables."""
        return ValueError(
            f"vars: {unable} is not a random column of BART or DecisionTree. Declare it with "
            "pymc_trees.with_columns, or leave it to pm.sample()."
        )

    def prepare(self, model, rvs, found, compile_kwargs):
        """What is known of each column."""
        self._columns = [LatentColumnTarget(model, rv) for rv in rvs]
        self._call = DirectCalls()

    def step(self, point):
        """Draw every column once."""
        point, accepted = dict(point), []
        with deferred_interrupts():
            for column in self._columns:
                cells, share = _Draw(self._call, self.rng, column, point).all_rows()
                accepted.append(share)
                point[column.value_name] = column.value_of(point, cells)
        return point, [{"accept_column": float(np.mean(accepted))}]


class _Draw:
    """One draw of a column."""

    def __init__(self, call, rng, column: LatentColumnTarget, point):
        self.call, self.rng, self.column = call, rng, column
        self.data: ColumnData = column.at(point)
        self.now = column.cells(point)
        values = [np.ascontiguousarray(point[forest.name]) for forest in column.forests]
        forests = list(zip(column.forests, values, self.data.inputs, strict=True))
        self.cuts = np.empty(0) if column.support is not None else self._cuts(forests)
        self.edges = np.concatenate([[-np.inf], self.cuts, [np.inf]])
        self.points = np.append(self.cuts, np.inf) if column.support is None else column.support
        self.trees = [
            call(cell_trees, value, X, one.X_train, one.sizes, one.place, self.points)
            for one, value, X in forests
        ]

    def _cuts(self, forests) -> np.ndarray:
        """Bounds of cells: where a forest steps, or all cuts that it may have, for proposals."""
        found = [one.cuts for one, *_ in forests]
        if not self.column.is_direct:
            found = [
                self.call(cuts_in_use, value, one.sizes, X.shape[1], one.place)
                for one, value, X in forests
            ]
        return np.unique(np.concatenate(found)) if found else np.empty(0)

    def all_rows(self) -> tuple[np.ndarray, float]:
        """New cells, and the share of them that were accepted."""
        if not len(self.now):
            return self.now, 1.0
        if self.column.support is not None:
            draw = self._categories
        else:
            draw = self._with_acceptance if self.column.is_direct else self._with_proposals
        cells, accepted = draw()
        return cells, float(accepted.mean())

    # ---------------------------------------------------------------- Tables of parts of the rows

    @property
    def _step(self) -> int:
        """Rows of a part."""
        return max(1, CELLS // len(self.points))

    def _parts(self, which: np.ndarray) -> list[np.ndarray]:
        return [which[k : k + self._step] for k in range(0, len(which), self._step)]

    def _in_threads(self, work) -> list:
        """Arrays that a function makes of the tables of parts of all rows, each in their order.

        What comes out does not depend on the parts: random numbers are drawn beforehand.
        """
        n, n_trees = len(self.now), sum(len(trees.roots) for trees in self.trees)

        def parts(start, stop):
            done, outputs = [], None
            for k in range(start, stop, self._step):
                part = slice(k, min(k + self._step, stop))
                outputs, logs = self._table(part, outputs)
                done.append(work(part, logs))
            return done

        wanted = given_threads() if n_trees * n >= WORTH else 1
        with taken_threads(wanted) as n_threads:
            done = by_rows(parts, n, n_threads)
        return [np.concatenate(one) for one in zip(*sum(done, []), strict=True)]

    def _table(self, which, outputs=None) -> tuple[np.ndarray, np.ndarray]:
        """(C, b, K) outputs and (C, b) log-likelihoods of some rows, at all cells.

        Outputs of before are overwritten where they fit.
        """
        column, rows, n_cells = self.column, self.column.rows[which], len(self.points)
        if outputs is None or outputs.shape[1] != len(rows):
            outputs = np.zeros((n_cells, len(rows), column.n_outputs))
        for forest, trees, X in zip(column.forests, self.trees, self.data.inputs, strict=True):
            self.call(outputs_by_cell, trees, X, rows, forest.first, outputs)
        if column.support is not None:
            outputs[:, :, 0] = self.points[:, None]
        elif column.is_direct:  # else nothing reads the column itself
            outputs[:, :, 0] = self._points(which)
        logs = np.zeros((n_cells, len(rows)))
        if column.value is not None:
            address, seen = column.value.address, self.data.seen
            self.call(log_likelihoods, address, rows, outputs, seen.table, seen.data, logs)
        return outputs, logs

    def _likelihood(self, rows, outputs) -> np.ndarray:
        """Log-likelihood of rows of X at outputs."""
        result = np.zeros((len(rows), 1))
        if self.column.value is not None and len(rows):
            seen = self.data.seen
            self.call(
                call_native,
                self.column.value.address,
                len(rows),
                np.ascontiguousarray(rows),
                np.ascontiguousarray(outputs),
                seen.table,
                seen.data,
                result,
            )
        return result[:, 0]

    def _largest(self, logs) -> np.ndarray:
        largest = np.empty(logs.shape[1])
        self.call(largest_of_rows, logs, largest)
        return largest

    def _choose(self, which, logs, largest, of, uniforms) -> np.ndarray:
        """Cells of rows ``of`` of a part, by likelihood times prior; -1 where there is none."""
        chosen = np.empty(len(of), dtype=np.int64)
        if self.column.is_normal:
            mean, sd = (one[which] for one in self.data.parameters)
            arguments = mean, sd, self.edges, logs, largest, of, uniforms, chosen
            self.call(choose_normal_cells, *arguments)
            return chosen
        if self.column.support is not None:
            log_masses = self.data.parameters[0][:, which]
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                log_masses = np.log(np.maximum(np.diff(self._cdf(which), axis=0), 0.0))
        weights = np.ascontiguousarray(logs + log_masses)
        self.call(choose_cells, weights, of, uniforms, chosen)
        return chosen

    # --------------------------------------------------------------------------- The three ways

    def _categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw a discrete column from its table."""
        uniforms = self.rng.random(len(self.now))

        def work(part, logs):
            every = np.arange(logs.shape[1])
            return (self._choose(part, logs, self._largest(logs), every, uniforms[part]),)

        [chosen] = self._in_threads(work)
        return np.where(chosen >= 0, self.points[chosen], self.now), chosen >= 0

    def _with_proposals(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw a column of which only forests depend, by proposals from the prior, else tables."""
        n, rng = len(self.now), self.rng
        proposals, waits = self._from_prior(), rng.standard_exponential((n, TRIES))
        uniforms, drawn = rng.random(n), self.now.copy()

        def attempt(part, logs):
            largest = self._largest(logs)
            missed = np.empty(logs.shape[1], dtype=np.int64)
            given = proposals[part], waits[part], self.cuts, logs, largest
            k = self.call(try_proposals, *given, drawn[part], missed)  # rows of this thread alone
            missed, chosen = missed[:k], np.full(k, -1)
            if self.column.is_normal:
                chosen = self._choose(part, logs, largest, missed, uniforms[part][missed])
            return part.start + missed, chosen, largest > -np.inf

        def choose(which):
            _, logs = self._table(which)
            every = np.arange(len(which))
            return self._choose(which, logs, self._largest(logs), every, uniforms[which])

        missed, chosen, fine = self._in_threads(attempt)
        if len(missed) and not self.column.is_normal:
            # one by one: functions of PyTensor, here of the prior, are not for several threads
            chosen = np.concatenate([choose(part) for part in self._parts(missed)])
        fine[missed[chosen < 0]] = False
        missed, chosen = missed[chosen >= 0], chosen[chosen >= 0]
        drawn[missed] = self._within(missed, chosen)
        return drawn, fine

    def _with_acceptance(self) -> tuple[np.ndarray, np.ndarray]:
        """Propose from tables and accept, then move along a slice: a column with other terms."""
        parts = [self._accepted(which) for which in self._parts(np.arange(len(self.now)))]
        cells, accepted = (np.concatenate(one) for one in zip(*parts, strict=True))
        return cells, accepted

    def _accepted(self, which) -> tuple[np.ndarray, np.ndarray]:
        now, rng = self.now[which], self.rng
        outputs, logs = self._table(which)
        largest = self._largest(logs)
        able = np.flatnonzero(largest > -np.inf)
        chosen = np.full(len(which), -1)
        chosen[able] = self._choose(which, logs, largest, able, rng.random(len(able)))
        able = np.flatnonzero(chosen >= 0)
        cells, accepted = now.copy(), np.zeros(len(which), dtype=bool)
        drawn = self._within(which[able], chosen[able])
        at = np.searchsorted(self.cuts, now[able])
        rows = self.column.rows[which]
        gains = []
        for cell, z in ((chosen[able], drawn), (at, now[able])):
            exact = outputs[cell, able]
            exact[:, 0] = z
            gains.append(self._likelihood(rows[able], exact) - logs[cell, able])
        with np.errstate(invalid="ignore"):
            accepted[able] = np.log(rng.random(len(able))) < gains[0] - gains[1]
        cells[able] = np.where(accepted[able], drawn, now[able])
        return self._along_slices(which, outputs, cells), accepted

    def _along_slices(self, which, outputs, cells) -> np.ndarray:
        """Move cells by slice sampling, stepping out and shrinking (Neal 2003, figures 3 and 5)."""
        rng, rows, scale = self.rng, self.column.rows[which], self._scale(which)

        def log_density(of, z):
            at = outputs[np.searchsorted(self.cuts, z), of]
            at[:, 0] = z
            data = self.data._replace(parameters=[v[which[of]] for v in self.data.parameters])
            with np.errstate(invalid="ignore"):
                found = self._likelihood(rows[of], at) + self.column.logp(data, z)
            return np.where(np.isnan(found), -np.inf, found)

        every = np.arange(len(which))
        level = log_density(every, cells) - rng.standard_exponential(len(every))
        ends = cells - scale * rng.random(len(every))
        ends = np.stack([ends, ends + scale])
        steps = rng.integers(STEPS_OUT, size=len(every))
        of_all = np.flatnonzero(np.isfinite(level))
        for end, sign, left in ((0, -1.0, steps), (1, 1.0, STEPS_OUT - 1 - steps)):
            of = of_all
            for k in range(STEPS_OUT - 1):
                of = of[left[of] > k]
                if not len(of):
                    break
                of = of[log_density(of, ends[end, of]) > level[of]]
                ends[end, of] += sign * scale[of]
        moved, of = cells.copy(), of_all
        while len(of):
            z = ends[0, of] + rng.random(len(of)) * (ends[1, of] - ends[0, of])
            inside = (log_density(of, z) >= level[of]) | (z == cells[of])
            moved[of[inside]] = z[inside]
            of, z = of[~inside], z[~inside]
            below = z < cells[of]
            ends[0, of[below]], ends[1, of[~below]] = z[below], z[~below]
        return moved

    # -------------------------------------------------------------------------------- The prior

    def _given(self, which) -> ColumnData:
        return self.data._replace(parameters=[one[which] for one in self.data.parameters])

    def _scale(self, which) -> np.ndarray:
        """Width of slices: a scale of the prior of each row."""
        if self.column.is_normal:
            return 2.0 * self.data.parameters[1][which]
        data = self._given(which)
        low, high = (self.column.icdf(data, np.full(len(which), p)) for p in (0.25, 0.75))
        scale = np.abs(high - low)
        return np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)

    def _from_prior(self) -> np.ndarray:
        """(n, TRIES) draws from the prior; parts of the rows are in one piece, as kernels ask."""
        n = len(self.now)
        if self.column.is_normal:
            mean, sd = (one[:, None] for one in self.data.parameters)
            return mean + sd * self.rng.standard_normal((n, TRIES))
        shares = self.rng.random((TRIES, n))
        return np.stack([self.column.icdf(self.data, one) for one in shares], axis=1)

    def _points(self, which) -> np.ndarray:
        """(C, b) a point of each cell."""
        points = np.empty((len(self.points), len(which)))
        if self.column.is_normal:
            mean, sd = (one[which] for one in self.data.parameters)
            self.call(middle_points, mean, sd, self.edges, points)
            return points
        cdf = self._cdf(which)
        for c, middle in enumerate((cdf[1:] + cdf[:-1]) / 2):
            points[c] = self._quantiles(which, middle, np.full(len(which), c))
        return points

    def _cdf(self, which) -> np.ndarray:
        """(C + 1, b) distribution function at the bounds of the cells."""
        data, n = self._given(which), len(which)
        inside = [self.column.cdf(data, np.full(n, cut)) for cut in self.cuts]
        return np.stack([np.zeros(n), *inside, np.ones(n)])

    def _quantiles(self, which, shares, cells) -> np.ndarray:
        """Prior quantiles of rows, within a cell of each."""
        found = self.column.icdf(self._given(which), shares)
        least = np.nextafter(self.edges[cells], np.inf)
        return np.where(np.isnan(found), found, np.clip(found, least, self.edges[cells + 1]))

    def _within(self, which, cells) -> np.ndarray:
        """Draws from the prior within one cell of each row."""
        drawn, low, high = np.empty(len(which)), self.edges[cells], self.edges[cells + 1]
        if self.column.is_normal:
            mean, sd = (one[which] for one in self.data.parameters)
            self.call(draw_normals, self.rng, mean, sd, low, high, drawn)
            return drawn
        data = self._given(which)
        below, above = (self.column.cdf(data, bound) for bound in (low, high))
        below, above = np.where(cells == 0, 0.0, below), np.where(np.isinf(high), 1.0, above)
        shares = below + self.rng.random(len(which)) * (above - below)
        shares = np.minimum(shares, np.nextafter(1.0, 0.0))  # the quantile of 1 may be infinite
        return self._quantiles(which, shares, cells)
