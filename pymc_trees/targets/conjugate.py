"""Likelihoods whose leaf values integrate out, recognised in a model's graph.

================== ==========================================================================
leaf               likelihood
================== ==========================================================================
`NormalLeaf`       one Normal whose mean is f, or a multiple of f plus other terms, row by row;
                   its sd any expression that does not see f
`NormalGammaLeaf`  one Normal with ``mu`` and ``tau`` the two outputs of the tree
`DirichletLeaf`    one Categorical with ``p`` the output of the tree, or for two classes one
                   Bernoulli with ``p`` its second column
any                no term at all: the prior
================== ==========================================================================
"""

from dataclasses import dataclass

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import BernoulliRV, CategoricalRV, NormalRV

from pymc_trees.targets.affine import (
    NotAffineError,
    Slope,
    is_unchanged,
    output_column,
    passes_through,
    power_of,
    slope_of,
)
from pymc_trees.targets.graph import ForestGraph, NotConjugateError, open_forest, read_graph


@dataclass
class ConjugateTerm:
    """The likelihood of a forest as expressions of values and of the forest's outputs."""

    kind: str
    """``normal``, ``normal_gamma``, ``dirichlet`` or ``none``."""
    outputs: Variable
    observed: Variable | None = None
    mean: Variable | None = None
    """Mean of a Normal."""
    sd: Variable | None = None
    """Standard deviation of a Normal that does not see f."""
    gradient: Variable | None = None
    """Factor of f in the mean, row by row; None when it is 1."""
    slope: Slope = Slope.FREE


def recognise(model: pm.Model, forest: Variable) -> ConjugateTerm:
    """Likelihood of a forest, or `NotConjugateError` with what stands in the way."""
    graph = read_graph(model, forest)
    leaf = forest.owner.op.leaf
    if leaf == "normal_vector":
        raise _refusal(graph, "its leaves hold several values")
    if graph.potentials:
        names = [v.name for v in graph.potentials]
        raise _refusal(graph, f"the Potentials {names} depend on it")
    if not graph.terms:
        _, outputs = open_forest(model, graph, [])
        return ConjugateTerm("none", outputs)
    if len(graph.terms) > 1:
        names = [v.name for v in graph.terms]
        if any(name.endswith("_unobserved") for name in names):
            raise _refusal(
                graph,
                "the observed variable has missing values, which PyMC turns into a variable of "
                f"their own ({names}): remove those rows from X and y before declaring the model",
            )
        raise _refusal(graph, f"several variables depend on it: {names}")
    [term] = graph.terms
    value = model.rvs_to_values[term]
    if model.rvs_to_transforms.get(term) is not None:
        raise _refusal(graph, f"{term.name} is transformed")
    recognisers = {"normal": _normal, "normal_gamma": _normal_gamma, "dirichlet": _dirichlet}
    return recognisers[leaf](model, graph, term, value)


def _normal(model, graph, term, value):
    if not isinstance(term.owner.op, NormalRV):
        raise _refusal(graph, f"{term.name} is not pm.Normal but {_name(term)}")
    (mean, sd), outputs = open_forest(model, graph, list(term.owner.inputs[2:4]))
    if any(v is outputs for v in ancestors([sd])):
        raise _refusal(graph, f"the sd of {term.name} depends on it")
    if term.ndim != 1:
        raise _refusal(
            graph,
            f"{term.name} has {term.ndim} dimensions instead of 1; for a single column give "
            "observed=y.ravel()",
        )
    try:
        slope = slope_of(mean, outputs)
    except NotAffineError as error:
        raise _refusal(
            graph, f"the mean of {term.name} is not an affine function of it, row by row ({error})"
        ) from None
    gradient = None
    if slope is not Slope.ONE:
        gradient = pt.grad(mean.sum(), outputs, disconnected_inputs="ignore")[:, 0]
        # without the fills of a raw gradient, which run row by row in Python
        gradient = rewrite_graph(gradient, include=("canonicalize",))
    return ConjugateTerm("normal", outputs, value, mean, sd, gradient, slope)


def _normal_gamma(model, graph, term, value):
    wanted = "a NormalGammaLeaf needs pm.Normal(mu=mu, tau=tau) with both outputs of the tree"
    if not isinstance(term.owner.op, NormalRV):
        raise _refusal(graph, f"{term.name} is {_name(term)}; {wanted}")
    (mean, sd), outputs = open_forest(model, graph, list(term.owner.inputs[2:4]))
    try:
        direct = _unwrapped_column(mean, outputs) == 0
        exponent = power_of(sd, outputs, 1)
    except NotAffineError as error:
        raise _refusal(graph, f"{wanted} ({error} is in the way)") from None
    if not direct or exponent != -0.5:
        raise _refusal(graph, wanted)
    return ConjugateTerm("normal_gamma", outputs, value)


def _dirichlet(model, graph, term, value):
    n_classes = graph.rv.owner.op.layout.n_values
    if isinstance(term.owner.op, CategoricalRV):
        [p], outputs = open_forest(model, graph, [term.owner.inputs[2]])
        if is_unchanged(p, outputs):
            return ConjugateTerm("dirichlet", outputs, value)
        raise _refusal(graph, f"the p of {term.name} is not the output of the tree itself")
    if isinstance(term.owner.op, BernoulliRV) and n_classes == 2:
        [p], outputs = open_forest(model, graph, [term.owner.inputs[2]])
        if _unwrapped_column(p, outputs) == 1:
            return ConjugateTerm("dirichlet", outputs, value)
        raise _refusal(graph, f"the p of {term.name} is not the tree's second column, p[:, 1]")
    raise _refusal(
        graph,
        f"{term.name} is {_name(term)}; a DirichletLeaf needs pm.Categorical(p=p), or for two "
        "classes pm.Bernoulli(p=p[:, 1])",
    )


def _unwrapped_column(var, outputs):
    while output_column(var, outputs) is None:
        inner = passes_through(var)
        if inner is None:
            return None
        var = inner
    return output_column(var, outputs)


def _name(term):
    return "pm." + type(term.owner.op).__name__.removesuffix("RV")


TREATED = {
    "normal": "a NormalLeaf forest in the mean of one pm.Normal: f, times and plus other terms, "
    "row by row, with any sd that does not see f",
    "normal_vector": "forests with one output each",
    "normal_gamma": "a NormalGammaLeaf tree in pm.Normal(mu=mu, tau=tau) with both of its outputs; "
    "for another sd use a NormalLeaf",
    "dirichlet": "a DirichletLeaf tree in pm.Categorical(p=p), or for two classes "
    "pm.Bernoulli(p=p[:, 1])",
}


def _refusal(graph: ForestGraph, reason: str) -> NotConjugateError:
    leaf = graph.rv.owner.op.leaf
    return NotConjugateError(
        f"The leaf values of {graph.rv.name} do not integrate out: {reason}. They do for "
        f"{TREATED[leaf]}. Under any other likelihood take a NormalLeaf."
    )
