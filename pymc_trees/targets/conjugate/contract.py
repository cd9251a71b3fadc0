"""Interface of a likelihood under which leaf values integrate out, and the table of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pymc as pm
from pymc.variational.minibatch_rv import MinibatchRandomVariable
from pytensor.graph.basic import Variable

from pymc_trees.core.value.fields import Layout
from pymc_trees.targets.errors import NotConjugateError
from pymc_trees.targets.graph import ForestGraph, dependent_on, open_forest
from pymc_trees.targets.parameters import named_parameters
from pymc_trees.targets.settings import Settings
from pymc_trees.targets.stacks import NotASliceError, place_of, slices


class OpenedTerm(NamedTuple):
    """A term as a function of the forest's outputs."""

    value: Variable
    parameters: list[Variable]
    outputs: Variable


@dataclass(frozen=True)
class ObservedTerm:
    """The only variable of a model that depends on a forest, or its only slice that does."""

    model: pm.Model
    graph: ForestGraph
    rv: Variable

    @property
    def value(self) -> Variable:
        """Its value variable, or the slice of it."""
        return self._opened.value

    @property
    def says(self) -> str:
        """Its distribution, as a user wrote it."""
        node, ending = self.rv.owner, ""
        if isinstance(node.op, MinibatchRandomVariable):
            node, ending = node.inputs[0].owner, " with total_size"
        return "pm." + type(node.op).__name__.removesuffix("RV") + ending

    def opened(self) -> tuple[list[Variable], Variable]:
        """Its parameters as functions of the forest's outputs, and those outputs.

        None of them for a distribution that does not name them: ask for its Op first.
        """
        return self._opened.parameters, self._opened.outputs

    @cached_property
    def _opened(self) -> OpenedTerm:
        node, value = self.rv.owner, self.model.rvs_to_values[self.rv]
        given = named_parameters(self.rv)
        parameters, outputs = open_forest(self.model, self.graph, given or [])
        whole = OpenedTerm(value, parameters, outputs)
        if given is None or self.rv.ndim != 2 or node.op.ndim_supp > 0:
            return whole
        seeing = dependent_on(parameters, outputs)
        try:
            places = {place_of(v, seeing) for v in parameters if v in seeing}
            if len(places) != 1:
                return whole
            [(axis, k)] = places
            return OpenedTerm(
                value[k] if axis == 0 else value[:, k],
                list(slices(parameters, axis, k, seeing)),
                outputs,
            )
        except NotASliceError:
            return whole


class ConjugateLikelihood(ABC):
    """Likelihood of the rows with the values of one kind of leaf integrated out.

    An instance belongs to one forest of a model. `read` is called once; then, for each point,
    `check` with the numbers of what it returned, and `leaf_data` with what `check` returned.

    Attributes
    ----------
    layout : Layout
        Sizes of the forest.
    outputs : leaf model
        What the leaf prior's `outputs` made of the training rows: `ConstantLeaf`, unless it has
        its own.
    """

    treated: ClassVar[str]
    """Supported forests and likelihoods, for the error message."""
    rows_as: ClassVar[Literal["data", "residual", "target"]] = "data"
    """What `leaf_data` makes of the rows: observed values as they are, a residual that determines
    no target of f, or a residual with its target, unless that is too far away."""

    def __init__(self, layout: Layout, outputs: Any):
        self.layout, self.outputs = layout, outputs

    @property
    @abstractmethod
    def n_stats(self) -> int:
        """Statistics of a leaf."""

    @abstractmethod
    def read(self, term: ObservedTerm) -> tuple[list[Variable], Variable]:
        """Expressions to be evaluated at a point, and the outputs that they are functions of.

        Raises
        ------
        NotConjugateError
            By ``refusal(term.graph, reason)``, for a likelihood that is not treated.
        """

    def check(self, numbers: list[np.ndarray]) -> tuple:
        """Numbers of the expressions at a point, where the forest's outputs are 0; or an error."""
        return tuple(numbers)

    @abstractmethod
    def leaf_data(self, settings: Settings, seen: tuple | None, fit: np.ndarray) -> tuple[Any, Any]:
        """As `targets.contract.Target.leaf_data`; ``seen`` is None when there is no likelihood."""

    def log_scale(self, seen: tuple) -> float:
        """As `targets.contract.Target.log_scale`."""
        return 0.0

    def rows(self, observed) -> np.ndarray:
        """Observed numbers, one per row, or an error."""
        return rows_of(observed, self.layout.n_rows)


def rows_of(observed, n: int) -> np.ndarray:
    """Observed numbers, one for each of n rows, or an error."""
    observed = np.asarray(observed, dtype=np.float64)
    if observed.shape != (n,):
        raise ValueError(
            f"The observed variable has shape {observed.shape}, but the forest was declared "
            f"with {n} rows: give it shape ({n},)."
        )
    if not np.isfinite(observed).all():
        raise ValueError("The observed variable holds NaN or infinite values: remove those rows.")
    return observed


LIKELIHOODS: dict[str, type[ConjugateLikelihood]] = {}
"""Likelihoods by the name of the leaf prior (`distributions.leaves.contract.LEAVES`)."""


def register_likelihood(leaf: str):
    """Add the likelihood of a leaf prior, as a decorator of its class."""

    def add(likelihood: type[ConjugateLikelihood]) -> type[ConjugateLikelihood]:
        LIKELIHOODS[leaf] = likelihood
        return likelihood

    return add


def refusal(graph: ForestGraph, reason: str) -> NotConjugateError:
    """Error that names the obstacle and the supported cases."""
    treated = LIKELIHOODS[graph.rv.owner.op.leaf].treated
    return NotConjugateError(
        f"The leaf values of {graph.rv.name} do not integrate out: {reason}. They do for "
        f"{treated}. Under any other likelihood take a NormalLeaf."
    )
