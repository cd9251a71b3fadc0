"""A leaf that is a line in one column: ``f(x) = a + b x``, ``y_i ~ N(f(x_i), 1 / w_i)``.

With ``a ~ N(mean, sd**2)`` and ``b ~ N(0, slope_sd**2)``, ``P = diag(1 / sd**2, 1 / slope_sd**2)``,
``u_i = (1, x_i)`` and, over the rows of a leaf, ``A = sum w_i u_i u_i'`` and
``c = sum w_i (y_i - mean) u_i``,

    p(y) = const * sqrt(det P / det(P + A)) * exp(c' (P + A)^-1 c / 2)
    (a, b) | y ~ N((mean, 0) + (P + A)^-1 c, (P + A)^-1)

where the constant does not depend on how the rows are shared out among leaves. In a sum of trees y
is the residual of the other trees. A leaf has two values and one output.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import register_sums
from pymc_trees.distributions.leaves.contract import LeafPrior, check_positive, register_leaf
from pymc_trees.targets.likelihoods.contract import register_likelihood
from pymc_trees.targets.likelihoods.normal import NormalLikelihood

# 1. What kernels answer: a NamedTuple whose type chooses them.


class LineData(NamedTuple):
    """A line and the rows it sees; at rows of a prediction ``x`` alone is read."""

    mean: float
    sd: float
    slope_sd: float
    x: np.ndarray
    """(n,) the column."""
    r: np.ndarray
    """(n,) working residual of a sum of trees."""
    w: np.ndarray
    """(n,) precision of each row, or (1,) of all."""


@njit(cache=True)
def _n_stats(leaf):
    return 5  # sums of w, w x, w x**2, w r and w r x


@njit(cache=True)
def _n_outputs(leaf, n_values):
    return 1


@njit(cache=True)
def _leaf_output(leaf, values, row):
    return (values[0] + values[1] * leaf.x[row],)


@njit(cache=True)
def _add_row(leaf, i, stats):
    x, r, w = leaf.x[i], leaf.r[i], leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    stats[0] += w
    stats[1] += w * x
    stats[2] += w * x * x
    stats[3] += w * r
    stats[4] += w * r * x


@njit(cache=True)
def _log_row(leaf, i, output):
    w = leaf.w[0] if leaf.w.size == 1 else leaf.w[i]
    if w == 0.0:
        return 0.0
    return 0.5 * (np.log(w / (2.0 * np.pi)) - w * (leaf.r[i] - output[0]) ** 2)


@njit(cache=True)
def _posterior(leaf, stats):
    """Entries of P + A, and of c."""
    first = 1.0 / leaf.sd**2 + stats[0]
    both, second = stats[1], 1.0 / leaf.slope_sd**2 + stats[2]
    return first, both, second, stats[3] - leaf.mean * stats[0], stats[4] - leaf.mean * stats[1]


@njit(cache=True)
def _log_marginal(leaf, stats):
    first, both, second, c, d = _posterior(leaf, stats)
    det = first * second - both * both
    squares = (second * c * c - 2.0 * both * c * d + first * d * d) / det
    return 0.5 * (squares - np.log(det * leaf.sd**2 * leaf.slope_sd**2))


@njit(cache=True)
def _draw_values(leaf, rng, stats, out):
    first, both, second, c, d = _posterior(leaf, stats)
    # the slope, and the intercept given it
    det = first * second - both * both
    out[1] = (first * d - both * c) / det + rng.standard_normal() * np.sqrt(first / det)
    out[0] = leaf.mean + (c - both * out[1]) / first + rng.standard_normal() / np.sqrt(first)


def _log_constant(leaf):
    w = np.broadcast_to(leaf.w, leaf.r.shape)
    seen = w > 0.0
    squares = w[seen] * (leaf.r[seen] - leaf.mean) ** 2
    return float(0.5 * np.sum(np.log(w[seen] / (2.0 * np.pi)) - squares))


register_sums(
    LineData,
    n_stats=_n_stats,
    add_row=_add_row,
    log_row=_log_row,
    log_marginal=_log_marginal,
    draw_values=_draw_values,
    residual=True,
    n_outputs=_n_outputs,
    leaf_output=_leaf_output,
    log_constant=_log_constant,
)


# 2. What a user writes: the settings, the density of the values, and what they are at rows of X.


@njit(cache=True)
def _prior(mean, sd, slope_sd):
    return LineData(mean, sd, slope_sd, np.empty(0), np.empty(0), np.zeros(1))


@njit(cache=True)
def _at_rows(n_values, X, constants):
    column = int(constants[0])
    if column >= X.shape[1]:
        raise ValueError("LineLeaf: X has no such column.")
    return LineData(0.0, 1.0, 1.0, X[:, column].copy(), np.empty(0), np.zeros(1))


@register_leaf
@dataclass(frozen=True, eq=False)
class LineLeaf(LeafPrior):
    """A line in a column of X; ``sd`` and ``slope_sd`` are positive numbers or variables."""

    mean: Any
    sd: Any
    slope_sd: Any
    column: int = 0

    name = "example_line"
    signatures = ("()", "()", "()")
    prior = staticmethod(_prior)
    outputs = staticmethod(_at_rows)
    in_sums = True
    n_values = 2
    n_outputs = 1

    def __post_init__(self):
        check_positive(self, ["sd", "slope_sd"])

    @property
    def parameters(self):
        """Inputs of the random variable."""
        return (self.mean, self.sd, self.slope_sd)

    @property
    def constants(self):
        """What `outputs` needs beside X."""
        return np.array([float(self.column)])

    @staticmethod
    def logp(values, mean, sd, slope_sd):
        """Log-densities of (L, 2) leaf values."""
        intercepts = pm.logp(pm.Normal.dist(mean, sd), values[:, 0])
        return intercepts + pm.logp(pm.Normal.dist(0.0, slope_sd), values[:, 1])

    @staticmethod
    def initial_value(k, mean, sd, slope_sd):
        """Where chains start."""
        return [mean, 0.0]

    @staticmethod
    def functions(outputs):
        """What `BART` returns."""
        return outputs[:, 0]


# 3. Which likelihood integrates the values out: that of a `NormalLeaf`, with other statistics.


@register_likelihood("example_line")
class LineLikelihood(NormalLikelihood):
    """``y = a f + b + sd noise``, as for a `NormalLeaf`."""

    supported = "a LineLeaf forest in the mean of one pm.Normal"
    n_stats = 5

    def leaf_data(self, settings, seen, fit):
        """The leaf model at a point, over the residual of ``fit``."""
        n = self.layout.n_rows
        target, precision = (np.zeros(n), np.zeros(1)) if seen is None else self.scaled(*seen)
        residual = target - fit[:, 0]
        return LineData(*settings.leaf, self.outputs.x, residual, precision), target
