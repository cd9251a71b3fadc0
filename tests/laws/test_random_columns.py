"""Forests with random columns have the posterior of their definition.

Truth by importance sampling: columns, trees and leaf values are drawn from the prior, by PyMC and
the random variable of the forest, and weighted by the likelihood in numpy; no code of the steps
takes part. Means of the cells, of the functions, their squares and products are compared with those
of a chain: differences in Monte Carlo standard errors, from 40 batches of either, are below 5
(some 50 means a case, one chance failure in 3,000 runs).
"""

import numpy as np
import pymc as pm
import pytest
from pymc.exceptions import ImputationWarning
from pytensor.graph.replace import clone_replace
from scipy import stats
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.step_methods.cgm import CGM
from pymc_trees.step_methods.latent_column import LatentColumn

N, DRAWS, STEPS, BATCHES = 6, 120_000, 6_000, 40
X = np.array([[0.1], [0.9], [0.3], [0.7], [0.5], [0.2]])
Y = np.array([-0.9, 0.2, 1.1, 0.8, -0.4, 1.0])
W = np.array([-0.7, 0.4, 0.3, 1.2, -0.2, 0.5])
COUNTS = np.array([0, 1, 3, 2, 1, 2])
CUTS = np.array([-0.5, 0.0, 0.6])
LEAF = pmt.NormalLeaf(0.0, 0.7)


def normal(value, mean, sd):
    return stats.norm.logpdf(value, mean, sd).sum(axis=-1)


def errors_in_variables():
    z = pm.Normal("z", np.linspace(-0.3, 0.4, N), 0.8, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("w", z, 0.8, observed=W)
    pm.Normal("y", f, 0.8, observed=Y)
    return [z, f], lambda z, f: normal(W, z, 0.8) + normal(Y, f, 0.8)


def given_cuts_and_levels():
    """Text, a missing cell, and cuts of the user's own, beyond those of the reference rows."""
    frame = {"level": ["a", "b", "a", "c", "c", "b"], "x": [0.1, np.nan, 0.3, 0.7, 0.5, 0.2]}
    frame = pytest.importorskip("pandas").DataFrame(frame)
    z = pm.Normal("z", 0.2, 0.8, shape=N)
    f = pmt.BART("f", pmt.with_columns(frame, z=z, cuts={"z": CUTS}), leaf=LEAF, m=2)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f, 0.7)


def uniform_and_counts():
    z = pm.Uniform("z", -1.0, 1.5, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Poisson("y", pm.math.exp(f), observed=COUNTS)
    return [z, f], lambda z, f: stats.poisson.logpmf(COUNTS, np.exp(f)).sum(axis=-1)


def two_forests():
    """f and the log of the sd split on the same column, on grids of their own."""
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=1)
    h = pmt.BART(
        "h", pmt.with_columns(X, z=z, cuts={"z": CUTS}), leaf=pmt.NormalLeaf(-0.3, 0.4), m=1
    )
    pm.Normal("y", f, pm.math.exp(h), observed=Y)
    return [z, f, h], lambda z, f, h: normal(Y, f, np.exp(h))


def missing_cells():
    cells = np.ma.masked_invalid([-0.4, np.nan, 0.3, np.nan, np.nan, 0.9])
    with pytest.warns(ImputationWarning):
        z = pm.Normal("z", 2.0 * X[:, 0] - 1.0, 0.7, observed=cells)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f, 0.7)


def accepted():
    """A measurement whose law is not conjugate, and an offset with the column itself."""
    z = pm.Uniform("z", -1.0, 1.5, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("w", z, 0.7, observed=W)
    pm.Normal("y", f + 0.5 * z, 0.8, observed=Y)
    return [z, f], lambda z, f: normal(W, z, 0.7) + normal(Y, f + 0.5 * z, 0.8)


def accepted_normal():
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Poisson("w", pm.math.exp(z[:, None]), observed=COUNTS[:, None])
    pm.Normal("y", f, 0.8, observed=Y)

    def likelihood(z, f):
        rates = np.exp(z)
        return stats.poisson.logpmf(COUNTS, rates).sum(axis=-1) + normal(Y, f, 0.8)

    return [z, f], likelihood


def law_of_a_forest():
    """The mean of the column is another forest, for which the column is the response."""
    g = pmt.BART("g", X, leaf=LEAF, m=1)
    z = pm.Normal("z", g, 0.6, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), leaf=LEAF, m=1)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f, g], lambda z, f, g: normal(Y, f, 0.7)


def two_columns():
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    u = pm.Exponential("u", 1.0, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z, u=u), leaf=LEAF, m=2, split_prior={"x0": 0.5})
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f, u], lambda z, f, u: normal(Y, f, 0.7)


def monotone():
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2, monotone={"z": 1})
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f, 0.7)


def one_tree_of_probabilities():
    z = pm.Normal("z", 0.0, 1.0, shape=N)
    leaf = pmt.DirichletLeaf(alpha=1.0, n_classes=2)
    p = pmt.DecisionTree("p", pmt.with_columns(X, z=z), leaf=leaf)
    kinds = (Y > 0).astype(int)
    pm.Categorical("y", p=p, observed=kinds)
    f = p[:, 1]

    def likelihood(z, f):
        return np.log(np.where(kinds, f, 1 - f)).sum(axis=-1)

    return [z, f], likelihood


def with_groups():
    """Effects of groups in the mean, which are drawn together with the leaf values."""
    z = pm.Normal("z", 0.0, 0.8, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    a = pm.Normal("a", 0.0, 0.5, shape=2)
    group = np.array([0, 1, 0, 1, 0, 1])
    pm.Normal("y", f + a[group], 0.7, observed=Y)
    return [z, f, a[group]], lambda z, f, a: normal(Y, f + a, 0.7)


def categories():
    """Split by sets of categories, of which the response sees a part by itself, too."""
    p = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])[np.arange(N) % 2]
    z = pm.Categorical("z", p=p, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("w", pm.math.eq(z, 2), 0.7, observed=W)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(W, z == 2, 0.7) + normal(Y, f, 0.7)


def ordered_counts():
    z = pm.Binomial("z", 3, np.linspace(0.2, 0.7, N), shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Poisson("y", pm.math.exp(f), observed=COUNTS)
    return [z, f], lambda z, f: stats.poisson.logpmf(COUNTS, np.exp(f)).sum(axis=-1)


def counts_in_two_forests():
    """On grids of their own."""
    z = pm.Binomial("z", 2, 0.5, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=1)
    h = pmt.BART(
        "h", pmt.with_columns(X, z=z, cuts={"z": [0.5]}), leaf=pmt.NormalLeaf(-0.3, 0.4), m=1
    )
    pm.Normal("y", f, pm.math.exp(h), observed=Y)
    return [z, f, h], lambda z, f, h: normal(Y, f, np.exp(h))


def counts_of_sizes():
    """Sizes differ from row to row, and another count depends on it."""
    size = np.array([3, 1, 4, 2, 3, 1])
    z = pm.Binomial("z", size, 0.4, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Poisson("w", 0.5 + z, observed=COUNTS)
    pm.Normal("y", f, 0.7, observed=Y)

    def log_likelihood(z, f):
        return stats.poisson.logpmf(COUNTS, 0.5 + z).sum(axis=-1) + normal(Y, f, 0.7)

    return [z, f], log_likelihood


def whole_numbers():
    """Negative ones too, within bounds that differ from row to row; measured."""
    low, high = np.array([-2, -1, -2, 0, -1, -2]), np.array([2, 2, 0, 1, 2, 1])
    z = pm.DiscreteUniform("z", low, high, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("w", z, 1.0, observed=W)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(W, z, 1.0) + normal(Y, f, 0.7)


def missing_categories():
    seen = np.ma.masked_array([0, 0, 1, 0, 0, 1], mask=[0, 1, 0, 1, 1, 0])
    with pytest.warns(ImputationWarning):
        z = pm.Bernoulli("z", p=np.linspace(0.3, 0.8, N), observed=seen)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f, 0.7)


def missing_levels():
    seen = np.ma.masked_array([0, 0, 2, 0, 0, 1], mask=[0, 1, 0, 1, 1, 0])
    with pytest.warns(ImputationWarning):
        z = pm.Categorical("z", p=np.array([0.3, 0.3, 0.4]), observed=seen)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.Normal("y", f, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f, 0.7)


def berkson():
    """The column by itself beside the forest that it splits: no ridge, and no linear term."""
    z = pm.Normal("z", 0.3 * W, 0.8, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), leaf=LEAF, m=2)
    pm.Normal("y", f + z, 0.7, observed=Y)
    return [z, f], lambda z, f: normal(Y, f + z, 0.7)


def berkson_of_a_class():
    """The same beside a likelihood whose other parameters are drawn between sweeps."""
    z = pm.Normal("z", 0.0, 0.8, shape=N)
    f = pmt.BART("f", pmt.with_columns(X, z=z, cuts={"z": CUTS}), leaf=LEAF, m=2)
    kinds = (Y > 0.1).astype(int)
    pm.Bernoulli("y", logit_p=2.0 * f + 2.0 * z, observed=kinds)

    def likelihood(z, f):
        logits = 2.0 * f + 2.0 * z
        return (kinds * logits - np.logaddexp(0.0, logits)).sum(axis=-1)

    return [z, f], likelihood


def robust_missing_cells():
    cells = np.ma.masked_invalid([-0.4, np.nan, 0.3, np.nan, np.nan, 0.9])
    with pytest.warns(ImputationWarning):
        z = pm.Normal("z", 2.0 * X[:, 0] - 1.0, 0.7, observed=cells)
    f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=2)
    pm.StudentT("y", nu=4.0, mu=f, sigma=0.6, observed=Y)
    return [z, f], lambda z, f: stats.t.logpdf(Y, 4.0, f, 0.6).sum(axis=-1)


CASES = [
    berkson,
    berkson_of_a_class,
    robust_missing_cells,
    categories,
    ordered_counts,
    counts_in_two_forests,
    counts_of_sizes,
    whole_numbers,
    missing_categories,
    missing_levels,
    errors_in_variables,
    with_groups,
    given_cuts_and_levels,
    uniform_and_counts,
    two_forests,
    missing_cells,
    accepted,
    accepted_normal,
    law_of_a_forest,
    two_columns,
    monotone,
    one_tree_of_probabilities,
]


def summaries(cells, functions):
    """(draws, k) numbers whose means are compared."""
    every = [cells, *functions]
    crossed = [cells * v for v in functions] + [np.roll(cells, 1, axis=-1) * v for v in functions]
    return np.concatenate([*every, *(v * v for v in every), *crossed], axis=-1)


def expected(model, variables, log_likelihood, seed):
    # the observed cells of a column are what they are
    known = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    drawn = pm.draw(clone_replace(variables, known), draws=DRAWS, random_seed=seed)
    log_weights = log_likelihood(*drawn)
    weights = np.exp(log_weights - log_weights.max())
    numbers = summaries(drawn[0], drawn[1:])
    sums = [
        ((w[:, None] * v).sum(axis=0), w.sum())
        for w, v in zip(np.split(weights, BATCHES), np.split(numbers, BATCHES), strict=True)
    ]
    total, mass = (sum(one) for one in zip(*sums, strict=True))
    means = total / mass
    # of a ratio, by its linearisation
    off = np.array([top - means * bottom for top, bottom in sums])
    error = np.sqrt((off**2).sum(axis=0)) / mass
    assert weights.sum() ** 2 / (weights**2).sum() > 500
    return means, error


def found(model, variables, steps, rng):
    start = model.initial_point(random_seed=1)
    function = model.compile_fn(
        model.replace_rvs_by_values(variables), inputs=model.value_vars, on_unused_input="ignore"
    )
    draws = []
    for k in range(STEPS + 200):
        for step in steps:
            start, _ = step.step(start)
        if k >= 200:
            draws.append(function(start))
    columns = [np.array(one) for one in zip(*draws, strict=True)]
    batches = np.array(
        [one.mean(axis=0) for one in np.split(summaries(columns[0], columns[1:]), BATCHES)]
    )
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)


MOVES = {"grow": 0.25, "prune": 0.25, "change": 0.2, "swap": 0.1, "perturb": 0.2}
STEPS_OF_TREES = {
    "CGM": lambda rng: CGM(moves=MOVES, moves_per_visit=4, rng=rng),
    # what `pm.sample` assigns
    "Hybrid": lambda rng: pmt.Hybrid(local_sweeps=4, rng=rng),
}
OF_HYBRID = {berkson, berkson_of_a_class, robust_missing_cells, with_groups}
"""Where `Hybrid` draws more than trees, or other steps move what enters beside the forest."""
PAIRS = [
    (case, step) for case in CASES for step in STEPS_OF_TREES if step == "CGM" or case in OF_HYBRID
]
QUICK = [(errors_in_variables, "CGM"), (berkson, "Hybrid")]


@pytest.mark.filterwarnings("ignore:Numba will use object mode")  # DiscreteUniform in PyMC
@pytest.mark.parametrize(
    ("case", "step"),
    tiers(PAIRS, QUICK),
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_posterior_is_that_of_importance_sampling(case, step, rng):
    """Beside `Hybrid`, steps of vectors keep states of the forests of their own."""
    with pm.Model() as model:
        variables, log_likelihood = case()
        steps = [LatentColumn(rng=rng), STEPS_OF_TREES[step](rng)]
        if "a" in model.named_vars:
            steps.append(pmt.GaussianTerms([model["a"]], rng=rng))
            if step == "CGM":
                steps[-1].share(steps[1])
    truth, truth_error = expected(model, variables, log_likelihood, 3)
    means, error = found(model, variables, steps, rng)
    # observed cells of a column have no error but that of rounding
    scores = (means - truth) / np.sqrt(error**2 + truth_error**2 + 1e-18)
    assert np.abs(scores).max() < 5.0, scores.round(1)
    assert (error < 0.1).all() and (truth_error < 0.1).all()


def test_an_excluded_column_beside_a_random_one(rng):
    """Nodes in which only numbers of weight 0 vary cannot be split.

    Each of three trees splits once, by the binary column, with probability 0.95: 2.85 splits, whose
    mean of 300 steps errs by less than 0.05.
    """
    n = 128
    numbers = rng.random((n, 1))
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=n)
        table = pmt.with_columns(numbers, z=z)
        f = pmt.BART("f", table, leaf=LEAF, m=3, beta=0.1, split_prior={"x0": 0.0})
        pm.Normal("y", f, 1e3, observed=numbers[:, 0])
        step = CGM(moves={"grow": 0.5, "prune": 0.5}, rng=rng)
    point, found = model.initial_point(random_seed=1), []
    for _ in range(320):
        point, [stats_of] = step.step(point)
        found.append((stats_of["n_leaves"] - 3, stats_of["max_depth"]))
    splits, depths = np.array(found[20:]).T
    assert depths.max() == 1
    assert abs(splits.mean() - 2.85) < 0.25


def test_trees_keep_their_prior_while_the_column_moves(rng):
    """Without information in the rows: splits by column, leaves and depth are as in prior draws.

    Means of 8,000 steps in 40 batches and of 4,000 prior draws, within 4.5 standard errors.
    """
    with pm.Model() as model:
        z = pm.Normal("z", 0.0, 1.0, shape=N)
        f = pmt.BART("f", pmt.with_columns(X, z=z), leaf=LEAF, m=3, split_prior={"z": 2.0})
        pm.Normal("y", f, 1e4, observed=Y)
        moves = {"grow": 0.25, "prune": 0.25, "change": 0.2, "swap": 0.1, "perturb": 0.2}
        step = CGM(moves=moves, moves_per_visit=4, rng=rng)
    point, found = model.initial_point(random_seed=1), []
    forest = step.forests[0]
    settings = forest.target.at(point)[0]
    for k in range(8_000):
        # any law of the column: the trees must not feel it, nor that some leaves have no row
        point["z"] = rng.normal(rng.choice([-3.0, 0.0, 3.0]), rng.choice([0.1, 1.0]), size=N)
        point, [stats] = step.step(point)
        found.append([*stats["variable_inclusion"], stats["n_leaves"], stats["max_depth"]])
        if k % 100 == 0:  # every rule is one of the reference rows, or this raises an error
            forest.load(None, point["f_forest"], settings, point)
    batches = np.array(found, dtype=float).reshape(BATCHES, -1, 4).mean(axis=1)
    drawn = []
    for value in pm.draw(model["f_forest"], draws=4_000, random_seed=2):
        one = forest.summary(forest.load(None, value, settings, point))
        drawn.append([*one["variable_inclusion"], one["n_leaves"], one["max_depth"]])
    truth = np.array(drawn, dtype=float)
    error = np.sqrt(batches.var(axis=0, ddof=1) / BATCHES + truth.var(axis=0) / len(truth))
    scores = (batches.mean(axis=0) - truth.mean(axis=0)) / error
    assert np.abs(scores).max() < 4.5, scores
    assert truth[:, 1].mean() > 0.5  # splits on the column
