"""Labels, node tables, prior and proposals of topologies."""

from collections import Counter

import numpy as np
import pytest
from support.soft_models import TOPOLOGIES, all_topologies, paths

from pymc_trees.dcc.kernels.encode import (
    default_max_nodes,
    draw_topology,
    leaf_count_law,
    log_prior,
    node_depths,
    node_table,
)
from pymc_trees.dcc.neighbours import propose


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5])
def test_node_table_and_depths_agree_with_recursion(leaves):
    for label in all_topologies(leaves):
        table, depths = node_table(label), node_depths(label)
        for leaf, path in enumerate(paths(label)):
            node = 0
            for split, left in path:
                assert label[node] == "S" and table[node, 1] == split
                node = node + 1 if left else table[node, 0]
            assert label[node] == "L" and table[node, 1] == leaf and table[node, 0] == -1
            assert depths[node] == len(path)


def test_prior_of_small_topologies_is_eq_6():
    a, b = 0.95, 1.0
    p0, p1, p2 = a, a / 2, a / 3
    expected = {
        "L": 1 - p0,
        "SLL": p0 * (1 - p1) ** 2,
        "SSLLL": p0 * p1 * (1 - p1) * (1 - p2) ** 2,
        "SLSLL": p0 * (1 - p1) * p1 * (1 - p2) ** 2,
    }
    for label, p in expected.items():
        assert log_prior(label, a, b) == pytest.approx(np.log(p), rel=1e-12)


def test_prior_sums_to_the_law_of_leaf_counts():
    law = leaf_count_law(0.7, 1.2)
    for leaves in range(1, 7):
        total = sum(np.exp(log_prior(label, 0.7, 1.2)) for label in all_topologies(leaves))
        assert total == pytest.approx(law[leaves], rel=1e-12)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)


def test_draws_follow_the_prior(rng):
    n = 20_000
    counts = Counter(draw_topology(rng, 0.8, 1.0, 63) for _ in range(n))
    for label in TOPOLOGIES:
        p = np.exp(log_prior(label, 0.8, 1.0))
        assert abs(counts[label] / n - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_proposals_grow_prune_and_stay(rng):
    counts = Counter(propose(rng, "SSLLL") for _ in range(6000))
    # grow: three leaves, 0.2 each; prune: the one nog, 0.3; stay 0.1; 4 sd of 6,000 draws
    expected = {"SSSLLLL": 0.2, "SSLSLLL": 0.2, "SSLLSLL": 0.2, "SLL": 0.3, "SSLLL": 0.1}
    assert set(counts) == set(expected)
    for label, p in expected.items():
        assert abs(counts[label] / 6000 - p) < 4 * np.sqrt(p * (1 - p) / 6000)


def test_the_stump_is_reached_and_left(rng):
    assert Counter(propose(rng, "SLL") for _ in range(200))["L"] > 0
    assert set(propose(rng, "L") for _ in range(200)) == {"L", "SLL"}


def test_room_by_default_is_ample_and_named_when_it_is_not():
    assert default_max_nodes(0.95, 1.0) == 63
    assert default_max_nodes(0.95, 0.5) > 100
    with pytest.raises(ValueError, match="max_nodes"):
        default_max_nodes(0.95, 0.0)
    with pytest.raises(ValueError, match="max_nodes"):
        draw_topology(np.random.default_rng(1), 0.99, 0.0, 7)
