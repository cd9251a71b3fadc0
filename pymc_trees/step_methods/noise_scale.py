"""`NoiseScale`: the sd of a Normal around forests, given the forests."""

from dataclasses import field

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width, slice_draw
from pymc_trees.distributions.without_dims import counterpart, without_dims
from pymc_trees.targets.parameters import Noise, NoiseDensity, read_noise
from pymc_trees.targets.settings import compiled_at, numbers_at


@dataclass_state
class NoiseScaleState(StepMethodState):
    """The widths, and how many draws of the chain's tuning they rest on."""

    tune: bool
    n_tunes: int = 0
    widths: dict[str, float] = field(default_factory=dict)


class NoiseScale(BlockedStep):
    """Slice sampling of the sd, or precision, of one observed Normal or LogNormal around forests.

    Given the forests, the sd depends on the rows only through their residual sum of squares. This
    step computes that sum once and draws the variable from its conditional, under any prior, at a
    fraction of the cost of NUTS, which evaluates all rows at each leapfrog step. ``pm.sample()``
    assigns it automatically to a scalar variable that enters one observed `pymc.Normal` or
    `pymc.LogNormal`, whose mean depends on forests, and nothing else: as its ``sigma`` or ``tau``,
    through a function such as the root of a variance, or multiplied by data, one number per row.
    The prior of the variable may depend on other variables.

    Parameters
    ----------
    vars : list of variables, optional
        Scalar variables. Default: all that enter the noise around forests and nothing else.
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
        For a variable that enters anything else, or enters the sd in another way.

    Notes
    -----
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
    default_blocked = True
    finishes_iterations = True  # as forest steps do
    _state_class = NoiseScaleState
    stats_dtypes_shapes: dict = {"noise_scale_evaluations": (np.int64, [])}

    def __init__(
        self,
        vars=None,
        *,
        model=None,
        rng=None,
        blocked=True,
        initial_point=None,
        compile_kwargs=None,
    ):
        model = pm.modelcontext(model)
        if vars is None:
            vars = [rv for rv in model.free_RVs if _noise_of(model, rv) is not None]
        vars = vars if isinstance(vars, list | tuple) else [vars]
        # by identity: an array, say, cannot be looked up
        rvs = [next((r for v, r in model.values_to_rvs.items() if v is u), u) for u in vars]
        noises = [_noise_of(model, rv) for rv in rvs]
        unable = [getattr(r, "name", r) for r, noise in zip(rvs, noises, strict=True) if not noise]
        if unable or not rvs:
            raise ValueError(
                f"vars: {unable or 'nothing'} is not the scalar sigma or tau of exactly one "
                "observed pm.Normal around forests. Leave it to pm.sample()."
            )
        self.vars = [model.rvs_to_values[rv] for rv in rvs]
        self.rng = get_random_generator(rng)
        self._scales = [
            _Scale(without_dims(model), counterpart(model, rv), noise, compile_kwargs)
            for rv, noise in zip(rvs, noises, strict=True)
            if noise is not None
        ]
        self._forget()

    def _forget(self):
        self.tune, self.n_tunes = True, 0
        self.widths = {scale.name: INITIAL_WIDTH for scale in self._scales}

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.tune = tune > 0

    def step(self, point):
        """Draw every variable once."""
        point, evaluations = dict(point), 0
        with deferred_interrupts(), np.errstate(all="ignore"):
            for scale in self._scales:
                new, count = scale.draw(self.rng, point, self.widths[scale.name])
                if self.tune:
                    width, change = self.widths[scale.name], abs(new - float(point[scale.name]))
                    self.widths[scale.name] = adapted_width(width, change, self.n_tunes)
                point[scale.name] = np.array(new)
                evaluations += count
        self.n_tunes += self.tune
        return point, [{"noise_scale_evaluations": evaluations}]

    @staticmethod
    def competence(var, has_grad):
        """Best for the scale of the noise around forests."""
        model = pm.Model.get_context(error_if_none=False)
        if model is not None and _noise_of(model, var) is not None:
            return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _noise_of(model, rv) -> Noise | None:
    """`read_noise`, of a model that may have named dimensions."""
    return read_noise(without_dims(model), counterpart(model, rv))


class _Scale:
    """One variable, the rows it is the noise of, and its log-density given their sum of squares."""

    def __init__(self, model, rv, noise: Noise, compile_kwargs):
        name = model.rvs_to_values[rv].name
        self.name, self.rv_name, self.observed_name = name, rv.name, noise.observed.name
        observed = model.rvs_to_values[noise.observed]
        residual = (pt.log(observed) if noise.of_logs else observed) - noise.mean
        for factor in noise.factors:
            residual = residual / pt.switch((factor > 0) & ~pt.isinf(factor), factor, np.nan)
        root = pt.sqrt(pt.sum(residual**2))
        rows = [root, residual.size.astype("float64")]
        rows = model.replace_rvs_by_values(rows)
        self._rows, self._needs = compiled_at(model, [], rows, compile_kwargs)
        self._density = NoiseDensity(model, rv, noise, compile_kwargs)

    def draw(self, rng, point, width):
        """New value of the variable, and the evaluations it took."""
        root, count = map(np.asarray, self._rows(*numbers_at(point, self._needs)))
        new, evaluations = np.nan, 0
        if np.isfinite(root):
            log_density = self._density.at(point, root, count)
            new, evaluations = slice_draw(rng, log_density, float(point[self.name]), width)
        if np.isnan(new):
            raise ValueError(
                f"At this point the density of {self.rv_name} is 0, or {self.observed_name} or "
                "the scale of its sd is not finite and positive: give an initial value "
                "(initvals) inside the prior, and remove rows that hold NaN or infinite values."
            )
        return new, evaluations
