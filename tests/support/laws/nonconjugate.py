"""Samplers of trees whose leaf values do not integrate out, against the enumeration.

The leaf values are integrated by Gauss-Legendre quadrature, leaf by leaf, so that the exact
posterior is known for any likelihood. Tolerances: see `laws/test_exact_posterior`.
"""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np

from pymc_trees.core.moves.problem import make_workspace
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.rowwise import KernelTarget, RowwiseTarget
from support import oracle as o
from support.chains import (
    MOVE_SETS,
    make_setup,
    make_tools,
    partition_of,
    run_chain,
    run_guided,
    run_particles,
)
from support.chains.screened import run_screened, screen_of
from support.laws.likelihoods import BY_ROWS, LIKELIHOODS, model_of, problem_of
from support.naive.batches import batch_means, frequencies, gap, independent_se, law_gap

BATCHES = 60
Z = 5.5
WRITTEN_OUT = {"exposed", "times", "truncated", "positive", "inflated"}
"""Likelihoods whose kernels are the package's own, not made from PyMC's graph."""
DRAWS = 200_000


def setup_of(problem, model, seed, kind, m=1):
    """Arrays of a chain whose leaf model is that of a kind of target, and the target."""
    setup = make_setup(problem, "normal", m=m)
    target = kind(read_graph(model, model["mu_forest"]))
    assert isinstance(target, kind), target
    settings, seen = target.at(model.initial_point())
    fit = np.full((problem.n, 1), m * problem.mean)
    leaf, _ = target.leaf_data(settings, seen, fit, np.random.default_rng(seed))
    columns = setup.design.columns.astype(np.float64)
    return setup._replace(
        leaf=leaf,
        design=setup.design._replace(columns=columns),
        work=make_workspace(setup.work.nodes.size, target.n_stats, setup.design),
    ), target


def leaf_of(problem, likelihood):
    log_row = LIKELIHOODS[likelihood][1]

    def log_likelihood(rows, values):
        more = (problem.n,) if likelihood in BY_ROWS else ()
        return sum(log_row(i, values, *more) for i in rows)

    prior = o.normal_log_density(problem.mean, problem.sd)
    reach = 9.0 * problem.sd
    # panel edges at 1, 1.5 and 2, where some likelihoods have a kink
    return o.QuadratureLeaf(log_likelihood, prior, 1.5 - reach, 1.5 + reach, panels=2 * 27 * 4)


def normal_nodes(likelihood, nodes):
    """Nodes and weights of a standard normal integral: Gauss and Hermite, or evenly spaced."""
    if likelihood != "quantile":
        return np.polynomial.hermite_e.hermegauss(nodes)
    x = np.linspace(-6.0, 6.0, nodes)  # likelihoods with a kink are no polynomials
    return x, np.exp(-0.5 * x**2)


def two_trees(problem, likelihood):
    """Law of the pair of partitions, and first two moments of f.

    The function at the rows is normal given the partitions, and the likelihood is integrated over
    it with 60 nodes an axis: the moments change by less than 0.002 of an sd from 40 (quantiles,
    whose density has a kink: 130 nodes, and 0.01 from 100).
    """
    nodes = 130 if likelihood == "quantile" else 60
    log_row = LIKELIHOODS[likelihood][1]
    more = (problem.n,) if likelihood in BY_ROWS else ()
    x, weight = normal_nodes(likelihood, nodes)
    weight = weight / weight.sum()
    prior = o.partition_prior(problem.X, **problem.prior)
    n, law, moments = problem.n, {}, np.zeros((2, problem.n))
    for pair in product(prior, repeat=2):
        V = problem.sd**2 * sum(o.same_leaf(part, n).astype(float) for part in pair)
        size, axes = np.linalg.eigh(V)
        axes = axes[:, size > 1e-9] * np.sqrt(size[size > 1e-9])
        rank = axes.shape[1]
        z = np.stack(np.meshgrid(*[x] * rank, indexing="ij"), axis=-1).reshape(-1, rank)
        w = np.prod(np.stack(np.meshgrid(*[weight] * rank, indexing="ij")), axis=0).ravel()
        f = 2 * problem.mean + z @ axes.T
        terms = w * np.exp(sum(log_row(i, f[:, i], *more) for i in range(n)))
        share = prior[pair[0]] * prior[pair[1]]
        law[pair] = share * terms.sum()
        moments += share * np.array([terms @ f, terms @ f**2])
    total = sum(law.values())
    return {pair: share / total for pair, share in law.items()}, moments / total


def compare_two_trees(chain, problem, likelihood, z):
    """Pairs of partitions, and moments of a chain of two trees, against `two_trees`."""
    law, (mean, square) = two_trees(problem, likelihood)
    sd = np.sqrt(square - mean**2)
    base = problem.n**problem.n
    found, shares = frequencies(chain.codes[:, 0] * base + chain.codes[:, 1], BATCHES)
    states = [
        tuple(partition_of(code, problem.n) for code in divmod(int(key), base)) for key in found
    ]
    pairs = law_gap(states, shares, law, len(chain.codes))
    assert pairs.within(z, 0.03), pairs
    scaled = (chain.fits[:, :, 0] - mean) / sd
    first = gap(batch_means(scaled, BATCHES), 0.0)
    second = gap(batch_means(scaled**2, BATCHES), 1.0)
    assert first.within(z, 0.05) and second.within(z, 0.1), (first, second)


def exact_law(problem, likelihood):
    trees = o.enumerate_trees(problem.X, **problem.prior)
    leaf = leaf_of(problem, likelihood)
    weights, _ = o.posterior(trees, leaf)
    mean, sd = o.row_moments(trees, weights, leaf.moments, problem.n)
    return o.partition_probabilities(trees, weights), mean, sd


def distances(chain, problem, likelihood):
    """Of partitions, pairs of rows, means and second moments of a tree from their exact law."""
    partitions, mean, sd = exact_law(problem, likelihood)
    draws = len(chain.codes)
    codes, shares = frequencies(chain.codes[:, 0], BATCHES)
    states = [partition_of(code, problem.n) for code in codes]
    above = np.triu_indices(problem.n, 1)
    same = np.array([o.same_leaf(state, problem.n)[above] for state in states])
    exact = sum(p * o.same_leaf(part, problem.n)[above] for part, p in partitions.items())
    scaled = (chain.fits[:, :, 0] - mean) / sd
    return [
        law_gap(states, shares, partitions, draws),
        gap(shares @ same, exact, independent_se(exact, draws)),
        gap(batch_means(scaled, BATCHES), 0.0),
        gap(batch_means(scaled**2, BATCHES), 1.0),
    ]


def compare_one_tree(chain, problem, likelihood, z=Z):
    found = distances(chain, problem, likelihood)
    limits = (0.06, 0.08, 0.2, 0.4)
    assert all(one.within(z, limit) for one, limit in zip(found, limits, strict=True)), found


def three_rows(likelihood):
    """A problem so small that pairs of trees can be listed."""
    full = problem_of("gaps", likelihood)
    return replace(full, X=full.X[:3], y=full.y[:3])


def kind_of(likelihood, written_out=WRITTEN_OUT):
    return KernelTarget if likelihood in written_out else RowwiseTarget


def proposed_values(name, likelihood, moves):
    """Leaf values drawn from an approximation, and corrected for it."""
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {moves}".encode())
    setup, _ = setup_of(problem, model_of(problem, likelihood), seed + 1, kind_of(likelihood))
    chain = run_chain(seed, setup, MOVE_SETS[moves], 50_000, keep_fits=True)
    compare_one_tree(chain, problem, likelihood)


def guided_particles(name, likelihood, particles, proposal):
    """Particle Gibbs by Gaussian rows, accepted by the likelihood."""
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {particles} {proposal}".encode())
    setup, _ = setup_of(problem, model_of(problem, likelihood), seed + 1, kind_of(likelihood))
    draws = 60_000 // (1 + (particles > 3))
    chain = run_guided(seed, setup, particles, proposal, draws)
    compare_one_tree(chain, problem, likelihood)
    assert chain.accepted[0] > draws / 20
    assert 1.0 < chain.accepted[1] / draws <= particles


def latent_setup(problem, likelihood, seed, m=1):
    setup, _ = setup_of(problem, model_of(problem, likelihood, m), seed, LatentTarget, m)
    setup.trees.values[:m] = problem.mean
    return setup


def latent(name, likelihood, moves):
    """Rows that are Gaussian given latent variables, which are drawn between sweeps."""
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"latent {likelihood} {name} {moves}".encode())
    setup = latent_setup(problem, likelihood, seed)
    chain = run_chain(seed, setup, MOVE_SETS[moves], DRAWS, keep_fits=True)
    compare_one_tree(chain, problem, likelihood)


def conjugate(name, likelihood, moves):
    """Rows of which some say nothing of f, and the others are Gaussian."""
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"conjugate {likelihood} {name} {moves}".encode())
    setup, _ = setup_of(problem, model_of(problem, likelihood), seed, ConjugateTarget)
    setup.trees.values[:1] = problem.mean
    chain = run_chain(seed, setup, MOVE_SETS[moves], DRAWS, keep_fits=True)
    compare_one_tree(chain, problem, likelihood)


def latent_particles(name, likelihood, proposal):
    problem = problem_of(name, likelihood)
    setup = latent_setup(problem, likelihood, 3)
    tools = make_tools(setup, 3, proposal, "multinomial")
    chain = run_particles(4, setup, tools, 100_000, keep_fits=True)
    compare_one_tree(chain, problem, likelihood)


def two_latent_trees(likelihood):
    """Latent variables given a sum of trees, which is handed to all kinds of them alike."""
    problem = three_rows(likelihood)
    setup = latent_setup(problem, likelihood, 5, m=2)
    chain = run_chain(6, setup, MOVE_SETS["three_a_visit"], 300_000, keep_fits=True)
    compare_two_trees(chain, problem, likelihood, Z)


def screened_setup(problem, likelihood, seed, away, local=0.05, m=1):
    """Arrays of a chain, and a screen whose anchors lie that far away to both sides in turn."""
    kind = kind_of(likelihood, WRITTEN_OUT | {"poisson"})
    setup, _ = setup_of(problem, model_of(problem, likelihood, m), seed, kind, m)
    setup.trees.values[:m] = problem.mean
    sides = np.resize([1.0, -1.0, 0.5], problem.n)
    return setup, screen_of(setup, m * problem.mean + away * sides, 0.5, local)


def screened(name, likelihood, moves, away, local):
    """Delayed acceptance, however bad the Gaussian rows that screen.

    Their anchors lie ``away`` from the prior mean; a share of visits is ``local``.
    """
    problem = problem_of(name, likelihood)
    seed = zlib.crc32(f"{likelihood} {name} {moves}".encode())
    setup, screen = screened_setup(problem, likelihood, seed, away, local)
    chain = run_screened(seed, setup, screen, MOVE_SETS[moves], DRAWS)
    compare_one_tree(chain, problem, likelihood)
    visits, taken = chain.proposed[-1], chain.accepted[-1]
    assert visits == DRAWS and 0.02 * visits < taken < visits


def two_screened_trees(likelihood):
    problem = three_rows(likelihood)
    setup, screen = screened_setup(problem, likelihood, 5, 0.4, m=2)
    chain = run_screened(3, setup, screen, MOVE_SETS["three_a_visit"], 300_000)
    compare_two_trees(chain, problem, likelihood, Z)
