"""`OneSidedErrors`: a stochastic frontier's errors, their scales, and the level of the forest."""

from dataclasses import field

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator

from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.slice_draw import INITIAL_WIDTH, adapted_width
from pymc_trees.distributions.without_dims import counterpart, random_variables, without_dims
from pymc_trees.terms.joint import OwnState, SharedState
from pymc_trees.terms.one_sided import OneSidedDraw, read_one_sided


@dataclass_state
class OneSidedErrorsState(StepMethodState):
    """Widths of the intervals of the slice sampler, and how many draws of tuning they rest on."""

    tune: bool
    n_tunes: int = 0
    widths: dict[str, float] = field(default_factory=dict)


class OneSidedErrors(BlockedStep):
    """Errors on one side of Normal rows, with their scales and the level of the forest.

    In a stochastic frontier, ``y = f(X) + v - u``, v is noise and ``u >= 0`` what a unit falls
    short by. The rows know the sum of both errors, and hardly how it divides, so that the scales,
    the level of f and u have to move together. This step draws the scales and the level with u
    integrated out, and then u from its conditional. ``pm.sample()`` assigns it to

    - a `pymc.HalfNormal` or `pymc.Exponential` vector with one entry for each row, that enters
      the mean of a `pymc.Normal` (of a `pymc.LogNormal`) around a forest, times a number, and
      nothing else;
    - its scale, if that is a scalar variable of its own: ``pm.HalfNormal("u", s, shape=n)``,
      ``pm.Exponential("u", scale=s, shape=n)`` or ``pm.Exponential("u", rate, shape=n)``;
    - the sd of the rows, if that is a scalar variable of its own.

    The scales may have any prior on the positive numbers. A step that you pass for the forest
    leaves it out, unless you pass both: ``step=[pmt.Hybrid(), pmt.OneSidedErrors()]``.

    Parameters
    ----------
    vars : list of variables, optional
        The vector and, if they are to be drawn, the scales. Default: all that qualify.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that does not qualify.

    Notes
    -----
    Statistics of each draw: ``one_sided_errors_evaluations``, those of the density of the scales.
    The forest rises and falls with the scales where it enters the mean times one number.

    References
    ----------
    Aigner, Lovell and Schmidt (1977). Formulation and estimation of stochastic frontier production
    function models. Journal of Econometrics 6(1), 21-37, eq. 8.

    Meeusen and van den Broeck (1977). Efficiency estimation from Cobb-Douglas production functions
    with composed error. International Economic Review 18(2), 435-444.

    Liu and Sabatti (2000). Generalised Gibbs sampler and multigrid Monte Carlo for Bayesian
    computation. Biometrika 87(2), 353-369, theorem 1.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(1).random((30, 2))
    >>> with pm.Model():
    ...     s, sigma = pm.HalfNormal("s"), pm.HalfNormal("sigma")
    ...     u = pm.HalfNormal("u", s, shape=30)
    ...     f = pmt.BART("f", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", f - u, sigma, observed=X[:, 0])
    ...     step = pmt.OneSidedErrors()
    >>> [var.name for var in step.vars]
    ['u_log__', 's_log__', 'sigma_log__']
    """

    name = "one_sided_errors"
    default_blocked = True
    finishes_iterations = True
    _state_class = OneSidedErrorsState
    stats_dtypes_shapes: dict = {"one_sided_errors_evaluations": (np.int64, [])}

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
        plain = without_dims(model)
        known = read_one_sided(plain)
        if vars is None:
            chosen = [v for one in known for v in one.variables]
        else:
            chosen = [counterpart(model, rv) for rv in random_variables(model, vars)]
        able = _drawn_together(known, chosen)
        unable = [getattr(v, "name", v) for v in chosen if not any(v is one for one in able)]
        if unable or not chosen:
            raise ValueError(
                f"vars: {unable or 'no variable'} is not a pm.HalfNormal or pm.Exponential vector "
                "with an entry for each row in the mean of pm.Normal rows with a forest, nor the "
                "scale or sd of such rows whose vector is named too. Leave it to pm.sample(), "
                "which assigns a step."
            )
        self.vars = [model.rvs_to_values[model[rv.name]] for rv in chosen]
        self.rng = get_random_generator(rng)
        names = {rv.name for rv in chosen}
        self._draws = [OneSidedDraw(plain, one, names) for one in known if one.u.name in names]
        for one in self._draws:
            one.states = [OwnState()]
        self._forget()

    def share(self, step) -> None:
        """Use the states that a sweep has of its forests; the draws are the same."""
        for place, theirs in enumerate(step.forests):
            for one in self._draws:
                if one.forests[0].value_name == theirs.value_name:
                    one.forests, one.states = [theirs], [SharedState(step, place)]

    def _forget(self):
        self.tune, self.n_tunes = True, 0
        self.widths = {name: INITIAL_WIDTH for one in self._draws for name in one.numbers}

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self._forget()
        self.tune = tune > 0
        for one in self._draws:
            one.check_inputs()

    def step(self, point):
        """Draw scales, level and errors once."""
        before, evaluations = dict(point), 0
        point = before
        with deferred_interrupts(), np.errstate(all="ignore"):
            for one in self._draws:
                point, count = one.draw(self.rng, point, self.widths)
                evaluations += count
        if self.tune:
            for name, width in self.widths.items():
                change = abs(float(point[name]) - float(before[name]))
                self.widths[name] = adapted_width(width, change, self.n_tunes)
        self.n_tunes += self.tune
        return point, [{"one_sided_errors_evaluations": evaluations}]

    @staticmethod
    def competence(var, has_grad):
        """Best for what the class says it takes."""
        model = pm.Model.get_context(error_if_none=False)
        if model is not None:
            rv = counterpart(model, var)
            known = read_one_sided(without_dims(model))
            if any(rv is v for one in known for v in one.variables):
                return Competence.IDEAL
        return Competence.INCOMPATIBLE


def _drawn_together(known, chosen) -> list:
    """Vectors among some variables, and the scales of these."""

    def among(rv):
        return any(rv is one for one in chosen)

    return [rv for one in known if among(one.u) for rv in one.variables if among(rv)]


def can_draw_errors(model: pm.Model, values) -> list:
    """Those of some value variables that a `OneSidedErrors` of them all draws."""
    known = read_one_sided(without_dims(model))
    by_rv = [(counterpart(model, model.values_to_rvs[value]), value) for value in values]
    able = _drawn_together(known, [rv for rv, _ in by_rv])
    return [value for rv, value in by_rv if any(rv is one for one in able)]
