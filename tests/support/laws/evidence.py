"""Top-down SMC on data so small that every partition can be listed: evidence and posterior exact.

A run of C particles estimates the evidence Z without bias, for any C, proposal, expansion and
resampling scheme; and Z times its weighted averages the integrals of the unnormalised posterior.
So averages over many small runs of ``exp(log_z - exact)``, alone and times the weights of trees,
have known means, 1 and the posterior itself.
"""

import zlib

import numpy as np
from numba import njit

from pymc_trees.core.leaves.contract import add_rows, log_constant
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.core.samplers.particles import SCHEMES
from pymc_trees.core.samplers.top_down import (
    DONE,
    EXPANSIONS,
    Schedule,
    make_stages,
    top_down_smc,
)
from support import oracle as o
from support.chains import make_setup, make_tools, partition_code, partition_of, with_float_cells
from support.naive.batches import batch_means, gap
from support.naive.laws import EVERY, law, leaf_of

RUNS, PARTICLES, Z = 3_000, 5, 6.0


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


def top_down(name, leaf, *settings, **options):
    """Evidence and weighted trees of many runs; the number of times that they were resampled."""
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
    return resampled


def top_down_resampled(name, leaf, proposal, expansion, scheme, threshold):
    assert top_down(name, leaf, proposal, expansion, scheme, threshold) > 0


def top_down_coarse(leaf):
    """The optimal proposal where an interval holds several values."""
    top_down("deep", leaf, "optimal", "node", "systematic", 0.9, n_bins=2)


def importance_sampling(name, leaf, proposal, expansion, scheme):
    """Without resampling."""
    assert top_down(name, leaf, proposal, expansion, scheme, 0.0) == 0


def top_down_mondrian(name, proposal):
    """Where splits have times."""
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
