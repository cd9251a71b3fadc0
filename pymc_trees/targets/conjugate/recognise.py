"""The likelihood of a forest's leaves, recognised in the model's graph."""

import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.distributions.ops.forest_rv import leaf_at
from pymc_trees.targets.conjugate.contract import (
    LIKELIHOODS,
    ConjugateLikelihood,
    ObservedTerm,
    refusal,
)
from pymc_trees.targets.errors import NotConjugateError
from pymc_trees.targets.graph import open_forest, read_graph


def recognise(
    model: pm.Model, forest: Variable
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
    op = forest.owner.op
    if op.leaf not in LIKELIHOODS:
        raise NotConjugateError(
            f"The leaf values of {forest.name} do not integrate out: no likelihood is registered "
            f"for a {op.leaf_type.__name__}."
        )
    likelihood = LIKELIHOODS[op.leaf](op.layout, leaf_at(forest))
    term = sole_term(model, forest)
    if term is None:
        _, outputs = open_forest(model, read_graph(model, forest), [])
        return likelihood, None, outputs
    wanted, outputs = likelihood.read(term)
    return likelihood, wanted, outputs


def sole_term(model: pm.Model, forest: Variable) -> ObservedTerm | None:
    """The only variable of a model that depends on a forest; None if there is none.

    Raises
    ------
    NotConjugateError
        If there are several, or Potentials among them, or it is transformed.
    """
    graph = read_graph(model, forest)
    if graph.potentials:
        names = [v.name for v in graph.potentials]
        raise refusal(graph, f"the Potentials {names} depend on it")
    if not graph.terms:
        return None
    if len(graph.terms) > 1:
        names = [v.name for v in graph.terms]
        if any(name.endswith("_unobserved") for name in names):
            raise refusal(
                graph,
                "the observed variable has missing values, which PyMC turns into a separate "
                f"variable ({names}): remove those rows from X and y before declaring the model",
            )
        raise refusal(graph, f"several variables depend on it: {names}")
    term = ObservedTerm(model, graph, graph.terms[0])
    if model.rvs_to_transforms.get(term.rv) is not None:
        raise refusal(term.graph, f"{term.rv.name} is transformed")
    return term
