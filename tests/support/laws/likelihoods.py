"""Likelihoods whose leaf values do not integrate out: models, setups, and exact laws."""

import math
from dataclasses import replace

import numpy as np
import pymc as pm
from scipy import special, stats

import pymc_trees as pmt
from pymc_trees.core.moves.workspace import make_workspace
from pymc_trees.targets.choose import read_target
from support import oracle as o
from support.chains import make_setup, partition_of
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import PROBLEMS

BATCHES = 60

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


LIKELIHOODS = {
    "poisson": (poisson, log_poisson),
    "logit": (logit, log_logit),
    "student": (student, log_student),
    "rowwise": (laplace, log_laplace),
    "flat": (flat, log_flat),
    "grouped": (grouped, log_grouped),
    "bounded": (bounded, log_bounded),
    "gamma_shape": (gamma_shape, log_gamma_shape),
}
SD = {"student": 2.0, "rowwise": 1.5, "flat": 1.5}


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


def laplace_setup(problem, model, seed, m=1):
    """Arrays of a chain whose leaf model is the one that the step method would use."""
    setup = make_setup(problem, "normal", m=m)
    target = read_target(model, model["mu_forest"])
    assert target.kind == "rowwise"
    settings, seen = target.at(model.initial_point())
    fit = np.full((problem.n, 1), m * problem.mean)
    leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(seed))
    columns = setup.design.columns.astype(np.float64)
    return setup._replace(
        leaf=leaf,
        design=setup.design._replace(columns=columns),
        work=make_workspace(setup.work.nodes.size, target.n_stats, setup.design),
    ), target


def problem_of(name, likelihood):
    return replace(PROBLEMS[name], sd=SD.get(likelihood, 1.2), mean=0.1)


def leaf_of(problem, likelihood):
    log_row = LIKELIHOODS[likelihood][1]

    def log_likelihood(rows, values):
        more = (problem.n,) if likelihood == "grouped" else ()
        return sum(log_row(i, values, *more) for i in rows)

    prior = o.normal_log_density(problem.mean, problem.sd)
    reach = 9.0 * problem.sd
    # panel edges at 1, 1.5 and 2, where some likelihoods have a kink
    return o.QuadratureLeaf(log_likelihood, prior, 1.5 - reach, 1.5 + reach, panels=2 * 27 * 4)


def exact_law(problem, likelihood):
    trees = o.enumerate_trees(problem.X, **problem.prior)
    leaf = leaf_of(problem, likelihood)
    weights, _ = o.posterior(trees, leaf)
    mean, sd = o.row_moments(trees, weights, leaf.moments, problem.n)
    return o.partition_probabilities(trees, weights), mean, sd


def compare_one_tree(chain, problem, likelihood, z):
    """Partitions, pairs of rows, and moments of a chain of one tree against the enumeration."""
    partitions, mean, sd = exact_law(problem, likelihood)
    draws = len(chain.codes)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, problem.n) for code in codes]
    found = law_gap(states, shares, partitions, draws)
    assert found.within(z, 0.06), found
    above = np.triu_indices(problem.n, 1)
    same = np.array([o.same_leaf(state, problem.n)[above] for state in states])
    exact = sum(p * o.same_leaf(part, problem.n)[above] for part, p in partitions.items())
    pairs = gap(shares @ same, exact, independent_se(exact, draws))
    assert pairs.within(z, 0.08), pairs

    scaled = (chain.fits[:, :, 0] - mean) / sd
    first = gap(batch_means(scaled, BATCHES), 0.0)
    assert first.within(z, 0.2), first
    second = gap(batch_means(scaled**2, BATCHES), 1.0)
    assert second.within(z, 0.4), second
