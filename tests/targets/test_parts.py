"""Hurdles, zero inflation and mixtures fall apart: which likelihood each forest has.

The log-likelihood by the numbers of a target is PyMC's own, with its constant.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import explicit_graph_inputs

import pymc_trees as pmt
from pymc_trees.core.leaves.contract import log_likelihood
from pymc_trees.core.leaves.nonconjugate.native import call_native
from pymc_trees.core.leaves.nonconjugate.rowwise import evaluate_rows
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.graph import open_forest, read_graph
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget
from pymc_trees.targets.separate import SeparateTarget

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 9
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
COUNTS = np.array([0, 3, 1, 7, 0, 2, 0, 1, 12])
AMOUNTS = np.where(COUNTS == 0, 0.0, 0.3 * COUNTS + 0.1)
TIMES = np.array([0.4, 2.0, 1.1, 2.0, 0.2, 1.7, 2.0, 0.7, 1.9])
ENDS = np.where(np.arange(N) % 4 == 0, np.inf, 2.0)
EXPOSURES = np.linspace(0.5, 2.0, N)
MEANS = np.array([-0.4, 0.1, 0.9, 0.3, 2.0, 1.1, 0.2, 0.5, -1.3])
exp, logit, probit = pm.math.exp, pm.math.invlogit, pm.math.invprobit


def two(p):
    """Weights of the other and of the one with p."""
    return pt.stack([1 - p, p], axis=-1)


def observed_as_data(y):
    return pm.Data("given", y)


def poisson(psi, g):
    pm.HurdlePoisson("y", psi, EXPOSURES * exp(g), observed=COUNTS)


def negative_binomial(psi, g):
    pm.HurdleNegativeBinomial("y", psi, exp(g), pm.Exponential("a", 1), observed=COUNTS)


def gamma(psi, g):
    pm.HurdleGamma("y", psi, alpha=2.3, beta=2.3 / exp(g), observed=observed_as_data(AMOUNTS))


def lognormal(psi, g):
    mean = 2 * g + pm.Normal("b")
    pm.HurdleLogNormal("y", psi, mean, pm.HalfNormal("s") * EXPOSURES, observed=AMOUNTS)


def other_amounts(psi, g):
    """A density that no likelihood is written for."""
    hurdle = type(pm.HurdleGamma.dist(0.5, 1.0, 1.0).owner.op)
    law = pm.InverseGamma.dist(2.0, exp(g), shape=(N,))
    weights = two(psi if psi.ndim else pt.full((N,), psi))
    make = hurdle.rv_op(weights, pm.DiracDelta.dist(np.zeros(())), law)
    pm.modelcontext(None).register_rv(make, "y", observed=AMOUNTS)


def inflated_poisson(psi, g):
    pm.ZeroInflatedPoisson("y", psi, EXPOSURES * exp(g), observed=COUNTS)


def inflated_negative_binomial(psi, g):
    pm.ZeroInflatedNegativeBinomial("y", psi, mu=exp(g), alpha=1.7, observed=COUNTS)


def inflated_trials(psi, g):
    pm.ZeroInflatedBinomial("y", psi, n=15, p=logit(g), observed=COUNTS)


def inflated_few_trials(psi, g):
    pm.ZeroInflatedBinomial("y", psi, n=5, p=logit(g), observed=np.minimum(COUNTS, 5))


def inflated_lognormal(psi, g):
    """A hurdle by hand."""
    law = pm.LogNormal.dist(g, pm.HalfNormal("s"))
    pm.Mixture("y", two(psi), [pm.DiracDelta.dist(0.0), law], observed=AMOUNTS)


def cured(psi, g):
    law = pm.Censored.dist(pm.LogNormal.dist(g, pm.HalfNormal("s")), None, ENDS)
    pm.Mixture("y", two(psi), [pm.DiracDelta.dist(ENDS), law], observed=TIMES)


def cured_weibull(psi, g):
    law = pm.Censored.dist(pm.Weibull.dist(1.4, exp(g)), None, ENDS)
    pm.Mixture("y", two(psi), [pm.DiracDelta.dist(ENDS), law], observed=TIMES)


def three_kinds(psi, g):
    """Normals about g, others far away, and a StudentT; psi is free of a forest."""
    laws = [
        pm.Normal.dist(3.0, 0.5),
        pm.Normal.dist(g + MEANS, 0.7),
        pm.StudentT.dist(3, mu=0, sigma=2),
    ]
    pm.Mixture("y", [0.2, 0.5, 0.3], laws, observed=MEANS)


def students(psi, g):
    laws = [pm.Normal.dist(0.0, 3.0), pm.StudentT.dist(4, mu=g, sigma=0.7)]
    pm.Mixture("y", two(psi), laws, observed=MEANS)


def quantiles(psi, g):
    laws = [pm.Laplace.dist(g, 0.7), pm.Normal.dist(0.0, 3.0)]
    pm.Mixture("y", two(psi), laws, observed=MEANS)


def two_poissons(psi, g):
    """Of two forests, one in each."""
    laws = [pm.Poisson.dist(exp(bart("h"))), pm.Poisson.dist(exp(g))]
    pm.Mixture("y", two(psi), laws, observed=COUNTS)


def truncated(psi, g):
    laws = [pm.DiracDelta.dist(0.0), pm.TruncatedNormal.dist(g, 1.0, lower=0.1, upper=9.0)]
    pm.Mixture("y", two(psi), laws, observed=AMOUNTS)


def gammas_without_zeros(psi, g):
    laws = [pm.Exponential.dist(1.0), pm.Gamma.dist(2.0, 1 / exp(g))]
    pm.Mixture("y", two(psi), laws, observed=TIMES)


def gammas_with_zeros(psi, g):
    """What the density is at 0 depends on alpha: left to PyMC."""
    laws = [pm.DiracDelta.dist(0.0), pm.Gamma.dist(2.0, 1 / exp(g))]
    pm.Mixture("y", two(psi), laws, observed=AMOUNTS)


def times_beside_others(psi, g):
    """Some of the others are negative, which no time is."""
    laws = [pm.Normal.dist(-1.0, 1.0), pm.Exponential.dist(scale=exp(g))]
    pm.Mixture("y", two(psi), laws, observed=MEANS)


def trials_beside_counts(psi, g):
    """Some counts are larger than the number of trials."""
    laws = [pm.Poisson.dist(3.0), pm.Binomial.dist(n=5, p=logit(g))]
    pm.Mixture("y", two(psi), laws, observed=COUNTS)


def many_trials_beside_counts(psi, g):
    laws = [pm.Poisson.dist(9.0), pm.Binomial.dist(n=np.arange(N) + 12, p=logit(g))]
    pm.Mixture("y", two(psi), laws, observed=2 * COUNTS)


def a_trial_beside_counts(psi, g):
    laws = [pm.Poisson.dist(3.0), pm.Bernoulli.dist(p=logit(g))]
    pm.Mixture("y", two(psi), laws, observed=COUNTS)


def counts_beside_others(psi, g):
    laws = [pm.DiscreteUniform.dist(-3, 20), pm.Poisson.dist(exp(g))]
    pm.Mixture("y", two(psi), laws, observed=COUNTS - 2)


def spread_counts_beside_others(psi, g):
    laws = [pm.DiscreteUniform.dist(-3, 20), pm.NegativeBinomial.dist(mu=exp(g), alpha=1.3)]
    pm.Mixture("y", two(psi), laws, observed=COUNTS - 2)


SHARES = {
    "logit": (lambda f: logit(f), LatentTarget),
    "probit": (lambda f: probit(0.5 * f + EXPOSURES), LatentTarget),
    "offset": (lambda f: logit(f + pm.Normal("c") * EXPOSURES), LatentTarget),
    "another link": (lambda f: 1 - exp(-exp(f)), RowwiseTarget),
}
PARTS = {
    poisson: KernelTarget,
    negative_binomial: KernelTarget,
    gamma: KernelTarget,
    lognormal: ConjugateTarget,
    other_amounts: RowwiseTarget,
    inflated_poisson: KernelTarget,
    inflated_negative_binomial: KernelTarget,
    inflated_trials: KernelTarget,
    inflated_few_trials: LatentTarget,
    inflated_lognormal: ConjugateTarget,
    cured: LatentTarget,
    cured_weibull: KernelTarget,
    three_kinds: LatentTarget,
    students: LatentTarget,
    quantiles: LatentTarget,
    two_poissons: KernelTarget,
    truncated: KernelTarget,
    gammas_without_zeros: KernelTarget,
    gammas_with_zeros: RowwiseTarget,
    times_beside_others: KernelTarget,
    trials_beside_counts: LatentTarget,
    many_trials_beside_counts: KernelTarget,
    a_trial_beside_counts: LatentTarget,
    counts_beside_others: KernelTarget,
    spread_counts_beside_others: KernelTarget,
}


def bart(name, **settings):
    return pmt.BART(name, X, m=2, leaf=pmt.NormalLeaf(0.0, 0.5), **settings)


def density(target, settings, seen, fit):
    """Log-likelihood at outputs, as a sweep has it."""
    leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(3))
    if isinstance(target, RowwiseTarget):
        return evaluate_rows(leaf)
    return log_likelihood(leaf, None) + target.log_scale(seen)


def check(model, name, kind):
    """The kind of a target, and that its density is that of the model, with its slopes."""
    rv = model[f"{name}_forest"]
    target, point = read_target(model, rv), model.initial_point()
    assert type(target) is kind
    others = [v for v in model.free_RVs if v.name in ("g_forest", "h_forest") and v is not rv]
    for k, other in enumerate(others):  # not where all functions are equal
        point[other.name] = pm.draw(other, random_seed=k)
    settings, seen = target.at(point)
    graph = read_graph(model, rv)
    (total,), outputs = open_forest(graph, [model.logp(vars=graph.terms)])
    needed = set(explicit_graph_inputs([total]))
    given = {v: point[v.name] for v in model.value_vars if v in needed}
    for seed in range(3):
        fit = np.random.default_rng(seed).normal(size=(N, 1))
        wanted = total.eval({outputs: fit, **given})
        np.testing.assert_allclose(density(target, settings, seen, fit), wanted, rtol=1e-6)
    if kind is KernelTarget:
        check_slopes(target, seen, fit)


def check_slopes(target, seen, fit):
    """Against differences of the density, one output at a time."""
    h, k = 1e-4, fit.shape[1]

    def native(function, fit, width):
        out = np.zeros((N, width))
        call_native(function.address, N, np.arange(N), fit, seen.table, seen.data, out)
        return out

    slopes = native(target.slopes, fit, k + k * k)
    here = native(target.value, fit, 1)[:, 0]
    for a in range(k):
        step = h * np.eye(k)[a]
        up, down = (native(target.value, fit + sign * step, 1)[:, 0] for sign in (1, -1))
        np.testing.assert_allclose(slopes[:, a], (up - down) / (2 * h), atol=1e-5, rtol=1e-6)
        second = slopes[:, k + a * k + a]
        np.testing.assert_allclose(second, (up - 2 * here + down) / h**2, atol=1e-5, rtol=1e-4)
        assert not np.delete(slopes[:, k + a * k : k + (a + 1) * k], a, axis=1).any()


@pytest.mark.parametrize("form", PARTS)
def test_a_forest_in_what_is_not_zero(form):
    """Beside a number in psi."""
    with pm.Model() as model:
        form(pm.Beta("psi", 2, 2), bart("g"))
    check(model, "g", PARTS[form])


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("form", [form for form in PARTS if form is not three_kinds])
def test_a_forest_in_what_is_zero(form, share):
    """And another in the rest."""
    link, kind = SHARES[share]
    if form is not lognormal and share != list(SHARES)[len(form.__name__) % 4]:
        pytest.skip("links by turns")
    with pm.Model() as model:
        form(link(bart("f")), bart("g"))
    check(model, "f", kind)
    check(model, "g", PARTS[form])


@pytest.mark.parametrize("form", [poisson, negative_binomial, gamma, lognormal])
@pytest.mark.parametrize("link", [logit, lambda f: probit(0.5 * f - EXPOSURES)])
def test_one_forest_in_both(form, link):
    """Trees of two outputs: their log-likelihood is a sum of one term of each."""
    with pm.Model() as model:
        f = bart("f", shape=(2, N), separate_trees=False)
        psi, g = (f[1], f[0]) if form is gamma else (f[0], f[1])
        form(link(psi), g)
    target, point = read_target(model, model["f_forest"]), model.initial_point()
    assert type(target) is SeparateTarget
    settings, seen = target.at(point)
    graph = read_graph(model, model["f_forest"])
    (total,), outputs = open_forest(graph, [model.logp(vars=graph.terms)])
    needed = set(explicit_graph_inputs([total]))
    given = {v: point[v.name] for v in model.value_vars if v in needed}
    for seed in range(3):
        fit = np.random.default_rng(seed).normal(size=(N, 2))
        found = density(target, settings, seen, fit)
        np.testing.assert_allclose(found, total.eval({outputs: fit, **given}), rtol=1e-6)
    check_slopes(target, seen, fit)


@pytest.mark.parametrize(
    "likelihood",
    [
        lambda f: poisson(logit(f[0] + f[1]), f[1]),
        lambda f: poisson(1 - exp(-exp(f[0])), f[1]),
        lambda f: other_amounts(logit(f[0]), f[1]),
        lambda f: inflated_poisson(logit(f[0]), f[1]),
    ],
)
def test_other_forests_of_two_outputs(likelihood):
    """Outputs that are not apart, or without kernels, are read from the graph."""
    with pm.Model() as model:
        likelihood(bart("f", shape=(2, N), separate_trees=False))
    assert type(read_target(model, model["f_forest"])) is RowwiseTarget


def test_one_output_of_two_is_one_combination():
    with pm.Model() as model:
        poisson(logit(bart("f", shape=(2, N), separate_trees=False)[0]), 0.1)
    assert type(read_target(model, model["f_forest"])) is LatentTarget
