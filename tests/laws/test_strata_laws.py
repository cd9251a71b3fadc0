"""Choices within strata, whose rows are apart given latent variables: steps find the posterior.

The data are so small that every tree can be listed. Given a partition, leaf values are integrated
by Gauss-Hermite quadrature of `NODES` points each. Averages over a chain are compared in standard
errors by 60 batch means: at 5 of them, of a t law with 59 degrees of freedom, one of the 70 numbers
fails by chance in some 2,000 runs with fresh seeds. The seeds are fixed.
"""

from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp
from support import oracle as o
from support.naive.batches import batch_means, gap

import pymc_trees as pmt
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.strata import StrataTarget

pytestmark = pytest.mark.usefixtures("quick_compile")
X = np.array([[0.0], [1.0], [2.0], [2.0], [1.0], [0.0], [1.0]])
STRATUM = np.array([0, 0, 0, 1, 1, 2, 2])
CHOSEN = np.array([2, 3, 5])
TIED = np.array([0.0, 1, 1, 0, 1, 1, 0])
AT_RISK = np.array([4, 0, 2, 6, 1, 3, 5])
EVENT = np.array([1.0, 1, 0, 1, 0, 1, 1])
MEAN, SD, NODES, BATCHES, Z = 0.3, 1.2, 24, 60, 5.0


def strata(f):
    """One choice in each stratum of unequal size."""
    total = pt.zeros(3)[STRATUM].inc(pt.exp(f))
    pm.Potential("choice", f[CHOSEN].sum() - pt.log(total).sum())


def of_strata(f):
    sums = np.stack([logsumexp(f[..., STRATUM == s], axis=-1) for s in range(3)])
    return f[..., CHOSEN].sum(-1) - sums.sum(0)


def tied(f):
    """Two of a stratum, as Breslow counts them; a choice of none costs as much as exp(0.4)."""
    total = pt.exp(0.4) + pt.zeros(3)[STRATUM].inc(pt.exp(f))
    pm.Potential("tied", (TIED * f).sum() - pt.dot(np.array([2.0, 1.0, 1.0]), pt.log(total)))


def of_tied(f):
    parts = [np.exp(0.4) + np.exp(f[..., STRATUM == s]).sum(-1) for s in range(3)]
    return f @ TIED - np.log(parts[0] ** 2 * parts[1] * parts[2])


def risks(f):
    """The partial likelihood of Cox."""
    ahead = f[AT_RISK]
    pm.Potential("risks", EVENT * (ahead - pt.log(pt.cumsum(pt.exp(ahead)[::-1])[::-1])))


def of_risks(f):
    ahead = f[..., AT_RISK]
    total = np.log(np.cumsum(np.exp(ahead)[..., ::-1], -1)[..., ::-1])
    return (EVENT * (ahead - total)).sum(-1)


LIKELIHOODS = {"strata": (strata, of_strata), "tied": (tied, of_tied), "risks": (risks, of_risks)}


def exact(X, log_likelihood, m):
    """Mean and second moment of f."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    prior = o.partition_prior(X, 0.95, 2.0)
    total, mean, second = 0.0, 0.0, 0.0
    for parts in product(prior, repeat=m):
        leaves = [sorted(leaf) for part in parts for leaf in part]
        inside = np.array([[float(i in leaf) for i in range(len(X))] for leaf in leaves])
        values = np.stack(np.meshgrid(*[MEAN + SD * nodes] * len(leaves)), -1)
        density = np.prod(np.stack(np.meshgrid(*[weights] * len(leaves)), -1), -1)
        density = density / density.sum() * np.prod([prior[part] for part in parts])
        f = values.reshape(-1, len(leaves)) @ inside
        density = density.ravel() * np.exp(log_likelihood(f))
        total = total + density.sum()
        mean = mean + density @ f
        second = second + (f * density[:, None]).T @ f
    return mean / total, second / total


def chain(make_step, X, declare, m, draws):
    """Outputs of steps on a model."""
    with pm.Model() as model:
        f = pmt.BART("f", X, m=m, leaf=pmt.NormalLeaf(MEAN, SD))
        declare(f)
        step = make_step()
    assert isinstance(read_target(model, model["f_forest"]), StrataTarget)
    step.setup_chain(np.random.default_rng(5), draws // 10, draws)
    [f] = model.replace_rvs_by_values([f])
    point, at = model.initial_point(), model.compile_fn(f)
    fits = np.empty((draws, len(X)))
    for k in range(-(draws // 10), draws):
        if k == 0:
            step.stop_tuning()
        point, _ = step.step(point)
        if k >= 0:
            fits[k] = at(point)
    return fits


STEPS = {
    "cgm": lambda: pmt.CGM(moves_per_visit=3),
    "hybrid": lambda: pmt.Hybrid(local_sweeps=1),
    "particles": lambda: pmt.ParticleGibbs(num_particles=3),
}
TWO = X[:, :1] > 0.5


@pytest.mark.parametrize(
    ("likelihood", "step", "m"),
    [
        ("strata", "hybrid", 1),
        ("tied", "cgm", 1),
        ("risks", "hybrid", 1),
        ("risks", "particles", 1),
        ("strata", "cgm", 2),
        ("tied", "hybrid", 2),
    ],
)
def test_posterior(likelihood, step, m):
    declare, log_likelihood = LIKELIHOODS[likelihood]
    rows = X if m == 1 else TWO.astype(float)
    mean, second = exact(rows, log_likelihood, m)
    fits = chain(STEPS[step], rows, declare, m, 12_000)
    compare(fits, mean, second)


def compare(fits, mean, second):
    """Whether averages of a chain are those of the posterior."""
    first = gap(batch_means(fits, BATCHES), mean)
    assert first.within(Z, 0.1), first
    both = batch_means((fits[:, :, None] * fits[:, None, :]).reshape(len(fits), -1), BATCHES)
    other = gap(both, second.ravel())
    assert other.within(Z, 0.3), other


def test_mistakes_are_found(monkeypatch):
    # latent variables of another scale, and rows whose exposures miss a stratum's weight of two
    declare, log_likelihood = LIKELIHOODS["tied"]
    mean, second = exact(X, log_likelihood, 1)
    own = StrataTarget.given
    for factor in ([1.3], [[0.5, 1.0, 1.0]]):
        monkeypatch.setattr(
            StrataTarget,
            "given",
            lambda self, seen, drawn, by=factor: own(self, seen, drawn * np.array(by)),
        )
        with pytest.raises(AssertionError):
            compare(chain(STEPS["hybrid"], X, declare, 1, 12_000), mean, second)
