"""Jumps between topologies: their probabilities by listing, and which parameters correspond."""

import numpy as np
import pytest
from support.soft_models import all_topologies

from pymc_trees.dcc.jump_chain import log_proposal_ratio, propose_jump, shared_indices
from pymc_trees.dcc.kernels.encode import n_splits
from pymc_trees.dcc.neighbours import growable, pack, unpack

GROW, PRUNE = 0.35, 0.25
DRAWS = 4000


def ways(label, seed=1):
    """How often each topology and side was proposed."""
    rng, found = np.random.default_rng(seed), {}
    for _ in range(DRAWS):
        jump = propose_jump(rng, label, GROW, PRUNE)
        if jump is not None:
            to = jump.change.larger if jump.grows else jump.change.smaller
            found[to, jump.side, jump.change] = found.get((to, jump.side, jump.change), 0) + 1
    return {key: count / DRAWS for key, count in found.items()}


@pytest.mark.parametrize("label", ["L", "SLL", "SSLLSLL", "SSLLL"])
def test_proposal_ratio_is_that_of_the_proposals_made(label):
    up = ways(label)
    for change in growable(label):
        down = ways(change.larger)
        for side in (0, 1):
            p, q = up[change.larger, side, change], down[label, side, change]
            # two counts of hundreds: 5 standard errors of the log of their ratio
            error = np.sqrt((1 - p) / (p * DRAWS) + (1 - q) / (q * DRAWS))
            assert abs(np.log(q / p) - log_proposal_ratio(change, GROW, PRUNE)) < 5 * error


def test_a_stump_has_only_leaves_to_grow():
    assert {to for to, _, _ in ways("L")} == {"SLL"}
    assert sum(ways("L").values()) == pytest.approx(GROW + PRUNE, abs=0.05)


@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize("p", [1, 3])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_shared_keeps_its_meaning(side, p, has_values):
    """Each number names its leaf or split by the path to it, which a jump must not change."""
    for label in ["L", *all_topologies(3)]:
        for change in growable(label):
            larger = named(change.larger, p, has_values)
            shared = shared_indices(change, side, len(larger), p, has_values)
            smaller = list(larger[shared])
            expected = list(named(label, p, has_values))
            assert len(smaller) == len(expected) and (np.diff(shared) > 0).all()
            if has_values:  # the leaf that grew is now one of two below it
                grown = unpack(np.arange(len(expected)), n_splits(label), p, True).values
                at = int(grown[change.leaf_index])
                assert smaller[at] == expected[at] + "lr"[side]
                smaller[at] = expected[at]
            assert smaller == expected


def named(label, p, has_values):
    """Vector of names: paths from the root, with what stands there."""
    leaves, splits = [], []

    def walk(at, path):
        if label[at] == "L":
            leaves.append(f"leaf {path}")
            return at + 1
        splits.append(path)
        return walk(walk(at + 1, path + "l"), path + "r")

    walk(0, "")
    parts = unpack(
        np.zeros(2 + len(leaves) * has_values + len(splits) * p), len(splits), p, has_values
    )
    weights = np.array([[f"weight {k} {s}" for k in range(p - 1)] for s in splits], dtype=object)
    pieces = parts._replace(
        others=np.array(["a", "b"], dtype=object),
        values=np.array(leaves[: len(parts.values)], dtype=object),
        tau=np.array([f"tau {s}" for s in splits], dtype=object),
        weights=weights.reshape(len(splits), p - 1),
    )
    return pack(pieces)
