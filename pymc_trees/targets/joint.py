"""Target of a forest under a likelihood that is evaluated as a whole."""

from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.leaves.nonconjugate.joint import make_joint
from pymc_trees.targets.contract import Target, check_proposals
from pymc_trees.targets.graph import ForestGraph, cut_free
from pymc_trees.targets.native import (
    LazilyCompiled,
    UnitData,
    compile_graph,
    compile_source,
    pack,
    read_free,
)
from pymc_trees.targets.settings import PointFunction, Settings
from pymc_trees.targets.terms import likelihood_terms, slope


@dataclass
class WholeFunction(LazilyCompiled):
    """Native function of all outputs; ``direction`` is a second half of them, if any.

    It is the first of ``choices``, matrices of one shape, that can be compiled.
    """

    outputs: Variable
    direction: Variable | None
    free: list[Variable]
    choices: list[Variable]

    def _compile(self, result):
        halves = [v for v in (self.outputs, self.direction) if v is not None]
        function = compile_graph([*halves, *self.free], result)
        n, k = self.outputs.type.shape
        arguments = ", ".join(
            [*(f"outputs[{h * n}:{(h + 1) * n}]" for h in range(len(halves)))]
            + read_free(self.free, 1)[0]
        )
        rows, columns = result.type.shape
        source = f"""
def evaluate(n, rows, outputs, table, data, result):
    outputs = carray(outputs, (n, {k}), np.float64)
    result = carray(result, ({rows}, {columns}), np.float64)
    table = carray(table, (1 << 40,), np.int64)
    data = carray(data, (table[0],), np.float64)
    values = function({arguments})[0]
    for i in range({rows}):
        for j in range({columns}):
            result[i, j] = values[i, j]
    return 1
"""
        return compile_source(source, {"function": function})


class JointTarget(Target):
    """Prior settings and likelihood of one forest, as functions of the other variables.

    Parameters
    ----------
    graph : ForestGraph
        A forest of a model, with a `NormalLeaf`.
    """

    kind = "joint"
    needs_surrogate = True
    is_joint = True

    def __init__(self, graph: ForestGraph):
        check_proposals(graph)
        self.name, self.layout = graph.rv.name, graph.layout
        terms, outputs = likelihood_terms(graph)
        total = pt.add(pt.constant(0.0), *(term.value.sum() for term in terms))
        for condition in (c for term in terms for c in term.conditions):
            total = pt.switch(pt.all(condition), total, -np.inf)
        total = total.astype("float64")
        total, expressions, free = cut_free(total, outputs)
        direction = outputs.type("direction")
        # Without any gradient proposals do without: differences of values would evaluate what may
        # take long, a solver say, hundreds of times for a tree.
        gradient = slope(total, outputs, 0.0)
        product = slope((gradient * direction).sum(), outputs)
        fixed = outputs.type.shape
        total = pt.specify_shape(total[None, None], (1, 1))
        gradient, product = (pt.specify_shape(v, fixed) for v in (gradient, product))
        zeros, unknown = pt.zeros(fixed), pt.full(fixed, np.nan)
        self.value = WholeFunction(outputs, None, free, [total])
        self.gradient = WholeFunction(outputs, None, free, [gradient, zeros])
        self.product = WholeFunction(outputs, direction, free, [product, unknown])
        self._numbers_at = PointFunction(graph.model, graph.rv, expressions, outputs, _pack)

    @property
    def n_stats(self) -> int:
        """Statistics of a leaf, or of its surrogate."""
        k = self.layout.n_values
        return 1 + k + k * (k + 1) // 2

    def at(self, point: dict) -> tuple[Settings, UnitData]:
        """Settings, and the parameters of the likelihood other than f, at a point."""
        return self._numbers_at(point)

    def leaf_data(self, settings: Settings, seen: UnitData, fit: np.ndarray, rng=None):
        """Leaf model over the outputs ``fit``; None, since there is no residual."""
        mean, sd = settings.leaf
        leaf = make_joint(
            mean,
            sd,
            self.value.address,
            self.gradient.address,
            self.product.address,
            seen[:2],
            fit.copy(),
        )
        return leaf, None

    def log_scale(self, seen: UnitData) -> float:
        """Log-likelihood not included in the leaf model: 0."""
        return 0.0


def _pack(numbers):
    return pack(numbers, [])
