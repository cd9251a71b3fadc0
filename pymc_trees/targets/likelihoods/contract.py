"""Interfaces of likelihoods that are recognised, and the two tables of them.

`LIKELIHOODS` has, for each leaf prior, the likelihood under which its values integrate out.
`ROW_LIKELIHOODS` has, for each random variable of PyMC, the likelihoods of single rows that a
`NormalLeaf` forest may have: Gaussian given latent variables (`LatentLikelihood`), or with
hand-written kernels of the log density and its derivatives (`KernelLikelihood`). One that does not
recognise a term raises `NotRecognisedError`, and the next one is tried (`targets.choose`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import PartialObservedRV
from pytensor.graph.basic import Variable

from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.ops.forest_rv import leaf_at
from pymc_trees.targets.graph import (
    ForestGraph,
    NotConjugateError,
    NotRecognisedError,
    open_forest,
    read_once,
)
from pymc_trees.targets.likelihoods.observed import ObservedTerm, seen_parts
from pymc_trees.targets.settings import Settings

# ---------- Interface of a likelihood under which leaf values integrate out, and the table of them


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

    supported: ClassVar[str]
    """Supported forests and likelihoods, for the error message."""
    rows_as: ClassVar[Literal["data", "residual", "target"]] = "data"
    """What `leaf_data` makes of the rows: the observed values, a residual that determines
    no target of f, or a residual with its target, unless that is too far away."""
    reads_parts: ClassVar[bool] = False
    """Whether `read` takes the `Part` of a hurdle, of which some rows say nothing of f."""

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
            By ``refusal(term.graph, reason)``, for a likelihood that is not supported.
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
    leaf, other = graph.rv.owner.op.leaf_type, "any other likelihood"
    if leaf.any_likelihood and not leaf.is_constant():
        other = "a likelihood that is not known to be a product over rows"
    registered = LIKELIHOODS.get(leaf.name)  # lines of several outputs have none
    supported = f"They do for {registered.supported}. " if registered else ""
    return NotConjugateError(
        f"The leaf values of {graph.rv.name} do not integrate out: {reason}. {supported}Under "
        f"{other} take a NormalLeaf."
    )


def recognise(
    graph: ForestGraph,
) -> tuple[ConjugateLikelihood, list[Variable] | None, Variable]:
    """Likelihood of a forest whose leaf values integrate out.

    Returns
    -------
    likelihood : ConjugateLikelihood
    wanted : list of variables or None
        Expressions to evaluate at a point; None for the prior, if nothing depends on the forest.
    outputs : (n, K) matrix variable
        The forest's outputs, an input of the expressions.

    Raises
    ------
    NotConjugateError
        Names the obstacle.
    """
    op = graph.rv.owner.op
    if op.leaf not in LIKELIHOODS:
        raise NotConjugateError(
            f"The leaf values of {graph.rv.name} do not integrate out: no likelihood is registered "
            f"for a {op.leaf_type.__name__}."
        )
    likelihood = LIKELIHOODS[op.leaf](op.layout, leaf_at(graph.rv))
    term = sole_term(graph)
    if term is None:
        _, outputs = open_forest(graph, [])
        return likelihood, None, outputs
    wanted, outputs = likelihood.read(seen_parts(term)[-1] if likelihood.reads_parts else term)
    return likelihood, wanted, outputs


@read_once
def sole_term(graph: ForestGraph) -> ObservedTerm | None:
    """The only variable of a model that depends on a forest; None if there is none.

    Raises
    ------
    NotConjugateError
        If there are several, or Potentials among them, or it is transformed.
    """
    if graph.potentials:
        names = [v.name for v in graph.potentials]
        raise refusal(graph, f"the Potentials {names} depend on it")
    if not graph.terms:
        return None
    if len(graph.terms) > 1:
        names = [v.name for v in graph.terms]
        if (term := _with_missing_entries(graph)) is not None:
            return term
        if any(name.endswith("_unobserved") for name in names):
            raise refusal(
                graph,
                "the observed variable has missing values, which PyMC turns into a separate "
                f"variable ({names}): remove those rows from X and y before declaring the model",
            )
        raise refusal(graph, f"several variables depend on it: {names}")
    term = ObservedTerm(graph, graph.terms[0])
    if graph.model.rvs_to_transforms.get(term.rv) is not None:
        raise refusal(term.graph, f"{term.name} is transformed")
    return term


def _with_missing_entries(graph: ForestGraph) -> ObservedTerm | None:
    """The variable whose rows PyMC has split into an observed and a missing part, if it is one.

    What is missing is a variable of the model, and each row is that of both parts.
    """
    op, values = graph.terms[0].owner.op, graph.model.rvs_to_values
    if not isinstance(op, PartialObservedRV) or len({v.owner for v in graph.terms}) > 1:
        return None
    if any(graph.model.rvs_to_transforms.get(v) is not None for v in graph.terms):
        return None
    rv, mask = graph.terms[0].owner.inputs
    observed, missing = (values[v] for v in graph.terms[0].owner.outputs)
    whole = pt.zeros(mask.shape)[mask].set(missing)[~mask].set(observed)
    return ObservedTerm(graph, rv, completed=whole)


class Predictor(NamedTuple):
    """Linear predictor, the only part of a likelihood that depends on the forest."""

    eta: Variable
    """(n,) vector."""
    parameters: list[Variable]
    """Expressions whose numbers `LatentLikelihood.numbers` takes."""
    outputs: Variable
    """(n, 1) outputs of the forest that eta is a function of."""


class RowLikelihood(ABC):
    """Likelihood of single rows of a forest with one output. `read` is called once."""

    of: ClassVar[tuple[type, ...]]
    """Ops of the random variables that it supports."""

    @abstractmethod
    def read(self, term: ObservedTerm) -> Any:
        """What depends on the forest, and the expressions whose numbers `numbers` takes.

        Raises
        ------
        NotRecognisedError
            If it is another likelihood.
        """

    @abstractmethod
    def numbers(self, y: np.ndarray, parameters: list[np.ndarray]) -> list[np.ndarray]:
        """Columns of the numbers of each row at a point: arrays of one entry or one for each row.

        Raises
        ------
        ValueError
            For observed values outside the support of the likelihood.
        """


class LatentLikelihood(RowLikelihood):
    """One that is Gaussian given latent variables of the rows; `read` gives a `Predictor`."""

    augmentation: ClassVar[type]
    """Type of `core.leaves.latent.augmentations`, whose numbers `numbers` gives."""
    positive: ClassVar[slice] = slice(0)
    """Columns of the numbers that must be positive."""
    sd: ClassVar[int | None] = None
    """Column of the sd where that alone is the precision of a row, whatever is drawn."""

    def log_scale(self, numbers: np.ndarray) -> np.ndarray | float:
        """Log-likelihood of each row minus that of the augmentation, given (n, columns) numbers."""
        return 0.0


class KernelLikelihood(RowLikelihood):
    """One with hand-written kernels; `read` gives expressions, and the outputs they depend on."""

    value: Callable
    """Kernel ``value(numbers, f)`` of the log-likelihood of a row."""
    slopes: Callable
    """Kernel ``slopes(numbers, f)`` of its first and second derivative by f."""
    is_exponential = False
    """Whether a Gamma or Weibull is an Exponential, which may be 0."""


ROW_LIKELIHOODS: dict[type, list[type[RowLikelihood]]] = {}
"""Likelihoods by the Op of the random variable, tried in this order."""


def register_row_likelihood[T: type[RowLikelihood]](likelihood: T) -> T:
    """Add a likelihood, as a decorator of its class."""
    for op in likelihood.of:
        ROW_LIKELIHOODS.setdefault(op, []).append(likelihood)
    return likelihood


def recognise_rows(graph: ForestGraph, kind: type) -> tuple[ObservedTerm, Any, Any]:
    """The term of a forest of one output, the first likelihood that supports it, and its `read`.

    Raises
    ------
    NotRecognisedError, NotConjugateError
        When there is none of that kind.
    """
    term = sole_term(graph)
    one = graph.combines or graph.layout.n_outputs == 1
    if term is None or not one or term.value.ndim != 1:
        raise NotRecognisedError("another kind of likelihood")
    for part in seen_parts(term):
        for op, likelihoods in ROW_LIKELIHOODS.items():
            for each in likelihoods if isinstance(part.rv.owner.op, op) else ():
                if issubclass(each, kind):
                    likelihood = each()
                    try:
                        return part, likelihood, likelihood.read(part)
                    except NotRecognisedError:
                        continue
    raise NotRecognisedError(term.distribution)


def with_others(numbers: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Numbers of a component's rows with those of the others, or an error."""
    if np.isnan(a).any() or np.isnan(b).any() or max(a.max(), b.max()) == np.inf:
        raise ValueError("Parameters of the observed variable are not finite at this point.")
    return np.column_stack([numbers, a, b])


LEAST = 1e-300
"""Positive number used for 0."""
FARTHEST = 1e4
"""Offset used for infinity: its exponential is 0 or infinite."""


def bounded(offset: np.ndarray) -> np.ndarray:
    """Finite offsets, which allow an exposure of 0, or a p of 0 or 1."""
    return np.clip(offset, -FARTHEST, FARTHEST)


def whole_numbers(y: np.ndarray, most=np.inf) -> None:
    """Raise an error for values that are not counts."""
    if not ((y >= 0) & (y <= most) & (y == np.floor(y))).all():
        raise ValueError(
            "The observed values must be whole numbers of at least 0 (up to the number of trials "
            f"of a Binomial), but they range from {y.min()} to {y.max()}, or are not whole."
        )


def log_of_times(y: np.ndarray, with_zero: bool) -> np.ndarray:
    """Logarithms of positive numbers; that of the least number for 0, where its density is 1."""
    if not ((y > 0) | (with_zero & (y == 0))).all():
        raise ValueError(
            f"The observed values must be positive, but the least is {y.min()}: a Gamma or Weibull "
            "has a density of 0 or infinity there."
        )
    return np.log(np.maximum(y, LEAST))


def logs_of(observed) -> np.ndarray:
    """Logarithms of the observations of a LogNormal, or an error."""
    observed = np.asarray(observed, dtype=np.float64)
    if not (observed > 0).all():
        raise ValueError(
            f"The observed values of pm.LogNormal must be positive, but the least is "
            f"{np.min(observed)}."
        )
    return np.log(observed)


FAR = 1e5
"""Target, in units of the leaf prior, beyond which outputs are not computed from the residual."""


def is_far(target, fit, mean, leaf_sd) -> bool:
    """Whether outputs computed from the residual of a target would lose digits."""
    largest = max(np.abs(target).max(), np.abs(fit).max())
    return bool(largest > FAR * (leaf_sd + abs(mean)))
