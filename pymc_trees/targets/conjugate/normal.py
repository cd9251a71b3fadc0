"""One normal observation per row, or its exponential; mean affine in the forest's function."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.targets.affine import NotAffineError, Slope, slope_of
from pymc_trees.targets.conjugate.contract import ConjugateLikelihood, refusal, register_likelihood

FAR = 1e5
"""Target, in units of the leaf prior, beyond which outputs are not computed from the residual."""


@register_likelihood("monotone")
@register_likelihood("normal")
class NormalLikelihood(ConjugateLikelihood):
    """``y = a f + b + sd noise``: a, b and sd are scalars or one per row, and independent of f.

    For a LogNormal, y is the logarithm of the observation.
    """

    treated = (
        "a NormalLeaf forest in the mean of one pm.Normal, or mu of one pm.LogNormal: f, times and "
        "plus other terms, row by row, with any sd that does not see f"
    )
    n_stats = 2
    rows_as = "target"
    of_logs = False

    def read(self, term):
        """Observed values, sd, mean, and the factor a unless it is 1."""
        name = term.rv.name
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        if not isinstance(term.rv.owner.op, NormalRV | LogNormalRV):
            raise refusal(term.graph, f"{name} is not pm.Normal but {term.says}")
        (mean, sd), outputs = term.opened()
        if any(v is outputs for v in ancestors([sd])):
            raise refusal(term.graph, f"the sd of {name} depends on it")
        if term.value.ndim != 1:
            raise refusal(
                term.graph,
                f"{name} has {term.rv.ndim} dimensions instead of 1; for a single column give "
                "observed=y.ravel()",
            )
        try:
            affine = read_affine(mean, outputs)
        except NotAffineError as error:
            raise refusal(
                term.graph,
                f"the mean of {name} is not an affine function of it, row by row ({error})",
            ) from None
        return [term.value, sd, *affine], outputs

    def check(self, numbers):
        """y, b, sd, and a or None."""
        observed, sd, offset, *factor = numbers
        if self.of_logs:
            observed = logs_of(observed)
        slope = factor[0] if factor else None
        check_mean_and_sd([v for v in (offset, slope) if v is not None], sd)
        return observed, offset, sd, slope

    def leaf_data(self, settings, seen, fit):
        """Residual of ``fit``, and the target it was subtracted from unless that is too far."""
        n = self.layout.n_rows
        target, precision = (np.zeros(n), np.zeros(1)) if seen is None else self.scaled(*seen)
        leaf = self.leaf_of(settings.leaf, target - fit[:, 0], precision)
        mean, leaf_sd = settings.leaf[:2]
        return leaf, None if is_far(target, fit, mean, leaf_sd) else target

    def leaf_of(self, parameters, residual, precision):
        """Leaf model of a residual, and a precision of each row or of all."""
        mean, sd = parameters
        return make_normal(mean, sd, residual, precision, self.layout.max_nodes)

    def scaled(self, observed, offset, sd, slope):
        """Target of f, and the precision of each row or of all."""
        n = self.layout.n_rows
        target = self.rows(observed) - offset
        precision = np.asarray(sd, dtype=np.float64) ** -2.0
        if slope is not None:
            # a common factor keeps a common precision
            same = np.all(slope == slope.flat[0])
            slope = np.broadcast_to(slope.flat[0] if same else slope, (1 if same else n,))
            # y = b + a f + noise is y/a = f + b/a + noise/a; a row with a = 0 says nothing
            target = np.divide(target, slope, out=np.zeros(n), where=slope != 0)
            precision = precision * slope**2
        precision = precision.reshape(-1)
        if precision.size not in (1, n):
            raise ValueError(f"sigma has {precision.size} entries for {n} rows.")
        return target, precision

    def log_scale(self, seen):
        """Log density of the observed values minus that of the target.

        For y = a f + b + noise, the density of y/a is |a| times that of y; a row with a = 0 has no
        target. The density of log y is y times that of y.
        """
        logs = float(np.sum(seen[0])) if self.of_logs else 0.0
        if seen[3] is None:
            return -logs
        observed, offset, sd, slope = np.broadcast_arrays(*seen)
        moves = slope != 0
        z = (observed[~moves] - offset[~moves]) / sd[~moves]
        still = np.sum(-0.5 * (z**2 + np.log(2 * np.pi)) - np.log(sd[~moves]))
        return float(still - np.sum(np.log(np.abs(slope[moves])))) - logs


def check_mean_and_sd(means: list[np.ndarray], sd: np.ndarray) -> None:
    """Numbers that make up a mean are finite, and an sd is positive, or an error."""
    if not all(np.isfinite(v).all() for v in means):
        raise ValueError("The mean of the observed variable is not finite at this point.")
    if not (np.isfinite(sd).all() and (np.asarray(sd) > 1e-150).all()):
        raise ValueError(
            "sigma of the observed variable must be positive and finite, but at this point "
            f"it is {np.min(sd)}: give it a prior that keeps it away from 0."
        )


def logs_of(observed) -> np.ndarray:
    """Logarithms of the observations of a LogNormal, or an error."""
    observed = np.asarray(observed, dtype=np.float64)
    if not (observed > 0).all():
        raise ValueError(
            f"The observed values of pm.LogNormal must be positive, but the least is "
            f"{np.min(observed)}."
        )
    return np.log(observed)


def read_affine(mean: Variable, outputs: Variable) -> list[Variable]:
    """Expressions of b, where the outputs are 0, and of a unless it is 1, of a mean a f + b.

    Raises
    ------
    NotAffineError
        When the mean is not known to be affine in f, row by row.
    """
    if slope_of(mean, outputs) is Slope.ONE:
        return [mean]
    factor = pt.grad(mean.sum(), outputs, disconnected_inputs="ignore")[:, 0]
    # without the fills of a raw gradient, which run row by row in Python
    return [mean, rewrite_graph(factor, include=("canonicalize",), clone=True)]


def is_far(target, fit, mean, leaf_sd) -> bool:
    """Whether outputs computed from the residual of a target would lose digits."""
    largest = max(np.abs(target).max(), np.abs(fit).max())
    return bool(largest > FAR * (leaf_sd + abs(mean)))
