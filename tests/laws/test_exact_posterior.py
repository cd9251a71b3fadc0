"""One tree on data so small that every partition can be listed: the chain finds the exact numbers.

Tolerances. Every average is compared in standard errors by batch means (`support.naive.batches`, 60
batches). The file looks at some 10,000 averages; at 6.0 standard errors, of a t law with 59
degrees of freedom, one of them would fail by chance in 1,000 runs of the file with fresh seeds,
and the seeds are fixed; the largest seen is 4.1. The absolute tolerances (0.03 on the probability
of a partition, 0.04 on sums of such) are set by the longest memory met, grow and prune alone on
"repeats" (0.02); half of the chains are within 0.004.
"""

import pytest
from support import oracle as o
from support.laws.exact import MOVES, Z, chain_of, compare, partition_shares
from support.naive.batches import law_gap
from support.naive.laws import (
    MISTAKES,
    PROBLEMS,
    law,
    partition_posterior,
    wrong_partition_prior,
)
from support.tiers import tiers

# Deep trees under each leaf; columns that vary in some nodes only; unequal noise; ties.
QUICK = [
    ("deep", "normal", "cgm"),
    ("deep", "normal_gamma", "cgm"),
    ("deep", "dirichlet", "cgm"),
    ("binary_constant", "normal", "change_swap"),
    ("noisy", "normal", "grow_prune"),
    ("repeats", "normal", "change_swap"),
    ("deep", "normal", "three_a_visit"),
    ("deep", "normal", "perturb"),
    ("deep", "normal", "rotate"),
    ("deep", "normal", "restructure"),
    ("repeats", "normal", "all_moves"),
]
LEAVES = ("normal", "normal_gamma", "dirichlet")
# Every pair of a problem, a leaf and a set of moves: leaves by turns, all of them on the deepest
# trees. The noise of "noisy" is seen by the normal leaf only.
TURNS = [
    (name, "normal" if name == "noisy" else LEAVES[(i + j) % 3], moves)
    for i, name in enumerate(PROBLEMS)
    for j, moves in enumerate(MOVES)
]
DEEP = [("deep", leaf, moves) for leaf in LEAVES for moves in MOVES]
CASES = list(dict.fromkeys([*QUICK, *DEEP, *TURNS]))


@pytest.mark.parametrize("name, leaf, moves", tiers(CASES, QUICK))
def test_chain_agrees_with_the_enumeration(name, leaf, moves):
    compare(chain_of(name, leaf, moves), name, leaf)


def test_the_prior_that_mistakes_start_from_is_the_oracles():
    for problem in PROBLEMS.values():
        ours, theirs = wrong_partition_prior(problem), o.partition_prior(problem.X, **problem.prior)
        assert ours.keys() == theirs.keys()
        assert max(abs(ours[k] - theirs[k]) for k in ours) < 1e-12


# A problem on which the mistake moves the posterior by several per cent.
SHOWN_ON = {
    "alpha": "gaps",
    "beta": "deep",
    "depth": "deep",
    "alike": "repeats",
    "gaps": "gaps",
    "columns": "binary_constant",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_comparison_rejects_a_wrong_target(mistake):
    """The same chain, z-score and threshold, with one mistake in the target: it must fail."""
    name = SHOWN_ON[mistake]
    problem = PROBLEMS[name]
    chain = chain_of(name, "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    right = law_gap(states, shares, law(name, "normal").partitions, len(chain.codes))
    assert right.z < Z
    wrong = partition_posterior(problem, "normal", wrong_partition_prior(problem, mistake))
    found = law_gap(states, shares, wrong, len(chain.codes))
    assert found.z > 2 * Z, found


def test_the_comparison_rejects_a_wrong_likelihood():
    """Noise sd 10% too large or too small."""
    from dataclasses import replace

    problem = PROBLEMS["gaps"]
    chain = chain_of("gaps", "normal", "cgm")
    states, shares = partition_shares(chain, problem.n)
    for wrong in (replace(problem, sigma=0.77), replace(problem, sigma=0.63)):
        found = law_gap(states, shares, partition_posterior(wrong, "normal"), len(chain.codes))
        assert found.z > 2 * Z, found
