"""One Normal observation per row, or its exponential.

Leaf values integrate out if the mean is affine in the forest's function: of trees with constant
leaves, with linear leaves, of several outputs, or with a precision of its own in each leaf. There
are kernels for a forest in the sd.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.coefficients import make_basis, make_linear
from pymc_trees.core.leaves.contract import n_stats
from pymc_trees.core.leaves.correlated import make_correlated
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.targets.graph import NotRecognisedError, dependent_on, stripped
from pymc_trees.targets.likelihoods.contract import (
    ConjugateLikelihood,
    KernelLikelihood,
    is_far,
    logs_of,
    refusal,
    register_likelihood,
    register_row_likelihood,
)
from pymc_trees.targets.likelihoods.correlated import Whitened, is_correlated, read_correlated
from pymc_trees.targets.likelihoods.expressions import (
    log_affine_pair,
    power_of,
    read_affine,
    rows_axis,
    unwrapped_column,
)
from pymc_trees.targets.likelihoods.observed import Part

# -------- One normal observation per row, or its exponential; mean affine in the forest's function


@register_likelihood("monotone")
@register_likelihood("normal")
class NormalLikelihood(ConjugateLikelihood):
    """``y = a f + b + sd noise``: a, b and sd are scalars or one per row, and independent of f.

    For a LogNormal, y is the logarithm of the observation. An MvNormal, in whose mean f has any
    places, is such a Normal times a number free of f (`correlated`).
    """

    supported = (
        "a NormalLeaf forest in the mean of one pm.Normal or pm.MvNormal, or mu of one "
        "pm.LogNormal: f, times and plus other terms, row by row, with any sd or covariance that "
        "does not depend on f"
    )
    n_stats = 2
    rows_as = "target"
    reads_parts = True
    of_logs = correlated = False

    def read(self, term):
        """Observed values, sd, mean, and the factor a unless it is 1; or `read_correlated`."""
        name = term.name
        self.correlated = is_correlated(term)
        if self.correlated:
            return read_correlated(term)
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        if not isinstance(term.rv.owner.op, NormalRV | LogNormalRV):
            raise refusal(term.graph, f"{name} is not pm.Normal but {term.distribution}")
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
        if not isinstance(term, Part):
            return [term.value, sd, *affine], outputs
        if term.rows is None:
            raise refusal(term.graph, f"{name} is not pm.Normal but {term.distribution}")
        offset, *factor = affine
        slope = pt.switch(term.rows, factor[0] if factor else 1.0, 0.0)
        constant = pt.switch(term.rows, term.others[1], term.others[0])
        return [term.value, sd, offset, slope, term.rows, constant], outputs

    def check(self, numbers):
        """y, b, sd, and a or None; of a hurdle its rows, and their log density without this.

        Of an MvNormal also its log density less that of y.
        """
        if self.correlated:
            return Whitened.of(numbers, self.layout.n_rows).as_normal()
        observed, sd, offset, *factor = numbers
        if self.of_logs:
            observed = logs_of(observed)
        slope, *of_hurdle = factor or [None]
        check_mean_and_sd([v for v in (offset, slope) if v is not None], sd)
        return observed, offset, sd, slope, *of_hurdle

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

    def scaled(self, observed, offset, sd, slope, *rest):
        """Target of f, and the precision of each row or of all."""
        n = self.layout.n_rows
        target = self.rows(observed) - offset
        precision = np.asarray(sd, dtype=np.float64) ** -2.0
        if slope is not None:
            # a common factor keeps a common precision
            same = np.all(slope == slope.flat[0])
            slope = np.broadcast_to(slope.flat[0] if same else slope, (1 if same else n,))
            # y = b + a f + noise is y/a = f + b/a + noise/a; rows with a = 0 are uninformative
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
        *seen, free = seen if self.correlated else (*seen, 0.0)
        free -= float(np.sum(seen[0])) if self.of_logs else 0.0
        if seen[3] is None:
            return free
        observed, offset, sd, slope = np.broadcast_arrays(*seen[:4])
        moves = slope != 0
        stays = ~moves
        if len(seen) > 4:
            stays = stays & seen[4]
            free += float(np.sum(np.broadcast_to(seen[5], stays.shape)))
            # rows that say nothing are observations of 0 with precision 0, whose density is 1
        z = (observed[stays] - offset[stays]) / sd[stays]
        still = np.sum(-0.5 * (z**2 + np.log(2 * np.pi)) - np.log(sd[stays]))
        return float(still - np.sum(np.log(np.abs(slope[moves])))) + free


def check_mean_and_sd(means: list[np.ndarray], sd: np.ndarray) -> None:
    """Numbers that make up a mean are finite, and an sd is positive, or an error."""
    if not all(np.isfinite(v).all() for v in means):
        raise ValueError("The mean of the observed variable is not finite at this point.")
    if not (np.isfinite(sd).all() and (np.asarray(sd) > 1e-150).all()):
        raise ValueError(
            "sigma of the observed variable must be positive and finite, but at this point "
            f"it is {np.min(sd)}: give it a prior that keeps it away from 0."
        )


# ----------- One normal observation per row; mean affine in a function of trees with linear leaves


@register_likelihood("linear")
class LinearLikelihood(NormalLikelihood):
    """``y = a f + b + sd noise``, as for a `NormalLeaf`."""

    supported = (
        "a LinearLeaf forest in the mean of one pm.Normal or pm.MvNormal, or mu of one "
        "pm.LogNormal: f, times and plus other terms, row by row, with any sd or covariance that "
        "does not depend on f"
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
    """``y_i = b_i . f_i + c_i + sd_i noise``: b, c and sd do not depend on the K outputs f_i.

    Or an MvNormal, each output of which has such a mean.
    """

    supported = (
        "a forest of K outputs in the mean of one pm.Normal or pm.MvNormal, or mu of one "
        "pm.LogNormal: a sum of the outputs of the row, each times anything that does not depend "
        "on them, plus other terms"
    )
    of_logs = correlated = False
    rows_as = "residual"

    @property
    def n_stats(self):
        """Lower triangle of a matrix, and a vector."""
        k = self.layout.n_values
        return k * (k + 1) // 2 + k

    def read(self, term):
        """Observed values, sd, mean where the outputs are 0, and the (n, K) factors b.

        Or `read_correlated`.
        """
        name = term.name
        self.correlated = is_correlated(term)
        if self.correlated:
            return read_correlated(term)
        self.of_logs = isinstance(term.rv.owner.op, LogNormalRV)
        if not isinstance(term.rv.owner.op, NormalRV | LogNormalRV):
            raise refusal(term.graph, f"{name} is not pm.Normal but {term.distribution}")
        (mean, sd), outputs = term.opened()
        dependent = dependent_on([mean, sd], outputs)
        if sd in dependent:
            raise refusal(term.graph, f"the sd of {name} depends on it")
        if term.value.ndim != 1:
            raise refusal(term.graph, f"{name} has {term.rv.ndim} dimensions instead of 1")
        if self.layout.n_rows == 1:
            raise refusal(term.graph, "there is a single row")
        try:
            row_by_row = mean in dependent and rows_axis(mean, outputs, dependent) == 0
        except NotRecognisedError as error:
            raise refusal(
                term.graph,
                f"the mean of {name} is not an affine function of its outputs, row by row "
                f"({error})",
            ) from None
        if not row_by_row:
            raise refusal(term.graph, f"the mean of {name} does not depend on it")
        factors = pt.grad(mean.sum(), outputs)
        factors = rewrite_graph(factors, include=("canonicalize",), clone=True)
        return [term.value, sd, mean, factors], outputs

    def check(self, numbers):
        """y, c, sd and b; or the rows of an MvNormal."""
        if self.correlated:
            return Whitened.of(numbers, self.layout.n_rows)
        observed, sd, offset, factors = numbers
        if self.of_logs:
            observed = logs_of(observed)
        check_mean_and_sd([offset, factors], sd)
        return observed, offset, sd, factors

    def leaf_data(self, settings, seen, fit):
        """Residual of the trees; it does not determine the outputs."""
        if isinstance(seen, Whitened):
            P = seen.U.mT @ seen.U
            h = (seen.U.mT @ seen.e[:, :, None])[:, :, 0]
            mean, leaf_sd = settings.leaf
            return make_correlated(mean, leaf_sd, P, h, fit), None
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
        """The density of log y is y times that of y; or that of an MvNormal where f is 0."""
        if isinstance(seen, Whitened):
            return seen.log_density(np.zeros((len(seen.e), self.layout.n_values)))
        return -float(np.sum(seen[0])) if self.of_logs else 0.0


# --------------------- One normal observation per row, with the mean and the precision of its leaf


WANTED = "a NormalGammaLeaf needs pm.Normal(mu=mu, tau=tau) with both outputs of the tree"


@register_likelihood("normal_gamma")
class NormalGammaLikelihood(ConjugateLikelihood):
    """``y ~ Normal(mu, tau=tau)``."""

    supported = (
        "a NormalGammaLeaf tree in pm.Normal(mu=mu, tau=tau) with both of its outputs; "
        "for another sd use a NormalLeaf"
    )
    n_stats = 3

    def read(self, term):
        """Observed values."""
        if not isinstance(term.rv.owner.op, NormalRV):
            raise refusal(term.graph, f"{term.name} is {term.distribution}; {WANTED}")
        (mean, sd), outputs = term.opened()
        try:
            direct = unwrapped_column(mean, outputs) == 0
            exponent = power_of(sd, outputs, 1)
        except NotRecognisedError as error:
            raise refusal(term.graph, f"{WANTED} ({error} is not invertible)") from None
        if not direct or exponent != -0.5:
            raise refusal(term.graph, WANTED)
        return [term.value], outputs

    def leaf_data(self, settings, seen, fit):
        """Observed values; there is no residual."""
        a, nu, lam = settings.leaf
        y = np.empty(0) if seen is None else self.rows(*seen)
        return make_normal_gamma(a, nu, lam, y), None


# --------------------------------- Normals whose sd depends on the forest, and whose mean does not
#
# Kernels first. r ~ N(0, a + c), a = exp(e)^2, e = slope f + offset.
# Numbers: r, c, slope, offset.


HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@njit(cache=True)
def added_variance_value(numbers, f):
    """Log-likelihood of a row."""
    v = math.exp(2.0 * (numbers[2] * f + numbers[3])) + numbers[1]
    return -HALF_LOG_2_PI - 0.5 * (math.log(v) + numbers[0] * numbers[0] / v)


@njit(cache=True)
def added_variance_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[2]
    a = math.exp(2.0 * (slope * f + numbers[3]))
    v = a + numbers[1]
    z2, share = numbers[0] * numbers[0] / v, a / v
    first = slope * share * (z2 - 1.0)
    return first, 2.0 * slope * first + 2.0 * (slope * share) ** 2 * (1.0 - 2.0 * z2)


# ------- Normal whose variance is a product with exp(2 e) plus one that, as the mean, is free of f


@register_row_likelihood
class AddedVarianceLikelihood(KernelLikelihood):
    """``Normal(mean, sqrt(exp(2 e) + c))``."""

    of = (NormalRV,)
    value = staticmethod(added_variance_value)
    slopes = staticmethod(added_variance_slopes)

    def read(self, term):
        """Mean, c, logarithm of the sd without it."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotRecognisedError("a mean that depends on the forest too")
        seen, other = _summands(sd, outputs)
        return [mean, other, *log_affine_pair(pt.sqrt(seen), outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        mean, least, *pair = parameters
        if not (np.asarray(least) >= 0).all():
            raise ValueError(
                "The variance added to that of the observed variable must not be negative."
            )
        return [y - mean, least, *pair]


def _summands(sd, outputs):
    """Variances of which one sees the forest."""
    variance = _inputs(sd, scalars.Sqrt)
    summands = _inputs(variance[0], scalars.Add) if variance else []
    if len(summands) == 2:
        first, second = (one in dependent_on([one], outputs) for one in summands)
        if first != second:
            return tuple(summands if first else summands[::-1])
    raise NotRecognisedError("an sd that is not the root of a sum of two variances")


def _inputs(var, kind):
    var = stripped(var)
    op = var.owner.op if var.owner else None
    return var.owner.inputs if isinstance(op, Elemwise) and isinstance(op.scalar_op, kind) else []


# ----------------------------- r ~ N(0, exp(e)^2), e = slope f + offset; numbers: r, slope, offset


@njit(cache=True)
def log_sd_value(numbers, f):
    """Log-likelihood of a row."""
    e = numbers[1] * f + numbers[2]
    z = numbers[0] * math.exp(-e)
    return -HALF_LOG_2_PI - e - 0.5 * z * z


@njit(cache=True)
def log_sd_slopes(numbers, f):
    """Its first and second derivative."""
    slope = numbers[1]
    z = numbers[0] * math.exp(-(slope * f + numbers[2]))
    return slope * (z * z - 1.0), -2.0 * (slope * z) ** 2


# ------------- Normal whose sd is a product with exp(e), about a mean that does not see the forest


@register_row_likelihood
class LogSdLikelihood(KernelLikelihood):
    """``Normal(mean, exp(e))``."""

    of = (NormalRV,)
    value = staticmethod(log_sd_value)
    slopes = staticmethod(log_sd_slopes)

    def read(self, term):
        """Mean, logarithm of the sd."""
        (mean, sd), outputs = term.opened()
        if mean in dependent_on([mean], outputs):
            raise NotRecognisedError("a mean that depends on the forest too")
        return [mean, *log_affine_pair(sd, outputs)], outputs

    def numbers(self, y, parameters):
        """Numbers of each row, as the kernels take them."""
        mean, *pair = parameters
        return [y - mean, *pair]
