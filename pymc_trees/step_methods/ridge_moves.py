"""Moves along ridges: the level of a forest against an intercept, group effects, cut points.

With w_t >= 0 of sum 1, adding w_t delta to each leaf value of tree t adds delta to the forest at
every row. A ridge says how other variables move then so that no row notices (`targets.ridges`), and
delta is drawn from its conditional, the product of the leaf prior and of the priors of what moves.
The map is a translation of values, in a direction that depends on nothing that moves, and so of
Jacobian 1: the draw leaves the posterior invariant, whatever the likelihood (Liu and Sabatti 2000,
theorem 1, of the group of translations).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace

from pymc_trees.core.samplers.slice_draw import slice_draw
from pymc_trees.core.value.fields import fingerprint
from pymc_trees.targets.lift import Lift
from pymc_trees.targets.ridges import Ridge, Ridges, may_rise
from pymc_trees.targets.settings import compile_values, compiled_at, numbers_at

RIDGE_SHIFT = "ridge_shift"
"""Name of the statistic: what the outputs of a forest have risen by along its ridges."""
WIDTHS = 3.0
"""Width of the interval of the slice sampler, in sds of delta under the leaf prior alone."""


class Direction(NamedTuple):
    """A ridge, by the names of values."""

    output: int
    ways: dict[str, np.ndarray]
    """What each value changes by when the output rises by 1, but for a factor."""
    factors: dict[str, int]
    """Of some values, which factor."""
    others: dict[str, np.ndarray]
    """By other forests, what their outputs rise by."""


class RidgeMoves:
    """Draws along the ridges of one forest.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions.
    forest : Variable
    others : list of Variable
        Other forests of the step, which may move with it.
    free_level : list of Variable, optional
        Where the likelihood does not see the level of the forest: the data that say so.
    """

    def __init__(
        self,
        model: pm.Model,
        forest: Variable,
        others: list[Variable],
        free_level: list[Variable] | None = None,
    ):
        reading = Ridges(model, forest, others)
        ridges = reading.solve()
        if free_level is not None and may_rise(forest):
            ridges.append(Ridge(0, [], {}))
        self.name = forest.name
        self.leaves = {rv.name: rv.owner.op.leaf_type.name for rv in [forest, *others]}
        n_outputs = forest.owner.op.layout.n_outputs
        self.shape = () if n_outputs == 1 else (n_outputs,)
        """Of the statistic."""
        self.directions: list[Direction] = []
        if ridges:
            self._compile(model, reading, ridges)
        self._shared = [*reading.shared(), *(free_level or [])] if ridges else []
        self._data = self._fingerprint()
        self.is_current = True

    def _compile(self, model: pm.Model, reading: Ridges, ridges: list[Ridge]) -> None:
        """Factors of directions at a point, and the density of what moves along a direction."""
        factors: list[Variable] = []
        for ridge in ridges:
            numbers: dict[str, int] = {}
            for one in ridge.shifts:
                if one.factor is not None:
                    numbers[model.rvs_to_values[one.rv].name] = len(factors)
                    factors.append(one.factor)
            ways = {model.rvs_to_values[one.rv].name: one.by for one in ridge.shifts}
            self.directions.append(Direction(ridge.output, ways, numbers, ridge.others))
        self._factors, self._factor_needs = compile_values(model, factors, [])
        moved = list(dict.fromkeys(one.rv for ridge in ridges for one in ridge.shifts))
        values = [model.rvs_to_values[rv] for rv in moved]
        self._moved = [value.name for value in values]
        if not moved:
            return
        changed: list[Variable] = []
        for ridge in ridges:
            changed += reading.changed([one.rv for one in ridge.shifts]) or []
        density = model.logp(vars=list(dict.fromkeys(changed)), sum=True)
        delta, rises = pt.dscalar("delta"), [value.type() for value in values]
        along = {v: v + delta * rise for v, rise in zip(values, rises, strict=True)}
        [density] = clone_replace([density], along, rebuild_strict=False)
        self._density, self._needs = compiled_at(model, [delta, *rises], density)
        self._density.trust_input = True

    def _fingerprint(self) -> float:
        return fingerprint(*(np.asarray(one.get_value(borrow=True)) for one in self._shared))

    def start(self) -> None:
        """Begin a chain; directions of other data are not taken."""
        self.is_current = self._fingerprint() == self._data

    def level(self, point: dict) -> float:
        """What the first output rises with when variables of the rows move along their ridges."""
        level, seen = 0.0, set()
        for one in self.directions:
            first = next(iter(one.ways), None)
            if one.output > 0 or first is None or first in seen:
                continue
            seen.add(first)
            way = self._ways(one, point)[first]
            level += float(np.sum(point[first] * way) / np.sum(way**2))
        return level if np.isfinite(level) else 0.0

    def draw(
        self, rng, point: dict, lift_of: Callable[[str, int], Lift]
    ) -> tuple[dict, np.ndarray, set[str]]:
        """Move along each ridge in turn.

        Parameters
        ----------
        lift_of
            Function of the name of a forest and the number of an output.

        Returns
        -------
        point : dict
            With new values of other variables than forests.
        risen : array
            The statistic.
        changed : set of str
            Other forests whose leaf values were changed.
        """
        risen, changed = np.zeros(self.shape), set()
        for one in self.directions if self.is_current else []:
            lifts = [(1.0, lift_of(self.name, one.output))]
            for name, by in one.others.items():
                lifts += [(float(v), lift_of(name, k)) for k, v in enumerate(by) if v != 0]
            precision = sum(share**2 * lift.precision for share, lift in lifts)
            slope = sum(share * lift.slope for share, lift in lifts)
            ways = self._ways(one, point)
            delta = self._draw_one(rng, point, ways, precision, slope)
            if not np.isfinite(delta):
                continue  # left to the other steps
            for share, lift in lifts:
                lift.rise(share * delta)
            moved = {name: np.asarray(point[name] + delta * way) for name, way in ways.items()}
            point = point | moved
            risen[one.output if self.shape else ()] += delta
            changed |= set(one.others)
        return point, risen, changed

    def _ways(self, one: Direction, point: dict) -> dict[str, np.ndarray]:
        """What each value changes by when the output rises by 1."""
        if not one.factors:
            return one.ways
        factors = self._factors(*(point[name] for name in self._factor_needs))
        return {
            name: way * factors[one.factors[name]] if name in one.factors else way
            for name, way in one.ways.items()
        }

    def _draw_one(self, rng, point, ways, precision: float, slope: float) -> float:
        """A shift from its conditional; NaN where it is not known."""
        sd = precision**-0.5
        if not np.isfinite(sd) or not all(np.isfinite(way).all() for way in ways.values()):
            return np.nan
        if not ways:
            return slope / precision + sd * rng.standard_normal()
        zeros = (np.zeros_like(np.asarray(point[name], dtype=np.float64)) for name in self._moved)
        all_ways = [
            np.asarray(ways.get(name, zero), dtype=np.float64)
            for name, zero in zip(self._moved, zeros, strict=True)
        ]
        needs = numbers_at(point, self._needs)

        def log_density(delta: float) -> float:
            of_others = self._density(np.asarray(delta), *all_ways, *needs)
            return float(of_others) + delta * (slope - 0.5 * precision * delta)

        with np.errstate(all="ignore"):
            return slice_draw(rng, log_density, 0.0, WIDTHS * sd)[0]
