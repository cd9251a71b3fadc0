"""Leaves with coefficients under likelihoods other than the Normal: the table of both is the test.

Each chain is compared with the posterior listed in `support.naive.row_sums`; tolerances are those
of `support.naive.linear_sums`, some 80 averages a case. Anchors are found in 300 steps of tuning
and stay where they are afterwards.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from support import oracle as o
from support.naive import linear_sums, row_sums
from support.naive.laws import PROBLEMS
from support.naive.path_states import below, partition_in, with_choices

import pymc_trees as pmt
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.leaves.contract import (
    add_row,
    draw_values,
    leaf_output,
    log_marginal,
    n_stats,
)
from pymc_trees.core.leaves.vector_lines import make_vector_lines, read_vector_lines
from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.distributions.leaves.linear import LinearVectorLeaf
from pymc_trees.targets.choose import read_target

NUMBERS = replace(PROBLEMS["two_columns"], prior={"alpha": 0.7, "beta": 1.0})
SMALL = replace(NUMBERS, X=NUMBERS.X[:3], y=NUMBERS.y[:3])
MEAN, SD, SLOPE_SD = 0.2, 0.7, 0.5

# ----------------------------------------------------------------- Likelihoods: model, law of a row

COUNTS = np.array([1, 0, 3, 0, 6, 1, 2])
TRIALS = np.array([9, 40, 12, 30, 20, 11, 25])
WINS = np.array([3, 31, 4, 20, 16, 2, 14])
TIMES = np.array([0.4, 2.1, 0.9, 3.0, 0.2, 1.4, 0.7])
YES = np.array([0, 1, 1, 0, 1, 0, 1])
REAL = np.array([0.3, -0.9, 1.4, 0.1, 2.2, -0.4, 0.8])


def logistic(f):
    return 1.0 / (1.0 + np.exp(-f))


def cohort(f, n):
    """Two observed variables, as in models of retention and revenue."""
    pm.Binomial("y", TRIALS[:n], logit_p=f, observed=WINS[:n])
    pm.Gamma("z", 2.0, 2.0 / pm.math.exp(f), observed=TIMES[:n])


def log_zero_inflated(i, f):
    zero = np.log(0.3 + 0.7 * np.exp(-np.exp(f)))
    return zero if COUNTS[i] == 0 else np.log(0.7) + stats.poisson.logpmf(COUNTS[i], np.exp(f))


def log_quantile(i, f):
    gap, q = (REAL[i] - f) / 0.5, 0.2
    return np.log(q * (1 - q) / 0.5) - np.where(gap > 0, q * gap, (q - 1) * gap)


def quantile(f, n):
    b, kappa = np.sqrt(0.2 * 0.8) / 0.5, np.sqrt(0.2 / 0.8)
    pm.AsymmetricLaplace("y", mu=f, b=b, kappa=kappa, observed=REAL[:n])


LIKELIHOODS = {
    "binomial": (
        lambda f, n: pm.Binomial("y", TRIALS[:n], logit_p=f, observed=WINS[:n]),
        lambda i, f: stats.binom.logpmf(WINS[i], TRIALS[i], logistic(f)),
        "KernelTarget",
    ),
    "poisson": (
        lambda f, n: pm.Poisson("y", pm.math.exp(f), observed=COUNTS[:n]),
        lambda i, f: stats.poisson.logpmf(COUNTS[i], np.exp(f)),
        "KernelTarget",
    ),
    "gamma": (
        lambda f, n: pm.Gamma("y", 2.0, 2.0 / pm.math.exp(f), observed=TIMES[:n]),
        lambda i, f: stats.gamma.logpdf(TIMES[i], 2.0, scale=np.exp(f) / 2.0),
        "KernelTarget",
    ),
    "negative_binomial": (
        lambda f, n: pm.NegativeBinomial("y", mu=pm.math.exp(f), alpha=3.0, observed=COUNTS[:n]),
        lambda i, f: stats.nbinom.logpmf(COUNTS[i], 3.0, 3.0 / (3.0 + np.exp(f))),
        "KernelTarget",
    ),
    "zero_inflated": (
        lambda f, n: pm.ZeroInflatedPoisson("y", 0.7, pm.math.exp(f), observed=COUNTS[:n]),
        log_zero_inflated,
        "KernelTarget",
    ),
    "cohort": (
        cohort,
        lambda i, f: (
            stats.binom.logpmf(WINS[i], TRIALS[i], logistic(f))
            + stats.gamma.logpdf(TIMES[i], 2.0, scale=np.exp(f) / 2.0)
        ),
        "RowwiseTarget",
    ),
    "logit": (
        lambda f, n: pm.Bernoulli("y", logit_p=f, observed=YES[:n]),
        lambda i, f: stats.bernoulli.logpmf(YES[i], logistic(f)),
        "LatentTarget",
    ),
    "probit": (
        lambda f, n: pm.Bernoulli("y", p=pm.math.invprobit(f), observed=YES[:n]),
        lambda i, f: stats.norm.logcdf((2 * YES[i] - 1) * f),
        "LatentTarget",
    ),
    "student": (
        lambda f, n: pm.StudentT("y", 3.0, mu=2.0 * f + 0.1, sigma=0.6, observed=REAL[:n]),
        lambda i, f: stats.t.logpdf(REAL[i], 3.0, 2.0 * f + 0.1, 0.6),
        "LatentTarget",
    ),
    "quantile": (quantile, log_quantile, "LatentTarget"),
}
NARROW = {"quantile", "student"}
"""Likelihoods with a kink, or too narrow for Gauss and Hermite."""


# ----------------------------------------------------- Leaves: declaration, function, listed states


def basis_of(n):
    """An intercept and a regressor that is no column of X."""
    return np.column_stack([np.ones(n), np.array([-1.0, 0.4, 0.9, -0.3, 1.2, 0.0, -0.8])[:n]])


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


class Linear:
    """Slopes in the columns above a leaf."""

    def __init__(self, columns, p_constant=0.0):
        self.columns, self.p_constant = columns, p_constant

    def declare(self, X, **given):
        columns, p = self.columns, self.p_constant
        leaf = pmt.LinearLeaf(MEAN, SD, SLOPE_SD, columns=columns, p_constant=p)
        return pmt.BART("f", X, leaf=leaf, **given)

    def function(self, held, n):
        return held[..., 0]

    def states(self, problem):
        """Prior of the states, mean of f, covariance and partition of a state."""
        z, n = standardised(problem.X), problem.n
        prior = o.path_prior(problem.X, partial(below, self.columns), **problem.prior)
        if self.p_constant:
            prior = with_choices(prior, self.p_constant)

        def covariance_of(state):
            found = np.zeros((n, n))
            for rows, path in state:
                at = sorted(rows)
                slopes = z[np.ix_(at, sorted(path or ()))]
                found[np.ix_(at, at)] = SD**2 + SLOPE_SD**2 * slopes @ slopes.T
            return found

        return prior, np.full(n, MEAN), covariance_of, partition_in


class Basis:
    """Coefficients of a basis; with a covariance trees hold others."""

    covariance = np.diag([SD**2, SLOPE_SD**2])
    mean = np.array([MEAN, -0.1])

    def declare(self, X, **given):
        leaf = pmt.BasisLeaf(basis_of(len(X)), self.mean, np.sqrt(np.diag(self.covariance)))
        return pmt.BART("f", X, leaf=leaf, **given)

    def function(self, held, n):
        rows = basis_of(n) @ np.linalg.cholesky(self.covariance) / np.sqrt(np.diag(self.covariance))
        return np.einsum("snk,nk->sn", held, rows)

    def states(self, problem):
        n, B = problem.n, basis_of(problem.n)
        kernel = B @ self.covariance @ B.T
        prior = o.partition_prior(problem.X, **problem.prior)
        return prior, B @ self.mean, lambda part: kernel * o.same_leaf(part, n), lambda part: part


class Correlated(Basis):
    """With a covariance matrix."""

    covariance = np.array([[0.5, 0.2], [0.2, 0.3]])

    def declare(self, X, **given):
        leaf = pmt.BasisLeaf(basis_of(len(X)), self.mean, self.covariance)
        return pmt.BART("f", X, leaf=leaf, **given)

    def function(self, held, n):
        return np.einsum("snk,nk->sn", held, basis_of(n) @ np.linalg.cholesky(self.covariance))


class Combined(Basis):
    """Shared trees that a user combines."""

    mean = np.array([MEAN, MEAN])

    def declare(self, X, **given):
        leaf = pmt.NormalLeaf(MEAN, np.array([SD, SLOPE_SD]))
        f = pmt.BART("f", X, leaf=leaf, shape=(2, len(X)), separate_trees=False, **given)
        return f[0] + f[1] * basis_of(len(X))[:, 1]


class TwoLines(Linear):
    """Lines of two outputs that share their trees, combined."""

    mean, sd = np.array([MEAN, -0.1]), np.array([SD, 0.4])
    slope_sd = np.array([SLOPE_SD, 0.6])

    def declare(self, X, **given):
        lines = {"columns": self.columns, "p_constant": self.p_constant}
        leaf = pmt.LinearLeaf(self.mean, self.sd, self.slope_sd, **lines)
        f = pmt.BART("f", X, leaf=leaf, shape=(2, len(X)), separate_trees=False, **given)
        return f[0] + f[1] * basis_of(len(X))[:, 1]

    def function(self, held, n):
        return np.einsum("snk,nk->sn", held, basis_of(n))

    def states(self, problem):
        prior, _, _, partition_in = super().states(problem)
        z, n = standardised(problem.X), problem.n
        B = basis_of(n)

        def covariance_of(state):
            found = np.zeros((n, n))
            for rows, path in state:
                at = sorted(rows)
                slopes = z[np.ix_(at, sorted(path or ()))]
                for k in range(2):
                    lines = self.sd[k] ** 2 + self.slope_sd[k] ** 2 * slopes @ slopes.T
                    found[np.ix_(at, at)] += np.outer(B[at, k], B[at, k]) * lines
            return found

        return prior, B @ self.mean, covariance_of, partition_in


LEAVES = {
    "parent": Linear("parent"),
    "mix": Linear("parent", 0.5),
    "path": Linear("path"),
    "basis": Basis(),
    "correlated": Correlated(),
    "combined": Combined(),
    "two_lines": TwoLines("parent", 0.4),
    "two_paths": TwoLines("path"),
}
APART = {"two_lines", "two_paths"}
"""Leaves whose outputs are seen one by one."""

ALL = dict.fromkeys(("grow", "prune", "change", "swap", "perturb", "rotate", "restructure"), 1)
MOVES = {"grow": 0.25, "prune": 0.25, "change": 0.3, "swap": 0.1, "perturb": 0.1}
STEPS = {
    "cgm": (lambda model: pmt.CGM(model=model, rng=5, moves=MOVES), 40_000),
    "all_moves": (lambda model: pmt.CGM(model=model, rng=5, moves=ALL), 40_000),
    "hybrid": (lambda model: pmt.Hybrid(model=model, rng=5), 25_000),
    "particles": (lambda model: pmt.ParticleGibbs(model=model, rng=5, num_particles=4), 40_000),
}


def declare(leaf, likelihood, problem, m):
    n = problem.n
    with pm.Model() as model:
        f = LEAVES[leaf].declare(problem.X, m=m, **problem.prior, max_nodes=m * (2 * n - 1))
        LIKELIHOODS[likelihood][0](f, n)
    return model


@cache
def exact(leaf, likelihood, m):
    problem = NUMBERS if m == 1 else SMALL
    log_row = LIKELIHOODS[likelihood][1]
    prior, mean, covariance_of, partition_in = LEAVES[leaf].states(problem)
    return row_sums.exact(
        prior, m, log_row, mean, covariance_of, partition_in, likelihood in NARROW
    )


# Every leaf under each kind of target; every likelihood; every step on both kinds of rows.
CASES = [
    ("mix", "binomial", "cgm", 1),
    ("parent", "poisson", "hybrid", 1),
    ("path", "gamma", "all_moves", 1),
    ("parent", "negative_binomial", "particles", 1),
    ("mix", "zero_inflated", "particles", 1),
    ("path", "cohort", "cgm", 1),
    ("parent", "poisson", "cgm", 2),
    ("mix", "logit", "cgm", 1),
    ("path", "probit", "particles", 1),
    ("parent", "student", "hybrid", 1),
    ("parent", "quantile", "cgm", 1),
    ("mix", "logit", "all_moves", 2),
    ("basis", "binomial", "cgm", 1),
    ("basis", "poisson", "particles", 1),
    ("correlated", "gamma", "hybrid", 1),
    ("combined", "cohort", "cgm", 1),
    ("correlated", "zero_inflated", "cgm", 2),
    ("basis", "logit", "hybrid", 1),
    ("combined", "quantile", "cgm", 1),
    ("correlated", "student", "particles", 1),
    ("two_lines", "binomial", "cgm", 1),
    ("two_lines", "cohort", "hybrid", 1),
    ("two_paths", "poisson", "particles", 1),
    ("two_paths", "gamma", "all_moves", 1),
    ("two_lines", "poisson", "cgm", 2),
]
SLOW = {("combined", "cohort", "cgm"): 3}
"""Times as many draws: with 40,000 the standard error of a pair is .02, for a bound of .03."""


@pytest.mark.full
@pytest.mark.parametrize("leaf, likelihood, step, m", CASES)
def test_steps_leave_the_listed_posterior_invariant(leaf, likelihood, step, m):
    problem = NUMBERS if m == 1 else SMALL
    model = declare(leaf, likelihood, problem, m)
    target = read_target(model, model["f_forest"])
    wanted = "RowwiseTarget" if leaf in APART else LIKELIHOODS[likelihood][2]
    assert type(target).__name__ == wanted
    make, draws = STEPS[step]
    draws *= SLOW.get((leaf, likelihood, step), 1)
    step = make(model)
    point = model.initial_point()
    for _ in range(300):
        point, _ = step.step(point)
    step.tune = False
    known, function = exact(leaf, likelihood, m), LEAVES[leaf].function
    linear_sums.check_chain(model, step, draws, known, lambda held: function(held, problem.n))


# ---------------------------------------------------------------------------- Lines of K outputs


@njit(cache=True)
def drawn(leaf, rng, stats, out):
    for values in out:
        draw_values(leaf, rng, stats, values)
    return log_marginal(leaf, stats)


@pytest.mark.full
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_marginal_and_the_draws_of_a_leaf_of_two_outputs(kind, rng):
    """Against the normal law of its rows, each with a matrix, and of its coefficients."""
    n, k, d, draws = 5, 2, 3, 40_000
    X = rng.normal(size=(n, d))
    mean, sd, slope_sd = TwoLines.mean, TwoLines.sd, TwoLines.slope_sd
    constants = np.array([kind, 0.0, *[0.0, 1.0, -9.0, 9.0] * d])
    n_values = k * (1 + (d if kind else 1)) + 1
    reads = read_vector_lines(n_values, X, constants)
    leaf = make_vector_lines(mean, sd, slope_sd, 0.35, reads, n)
    root = rng.normal(size=(n, k, k))
    leaf.precision[:] = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(k)
    leaf.linear[:] = rng.normal(size=(n, k))
    columns, path = {0: ([2], 3.0), 1: ([0, 2], 5.0), 2: ([0, 1, 2], 0.0)}[kind]
    stats_of = np.zeros(n_stats(leaf))
    for i in range(n):
        add_row(leaf, i, stats_of)
    stats_of[-1] = path
    values = np.empty((draws, n_values))
    found = drawn(leaf, rng, stats_of, values)

    def posterior(n_regressors):
        """Log of the average of the rows over the prior; mean and covariance of coefficients."""
        u = np.column_stack([np.ones(n), X[:, columns]])[:, :n_regressors]
        U = np.einsum("iu,ab->iaub", u, np.eye(k)).reshape(n, k, -1)
        centre = np.zeros((n_regressors, k))
        centre[0] = mean
        scale = np.vstack([sd, *[slope_sd] * (n_regressors - 1)]).ravel()
        prior, centre = np.diag(scale**-2.0), centre.ravel()
        precision = prior + np.einsum("iau,iab,ibv->uv", U, leaf.precision, U)
        shift = prior @ centre + np.einsum("iau,ia->u", U, leaf.linear)
        mode = np.linalg.solve(precision, shift)
        log = 0.5 * (shift @ mode - centre @ prior @ centre)
        log += 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(precision)[1])
        return log, mode, np.linalg.inv(precision)

    base = (leaf.linear @ mean).sum() - 0.5 * np.einsum("a,iab,b->", mean, leaf.precision, mean)
    (constant, *_), (line, mode, covariance) = posterior(1), posterior(1 + len(columns))
    log = np.logaddexp(np.log(0.35) + constant, np.log(0.65) + line)
    np.testing.assert_allclose(found, log - base, rtol=1e-9)
    p_constant = np.exp(np.log(0.35) + constant - log)
    is_constant = values[:, -1] < 0
    assert abs(is_constant.mean() - p_constant) < 5 * np.sqrt(p_constant / draws)
    at = [0, *([1] if kind == 0 else [1 + j for j in columns])]
    lines = values[~is_constant, :-1].reshape(-1, n_values // k, k)[:, at].reshape(-1, mode.size)
    se = np.sqrt(np.diag(covariance) / len(lines))
    assert (np.abs(lines.mean(axis=0) - mode) < 5 * se).all()
    se = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / len(lines))
    assert (np.abs(np.cov(lines.T) - covariance) < 5 * se).all()
    outputs = np.array([leaf_output(leaf, values[0], i) for i in range(n)])
    slopes = values[0, k:-1].reshape(-1, k)
    if kind == 0:
        slopes = np.array([slopes[0] * (j == 2) for j in range(d)])
    np.testing.assert_allclose(outputs, values[0, :k] + X @ slopes)


@pytest.mark.full
@pytest.mark.parametrize("separate", [True, False])
def test_lines_of_two_outputs_are_sampled_kept_and_exported(separate, rng):
    X = rng.random((30, 3))
    X[3, 1] = np.nan
    truth = np.stack([2.0 * X[:, 0], 1.0 - X[:, 2]])
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(0.0, [0.4, 0.3])
        shape = {"shape": truth.shape, "response": "mix", "separate_trees": separate}
        f = pmt.BART("f", X, m=3, leaf=leaf, **shape)
        pm.Normal("y", f, 0.2, observed=truth + 0.2 * rng.normal(size=truth.shape))
        options = {"chains": 2, "cores": 1, "progressbar": False, "random_seed": 1}
        idata = pm.sample(60, tune=100, compute_convergence_checks=False, **options)
        pmt.check_draws(idata, model)
        held = pmt.predictor(idata, model)
        pmt.set_data({"f_X": X[:7]})
        found = pm.sample_posterior_predictive(
            idata, var_names=["f"], predictions=True, progressbar=False
        )
    known = idata.posterior["f"].to_numpy()[..., :7]
    np.testing.assert_allclose(found.predictions["f"], known, atol=1e-10)
    np.testing.assert_allclose(held.draws(X[:7], var_names=["f"])["f"], known, atol=1e-10)
    many = held.draws(np.tile(X, (8, 1)), var_names=["f"])["f"]  # by another way than few rows
    again = np.concatenate([idata.posterior["f"].to_numpy()] * 8, axis=-1)
    np.testing.assert_allclose(many, again, atol=1e-10)
    logp = model.compile_logp(vars=model.free_RVs)
    assert np.isfinite(logp(model.initial_point()))


@pytest.mark.usefixtures("quick_compile")
def test_each_output_has_its_own_settings():
    X = NUMBERS.X
    with pm.Model() as model:
        leaf = pmt.LinearLeaf([0.1, 0.2], 0.5, [0.3, 0.4], columns="all")
        pmt.BART("f", X, m=2, leaf=leaf, shape=(2, len(X)))
    for k in range(2):
        settings = [v.eval() for v in forest_inputs(model[f"f_{k}_forest"]).settings[3:6]]
        np.testing.assert_allclose(settings, [0.1 + 0.1 * k, 0.5, 0.3 + 0.1 * k])
    with pm.Model(), pytest.raises(ValueError, match="leaf: 3 values for 2 outputs"):
        pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf([0.1] * 3), shape=(2, len(X)))
    with pm.Model(), pytest.raises(ValueError, match="every setting of a leaf prior must be a sca"):
        pmt.BART("f", X, m=2, leaf=pmt.LinearLeaf([0.1, 0.2]))


def test_the_words_of_a_leaf_of_two_outputs():
    constants = np.array([0.0, 0.0, *[0.0, 1.0, -9.0, 9.0] * 2])
    words = LinearVectorLeaf.words
    values = np.array([0.25, 0.5, -2.0, 3.0, 2.0])
    assert words(values, constants, ["a", "b"]) == ["0.25, 0.5", "-2, +3 per sd of b"]
    constants[0] = 1.0
    values = np.array([0.25, 0.5, 0.0, 0.0, -2.0, 3.0, 2.0])
    assert words(values, constants, ["a", "b"]) == ["0.25, 0.5", "-2, +3 per sd of b"]
