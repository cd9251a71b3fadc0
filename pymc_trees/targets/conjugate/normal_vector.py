"""One normal observation per row; the mean combines several outputs of the trees."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.core.leaves.coefficients.basis import make_basis
from pymc_trees.targets.affine import NotAffineError
from pymc_trees.targets.conjugate.combination import rows_axis
from pymc_trees.targets.conjugate.contract import ConjugateLikelihood, refusal, register_likelihood
from pymc_trees.targets.conjugate.normal import check_mean_and_sd, logs_of
from pymc_trees.targets.graph import dependent_on


@register_likelihood("normal_vector")
class CombinationLikelihood(ConjugateLikelihood):
    """``y_i = b_i . f_i + c_i + sd_i noise``: b, c and sd do not depend on the K outputs f_i."""

    treated = (
        "a forest of K outputs in the mean of one pm.Normal, or mu of one pm.LogNormal: a sum of "
        "the outputs of the row, each times anything that does not see them, plus other terms"
    )
    of_logs = False
    rows_as = "residual"

    @property
    def n_stats(self):
        """Lower triangle of a matrix, and a vector."""
        k = self.layout.n_values
        return k * (k + 1) // 2 + k

    def read(self, term):
        """Observed values, sd, mean where the outputs are 0, and the (n, K) factors b."""
        name = term.rv.name
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        if not isinstance(term.rv.owner.op, NormalRV | LogNormalRV):
            raise refusal(term.graph, f"{name} is not pm.Normal but {term.says}")
        (mean, sd), outputs = term.opened()
        seeing = dependent_on([mean, sd], outputs)
        if sd in seeing:
            raise refusal(term.graph, f"the sd of {name} depends on it")
        if term.value.ndim != 1:
            raise refusal(term.graph, f"{name} has {term.rv.ndim} dimensions instead of 1")
        if self.layout.n_rows == 1:
            raise refusal(term.graph, "there is a single row")
        try:
            apart = mean in seeing and rows_axis(mean, outputs, seeing) == 0
        except NotAffineError as error:
            raise refusal(
                term.graph,
                f"the mean of {name} is not an affine function of its outputs, row by row "
                f"({error})",
            ) from None
        if not apart:
            raise refusal(term.graph, f"the mean of {name} does not depend on it")
        factors = pt.grad(mean.sum(), outputs)
        factors = rewrite_graph(factors, include=("canonicalize",), clone=True)
        return [term.value, sd, mean, factors], outputs

    def check(self, numbers):
        """y, c, sd and b."""
        observed, sd, offset, factors = numbers
        if self.of_logs:
            observed = logs_of(observed)
        check_mean_and_sd([offset, factors], sd)
        return observed, offset, sd, factors

    def leaf_data(self, settings, seen, fit):
        """Residual of the trees; it does not determine the outputs."""
        n, k = fit.shape
        basis, target, precision = np.zeros((n, k)), np.zeros(n), np.zeros(1)
        if seen is not None:
            observed, offset, sd, factors = seen
            basis = np.array(np.broadcast_to(factors, (n, k)))
            target = self.rows(observed) - offset
            precision = np.asarray(sd, dtype=np.float64).reshape(-1) ** -2.0
            if precision.size not in (1, n):
                raise ValueError(f"sigma has {precision.size} entries for {n} rows.")
        mean, leaf_sd = settings.leaf
        residual = target - np.einsum("ik,ik->i", basis, fit)
        return make_basis(mean, leaf_sd, basis, residual, precision), None

    def log_scale(self, seen):
        """The density of log y is y times that of y."""
        return -float(np.sum(seen[0])) if self.of_logs else 0.0
