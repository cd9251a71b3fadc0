"""One tree whose leaves hold several values, under likelihoods in which outputs interact.

The posterior is enumerated: partitions of the rows, and leaf values by sums over a grid of 7
standard deviations to both sides, whose moments change by less than 1e-4 of one with half as many
points again.
"""

import zlib
from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
from scipy import special, stats

import pymc_trees as pmt
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.joint import JointTarget
from pymc_trees.targets.rowwise import RowwiseTarget
from pymc_trees.targets.separate import SeparateTarget
from support import oracle as o
from support.chains import MOVE_SETS, make_setup, partition_of, run_guided
from support.chains.screened import run_screened, screen_of
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap
from support.naive.laws import PROBLEMS

PROBLEM = PROBLEMS["gaps"]
N, BATCHES, Z = 5, 60, 5.5
X = PROBLEM.X[:N]
MEAN = 0.1
Y = np.array([-1.2, 1.4, -0.6, 0.9, 2.5]) + np.array([[-1.5], [0.2], [0.9], [-0.3]])
CLASSES = np.array([0, 2, 1, 2, 2])
TARGETS = {
    "RowwiseTarget": RowwiseTarget,
    "JointTarget": JointTarget,
    "SeparateTarget": SeparateTarget,
}


def scale(f):
    """A mean and the log of a standard deviation, of four numbers a row: one has no mode."""
    pm.Normal("y", f[0], pm.math.exp(f[1]), observed=Y)


def log_scale(i, f):
    return stats.norm.logpdf(Y[:, i, None], f[0], np.exp(f[1])).sum(0)


def softmax(f):
    """Flat along one direction."""
    pm.Categorical("y", p=pm.math.softmax(f, axis=0).T, observed=CLASSES)


def log_softmax(i, f):
    return f[CLASSES[i]] - special.logsumexp(f, axis=0)


def hurdle(f):
    """A likelihood that is a product of a function of each output."""
    pm.HurdleLogNormal("y", pm.math.invlogit(f[1]), f[0], 0.7, observed=AMOUNTS)


AMOUNTS = np.array([0.0, 1.4, 0.0, 0.9, 2.5])


def log_hurdle(i, f):
    if AMOUNTS[i] == 0:
        return special.log_expit(-f[1])
    log = np.log(AMOUNTS[i])
    return special.log_expit(f[1]) + stats.norm.logpdf(log, f[0], 0.7) - log


# outputs, sd of a leaf value, points of the grid along an output
LIKELIHOODS = {
    "scale": (scale, log_scale, 2, 0.6, 141),
    "softmax": (softmax, log_softmax, 3, 1.2, 41),
    "hurdle": (hurdle, log_hurdle, 2, 1.2, 141),
}


def setup_of(likelihood, kind, seed):
    """Arrays of a chain whose leaf model is that of a kind of target."""
    declare, _, k, sd, _ = LIKELIHOODS[likelihood]
    with pm.Model() as model:
        leaf = pmt.NormalLeaf(MEAN, sd)
        settings = {"shape": (k, N), "separate_trees": False, "max_nodes": 2 * N - 1}
        declare(pmt.BART("f", X, m=1, leaf=leaf, **PROBLEM.prior, **settings))
    target = kind(read_graph(model, model["f_forest"]))
    assert isinstance(target, kind), target
    numbers, seen = target.at(model.initial_point())
    given = numbers, seen, np.full((N, k), MEAN), np.random.default_rng(seed)
    leaf, _ = target.leaf_data(*given)
    setup = make_setup(replace(PROBLEM, X=X, y=PROBLEM.y[:N]), "normal")
    trees = make_trees(1, 2 * N - 1, k, N)
    trees.values[:1] = MEAN
    trees.unsplittable[:1] = setup.trees.unsplittable[:1]
    columns = setup.design.columns.astype(np.float64)
    design = setup.design._replace(columns=columns)
    work = make_workspace(2 * N - 1, target.n_stats, design)
    return setup._replace(trees=trees, leaf=leaf, design=design, work=work)


@cache
def exact(likelihood):
    """Law of the partitions, and means and second moments of f, (K, n)."""
    _, log_row, k, sd, points = LIKELIHOODS[likelihood]
    z = np.linspace(-7.0, 7.0, points)
    f = MEAN + sd * np.stack(np.meshgrid(*[z] * k, indexing="ij")).reshape(k, -1)
    log_prior = stats.norm.logpdf(f, MEAN, sd).sum(0)
    rows = np.array([log_row(i, f) for i in range(N)])

    @cache
    def leaf_of(members):
        weight = np.exp(log_prior + rows[list(members)].sum(0))
        total = weight.sum()
        return total * (sd * (z[1] - z[0])) ** k, f @ weight / total, f**2 @ weight / total

    law, moments = {}, np.zeros((2, k, N))
    for partition, share in o.partition_prior(X, **PROBLEM.prior).items():
        leaves = {members: leaf_of(members) for members in partition}
        law[partition] = share * np.prod([total for total, *_ in leaves.values()])
        for members, (_, first, second) in leaves.items():
            for i in members:
                moments[0, :, i] += law[partition] * first
                moments[1, :, i] += law[partition] * second
    total = sum(law.values())
    mean, square = moments / total
    return {part: share / total for part, share in law.items()}, mean, np.sqrt(square - mean**2)


def distances(chain, likelihood):
    """Of partitions, of pairs of rows, and of the moments of f."""
    law, mean, sd = exact(likelihood)
    draws = len(chain.codes)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, N) for code in codes]
    above = np.triu_indices(N, 1)
    same = np.array([o.same_leaf(state, N)[above] for state in states])
    pairs = sum(p * o.same_leaf(part, N)[above] for part, p in law.items())
    scaled = ((chain.fits - mean.T) / sd.T).reshape(draws, -1)
    return [
        law_gap(states, shares, law, draws),
        gap(shares @ same, pairs, independent_se(pairs, draws)),
        gap(batch_means(scaled, BATCHES), 0.0),
        gap(batch_means(scaled**2, BATCHES), 1.0),
    ]


def compare(chain, likelihood):
    found = distances(chain, likelihood)
    limits = (0.06, 0.08, 0.2, 0.4)
    assert all(one.within(Z, limit) for one, limit in zip(found, limits, strict=True)), found


def screened_outputs(likelihood, local, moves):
    """Rows about anchors that are too high and too low in turn, or about the other trees."""
    seed = zlib.crc32(f"{likelihood} {local} {moves}".encode())
    kind = SeparateTarget if likelihood == "hurdle" else RowwiseTarget
    setup = setup_of(likelihood, kind, seed)
    k = setup.leaf.mean.size
    anchor = MEAN + 0.3 * np.resize([1.0, -1.0, 0.4], (N, k))
    screen = screen_of(setup, anchor, 0.5, local)
    chain = run_screened(seed, setup, screen, MOVE_SETS[moves], 200_000)
    compare(chain, likelihood)
    assert 0.05 < chain.accepted[-1] / chain.proposed[-1] < 1


def guided_outputs(likelihood, kind, proposal):
    """Particles guided by all outputs."""
    seed = zlib.crc32(f"{likelihood} {kind} {proposal}".encode())
    setup = setup_of(likelihood, TARGETS[kind], seed + 1)
    compare(run_guided(seed, setup, 3, proposal, 60_000), likelihood)
