"""What all forest steps share: which variables they take, generators, saved states."""

from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pymc.util import get_random_generator
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.data.named import bare
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.targets.forest_state import WorkingForest


class Kind(NamedTuple):
    """Which forests a step moves."""

    of: Callable[[Variable], bool]
    other: Callable[[Variable], bool]
    declared_by: str
    """Public names that declare them."""


HARD = Kind(is_forest, lambda rv: is_soft_forest(rv) or is_soft_tree(rv), "BART or DecisionTree")
SOFT = Kind(is_soft_forest, lambda rv: is_forest(rv) or is_soft_tree(rv), "SoftBART")


def forests_of(model: pm.Model, variables=None, kind: Kind = HARD) -> list:
    """Forests meant by what a user passed: forests, their values, or functions of one forest.

    Parameters
    ----------
    variables : sequence, optional
        None, or all value variables of the model, for every forest.
    kind : Kind
        Which forests a step moves.
    """
    everything = [rv for rv in model.free_RVs if kind.of(rv)]
    others = [rv for rv in model.free_RVs if kind.other(rv)]
    if variables is not None and not isinstance(variables, list | tuple):
        variables = [variables]
    if variables is None or (
        len(variables) == len(model.value_vars)
        and all(v is w for v, w in zip(variables, model.value_vars, strict=True))
    ):
        if not everything and others:
            raise _of_other_kind(kind, others)
        if not everything:
            raise ValueError(f"The model has no forest: declare one with {kind.declared_by}.")
        return everything
    chosen: list = []
    for given in variables:
        variable = model.named_vars.get(given) if isinstance(given, str) else given
        variable = bare(variable) if isinstance(variable, Variable) else variable
        # By identity: an array, say, can be neither looked up nor compared.
        rv = next((r for v, r in model.values_to_rvs.items() if v is variable), variable)
        found = _meant(model, rv, everything)
        refused = _meant(model, rv, others)
        if not found and refused:
            raise _of_other_kind(kind, refused)
        if len(found) != 1:
            name = getattr(given, "name", given)
            raise ValueError(
                f"vars: {name!r} is neither a forest nor the function of one forest. Pass the "
                f"variables returned by {kind.declared_by}, or {[f.name for f in everything]}."
            )
        chosen += [f for f in found if not any(f is c for c in chosen)]
    return chosen


def _of_other_kind(kind: Kind, forests: list) -> ValueError:
    single = [forest.name for forest in forests if is_soft_tree(forest)]
    if single:
        return ValueError(
            f"vars: {single} is a SoftDecisionTree: leave it to pm.sample(), which assigns its "
            "step."
        )
    names = [forest.name for forest in forests]
    if kind is HARD:
        return ValueError(
            f"vars: {names} are soft trees, which pymc_trees.SoftCGM samples: leave them to "
            "pm.sample(), which assigns it."
        )
    return ValueError(
        f"vars: {names} are trees with hard splits, which pymc_trees.CGM and Hybrid sample: leave "
        "them to pm.sample(), which assigns one of these."
    )


def _meant(model, rv, forests) -> list:
    """Those among some forests that a variable is, or is a function of."""
    found = [rv] if any(rv is f for f in forests) else []
    if not found and any(rv is d for d in model.deterministics):
        found = [f for f in forests if any(v is f for v in ancestors([rv]))]
    return found


@dataclass_state
class ForestStepState(StepMethodState):
    """What a forest step needs to go on exactly where it was."""

    tune: bool
    kept: dict[str, Any] = field(default_factory=dict)


class ForestStep(BlockedStep):
    """Base of the steps that move forests; one blocked step loops over its forests."""

    default_blocked = True
    _state_class = ForestStepState
    kind: Kind = HARD
    working: Callable[[pm.Model, Variable], Any] = WorkingForest

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
        forests = forests_of(model, vars, self.kind)
        plain = without_dims(model)
        self.forests = [self.working(plain, plain[rv.name]) for rv in forests]
        self.several = sum(is_forest(rv) or is_soft_forest(rv) for rv in model.free_RVs) > 1
        self.vars = [model.rvs_to_values[rv] for rv in forests]
        self.rng = get_random_generator(rng)
        self.tune = True

    def setup_chain(self, rng, tune, draws):
        """Forget the chain before: one instance may serve several."""
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        for forest in self.forests:
            forest.check_inputs()
            forest.arrays = None

    def name_statistics(self, of_each: Callable[[Any], dict[str, tuple]]) -> None:
        """Declare the numbers per draw, of each forest by name with their type and shape."""
        self.stats_dtypes_shapes = {
            f"{name}{self.ending(forest)}": what
            for forest in self.forests
            for name, what in of_each(forest).items()
        }
        # PyMC's NDArray makes room by these alone, so that they say the shape too.
        stats = self.stats_dtypes_shapes.items()
        self.stats_dtypes = [{name: np.dtype((of, tuple(shape))) for name, (of, shape) in stats}]

    def ending(self, forest) -> str:
        """What the names of a forest's statistics end in."""
        # By the forests of the model: two steps with a forest each must not share names either.
        return f"_{forest.name}" if self.several else ""

    @property
    def kept(self) -> dict:
        """For the saved state, beside the point; the forests follow from their values."""
        return {}

    @kept.setter
    def kept(self, kept):
        self.forget_forests()

    def forget_forests(self) -> None:
        """Let the forests go on from the next point."""
        for forest in self.forests:
            forest.arrays = None

    @staticmethod
    def competence(var, has_grad):
        """Forests only."""
        return Competence.COMPATIBLE if is_forest(var) else Competence.INCOMPATIBLE
