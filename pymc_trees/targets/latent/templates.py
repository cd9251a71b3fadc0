"""Recognition of an expression: its graph equals that of a template."""

from collections.abc import Callable, Iterator

from pytensor.graph.basic import Variable, equal_computations
from pytensor.graph.traversal import ancestors

from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.latent.contract import NotLatentError
from pymc_trees.targets.stacks import stripped

Template = Callable[[Variable], Variable]


def argument_of(var: Variable, outputs: Variable, templates: list[Template]) -> Variable:
    """The vector x when ``var`` is a template of x.

    Raises
    ------
    NotLatentError
        If it matches none for any vector that depends on ``outputs``.
    """
    var = stripped(var)
    for x in vectors_below(var, outputs):
        if any(equal_computations([var], [template(x)]) for template in templates):
            return x
    raise NotLatentError(str(var.owner.op) if var.owner else str(var))


def vectors_below(var: Variable, outputs: Variable) -> Iterator[Variable]:
    """Ancestors of ``var`` that are vectors and depend on ``outputs``, nearest first."""
    seeing = dependent_on([var], outputs)
    for x in ancestors([var]):
        if x is not var and x.ndim == 1 and x.dtype == "float64" and x in seeing:
            yield x


def refuse_if_seen(variables: list[Variable], outputs: Variable) -> None:
    """`NotLatentError` if a parameter that must be fixed depends on the forest."""
    seeing = dependent_on(variables, outputs)
    if any(v in seeing for v in variables):
        raise NotLatentError("a parameter beside the linear predictor sees the forest")
