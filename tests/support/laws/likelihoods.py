"""Likelihoods whose leaf values do not integrate out: as models, and row by row by scipy."""

import math
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import special, stats

import pymc_trees as pmt
from support.naive.laws import PROBLEMS

OUTLIERS = np.array([-1.2, 3.0, -0.8, 0.9, 3.8, 1.1, -3.0, 0.2])
COUNTS = np.array([0, 3, 1, 7, 0, 2, 5, 1])


def poisson(mu, n):
    pm.Poisson("y", pm.math.exp(mu), observed=COUNTS[:n])


def log_poisson(i, f):
    return stats.poisson.logpmf(COUNTS[i], np.exp(f))


def logit(mu, n):
    pm.Bernoulli("y", logit_p=mu, observed=COUNTS[:n] > 1)


def log_logit(i, f):
    return special.log_expit(np.where(COUNTS[i] > 1, f, -f))


def student(mu, n):
    """Rows at -1 and at 3 in one leaf: its value has two modes."""
    pm.StudentT("y", nu=2, mu=mu, sigma=0.5, observed=OUTLIERS[:n])


def log_student(i, f):
    return stats.t.logpdf((OUTLIERS[i] - f) / 0.5, 2) - math.log(0.5)


def laplace(mu, n):
    """No curvature anywhere."""
    pm.Laplace("y", mu=mu, b=0.5, observed=OUTLIERS[:n] / 2)


def log_laplace(i, f):
    return stats.laplace.logpdf(OUTLIERS[i] / 2, f, 0.5)


def flat(mu, n):
    """No information below 1 and above 2."""
    pm.Potential("y", pm.math.clip(mu, 1.0, 2.0) * (COUNTS[:n] - 2.0))


def log_flat(i, f):
    return np.clip(f, 1.0, 2.0) * (COUNTS[i] - 2.0)


def grouped(mu, n):
    """Entries of y that see rows 0, 1, .., 0, 1: some rows twice, some never."""
    pm.Poisson("y", pm.math.exp(mu[GROUPS % n]), observed=COUNTS)


GROUPS = np.array([0, 3, 1, 3, 0, 5, 4, 3])


def log_grouped(i, f, n):
    mine = COUNTS[GROUPS % n == i]
    return sum(stats.poisson.logpmf(c, np.exp(f)) for c in mine) + np.zeros_like(f)


def bounded(mu, n):
    """Likelihood 0 above 1.5: a hard edge, and a variable that is not observed."""
    pm.Uniform(
        "latent", lower=mu, upper=2.0, shape=n, default_transform=None, initval=np.full(n, 1.5)
    )


def log_bounded(i, f):
    with np.errstate(invalid="ignore"):
        return np.where(f < 1.5, -np.log(np.maximum(2.0 - f, 1e-9)), -np.inf)


def gamma_shape(mu, n):
    """PyTensor has no second derivative of the censored density by the shape."""
    pm.Censored("y", pm.Gamma.dist(pm.math.exp(mu), 1.0), None, 3.0, observed=SPANS[:n])


SPANS = np.array([0.4, 3.0, 1.1, 3.0, 0.2, 2.0, 3.0, 0.7])


def log_gamma_shape(i, f):
    law = stats.gamma(np.exp(f))
    return law.logsf(3.0) if SPANS[i] == 3.0 else law.logpdf(SPANS[i])


TRIALS = np.array([1, 3, 2, 4, 1, 2, 3, 1])
SLOPES = np.array([1.0, -0.5, 2.0, 0.0, 1.5, 1.0, -1.0, 0.5])
OFFSETS = np.array([0.3, -0.2, 0.0, 1.0, 0.5, -1.0, 0.0, 0.2])
CUTS = np.array([-0.4, 0.5, 1.3])
QUANTILE = 0.8
WEIGHTS, SHIFTS, SDS = np.array([0.7, 0.2, 0.1]), np.array([0.0, 0.5, -1.0]), np.array([0.5, 1, 3])


def binomial(mu, n):
    """Slopes and offsets of each row, one of which says nothing."""
    eta = SLOPES[:n] * mu + OFFSETS[:n]
    pm.Binomial("y", TRIALS[:n], p=pm.math.invlogit(eta), observed=np.minimum(COUNTS, TRIALS)[:n])


def log_binomial(i, f):
    p = special.expit(SLOPES[i] * f + OFFSETS[i])
    return stats.binom.logpmf(min(COUNTS[i], TRIALS[i]), TRIALS[i], p)


def probit(mu, n):
    pm.Bernoulli("y", p=pm.math.invprobit(1.5 * mu - 0.3), observed=(COUNTS[:n] > 1).astype(int))


def log_probit(i, f):
    return stats.norm.logcdf(np.where(COUNTS[i] > 1, 1, -1) * (1.5 * f - 0.3))


def ordered(mu, n):
    pm.OrderedProbit("y", eta=mu, cutpoints=CUTS, sigma=0.7, observed=np.minimum(COUNTS, 3)[:n])


def log_ordered(i, f):
    ends, k = np.concatenate([[-np.inf], CUTS, [np.inf]]), min(COUNTS[i], 3)
    share = stats.norm.cdf((ends[k + 1] - f) / 0.7) - stats.norm.cdf((ends[k] - f) / 0.7)
    with np.errstate(divide="ignore"):
        return np.log(share)


def quantile(mu, n):
    eta = SLOPES[:n] * mu + OFFSETS[:n]
    pm.AsymmetricLaplace("y", mu=eta, b=0.7, q=QUANTILE, observed=OUTLIERS[:n] / 2)


def log_quantile(i, f):
    kappa = np.sqrt(QUANTILE / (1 - QUANTILE))
    law = stats.laplace_asymmetric(kappa, loc=SLOPES[i] * f + OFFSETS[i], scale=1 / 0.7)
    return law.logpdf(OUTLIERS[i] / 2)


def censored(mu, n):
    law = pm.Normal.dist(mu + OFFSETS[:n], np.linspace(0.5, 1.2, n))
    pm.Censored("y", law, lower=-1.0, upper=0.8, observed=np.clip(OUTLIERS[:n], -1.0, 0.8))


def log_censored(i, f, n):
    law = stats.norm(f + OFFSETS[i], np.linspace(0.5, 1.2, n)[i])
    y = np.clip(OUTLIERS[i], -1.0, 0.8)
    return law.logcdf(y) if y == -1.0 else law.logsf(y) if y == 0.8 else law.logpdf(y)


def log_times_censored(mu, n):
    """Times censored from both sides, with slopes and offsets of each row."""
    law = pm.LogNormal.dist(SLOPES[:n] * mu + OFFSETS[:n], np.linspace(0.5, 1.2, n))
    pm.Censored("y", law, lower=0.3, upper=3.0, observed=np.maximum(SPANS, 0.3)[:n])


def log_log_times_censored(i, f, n):
    law = stats.norm(SLOPES[i] * f + OFFSETS[i], np.linspace(0.5, 1.2, n)[i])
    y = np.log(max(SPANS[i], 0.3))
    if y == np.log(3.0):
        return law.logsf(y)
    return law.logcdf(y) if y == np.log(0.3) else law.logpdf(y) - y


def mixture(mu, n):
    laws = [pm.Normal.dist(mu + shift, sd) for shift, sd in zip(SHIFTS, SDS, strict=True)]
    pm.Mixture("y", w=WEIGHTS, comp_dists=laws, observed=OUTLIERS[:n])


def log_mixture(i, f):
    terms = [
        np.log(w) + stats.norm.logpdf(OUTLIERS[i], f + shift, sd)
        for w, shift, sd in zip(WEIGHTS, SHIFTS, SDS, strict=True)
    ]
    return special.logsumexp(terms, axis=0)


EXPOSURES = np.array([1.0, 0.5, 3.0, 2.0, 0.2, 1.5, 1.0, 4.0])


def exposed(mu, n):
    """Exposures, slopes and offsets of each row; a row without a slope says nothing of f."""
    mean = EXPOSURES[:n] * pm.math.exp(SLOPES[:n] * mu + OFFSETS[:n])
    pm.NegativeBinomial("y", mu=mean, alpha=1.7, observed=COUNTS[:n])


def log_exposed(i, f):
    mean = EXPOSURES[i] * np.exp(SLOPES[i] * f + OFFSETS[i])
    return stats.nbinom.logpmf(COUNTS[i], 1.7, 1.7 / (1.7 + mean))


def times(mu, n):
    """Times censored at 3, whose scale has a factor and a power of its own in each row."""
    law = pm.Weibull.dist(1.4, EXPOSURES[:n] * pm.math.exp(SLOPES[:n] * mu))
    pm.Censored("y", law, lower=None, upper=3.0, observed=SPANS[:n])


def log_times(i, f):
    law = stats.weibull_min(1.4, scale=EXPOSURES[i] * np.exp(SLOPES[i] * f))
    return law.logsf(3.0) if SPANS[i] == 3.0 else law.logpdf(SPANS[i])


def truncated(mu, n):
    """Means far outside of the interval too."""
    mean = SLOPES[:n] * mu + OFFSETS[:n]
    pm.TruncatedNormal("y", mean, 0.6, lower=0.1, upper=3.5, observed=SPANS[:n])


def log_truncated(i, f):
    mean = SLOPES[i] * f + OFFSETS[i]
    law = stats.truncnorm((0.1 - mean) / 0.6, (3.5 - mean) / 0.6, loc=mean, scale=0.6)
    return law.logpdf(SPANS[i])


IS_INTERVAL = np.array([1, 0, 1, 1, 0, 1, 1, 0], dtype=bool)
BEGINS = np.where(np.arange(8) % 3 == 0, 0.0, SPANS)
ENDS = np.where(IS_INTERVAL, SPANS + 0.6, SPANS)


def switched(mu, n):
    """Times known exactly or to an interval: autodiff of 0^1.4 has no curvature where it is 0."""
    scale, begin, end = pm.math.exp(mu), BEGINS[:n], ENDS[:n]
    inside = pt.log(pt.exp(-((begin / scale) ** 1.4)) - pt.exp(-((end / scale) ** 1.4)))
    exact = pm.logp(pm.Weibull.dist(1.4, scale), SPANS[:n])
    pm.Potential("y", pt.switch(IS_INTERVAL[:n], inside, exact))


def log_switched(i, f):
    law = stats.weibull_min(1.4, scale=np.exp(f))
    if not IS_INTERVAL[i]:
        return law.logpdf(SPANS[i])
    with np.errstate(divide="ignore"):
        return np.log(law.sf(BEGINS[i]) - law.sf(ENDS[i]))


def spoilt(f, n, power):
    """0, of which autodiff takes the derivatives to be NaN: both, or with power 1.5 the second."""
    return pt.maximum(pm.Data("nothing", np.zeros(n)) * f, 0.0) ** power


def no_curvature(mu, n):
    poisson(mu, n)
    pm.Potential("none", spoilt(mu, n, 1.5))


def no_slope(mu, n):
    poisson(mu, n)
    pm.Potential("none", spoilt(mu, n, 0.5))


AMOUNTS = np.where(COUNTS > 0, 0.4 * COUNTS, 0.0)


def hurdle(mu, n):
    """The logs of the rows that are not 0 are Gaussian; another row has no slope."""
    mean = SLOPES[:n] * mu + OFFSETS[:n]
    pm.HurdleLogNormal("y", 0.7, mean, np.linspace(0.5, 1.2, n), observed=AMOUNTS[:n])


def log_hurdle(i, f, n):
    if AMOUNTS[i] == 0:
        return np.full_like(f, np.log(0.3))
    law = stats.norm(SLOPES[i] * f + OFFSETS[i], np.linspace(0.5, 1.2, n)[i])
    return np.log(0.7) + law.logpdf(np.log(AMOUNTS[i])) - np.log(AMOUNTS[i])


def positive(mu, n):
    mean = EXPOSURES[:n] * pm.math.exp(SLOPES[:n] * mu + OFFSETS[:n])
    pm.HurdlePoisson("y", 0.7, mean, observed=COUNTS[:n])


def log_positive(i, f):
    mean = EXPOSURES[i] * np.exp(SLOPES[i] * f + OFFSETS[i])
    if COUNTS[i] == 0:
        return np.full_like(f, np.log(0.3))
    return np.log(0.7) + stats.poisson.logpmf(COUNTS[i], mean) - np.log(-np.expm1(-mean))


def inflated(mu, n):
    """Zeros of two kinds."""
    mean = EXPOSURES[:n] * pm.math.exp(SLOPES[:n] * mu + OFFSETS[:n])
    pm.ZeroInflatedNegativeBinomial(
        "y", np.linspace(0.3, 0.9, n), mu=mean, alpha=1.7, observed=COUNTS[:n]
    )


def log_inflated(i, f, n):
    psi, zero = np.linspace(0.3, 0.9, n)[i], np.log(float(COUNTS[i] == 0) + 1e-300)
    return np.logaddexp(np.log1p(-psi) + zero, np.log(psi) + log_exposed(i, f))


def share(mu, n):
    """A forest in the share of two kinds of zeros."""
    p = pm.math.invlogit(SLOPES[:n] * mu + OFFSETS[:n])
    pm.ZeroInflatedPoisson("y", p, np.linspace(0.5, 2.0, n), observed=COUNTS[:n])


def log_share(i, f, n):
    e, zero = SLOPES[i] * f + OFFSETS[i], np.log(float(COUNTS[i] == 0) + 1e-300)
    rate = np.linspace(0.5, 2.0, n)[i]
    one = special.log_expit(e) + stats.poisson.logpmf(COUNTS[i], rate)
    return np.logaddexp(one, special.log_expit(-e) + zero)


def cures(mu, n):
    """A forest in who is cured, by its probit; nobody is known to be."""
    p = pm.math.invprobit(mu + OFFSETS[:n])
    law = pm.Censored.dist(pm.Weibull.dist(1.4, 2.0), None, 3.0)
    weights = pt.stack([p, 1 - p], axis=-1)
    pm.Mixture("y", weights, [pm.DiracDelta.dist(3.0), law], observed=SPANS[:n])


def log_cures(i, f):
    law, e = stats.weibull_min(1.4, scale=2.0), f + OFFSETS[i]
    if SPANS[i] < 3.0:
        return stats.norm.logcdf(-e) + law.logpdf(SPANS[i])
    return np.logaddexp(stats.norm.logcdf(e), stats.norm.logcdf(-e) + law.logsf(3.0))


def uncured(mu, n):
    """A forest in the times of those who are not cured."""
    law = pm.LogNormal.dist(SLOPES[:n] * mu + OFFSETS[:n], np.linspace(0.5, 1.2, n))
    law = pm.Censored.dist(law, None, 3.0)
    pm.Mixture("y", [0.4, 0.6], [pm.DiracDelta.dist(3.0), law], observed=SPANS[:n])


def log_uncured(i, f, n):
    law = stats.norm(SLOPES[i] * f + OFFSETS[i], np.linspace(0.5, 1.2, n)[i])
    if SPANS[i] < 3.0:
        return np.log(0.6) + law.logpdf(np.log(SPANS[i])) - np.log(SPANS[i])
    return np.logaddexp(np.log(0.4), np.log(0.6) + law.logsf(np.log(3.0)))


LIKELIHOODS = {
    "hurdle": (hurdle, log_hurdle),
    "positive": (positive, log_positive),
    "inflated": (inflated, log_inflated),
    "share": (share, log_share),
    "cures": (cures, log_cures),
    "uncured": (uncured, log_uncured),
    "switched": (switched, log_switched),
    "no_curvature": (no_curvature, log_poisson),
    "no_slope": (no_slope, log_poisson),
    "truncated": (truncated, log_truncated),
    "exposed": (exposed, log_exposed),
    "times": (times, log_times),
    "poisson": (poisson, log_poisson),
    "logit": (logit, log_logit),
    "student": (student, log_student),
    "rowwise": (laplace, log_laplace),
    "flat": (flat, log_flat),
    "grouped": (grouped, log_grouped),
    "bounded": (bounded, log_bounded),
    "gamma_shape": (gamma_shape, log_gamma_shape),
    "binomial": (binomial, log_binomial),
    "probit": (probit, log_probit),
    "ordered": (ordered, log_ordered),
    "quantile": (quantile, log_quantile),
    "censored": (censored, log_censored),
    "log_times": (log_times_censored, log_log_times_censored),
    "mixture": (mixture, log_mixture),
}
BY_ROWS = ("grouped", "censored", "log_times", "hurdle", "inflated", "share", "uncured")
"""Those that take the number of rows."""
SD = {"student": 2.0, "rowwise": 1.5, "flat": 1.5, "times": 0.7, "positive": 0.7}


def model_of(problem, name, m=1):
    with pm.Model() as model:
        mu = pmt.BART(
            "mu",
            problem.X,
            m=m,
            alpha=problem.prior["alpha"],
            beta=problem.prior["beta"],
            leaf=pmt.NormalLeaf(problem.mean, problem.sd),
            max_nodes=m * (2 * problem.n - 1),
        )
        LIKELIHOODS[name][0](mu, problem.n)
    return model


def problem_of(name, likelihood):
    return replace(PROBLEMS[name], sd=SD.get(likelihood, 1.2), mean=0.1)
