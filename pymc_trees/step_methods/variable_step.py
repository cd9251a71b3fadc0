"""Steps for variables that stand in some relation to forests, and are drawn given the forests."""

from typing import Any

import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence
from pymc.util import get_random_generator

from pymc_trees.distributions.without_dims import counterpart, random_variables, without_dims


class VariableStep(BlockedStep):
    """A step that reads from the model which free variables it can draw.

    A kind of step says in `read` what it can draw, in `error_for` what others would have to be, and
    in `prepare` what it keeps of the variables.
    """

    default_blocked = True
    finishes_iterations = True  # as forest steps do
    stats_dtypes_shapes: dict = {}

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
            vars = [rv for rv in model.free_RVs if self._read_in(model, rv)]
        rvs = random_variables(model, vars)
        found = [self._read_in(model, rv) for rv in rvs]
        unable = [getattr(rv, "name", rv) for rv, one in zip(rvs, found, strict=True) if not one]
        if unable or not rvs:
            raise self.error_for(unable or "nothing")
        self.vars = [model.rvs_to_values[rv] for rv in rvs]
        self.rng = get_random_generator(rng)
        plain = [counterpart(model, rv) for rv in rvs]
        self.prepare(without_dims(model), plain, found, compile_kwargs)

    @staticmethod
    def read(model: pm.Model, rv: Any) -> Any:
        """What the step has to know of a variable of a model of tensors; nothing if it cannot."""
        raise NotImplementedError

    @staticmethod
    def error_for(unable: list | str) -> ValueError:
        """The error for variables that it cannot draw."""
        raise NotImplementedError

    def prepare(self, model: pm.Model, rvs: list, found: list, compile_kwargs) -> None:
        """Keep what draws need of variables of a model of tensors, and what was read of each."""
        raise NotImplementedError

    @classmethod
    def _read_in(cls, model, rv):
        return cls.read(without_dims(model), counterpart(model, rv))

    @classmethod
    def competence(cls, var, has_grad):
        """Best for the variables that it can draw."""
        model = pm.Model.get_context(error_if_none=False)
        able = model is not None and cls._read_in(model, var)
        return Competence.IDEAL if able else Competence.INCOMPATIBLE
