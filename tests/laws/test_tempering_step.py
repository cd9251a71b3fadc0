"""`Tempering`: the forest of the model keeps its law, whatever the flatter posteriors are.

Tolerances as in `test_exact_posterior`: 6 standard errors by 60 batches. Of 20,000 draws the sd of
the share of a partition is below 0.006, so that 0.03, the absolute tolerance, is 5 of these. With
normal-gamma leaves chains of `CGM` remember longer (standard error 0.015 of the share of a depth in
20,000 draws), so that these are longer.
"""

import numpy as np
import pymc as pm
import pytest
from support.chains.record import Chain, partition_code, partition_of
from support.laws.exact import BATCHES, Z, compare
from support.naive.batches import frequencies, law_gap
from support.naive.laws import EVERY, law
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.step_methods.kernels import replica_exchange
from pymc_trees.targets.graph import UnsupportedModelError

pytestmark = pytest.mark.usefixtures("quick_compile")
DRAWS = 20_000
POWERS = 1.0, 1.7, 4.0


def normal(problem, **tree):
    leaf = pmt.NormalLeaf(problem.mean, problem.sd)
    f = pmt.DecisionTree("f", problem.X, leaf=leaf, **tree)
    pm.Normal("y", f, problem.sigma, observed=problem.y, shape=f.shape)


def normal_gamma(problem, **tree):
    leaf = pmt.NormalGammaLeaf(problem.a, problem.nu, problem.lam)
    f = pmt.DecisionTree("f", problem.X, leaf=leaf, **tree)
    pm.Normal("y", f[0], tau=f[1], observed=problem.y)


def dirichlet(problem, **tree):
    leaf = pmt.DirichletLeaf(problem.alpha_total, problem.n_classes)
    f = pmt.DecisionTree("f", problem.X, leaf=leaf, **tree)
    pm.Categorical("y", p=f, observed=problem.labels)


MODELS = {"normal": normal, "normal_gamma": normal_gamma, "dirichlet": dirichlet}
STEPS = {
    "cgm": lambda: pmt.CGM(),
    "pg": lambda: pmt.ParticleGibbs(num_particles=3),
    "optimal": lambda: pmt.ParticleGibbs(num_particles=3, proposal="optimal"),
    "wtw": lambda: pmt.RestructureCGM(),
}


def model_of(name, leaf):
    """A tree of a problem of the oracle, declared as users do."""
    problem = EVERY[name]
    with pm.Model() as model:
        MODELS[leaf](problem, alpha=problem.prior["alpha"], beta=problem.prior["beta"])
    return model


def chain_of(model, make, draws, seed, temperatures=POWERS):
    """Record of a chain, and the mean probability of an exchange."""
    with model:
        step = pmt.Tempering(make(), temperatures)
    (forest,) = step.forests
    n = forest.layout.n_rows
    codes, depths = np.empty((2, draws, 1), dtype=np.int64)
    fits = np.empty((draws, n, forest.layout.n_outputs))
    step.setup_chain(np.random.default_rng(seed), 0, draws)
    point, shares = model.initial_point(), []
    for s in range(draws):
        point, (stats,) = step.step(point)
        shares.append(stats["accept_exchange"])
        trees = step.states[0].forest.trees
        codes[s, 0], depths[s, 0] = partition_code(trees.leaf_of[0], n), stats["max_depth"]
        fits[s] = step.states[0].forest.fit
    return Chain(codes, depths, None, fits, None, None), np.mean(shares)


CASES = [
    ("deep", "dirichlet", "cgm"),
    ("deep", "normal_gamma", "cgm"),
    ("noisy", "normal", "cgm"),
    ("deep", "normal", "pg"),
    ("deep", "dirichlet", "optimal"),
    ("deep", "normal_gamma", "wtw"),
]


@pytest.mark.parametrize("name, leaf, step", tiers(CASES, CASES[:1]))
def test_chain_agrees_with_the_enumeration(name, leaf, step):
    draws = 3 * DRAWS if leaf == "normal_gamma" else DRAWS
    chain, share = chain_of(model_of(name, leaf), STEPS[step], draws, seed=5)
    assert 0.2 < share < 0.95  # it is exchanges that are looked at
    compare(chain, name, leaf)


@pytest.mark.full
def test_the_comparison_rejects_exchanges_without_a_ratio(monkeypatch):
    whole = replica_exchange.log_exchange
    monkeypatch.setattr(
        replica_exchange, "log_exchange", lambda a, b, work: 0.0 * whole(a, b, work)
    )
    name = "deep"
    chain, _ = chain_of(
        model_of(name, "dirichlet"), STEPS["cgm"], DRAWS // 2, seed=5, temperatures=(1.0, 4.0, 20.0)
    )
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, EVERY[name].n) for code in codes]
    found = law_gap(states, shares, law(name, "dirichlet").partitions, len(chain.codes))
    assert found.z > 2 * Z, found


@pytest.fixture(scope="module")
def two_modes():
    """Two columns that part the rows alike: the tree that has one cannot get to the other."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(60))
    X = np.column_stack([x, (x > 0.5) + 0.1 * rng.random(60)])
    y = np.where(x > 0.5, 3.0, 0.0) + 0.3 * rng.normal(size=60)
    with pm.Model() as model:
        f = pmt.DecisionTree("f", X, y)
        sigma = pm.HalfNormal("sigma", 1.0)
        pm.Normal("y", f, sigma, observed=y, shape=f.shape)
    return model


def test_tuning_finds_temperatures_and_keeps_them(two_modes):
    with two_modes:
        step = pmt.Tempering(pmt.CGM(moves={"grow": 0.5, "prune": 0.5}), 4, rng=1)
    step.setup_chain(np.random.default_rng(1), 600, 600)
    point, roots, found = two_modes.initial_point(), [], []
    for s in range(1200):
        if s == 600:
            step.stop_tuning()
        point, (stats,) = step.step(point)
        trees = step.states[0].forest.trees
        roots.append(int(trees.column[trees.roots[0]]))
        found.append(stats)
    powers = {stats["min_inverse_temperature"] for stats in found[600:]}
    assert len(powers) == 1
    # 300 proposals of a pair, in tuning and after: the sd of a mean of them is below 0.06 for
    # chains that remember ten steps.
    each = np.nanmean([stats["accept_exchange_each"] for stats in found[600:]], axis=0)
    assert (each > 0.05).all()
    assert each[0] == pytest.approx(0.25, abs=0.2)
    assert len({stats["replica"] for stats in found[600:]}) == 4
    # Grow and prune alone would have to pass through a stump, whose likelihood is e**-200.
    assert {0, 1} <= set(roots[600:])
    saved = step.sampling_state
    with two_modes:
        other = pmt.Tempering(pmt.CGM(moves={"grow": 0.5, "prune": 0.5}), 4)
    other.sampling_state = saved
    step.rng, other.rng = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(5):
        one, _ = step.step(point)
        two, _ = other.step(point)
        np.testing.assert_array_equal(one["f_forest"], two["f_forest"])
        point = one


def test_what_is_refused(two_modes):
    with two_modes:
        for given in (1, True, 2.5, [2, 1], [1], [1, 1], [1, np.inf], "hot"):
            with pytest.raises(ValueError, match="temperatures="):
                pmt.Tempering(pmt.CGM(), given)
        with pytest.raises(ValueError, match=r"Hybrid\(temperatures=1\)"):
            pmt.Tempering(pmt.Hybrid(), 3)
        with pytest.raises(TypeError, match="step='nuts'"):
            pmt.Tempering(pm.NUTS([two_modes["sigma"]]), 3)
        with pytest.raises(TypeError, match="step='tempering'"):
            pmt.Tempering(pmt.Tempering(pmt.CGM(), 2), 3)
        assert pmt.Tempering(pmt.Hybrid(temperatures=1), 2).name == "tempering"


def test_models_without_flatter_posteriors_are_refused():
    X = np.linspace(0, 1, 12)[:, None]
    with pm.Model():
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1))
        pm.Poisson("y", pm.math.exp(f), observed=np.arange(12))
        with pytest.raises(UnsupportedModelError, match="leaf values of f do not integrate out"):
            pmt.Tempering(pmt.CGM())
    with pm.Model():
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, pm.HalfNormal("s", 1)))
        pm.Normal("y", f, 1, observed=np.zeros(12), shape=f.shape)
        with pytest.raises(UnsupportedModelError, match="prior of f has random parameters"):
            pmt.Tempering(pmt.CGM())


def test_rows_that_are_not_data_are_refused():
    """Flatter posteriors under them would change with every draw of theirs."""
    X = np.linspace(0, 1, 12)[:, None]
    with pm.Model():
        p = pmt.DecisionTree("p", X, leaf=pmt.DirichletLeaf(1.0, 2))
        z = pm.Categorical("z", p=p)
        pm.Normal("y", z, 1, observed=np.arange(12) % 2)
        with pytest.raises(UnsupportedModelError, match="rows of p are not data but follow z"):
            pmt.Tempering(pmt.CGM())
    with pm.Model():
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalGammaLeaf(2.0, 2.0, 1.0))
        z = pm.Normal("z", f[0], tau=f[1])
        pm.Normal("y", z, 1, observed=np.zeros(12))
        with pytest.raises(UnsupportedModelError, match="rows of f are not data but follow z"):
            pmt.Tempering(pmt.CGM())
    with pm.Model():  # here L* has a target of its own
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1))
        z = pm.Normal("z", f, 1, shape=f.shape)
        pm.Normal("y", z, 1, observed=np.zeros(12))
        assert pmt.Tempering(pmt.CGM()).name == "tempering"


@pytest.mark.parametrize("leaf", ["basis", "vector"])
def test_leaves_of_several_values_are_refused(leaf):
    X = np.linspace(0, 1, 12)[:, None]
    with pm.Model():
        if leaf == "basis":
            f = mean = pmt.DecisionTree("f", X, leaf=pmt.BasisLeaf(np.column_stack([X, X**2])))
        else:
            f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1), shape=(2, 12))
            mean = f[0] + 2 * f[1]
        pm.Normal("y", mean, 1, observed=np.zeros(12), shape=(12,))
        with pytest.raises(UnsupportedModelError, match="leaves of f have several values each"):
            pmt.Tempering(pmt.CGM())


def test_a_target_too_far_away_has_no_exchanges():
    """Its residual is no likelihood of f: the chain is that of the step alone."""
    X, far = np.linspace(0, 1, 12)[:, None], 1e7
    with pm.Model() as model:
        f = pmt.DecisionTree("f", X, leaf=pmt.NormalLeaf(0, 1))
        pm.Normal("y", f, 1, observed=far + X[:, 0], shape=f.shape)
        steps = [pmt.Tempering(pmt.CGM(), POWERS), pmt.CGM()]
    draws = []
    for step in steps:
        step.setup_chain(np.random.default_rng(1), 0, 20)
        point = model.initial_point()
        for _ in range(20):
            point, (stats,) = step.step(point)
            draws.append(point["f_forest"])
        assert np.isnan(stats.get("accept_exchange", np.nan))
    np.testing.assert_array_equal(draws[:20], draws[20:])


def test_without_data_there_is_nothing_to_flatten():
    with pm.Model() as model:
        pmt.DecisionTree("f", np.linspace(0, 1, 12)[:, None], leaf=pmt.NormalLeaf(0, 1))
        step = pmt.Tempering(pmt.CGM(), 2, rng=1)
    _, (stats,) = step.step(model.initial_point())
    assert np.isnan(stats["accept_exchange"])


def test_a_second_chain_of_a_step_does_not_depend_on_the_first():
    model = model_of("noisy", "normal")
    with model:
        step = pmt.Tempering(pmt.CGM(), POWERS)
    fresh = step.sampling_state

    def chain(seed):
        step.sampling_state = fresh
        step.setup_chain(np.random.default_rng(seed), 0, 50)
        point = model.initial_point()
        drawn = []
        for _ in range(50):
            point, _ = step.step(point)
            drawn.append(point["f_forest"])
        return np.array(drawn)

    first = chain(1)
    chain(2)
    np.testing.assert_array_equal(chain(1), first)
