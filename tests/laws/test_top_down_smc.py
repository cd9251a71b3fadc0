"""Top-down SMC on data so small that every partition can be listed: evidence and posterior exact.

A run of C particles estimates the evidence Z without bias, for any C, proposal, expansion and
resampling scheme; and Z times its weighted averages the integrals of the unnormalised posterior.
So averages over many small runs of ``exp(log_z - exact)``, alone and times the weights of trees,
have known means, 1 and the posterior itself.

Tolerances. Averages over 3,000 runs of 5 particles are compared in standard errors over 60 batches
of runs; at 6.0 of a t law with 59 degrees of freedom, one of the file's 700 averages would fail by
chance in 12,000 runs of the file with fresh seeds, and the seeds are fixed (largest seen: 4.2). The
standard error of the evidence itself is 0.003 to 0.015, that of a probability at most 0.01.
"""

import itertools
import zlib

import numpy as np
import pytest
from numba import njit
from support import oracle as o
from support.chains import make_setup, make_tools, partition_code, partition_of, with_float_cells
from support.naive.batches import batch_means, gap
from support.naive.laws import EVERY, law, leaf_of
from support.tiers import tiers

from pymc_trees.core.leaves.contract import add_rows, log_constant
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.samplers.proposals import PROPOSALS
from pymc_trees.core.samplers.resampling import SCHEMES, draw_ancestors
from pymc_trees.core.samplers.top_down import (
    DONE,
    EXPANSIONS,
    UNFINISHED,
    Schedule,
    make_stages,
    top_down_smc,
)

RUNS, PARTICLES, Z = 3_000, 5, 6.0
SETTINGS = list(itertools.product(PROPOSALS, EXPANSIONS, SCHEMES))
LEAVES = ("normal", "normal_gamma", "dirichlet")
NAMES = ("gaps", "deep", "grid", "three_columns", "repeats", "binary_constant", "noisy")


@njit(cache=True)
def run_many(rng, problem, growth, schedule, root_stats, stages, records):
    """Evidence of each run, and weight and partition of each particle."""
    log_z, weights, codes, n_resampled = records
    particles, n = growth.particles, growth.buffer.size
    labels = np.empty(n, dtype=np.int64)
    for run in range(log_z.size):
        stages.resampled[:] = False
        status, n_stages, log_z[run] = top_down_smc(
            rng, problem, growth, schedule, root_stats, stages, weights[run]
        )
        if status != DONE:
            return status
        n_resampled[0] += stages.resampled[:n_stages].sum()
        for c in range(weights.shape[1]):
            for k in range(particles.n_nodes[c]):
                if particles.column[c, k] < 0:
                    for i in range(particles.start[c, k], particles.stop[c, k]):
                        labels[particles.rows[c, i]] = k
            codes[run, c] = partition_code(labels, n)
    return DONE


def run(
    name, leaf, proposal, expansion, scheme, threshold, n_bins=100, max_stages=100, lifetime=None
):
    """Log evidence, weights, partition codes and number of resampling steps of many runs."""
    setup = with_float_cells(make_setup(EVERY[name], leaf))
    if lifetime is not None:
        setup = setup._replace(prior=make_mondrian(lifetime, 0.0, setup.prior.weights))
    if leaf == "normal":  # no tree is open: the rows are the target itself
        setup = setup._replace(leaf=setup.leaf._replace(r=EVERY[name].y.copy()))
    tools = make_tools(setup, PARTICLES, proposal, "multinomial", 1.0, n_bins)
    n = setup.design.columns.shape[1]
    root_stats = np.empty(setup.work.stats.shape[1])
    add_rows(setup.leaf, np.arange(n, dtype=np.uint32), 0, n, root_stats)
    log_z = np.empty(RUNS)
    weights, codes = np.empty((RUNS, PARTICLES)), np.empty((RUNS, PARTICLES), dtype=np.int64)
    resampled = np.zeros(1, dtype=np.int64)
    key = f"{name} {leaf} {proposal} {expansion} {scheme} {threshold} {n_bins}"
    schedule = Schedule(EXPANSIONS.index(expansion), SCHEMES.index(scheme), threshold)
    status = run_many(
        np.random.default_rng(zlib.crc32(key.encode())),
        setup.problem,
        tools.growth,
        schedule,
        root_stats,
        make_stages(max_stages),
        (log_z, weights, codes, resampled),
    )
    return status, log_z + log_constant(setup.leaf), weights, codes, resampled[0]


def weigh_partitions(codes, n, weights):
    """The partitions met, and their total weight in each run."""
    distinct, place = np.unique(codes, return_inverse=True)
    shares = np.zeros((RUNS, distinct.size))
    np.add.at(shares, (np.arange(RUNS)[:, None], place.reshape(codes.shape)), weights)
    return [partition_of(code, n) for code in distinct], shares


def partitions_gap(states, shares, listed):
    """Distance from the list, of its common partitions."""
    assert all(state in listed for state in states)
    common = [k for k, state in enumerate(states) if listed[state] > 0.02]
    return gap(batch_means(shares[:, common], 60), np.array([listed[states[k]] for k in common]))


def check(name, leaf, *settings, **options):
    """Compare many runs with the list."""
    problem = EVERY[name]
    n = problem.n
    exact = o.dynamic_posterior(problem.X, leaf_of(problem, leaf), **problem.prior)
    status, log_z, weights, codes, resampled = run(name, leaf, *settings, **options)
    assert status == DONE
    ratio = np.exp(log_z - exact.log_evidence)
    evidence = gap(batch_means(ratio, 60)[:, None], np.ones(1))
    assert evidence.within(Z, 0.1), evidence

    states, shares = weigh_partitions(codes, n, weights * ratio[:, None])
    partitions = partitions_gap(states, shares, law(name, leaf).partitions)
    assert partitions.within(Z, 0.05), partitions

    above = np.triu_indices(n, 1)
    same = np.array([o.same_leaf(state, n)[above] for state in states])
    pairs = gap(batch_means(shares @ same, 60), exact.pair_probabilities[above])
    assert pairs.within(Z, 0.08), pairs
    return max(evidence.z, partitions.z, pairs.z), resampled


# One leaf model (that is one compilation), each proposal.
QUICK = [2, 13, 27]


@pytest.mark.parametrize(
    "k", tiers(range(len(SETTINGS)), QUICK), ids=["-".join(s) for s in SETTINGS]
)
def test_evidence_and_weighted_trees(k):
    """Every proposal, expansion and scheme; problems, leaves and thresholds in turn."""
    threshold = 1.0 if SETTINGS[k][0] == "optimal" else (1.0, 0.5, 0.8)[k // 3 % 3]
    _, resampled = check(NAMES[k % 7], LEAVES[(k + k // 12) % 3], *SETTINGS[k], threshold)
    assert resampled > 0


@pytest.mark.full
@pytest.mark.parametrize("name, proposal", [("gaps", "optimal")])
def test_under_a_mondrian_process(name, proposal):
    """Evidence and weighted trees where splits have times."""
    problem = EVERY[name]
    partitions, *_, log_evidence = o.MondrianLaw(problem.X, 0.5).posterior(problem.normal())
    status, log_z, weights, codes, _ = run(
        name, "normal", proposal, "node", "systematic", 0.8, lifetime=0.5
    )
    assert status == DONE
    ratio = np.exp(log_z - log_evidence)
    evidence = gap(batch_means(ratio, 60)[:, None], np.ones(1))
    assert evidence.within(Z, 0.1), evidence
    met, shares = weigh_partitions(codes, problem.n, weights * ratio[:, None])
    found = partitions_gap(met, shares, partitions)
    assert found.within(Z, 0.05), found


@pytest.mark.parametrize("leaf", tiers(LEAVES, quick=["dirichlet"]))
def test_coarse_bins(leaf):
    """The optimal proposal where an interval holds several values."""
    check("deep", leaf, "optimal", "node", "systematic", 0.9, n_bins=2)


@pytest.mark.full
@pytest.mark.parametrize(
    "name, proposal, expansion",
    [
        ("levels", "optimal", "node"),
        ("missing", "prior", "lowest"),
        ("missing", "empirical", "node"),
        ("onehot", "prior", "layer"),
    ],
)
def test_levels_and_missing_cells(name, proposal, expansion):
    check(name, "normal", proposal, expansion, "stratified", 1.0)


def test_without_resampling_it_is_importance_sampling():
    _, resampled = check("three_columns", "dirichlet", "prior", "layer", "multinomial", 0.0)
    assert resampled == 0


@pytest.mark.full
def test_out_of_stages_is_reported():
    status, *_ = run("deep", "normal", "prior", "node", "systematic", 0.5, max_stages=1)
    assert status == UNFINISHED


@njit(cache=True)
def _count_children(rng, scheme, weights, runs, n_children):
    counts = np.zeros((runs, weights.size))
    ancestors = np.empty(n_children, dtype=np.int64)
    for run in range(runs):
        draw_ancestors(rng, scheme, weights, ancestors)
        for c in ancestors:
            counts[run, c] += 1
    return counts


@pytest.mark.parametrize("n_children", [6, 11])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_children_by_weight(scheme, n_children):
    """Mean number of children C w (20,000 draws: standard error at most 0.012), and its range."""
    weights = np.array([0.0, 0.3, 0.05, 0.4, 0.25, 0.0])
    rng = np.random.default_rng(zlib.crc32(scheme.encode()))
    counts = _count_children(rng, SCHEMES.index(scheme), weights, 20_000, n_children)
    expected = n_children * weights
    se = np.maximum(counts.std(axis=0) / np.sqrt(len(counts)), 1e-9)
    assert np.all(np.abs(counts.mean(axis=0) - expected) < 5 * se)
    assert np.all(counts.sum(axis=1) == n_children)
    if scheme != "multinomial":
        sides = {"residual": (0, np.inf), "systematic": (0, 0), "stratified": (1, 1)}[scheme]
        assert np.all(counts >= np.floor(expected) - sides[0])
        assert np.all(counts <= np.ceil(expected) + sides[1])
