"""A forest in a proportion of an expression, such as a cure fraction: what is read of it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_trees as pmt
from pymc_trees.core.leaves.latent.mixtures import LogitShare, ProbitShare
from pymc_trees.core.leaves.latent.rows import log_rows
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import open_forest, read_graph
from pymc_trees.targets.settings import compile_values
from pymc_trees.targets.shares import ShareTarget

pytestmark = pytest.mark.usefixtures("quick_compile")
N = 9
RNG = np.random.default_rng(0)
X = RNG.random((N, 2))
TIMES = np.array([0.4, 2.0, 1.1, 2.0, 0.2, 1.7, 2.0, 0.7, 1.9])
ENDS, SEEN = np.full(N, 2.0), TIMES < 2.0
log, exp = pt.log, pt.exp
invprobit, invlogit = pm.math.invprobit, pm.math.invlogit


def law():
    return pm.LogNormal.dist(pm.Normal("mu"), pm.HalfNormal("s"))


def cured(p):
    died = log(p) + pm.logp(law(), TIMES)
    alive = log(1 - p + p * (1 - exp(pm.logcdf(pm.LogNormal.dist(0.3, 1.0), TIMES))))
    return pt.switch(SEEN, died, alive)


def by_logaddexp(p):
    return pm.math.logaddexp(log(p) + pm.logp(law(), TIMES), pt.log1p(-p) - 1.3)


def summed(p):
    return log(p * exp(-TIMES) / 2.0 + (1 - p) * exp(-0.1 * TIMES)).sum()


def custom(p):
    pm.CustomDist("y", p, logp=lambda y, p: log(p * exp(-y) + (1 - p) * y), observed=TIMES)


READ = {
    "cure, probit": (lambda f: cured(invprobit(f)), ProbitShare),
    "cure, logit": (lambda f: cured(invlogit(2 * f - 0.3)), LogitShare),
    "logaddexp": (lambda f: by_logaddexp(invlogit(f + pm.Normal("b") * X[:, 0])), LogitShare),
    "sum": (lambda f: summed(invprobit(f)), ProbitShare),
    "CustomDist": (lambda f: custom(invlogit(f)), LogitShare),
}
OTHER = {
    "square": lambda f: log(invlogit(f) ** 2 + 0.1),
    "product": lambda f: log(invlogit(f) * (1 - invlogit(f))),
    "two logarithms": lambda f: (lambda p: log(p) + log(1 - p))(invlogit(f)),
    "f besides": lambda f: log(1 + invlogit(f)) - 0.1 * f**2,
    "no likelihood at 0": lambda f: log(invlogit(f) - 1e-9),
    "another link": lambda f: log(1 - exp(-exp(f))),
    "weight of a logarithm": lambda f: 2.0 * log(1 - 0.5 * invlogit(f)),
    "neighbours": lambda f: log(1 + invlogit(f) * invlogit(f)[::-1]),
}


def model_of(declare):
    with pm.Model() as model:
        value = declare(pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.2, 0.5)))
        if value is not None:
            pm.Potential("potential", value)
    return model


@pytest.mark.parametrize("form", READ)
def test_density(form):
    declare, augmentation = READ[form]
    model = model_of(declare)
    target = read_target(model, model["f_forest"])
    assert type(target) is ShareTarget
    assert target.augmentation is augmentation
    seen_by = [*model.observed_RVs, *model.potentials]
    graph = read_graph(model, model["f_forest"])
    [total], outputs = open_forest(graph, [model.logp(vars=seen_by, sum=True)])
    density, names = compile_values(model, [total], [outputs])
    point = model.initial_point()
    point |= {k: np.asarray(v + 0.3) for k, v in point.items() if k != "f_forest"}
    settings, seen = target.at(point)
    for fit in RNG.normal(size=(3, N, 1)):
        leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(1))
        [expected] = density(fit, *(point[name] for name in names))
        # the probit of the kernels agrees with PyMC's to seven digits
        atol = 1e-10 if augmentation is LogitShare else 1e-6
        assert abs(log_rows(leaf) + target.log_scale(seen) - expected) < atol


@pytest.mark.parametrize("form", OTHER)
def test_other_forms(form):
    model = model_of(OTHER[form])
    assert type(read_target(model, model["f_forest"])) is not ShareTarget


def test_steps():
    model = model_of(READ["cure, probit"][0])
    with model:
        step = pmt.Hybrid(local_sweeps=1)
    step.setup_chain(np.random.default_rng(0), 2, 3)
    point = model.initial_point()
    for _ in range(3):
        point, [stats] = step.step(point)
    expected = model.compile_logp(vars=model.potentials)(point)
    assert abs(stats["log_likelihood"] - expected) < 1e-6


def test_parameters_are_drawn_beside_the_component():
    y = np.where(SEEN, TIMES, 0.0)
    with pm.Model():
        f = pmt.BART("f", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        g = pmt.BART("g", X, m=3, leaf=pmt.NormalLeaf(0.0, 0.5))
        psi, alpha = invlogit(f), pm.HalfNormal("alpha")
        pm.HurdleGamma("y", psi, alpha=alpha, beta=alpha / exp(g), observed=y)
        step = pmt.Hybrid()
        alone = pmt.Hybrid([f])  # nothing else in this step draws alpha
    assert list(step.parameters) == ["g_forest"]
    assert list(alone.parameters) == ["f_forest"]
