"""A target: positive observations whose log is normal about f, with the leaf values integrated out.

``y_i ~ LogNormal(f_i, sd)`` says that ``log y_i ~ N(f_i, sd)``, so that a `NormalLeaf` forest has
the leaf model of a normal likelihood, for the logs; what y is less dense than its log,
``-sum log y_i``, does not depend on the trees.
"""

import numpy as np
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import LogNormalRV

from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.targets.contract import Target
from pymc_trees.targets.graph import ForestGraph, NotConjugateError, open_forest
from pymc_trees.targets.likelihoods.expressions import Slope, slope_of
from pymc_trees.targets.settings import Settings, compile_values, read_settings


class LogNormalTarget(Target):
    """A NormalLeaf forest that is the ``mu`` of one pm.LogNormal."""

    kind = "log-normal"
    n_stats = 2

    def __init__(self, graph: ForestGraph):
        self.layout, model = graph.layout, graph.model
        alone = len(graph.terms) == 1 and not graph.potentials
        if not alone or not isinstance(graph.terms[0].owner.op, LogNormalRV):
            raise NotConjugateError(f"{graph.rv.name} is not in one pm.LogNormal.")
        [term] = graph.terms
        (mean, sd), outputs = open_forest(graph, list(term.owner.op.dist_params(term.owner)))
        if any(v is outputs for v in ancestors([sd])) or slope_of(mean, outputs) is not Slope.ONE:
            raise NotConjugateError(f"mu of {term.name} is not {graph.rv.name} itself.")
        settings = read_settings(model, graph.rv)
        wanted = [*settings, model.rvs_to_values[term], mean, sd]
        self._function, self._names = compile_values(model, wanted, [outputs])
        self._zero = np.zeros((self.layout.n_rows, 1))

    def at(self, point):
        """Prior settings at a point, and log y, what is added to f, and sd."""
        *settings, y, offset, sd = self._function(self._zero, *(point[k] for k in self._names))
        return Settings.of(settings), (np.log(y), offset, sd)

    def leaf_data(self, settings, seen, fit, rng=None):
        """Leaf model over the residual of the logs, and the target it was subtracted from."""
        log_y, offset, sd = seen
        mean, leaf_sd = settings.leaf
        target, precision = log_y - offset, np.asarray(sd, dtype=float).reshape(-1) ** -2.0
        return make_normal(
            mean, leaf_sd, target - fit[:, 0], precision, self.layout.max_nodes
        ), target

    def log_scale(self, seen):
        """Log density of y less that of its log."""
        return -float(np.sum(seen[0]))
