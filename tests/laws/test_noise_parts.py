"""What makes up the sd of the noise, beside trees that move: `NoiseScale` finds the posterior.

All trees of a tiny problem are listed, with leaf values integrated out at each point of a grid of
what makes up the sd: logarithms of positive numbers, where the density is smooth and falls off at
both ends, so that sums over a regular grid are integrals to many digits; the Uniform has a grid of
its own. Averages over 60 batches against these numbers, in standard errors of a t law with 59
degrees of freedom: beyond 5 one of some 100 averages in 2,000 runs with fresh seeds.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp
from support import oracle as o
from support.naive.batches import batch_means, gap
from support.naive.laws import PROBLEMS
from support.tiers import tiers

import pymc_trees as pmt
from pymc_trees.step_methods import noise_scale
from pymc_trees.targets import noise

pytestmark = pytest.mark.usefixtures("quick_compile")
PROBLEM = PROBLEMS["repeats"]
N = PROBLEM.n
ROWS = np.linspace(0.5, 1.6, N)
GROUP = np.arange(N) % 2
BATCHES, Z = 60, 5.0
NUMBA = {"mode": "NUMBA"}
LOGS = np.arange(-9.0, 4.0, 0.2)
REALS = np.arange(-5.0, 5.0, 0.2)
UNIFORM = 0.2 + 2.8 * (np.arange(300) + 0.5) / 300


class Case(NamedTuple):
    """How a variable, or several, make up the sd."""

    declare: object
    """Free variables in the order of the numbers."""
    sd: object
    """Of (k,) numbers."""
    priors: list
    """scipy's, of the numbers."""
    on: str = "log"
    """Scale of the grid."""
    tau: bool = False


CASES = {
    "plain": Case(
        lambda: [pm.HalfNormal("s", 1.5)], lambda s: s[0] + 0 * ROWS, [stats.halfnorm(scale=1.5)]
    ),
    "known errors": Case(
        lambda: [pm.HalfCauchy("s", 0.5)],
        lambda s: (s[0] ** 2 + ROWS**2 / 4) ** 0.5,
        [stats.halfcauchy(scale=0.5)],
    ),
    "known errors, Uniform": Case(
        lambda: [pm.Uniform("s", 0.2, 3.0)],
        lambda s: (s[0] ** 2 + ROWS**2 / 4) ** 0.5,
        [stats.uniform(0.2, 2.8)],
        "uniform",
    ),
    "groups": Case(
        lambda: [pm.Exponential("s", 1.5, shape=2)],
        lambda s: s[GROUP],
        [stats.expon(scale=1 / 1.5)] * 2,
    ),
    "groups with known errors": Case(
        lambda: [pm.HalfNormal("s", 1.0, shape=2)],
        lambda s: (s[GROUP] ** 2 + ROWS**2 / 9) ** 0.5,
        [stats.halfnorm()] * 2,
    ),
    "exposure": Case(
        lambda: [pm.InverseGamma("s", 3, 2)],
        lambda s: s[0] * ROWS,
        [stats.invgamma(3, scale=2)],
    ),
    "precision": Case(
        lambda: [pm.Gamma("s", 2, 1.5)],
        lambda s: s[0] * ROWS,
        [stats.gamma(2, scale=1 / 1.5)],
        tau=True,
    ),
    "precisions of groups": Case(
        lambda: [pm.Gamma("s", 2, 1.5, shape=2)],
        lambda s: s[GROUP],
        [stats.gamma(2, scale=1 / 1.5)] * 2,
        tau=True,
    ),
    "two at once": Case(
        lambda: [pm.HalfNormal("s", 1.0), pm.Exponential("t", 1.0)],
        lambda s: (s[0] ** 2 + (s[1] * ROWS) ** 2) ** 0.5,
        [stats.halfnorm(), stats.expon()],
    ),
    "two groups by name": Case(
        lambda: [pm.InverseGamma("s", 3, 2), pm.HalfStudentT("t", nu=3, sigma=1.0)],
        lambda s: s[GROUP],
        [stats.invgamma(3, scale=2), stats.t(3)],
    ),
    "regression": Case(
        lambda: [pm.Normal("s", -0.5, 0.7), pm.Normal("t", 0.0, 0.7)],
        lambda s: np.exp(s[0] + s[1] * ROWS),
        [stats.norm(-0.5, 0.7), stats.norm(0.0, 0.7)],
        "real",
    ),
}


def exact(case: Case):
    """Points of the grid, their probabilities, and the mean number of leaves at each."""
    p = PROBLEM.X.shape[1]
    trees = o.enumerate_trees(
        PROBLEM.X, PROBLEM.prior["alpha"], PROBLEM.prior["beta"], np.full(p, 1 / p)
    )
    sizes = np.array([len(tree[1]) for tree in trees])
    axis = {"log": LOGS, "real": REALS, "uniform": UNIFORM}[case.on]
    points = np.array(list(product(axis, repeat=len(case.priors))))
    log, leaves = np.empty(len(points)), np.empty(len(points))
    for k, u in enumerate(points):
        s = np.exp(u) if case.on == "log" else u
        sd = case.sd(s) ** -0.5 if case.tau else case.sd(s)
        leaf = o.NormalLeaf(PROBLEM.y, sd, PROBLEM.mean, PROBLEM.sd)
        shares, evidence = o.posterior(trees, leaf)
        prior = sum(law.logpdf(v) for law, v in zip(case.priors, s, strict=True))
        log[k] = evidence + prior + (u.sum() if case.on == "log" else 0.0)
        leaves[k] = shares @ sizes
    return points, np.exp(log - logsumexp(log)), leaves


def quantities(u, n_leaves, centre, sd):
    """What is averaged, of (draws, k) numbers on the scale of the grid, and numbers of leaves."""
    z = 4 * np.tanh((u - centre) / sd / 4)  # smooth, or the grid would be too coarse
    columns = [n_leaves, *z.T, *(z**2).T, *(z.T * n_leaves), *np.tanh(2 * (z - 0.5)).T]
    if u.shape[1] > 1:
        columns += [z[:, 0] * z[:, 1], z[:, 0] * z[:, 1] * n_leaves]
    return np.column_stack(columns)


def distance(name, draws=12_000, tune=400):
    """`Gap` of averages of a chain of trees and of what makes up the sd."""
    case = CASES[name]
    points, mass, leaves = exact(case)
    centre = mass @ points
    sd = np.sqrt(mass @ (points - centre) ** 2)
    known = mass @ quantities(points, leaves, centre, sd)
    with pm.Model() as model:
        mu = pmt.BART(
            "mu",
            PROBLEM.X,
            m=1,
            alpha=PROBLEM.prior["alpha"],
            beta=PROBLEM.prior["beta"],
            leaf=pmt.NormalLeaf(PROBLEM.mean, PROBLEM.sd),
            max_nodes=2 * N - 1,
        )
        parts = case.declare()
        whole = parts[0] if len(parts) == 1 and parts[0].ndim else pt.stack(parts)
        sd_of = symbolic(name, whole)
        pm.Normal("y", mu, **{"tau" if case.tau else "sigma": sd_of}, observed=PROBLEM.y)
        steps = [pmt.CGM(rng=1), pmt.NoiseScale(rng=2, compile_kwargs=NUMBA)]
    point, found = model.initial_point(), np.empty((draws, 1 + len(case.priors)))
    for k in range(-tune, draws):
        if k == 0:
            for step in steps:
                step.stop_tuning()
        point, [stat] = steps[0].step(point)
        point, _ = steps[1].step(point)
        if k >= 0:
            values = [np.ravel(point[model.rvs_to_values[rv].name]) for rv in parts]
            found[k] = stat["n_leaves"], *np.concatenate(values)
    n_leaves, u = found[:, 0], found[:, 1:]
    if case.on == "uniform":
        u = 0.2 + 2.8 / (1 + np.exp(-u))
    return gap(batch_means(quantities(u, n_leaves, centre, sd), BATCHES), known)


def symbolic(name, s):
    """The sd, or precision, of a case as an expression."""
    if name == "regression":
        return pm.math.exp(s[0] + s[1] * ROWS)
    if name == "groups with known errors":
        return pm.math.sqrt(s[GROUP] ** 2 + ROWS**2 / 9)
    if name == "two at once":
        return pm.math.sqrt(s[0] ** 2 + (s[1] * ROWS) ** 2)
    if name in ("groups", "precisions of groups", "two groups by name"):
        return s[GROUP]
    if name.startswith("known errors"):
        return pm.math.sqrt(s[0] ** 2 + ROWS**2 / 4)
    return s[0] if name == "plain" else s[0] * ROWS


@pytest.mark.parametrize("name", tiers(CASES, quick=["groups", "two at once"]))
def test_trees_and_noise_agree_with_the_enumeration(name):
    found = distance(name)
    assert found.within(Z, 0.2), found


def test_the_priors_weigh_and_the_data_speak():
    """The cases differ from one another, so that a wrong one is seen."""
    points, mass, _ = exact(CASES["groups"])
    means = mass @ points
    assert abs(means[0] - means[1]) > 0.1


def test_labels_of_other_rows_are_seen(monkeypatch):
    sums = noise._sums

    def shifted(residual, split):
        return sums(residual, split._replace(labels=1 - split.labels))

    monkeypatch.setattr(noise, "_sums", shifted)
    assert distance("groups", draws=6000).z > 2 * Z


def test_a_direction_that_depends_on_the_entries_is_seen(monkeypatch):
    """Such a move is not reversible."""
    along = noise_scale._along

    def growing(rng, log_density, x, direction):
        return along(rng, log_density, x, direction * np.array([1.0, np.tanh(4 * x[0])]))

    monkeypatch.setattr(noise_scale, "_along", growing)
    assert distance("regression").z > 2 * Z
