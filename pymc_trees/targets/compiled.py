"""Numbers of a forest's target at a point: prior settings and the data its leaves see."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.distributions.ops.forest_rv import N_DESIGN
from pymc_trees.targets.affine import Slope
from pymc_trees.targets.conjugate import recognise
from pymc_trees.targets.graph import compile_values

FAR = 1e5
"""Target in units of the leaf prior beyond which outputs are not read off the residual."""


class Settings(NamedTuple):
    """Prior settings of a forest at a point."""

    alpha: float
    beta: float
    weights: np.ndarray
    leaf: list

    @classmethod
    def of(cls, results: list) -> "Settings":
        """From the numbers of `read_settings`."""
        alpha, beta, weights, *leaf = results
        return cls(float(alpha), float(beta), weights, [v if v.ndim else float(v) for v in leaf])


def read_settings(model: pm.Model, forest: Variable) -> list[Variable]:
    """Alpha, beta, split weights and leaf settings of a forest, as expressions of values."""
    return model.replace_rvs_by_values(list(forest.owner.inputs[2 + N_DESIGN :]))


class Target:
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    model : pymc.Model
        The model.
    forest : TensorVariable
        A forest of it.

    Raises
    ------
    NotConjugateError
        When the leaf values cannot be integrated out.
    """

    needs_surrogate = False
    is_joint = False

    def __init__(self, model: pm.Model, forest: Variable):
        op = forest.owner.op
        self.layout, self.leaf = op.layout, op.leaf
        term = recognise(model, forest)
        self.kind, self.slope = term.kind, term.slope
        settings = read_settings(model, forest)
        seen = [term.observed, term.mean, term.sd, term.gradient]
        seen = [expression for expression in seen if expression is not None]
        self._function, self._names = compile_values(model, [*settings, *seen], [term.outputs])
        self._n_settings = len(settings)
        self._zero = np.zeros((self.layout.n_rows, self.layout.n_values))

    def at(self, point: dict) -> tuple[Settings, tuple]:
        """Settings, and observed values (with mean and sd for a Normal), at a point."""
        others = [point[name] for name in self._names]
        results = self._function(self._zero, *others)
        settings = Settings.of(results[: self._n_settings])
        seen = results[self._n_settings :]
        if self.kind == "normal":
            observed, offset, sd = seen[:3]
            slope = None if self.slope is Slope.ONE else seen[3]
            if not all(np.isfinite(v).all() for v in (offset, slope) if v is not None):
                raise ValueError("The mean of the observed variable is not finite at this point.")
            if not (np.isfinite(sd).all() and (np.asarray(sd) > 1e-150).all()):
                raise ValueError(
                    "sigma of the observed variable must be positive and finite, but at this point "
                    f"it is {np.min(sd)}: give it a prior that keeps it away from 0."
                )
            seen = (observed, offset, sd, slope)
        return settings, tuple(seen)

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf."""
        return {"normal": 2, "normal_gamma": 3}.get(self.leaf, self.layout.n_values)

    def leaf_data(self, settings: Settings, seen: tuple, fit: np.ndarray, rng=None):
        """Leaf model over the residual of ``fit``, and the target it was subtracted from.

        The target is None where there is no residual, or where it is so far from the trees that
        rounding would lose them.
        """
        n, max_nodes = self.layout.n_rows, self.layout.max_nodes
        if self.leaf == "normal_gamma":
            a, nu, lam = settings.leaf
            y = np.empty(0) if self.kind == "none" else self._rows(seen[0])
            return make_normal_gamma(a, nu, lam, y), None
        if self.leaf == "dirichlet":
            y = np.empty(0) if self.kind == "none" else self._classes(seen[0])
            return make_dirichlet(settings.leaf[0], self.layout.n_values, y), None
        mean, leaf_sd = settings.leaf
        if self.kind == "none":
            target, precision = np.zeros(n), np.zeros(1)
        else:
            observed, offset, sd, slope = seen
            target = self._rows(observed) - offset
            precision = np.asarray(sd, dtype=np.float64) ** -2.0
            if slope is not None:
                # one factor for all rows keeps one precision for all
                same = np.all(slope == slope.flat[0])
                slope = np.broadcast_to(slope.flat[0] if same else slope, (1 if same else n,))
                # y = b + a f + noise is y/a = f + b/a + noise/a; a row with a = 0 says nothing
                target = np.divide(target, slope, out=np.zeros(n), where=slope != 0)
                precision = precision * slope**2
            precision = precision.reshape(-1)
            if precision.size not in (1, n):
                raise ValueError(f"sigma has {precision.size} entries for {n} rows.")
        leaf = make_normal(mean, leaf_sd, target - fit[:, 0], precision, max_nodes)
        far = max(np.abs(target).max(), np.abs(fit).max()) > FAR * (leaf_sd + abs(mean))
        return leaf, None if far else target

    def log_scale(self, seen: tuple) -> float:
        """Log density of the observed values less that of the target of `leaf_data`.

        For y = a f + b + noise, y/a is denser than y by |a|; a row with a = 0 is no target at all.
        """
        if self.kind != "normal" or seen[3] is None:
            return 0.0
        observed, offset, sd, slope = np.broadcast_arrays(*seen)
        moves = slope != 0
        z = (observed[~moves] - offset[~moves]) / sd[~moves]
        still = np.sum(-0.5 * (z**2 + np.log(2 * np.pi)) - np.log(sd[~moves]))
        return float(still - np.sum(np.log(np.abs(slope[moves]))))

    def _rows(self, observed):
        n = self.layout.n_rows
        observed = np.asarray(observed, dtype=np.float64)
        if observed.shape != (n,):
            raise ValueError(
                f"The observed variable has shape {observed.shape}, but the forest was declared "
                f"with {n} rows: give it shape ({n},)."
            )
        if not np.isfinite(observed).all():
            raise ValueError(
                "The observed variable holds NaN or infinite values: remove those rows."
            )
        return observed

    def _classes(self, observed):
        y = self._rows(observed)
        k = self.layout.n_values
        if not ((y >= 0) & (y < k) & (y == np.floor(y))).all():
            raise ValueError(
                f"The observed classes must be whole numbers from 0 to {k - 1}, as many as "
                "n_classes of the DirichletLeaf."
            )
        return y.astype(np.int64)
