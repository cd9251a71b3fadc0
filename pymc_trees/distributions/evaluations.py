"""Where a graph evaluates trees."""

from collections.abc import Iterable

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.forest_inputs import Evaluation, evaluation
from pymc_trees.distributions.ops.evaluation import Evaluate
from pymc_trees.distributions.ops.soft_evaluation import SoftEvaluate
from pymc_trees.distributions.ops.soft_forest_evaluation import SoftForestEvaluate

OPS = Evaluate | SoftEvaluate | SoftForestEvaluate
"""Those that evaluate trees."""


def evaluations(
    graphs: Iterable[Variable],
    tree: Variable | None = None,
    blockers: Iterable[Variable] | None = None,
) -> list[Evaluation]:
    """Evaluations among the ancestors of some variables: of one tree, its variable or value."""
    found = [
        evaluation(v)
        for v in ancestors(graphs, blockers=blockers)
        if v.owner and isinstance(v.owner.op, OPS)
    ]
    return [one for one in found if tree is None or one.tree is tree]
