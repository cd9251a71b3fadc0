"""`NoiseScale`: the sd of Normals around forests, given the forests."""

from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

import numpy as np
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.basic import Variable

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.step_methods.variable_step import VariableStep
from pymc_trees.targets.noise import Noise, NoiseDensity, read_noise

WINDOW = 200
"""Number of recent draws in the covariance of entries, so the initial transient is forgotten."""
FEWEST = 50
"""Draws before the covariance is used."""
ROUNDS = 2
"""Draws of each entry in a step, where there are several."""
MOST_DIRECTIONS = 5
"""Draws along directions in a step."""
ALONG = 2.0
"""Width of the interval of a slice along a direction, in sds."""


class Moments(NamedTuple):
    """Running mean and covariance of the entries of a block, in tuning."""

    n: int
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> "Moments":
        """Before the first draw."""
        return cls(0, x, np.zeros((x.size, x.size)))

    def after(self, x: np.ndarray) -> "Moments":
        """With one more draw."""
        share = 1.0 / min(self.n + 2, WINDOW)
        away = x - self.mean
        covariance = (1.0 - share) * (self.covariance + share * np.outer(away, away))
        return Moments(self.n + 1, self.mean + share * away, covariance)

    def directions(self, rng) -> np.ndarray:
        """(k, entries) normal vectors of this covariance; none where it is not known."""
        size = self.mean.size
        if self.n < FEWEST:
            return np.empty((0, size))
        values, vectors = np.linalg.eigh(self.covariance)
        normal = rng.standard_normal((min(size - 1, MOST_DIRECTIONS), size))
        return (normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


@dataclass_state
class NoiseScaleState(StepMethodState):
    """Widths and moments, and how many draws of the chain's tuning they rest on."""

    tune: bool
    n_tunes: int = 0
    widths: dict[str, float] = field(default_factory=dict)
    moments: tuple = ()


class NoiseScale(VariableStep):
    """Slice sampling of what makes up the sd, or precision, of Normals around forests.

    Given the forests, such variables depend on the rows only through their residuals. This step
    computes these once, and sums of their squares where these suffice, and draws the variables from
    their conditional, under any prior, at a fraction of the cost of NUTS, which evaluates forests
    and rows at each leapfrog step. ``pm.sample()`` assigns it automatically to variables of up to
    50 numbers that enter the ``sigma`` or ``tau`` of observed `pymc.Normal` or `pymc.LogNormal`
    variables around forests, and nothing else. The sd may be any function of them, of data and of
    other variables:

    - one number, also as a variance or a precision: ``sigma``, ``tau=tau``;
    - times data, an exposure for example: ``sigma * w``;
    - one for each group of rows: ``sigma[group]``;
    - with another source of noise: ``pm.math.sqrt(sigma**2 + se**2)``;
    - a regression: ``pm.math.exp(a + b * z)``.

    The prior of a variable may depend on other variables.

    Parameters
    ----------
    vars : list of variables, optional
        Variables that qualify. Default: all that do.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    compile_kwargs : dict, optional
        Options of `pymc.compile` for the log-density, as `pymc.sample` passes them to every step.
    blocked, initial_point
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that enters anything else.

    Notes
    -----
    Each number is drawn in turn, on the scale on which PyMC samples it. Where several enter the
    same rows, a few more draws move all of them along random directions, whose covariance is that
    of the draws while tuning: the coefficients of a regression are correlated. Where the sd of row
    i is a product ``c_i h_k`` of data and of an entry of a short vector, sums of squares by entry
    serve; otherwise each evaluation of the density passes over the rows.

    Statistics of each draw: ``noise_scale_evaluations``, those of the density. ``pm.sample()``
    assigns NUTS instead where it is given options for NUTS, such as ``target_accept``.

    References
    ----------
    Neal (2003). Slice sampling. The Annals of Statistics 31(3), 705-767, section 4, figures 3
    (stepping out) and 5 (shrinkage).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(1).random((30, 2))
    >>> with pm.Model():
    ...     sigma = pm.HalfNormal("sigma")
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, sigma, observed=X[:, 0])
    ...     step = pmt.NoiseScale([sigma])
    >>> step.name
    'noisescale'
    """

    name = "noisescale"
    _state_class = NoiseScaleState
    stats_dtypes_shapes = {"noise_scale_evaluations": (np.int64, [])}

    read = staticmethod(read_noise)

    @staticmethod
    def error_for(unable):
        """The error for other variables."""
        return ValueError(
            f"vars: {unable} is not part of the sigma or tau of observed pm.Normal variables "
            "around forests alone. Leave it to pm.sample()."
        )

    def prepare(self, model, rvs, found, compile_kwargs):
        """Variables by the rows that they enter."""
        self._blocks = [
            _Block(model, members, noises, compile_kwargs)
            for members, noises in _blocks(rvs, found)
        ]
        self._forget()

    def _forget(self):
        self.tune, self.n_tunes = True, 0
        numbers = [name for block in self._blocks for name in block.numbers]
        self.widths = dict.fromkeys(numbers, INITIAL_WIDTH)
        self.moments: tuple = (None,) * len(self._blocks)

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.tune = tune > 0

    def step(self, point):
        """Draw every variable once."""
        point, evaluations, moments = dict(point), 0, list(self.moments)
        with deferred_interrupts(), np.errstate(all="ignore"):
            for k, block in enumerate(self._blocks):
                drawn, count = block.draw(self.rng, point, self.widths, moments[k])
                evaluations += count
                if self.tune:
                    before = block.entries(point)
                    for name, old, new in zip(block.names(point), before, drawn, strict=True):
                        width = self.widths.get(name, INITIAL_WIDTH)
                        self.widths[name] = adapted_width(width, abs(new - old), self.n_tunes)
                    if drawn.size > 1:
                        moments[k] = (moments[k] or Moments.of(before)).after(drawn)
                point |= block.values(drawn, point)
        self.n_tunes, self.moments = self.n_tunes + self.tune, tuple(moments)
        return point, [{"noise_scale_evaluations": evaluations}]


def _blocks(rvs, noises) -> list[tuple[list[Variable], list[Noise]]]:
    """Variables that enter the same rows, directly or through others, and these rows."""
    blocks: list[tuple[list[Variable], list[Noise]]] = []
    for rv, own in zip(rvs, noises, strict=True):
        met = [one for one in blocks if any(_among(noise, one[1]) for noise in own)]
        members = [v for one in met for v in one[0]] + [rv]
        rows = [noise for one in met for noise in one[1]]
        rows += [noise for noise in own if not _among(noise, rows)]
        blocks = [one for one in blocks if one not in met] + [(members, rows)]
    return blocks


def _among(noise: Noise, noises: list[Noise]) -> bool:
    return any(noise.observed is one.observed for one in noises)


class _Block:
    """Variables that enter the same rows, and their log-density given the residuals."""

    def __init__(self, model, rvs, noises: list[Noise], compile_kwargs):
        self.value_names = [model.rvs_to_values[rv].name for rv in rvs]
        self.rv_names = [rv.name for rv in rvs]
        self.numbers = [model.rvs_to_values[rv].name for rv in rvs if rv.ndim == 0]
        self.observed_names = [noise.observed.name for noise in noises]
        self._density = NoiseDensity(model, rvs, noises, compile_kwargs)

    def entries(self, point) -> np.ndarray:
        """Values of all variables, one after the other."""
        return np.concatenate([np.ravel(point[name]) for name in self.value_names])

    def names(self, point) -> list[str]:
        """Of the entries."""
        return [
            name if name in self.numbers else f"{name}[{k}]"
            for name in self.value_names
            for k in range(np.size(point[name]))
        ]

    def values(self, entries: np.ndarray, point) -> dict[str, np.ndarray]:
        """The entries as values of the variables."""
        found, start = {}, 0
        for name in self.value_names:
            size, shape = np.size(point[name]), np.shape(point[name])
            found[name] = entries[start : start + size].reshape(shape).copy()
            start += size
        return found

    def draw(self, rng, point, widths, moments: Moments | None) -> tuple[np.ndarray, int]:
        """New entries, and the evaluations of the density it took."""
        density, x = self._density.at(point), self.entries(point)

        def log_density(entries):
            return density(*self.values(entries, point).values())

        evaluations, names = 0, self.names(point)
        for _ in range(ROUNDS if len(names) > 1 else 1):
            for k, name in enumerate(names):
                width = widths.get(name, INITIAL_WIDTH)
                x[k], count = _slice(rng, log_density, x, k, width)
                evaluations += count
                if np.isnan(x[k]):
                    raise ValueError(self._without_density())
            for direction in [] if moments is None else moments.directions(rng):
                x, count = _along(rng, log_density, x, direction)
                evaluations += count
        return x, evaluations

    def _without_density(self) -> str:
        rvs, observed = ", ".join(self.rv_names), ", ".join(self.observed_names)
        return (
            f"At this point the density of {rvs} is 0, or {observed} or the scale of its sd is not "
            "finite and positive: give an initial value (initvals) inside the prior, and remove "
            "rows that hold NaN or infinite values."
        )


def _along(rng, log_density, x: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, int]:
    """All entries, along a direction that does not depend on them."""
    t, count = slice_draw(rng, lambda t: log_density(x + t * direction), 0.0, ALONG)
    return x + t * direction, count


def _slice(
    rng, log_density: Callable[[np.ndarray], float], x: np.ndarray, k: int, width: float
) -> tuple[float, int]:
    """One entry given the others."""
    changed = x.copy()

    def along(number):
        changed[k] = number
        return log_density(changed)

    return slice_draw(rng, along, float(x[k]), width)
