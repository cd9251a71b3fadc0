"""Neighbours of a topology, and the parameters they share."""

import numpy as np
import pytest
from support.soft_models import all_topologies, leaf_shares

from pymc_trees.dcc.kernels.encode import n_splits
from pymc_trees.dcc.neighbours import (
    Parameters,
    grow,
    growable,
    pack,
    prunable,
    prune,
    unpack,
)


def parameters(rng, label, p=3, has_values=True):
    splits = n_splits(label)
    return Parameters(
        rng.normal(size=2),
        rng.normal(size=(splits + 1) * has_values),
        rng.normal(size=splits),
        rng.normal(size=(splits, p - 1)),
    )


def same(a, b):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5])
def test_growable_and_prunable_splits_are_each_others_inverse(leaves):
    smaller, larger = all_topologies(leaves), all_topologies(leaves + 1)
    grown = [change for label in smaller for change in growable(label)]
    pruned = [change for label in larger for change in prunable(label)]
    assert set(grown) == set(pruned) and len(set(grown)) == len(grown)
    for change in grown:
        assert n_splits(change.larger) == n_splits(change.smaller) + 1
        assert {change.smaller} <= set(smaller) and {change.larger} <= set(larger)


@pytest.mark.parametrize("has_values", [True, False])
@pytest.mark.parametrize("p", [1, 3])
def test_a_vector_is_taken_apart_and_put_together(rng, has_values, p):
    for label in ("L", "SLL", "SSLLSLL"):
        parts = parameters(rng, label, p, has_values)
        q = pack(parts)
        same(unpack(q, n_splits(label), p, has_values), parts)


@pytest.mark.parametrize("has_values", [True, False])
def test_pruning_undoes_growing(rng, has_values):
    for leaves in (1, 2, 3, 4):
        for label in all_topologies(leaves):
            parts = parameters(rng, label, has_values=has_values)
            for change in growable(label):
                grown = grow(parts, change, 0.3, np.array([0.1, -0.2]))
                assert grown.tau[change.split_index] == 0.3
                same(prune(grown, change), parts)
    assert len(parts.tau) == 3  # and the first are as they were


def test_growing_undoes_pruning_of_leaves_alike(rng):
    for label in all_topologies(5):
        for change in prunable(label):
            parts = parameters(rng, label)
            parts.values[change.leaf_index + 1] = parts.values[change.leaf_index]
            gate = parts.tau[change.split_index], parts.weights[change.split_index]
            same(grow(prune(parts, change), change, *gate), parts)


def test_a_grown_tree_is_the_same_function(rng):
    """By the products of gates along paths: the maps name the right splits and leaves."""
    x = rng.random((20, 3))
    for label in all_topologies(4):
        parts = parameters(rng, label)
        before = leaf_shares(label, x[:, :2], parts.weights, parts.tau, 0.3) @ parts.values
        for change in growable(label):
            more = grow(parts, change, 0.5, np.array([0.4, 0.6]))
            after = leaf_shares(change.larger, x[:, :2], more.weights, more.tau, 0.3) @ more.values
            np.testing.assert_allclose(after, before, atol=1e-12)
