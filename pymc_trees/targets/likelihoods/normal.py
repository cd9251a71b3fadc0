"""One Normal observation per row, or its exponential: leaf values integrate out.

The mean is affine in the forest's function: of trees with constant leaves, with linear leaves, of
several outputs, or with a precision of its own in each leaf.
"""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.core.leaves.coefficients import make_basis, make_linear
from pymc_trees.core.leaves.contract import n_stats
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.targets.affine import power_of
from pymc_trees.targets.errors import NotRecognisedError
from pymc_trees.targets.graph import dependent_on
from pymc_trees.targets.likelihoods.contract import (
    ConjugateLikelihood,
    refusal,
    register_likelihood,
)
from pymc_trees.targets.likelihoods.expressions import read_affine, rows_axis, unwrapped_column

# -------- One normal observation per row, or its exponential; mean affine in the forest's function


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
        except NotRecognisedError as error:
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


def is_far(target, fit, mean, leaf_sd) -> bool:
    """Whether outputs computed from the residual of a target would lose digits."""
    largest = max(np.abs(target).max(), np.abs(fit).max())
    return bool(largest > FAR * (leaf_sd + abs(mean)))


# ----------- One normal observation per row; mean affine in a function of trees with linear leaves


@register_likelihood("linear")
class LinearLikelihood(NormalLikelihood):
    """``y = a f + b + sd noise``, as for a `NormalLeaf`."""

    treated = (
        "a LinearLeaf forest in the mean of one pm.Normal, or mu of one pm.LogNormal: f, times and "
        "plus other terms, row by row, with any sd that does not see f"
    )

    def __init__(self, layout, outputs):
        super().__init__(layout, outputs)
        self.n_stats = n_stats(outputs)

    def leaf_of(self, parameters, residual, precision):
        """Linear functions of the columns of the leaf prior."""
        mean, sd, slope_sd, share = parameters
        return make_linear(mean, sd, slope_sd, share, self.outputs, residual, precision)


# ------------------ One normal observation per row; the mean combines several outputs of the trees


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
        except NotRecognisedError as error:
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


# --------------------- One normal observation per row, with the mean and the precision of its leaf


WANTED = "a NormalGammaLeaf needs pm.Normal(mu=mu, tau=tau) with both outputs of the tree"


@register_likelihood("normal_gamma")
class NormalGammaLikelihood(ConjugateLikelihood):
    """``y ~ Normal(mu, tau=tau)``."""

    treated = (
        "a NormalGammaLeaf tree in pm.Normal(mu=mu, tau=tau) with both of its outputs; "
        "for another sd use a NormalLeaf"
    )
    n_stats = 3

    def read(self, term):
        """Observed values."""
        if not isinstance(term.rv.owner.op, NormalRV):
            raise refusal(term.graph, f"{term.rv.name} is {term.says}; {WANTED}")
        (mean, sd), outputs = term.opened()
        try:
            direct = unwrapped_column(mean, outputs) == 0
            exponent = power_of(sd, outputs, 1)
        except NotRecognisedError as error:
            raise refusal(term.graph, f"{WANTED} ({error} is in the way)") from None
        if not direct or exponent != -0.5:
            raise refusal(term.graph, WANTED)
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """Observed values; there is no residual."""
        a, nu, lam = settings.leaf
        y = np.empty(0) if seen is None else self.rows(*seen)
        return make_normal_gamma(a, nu, lam, y), None
