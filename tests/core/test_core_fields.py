"""Sizes of the encoded value, as its specification states them, and the checksum."""

import numpy as np
import pytest

from pymc_trees.core.value.fields import (
    BITS,
    UNSPLITTABLE,
    Layout,
    compute_checksum,
    fingerprint,
    is_intact,
    sizes,
)


@pytest.mark.parametrize("m, max_nodes", [(1, 1), (1, 3), (2, 52), (1, 103), (1, 105), (200, 4000)])
@pytest.mark.parametrize("n_values", [1, 2, 5])
def test_layout_holds_what_the_specification_lists(m, max_nodes, n_values):
    n_rows = 7
    layout = Layout(m, max_nodes, n_values, n_rows)
    # m binary trees of max_nodes nodes in all have (max_nodes + m) / 2 leaves at most.
    leaves = (max_nodes + m) // 2
    assert BITS * layout.unsplittable_words >= leaves > BITS * (layout.unsplittable_words - 1)
    assert layout.fields == 1 + n_values
    assert layout.stop == UNSPLITTABLE + layout.unsplittable_words
    rows, fields = layout.shape
    assert fields == layout.fields
    assert 0 <= (rows - max_nodes) * fields - layout.stop < fields
    kernel = sizes(layout)
    assert (kernel.m, kernel.max_nodes, kernel.n_values, kernel.n_rows) == (
        m,
        max_nodes,
        n_values,
        n_rows,
    )
    assert (kernel.stop, kernel.rows) == (layout.stop, rows)


def test_a_layout_with_outputs_of_its_own():
    plain = Layout(3, 50, 5, 40)
    own = plain._replace(own_outputs=2)
    assert (plain.n_outputs, own.n_outputs, sizes(own).n_outputs) == (5, 2, 2)
    assert plain.shape == own.shape
    # values drawn before there were such leaves keep their fingerprint
    assert plain.stamp == (3, 50, 5, 40, False, False)
    assert own.stamp == (*plain.stamp, 2)


def intact(rng, max_nodes=20):
    value = rng.normal(size=(max_nodes + 13, 3))
    value[max_nodes, 0] = compute_checksum(value, max_nodes, 99.0)
    return value


def test_any_one_entry_changed_breaks_the_checksum(rng):
    max_nodes = 20
    value = intact(rng)
    assert is_intact(value, max_nodes, 99.0)
    for _ in range(1000):
        changed = value.copy()
        place = tuple(rng.integers(0, changed.shape))
        kind = rng.integers(4)
        old = changed[place]
        changed[place] = [np.nextafter(old, np.inf), -old, 0.0, rng.normal()][kind]
        assert not is_intact(changed, max_nodes, 99.0), (place, kind)


def test_two_entries_exchanged_or_another_declaration_break_the_checksum(rng):
    max_nodes = 20
    value = intact(rng)
    assert not is_intact(value, max_nodes, 98.0)
    flat = value.reshape(-1)
    for _ in range(300):
        i, j = rng.choice(flat.size, 2, replace=False)
        changed = value.copy()
        changed.reshape(-1)[[i, j]] = flat[[j, i]]
        assert not is_intact(changed, max_nodes, 99.0), (i, j)


def test_the_checksum_is_a_whole_number_that_survives_float64(rng):
    checksums = {compute_checksum(rng.normal(size=(6, 2)), 3, 1.0) for _ in range(500)}
    assert len(checksums) == 500
    assert all(0 <= s < 2**52 and s == int(s) for s in checksums)


def test_fingerprint_sees_content_type_shape_and_settings():
    X = np.arange(6.0).reshape(2, 3)
    stamps = [
        fingerprint(X),
        fingerprint(X.T.copy()),
        fingerprint(X.reshape(3, 2)),
        fingerprint(X.astype(np.float32)),
        fingerprint(X, None),
        fingerprint(X, 1),
        fingerprint(X + 1e-15),
    ]
    assert len(set(stamps)) == len(stamps)
    assert fingerprint(X, "a") == fingerprint(np.asfortranarray(X).copy(order="C"), "a")
    assert all(0 <= s < 2**52 and s == int(s) for s in stamps)
