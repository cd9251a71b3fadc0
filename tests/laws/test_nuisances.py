"""Parameters of a likelihood drawn between sweeps: their densities, and the joint posterior.

A step of `Hybrid` moves the forest and the parameter, and no other step moves either. The exact
joint posterior is the enumeration of trees, with quadrature over leaf values, at each node of a
quadrature over the parameter. Averages are held to it at 5.5 standard errors by batch means over 60
batches: some 10 averages a case, of which one fails by chance in 10,000 fresh runs.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats
from support import oracle as o
from support.laws.likelihoods import COUNTS, OUTLIERS, SPANS, problem_of
from support.laws.nonconjugate import BATCHES
from support.naive.batches import batch_means, gap
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.step_methods.kernels.likelihood_parameters import Conditional, read_nuisances

pytestmark = pytest.mark.usefixtures("quick_compile")
X = np.linspace(0, 1, 8)[:, None]


def forest(name, m=2, **given):
    return pmt.BART(name, X, m=m, leaf=pmt.NormalLeaf(0.1, 1.0), max_nodes=15 * m, **given)


def negative_binomial():
    alpha = pm.Gamma("alpha", 2.0, 1.0)
    pm.NegativeBinomial("y", mu=pm.math.exp(forest("mu")), alpha=alpha, observed=COUNTS)
    return {"mu_forest": ["alpha"]}


def student():
    sigma = pm.Gamma("sigma", 2.0, pm.HalfNormal("rate"))  # whose prior is drawn elsewhere
    pm.StudentT("y", nu=pm.Gamma("nu", 4.0, 1.0), mu=forest("mu"), sigma=sigma, observed=OUTLIERS)
    return {"mu_forest": ["sigma", "nu"]}


def cut_points():
    cuts = pm.Normal(
        "cuts", [-1.0, 1.0], 1.0, transform=pm.distributions.transforms.ordered, initval=[-1, 1]
    )
    pm.OrderedLogistic("y", eta=forest("mu"), cutpoints=cuts, observed=np.minimum(COUNTS, 2))
    return {"mu_forest": ["cuts"]}


def censored_times():
    power = pm.Gamma("power", 2.0, 1.0)
    law = pm.Weibull.dist(power, pm.math.exp(forest("mu")))
    pm.Censored("y", law, lower=None, upper=3.0, observed=SPANS)
    return {"mu_forest": ["power"]}


def two_forests():
    """The slope b enters both terms; a hierarchical prior, a Potential, and an own sd do not do."""
    b, c = pm.Normal("b"), pm.Normal("c")
    many, scale = pm.Normal("many", shape=11), pm.HalfNormal("scale")
    pm.Potential("more", -(c**2))
    f, g = forest("f"), forest("g", alpha=pm.Beta("depth", 2, 2))
    pm.StudentT("y", nu=4, mu=b * f + c + many[0], sigma=pm.math.exp(g), observed=OUTLIERS)
    pm.Poisson("z", pm.math.exp(b + scale * pm.Normal("u")), observed=3)
    return {"f_forest": ["b"], "g_forest": ["b"]}


MODELS = [negative_binomial, student, cut_points, censored_times, two_forests]


@pytest.mark.parametrize("declare", MODELS, ids=lambda one: one.__name__)
def test_variables_that_are_drawn_and_their_densities(declare):
    with pm.Model() as model:
        expected = declare()
        step = pmt.Hybrid()
    logp = model.compile_logp()
    rng = np.random.default_rng(4)
    for target in step.forests:
        rv = model[target.name]
        found = read_nuisances(model, rv, target.target)
        assert [one.name for one in found] == expected[target.name]
        point = model.initial_point()
        point[target.value_name] = pm.draw(rv, random_seed=3)
        f = _outputs(model, rv, point[target.value_name])
        for one in found:
            law = Conditional(model, rv, one)
            density = law.at(point, f)
            values = [point[law.name] + rng.normal(size=np.shape(point[law.name])) for _ in "abc"]
            differences = [density(v) - density(np.asarray(point[law.name])) for v in values]
            wanted = [logp({**point, law.name: v}) - logp(point) for v in values]
            np.testing.assert_allclose(differences, wanted, rtol=1e-9, atol=1e-9)


def _outputs(model, rv, value):
    with model:
        f = pmt.evaluate(rv, X)
    return np.asarray(f.eval({rv: value})).reshape(len(X), -1)


def of_counts(mu, n, alpha):
    pm.NegativeBinomial("y", mu=pm.math.exp(mu), alpha=alpha, observed=COUNTS[:n])


def log_counts(i, f, alpha):
    return stats.nbinom.logpmf(COUNTS[i], alpha, alpha / (alpha + np.exp(f)))


def of_scale(mu, n, scale):
    """Through PyTensor's own derivatives."""
    pm.Logistic("y", mu=mu, s=scale, observed=OUTLIERS[:n])


def log_scale(i, f, scale):
    return stats.logistic.logpdf(OUTLIERS[i], f, scale)


LAWS = {
    "negative_binomial": (of_counts, log_counts),
    "logistic": (of_scale, log_scale),
}
PRIOR = stats.gamma(4.0, scale=0.25)


def joint_law(problem, log_row):
    """Moments of log parameter, leaves, and f, by 40 nodes over the parameter."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    logs = -1.0 + 2.5 * nodes  # the parameter from 0.03 to 4.5
    trees = o.enumerate_trees(problem.X, **problem.prior)
    density, log_evidence, moments = o.normal_log_density(problem.mean, problem.sd), [], []
    leaves = np.array([len(partition) for _, partition, *_ in trees])
    reach = 9.0 * problem.sd
    for value in np.exp(logs):

        def log_likelihood(rows, f, value=value):
            return sum(log_row(i, f, value) for i in rows)

        leaf = o.QuadratureLeaf(log_likelihood, density, -reach, reach, panels=108)
        share, log_total = o.posterior(trees, leaf)
        mean, sd = o.row_moments(trees, share, leaf.moments, problem.n)
        log_evidence.append(log_total)
        moments.append([*mean, *(mean**2 + sd**2), share @ leaves])
    mass = np.log(weights) + PRIOR.logpdf(np.exp(logs)) + logs + np.array(log_evidence)
    mass = np.exp(mass - special.logsumexp(mass))
    assert mass[[0, -1]].max() < 1e-5  # nothing is left out
    *of_f, n_leaves = mass @ np.array(moments)
    mean, square = np.split(np.array(of_f), 2)
    centre = mass @ logs
    spread = np.sqrt(mass @ (logs - centre) ** 2)
    return (centre, spread), n_leaves, (mean, np.sqrt(square - mean**2))


def chain(problem, declare, draws):
    """Logs of the parameter, leaves and f of steps of `Hybrid`, the only ones."""
    with pm.Model() as model:
        parameter = pm.Gamma("parameter", 4.0, 4.0)
        leaf = pmt.NormalLeaf(problem.mean, problem.sd)
        mu = pmt.BART("mu", problem.X, m=1, leaf=leaf, **problem.prior, max_nodes=15)
        declare(mu, problem.n, parameter)
        step = pmt.Hybrid(local_sweeps=3, rng=1)
    point, tune = model.initial_point(), 300
    step.setup_chain(np.random.default_rng(5), tune, draws)
    logs, leaves, fits = np.empty(draws), np.empty(draws), np.empty((draws, problem.n))
    for s in range(-tune, draws):
        if s == 0:
            step.stop_tuning()
        point, [stats] = step.step(point)
        assert stats["nuisance_evaluations"] > 0
        logs[s], leaves[s] = point["parameter_log__"], stats["n_leaves"]
        fits[s] = step.states[0].forest.fit[:, 0]
    return logs, leaves, fits


@pytest.mark.parametrize("name", tiers(LAWS, [], single=True))
def test_joint_posterior(name):
    declare, log_row = LAWS[name]
    problem = problem_of("gaps", name)
    (centre, spread), n_leaves, (mean, sd) = joint_law(problem, log_row)
    logs, leaves, fits = chain(problem, declare, 8_000)
    logs, fits = (logs - centre) / spread, (fits - mean) / sd
    wanted = {
        "mean": (logs, 0.0),
        "square": (logs**2, 1.0),
        "leaves": (leaves, n_leaves),
        "f": (fits, 0.0),
        "f squared": (fits**2, 1.0),
    }
    found = {key: gap(batch_means(v, BATCHES), exact) for key, (v, exact) in wanted.items()}
    assert all(one.within(5.5, 0.2) for one in found.values()), found
    # at twice the parameter the comparison would not pass
    other = gap(batch_means(logs + np.log(2) / spread, BATCHES), 0.0)
    assert other.z > 20
