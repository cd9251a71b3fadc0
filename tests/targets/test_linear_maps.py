"""Linear maps read from graphs, compared with the graphs themselves."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import explicit_graph_inputs

from pymc_trees.targets.affine import read_affine_map, read_affine_parts
from pymc_trees.targets.graph import NotRecognisedError

pytestmark = pytest.mark.usefixtures("quick_compile")
rng = np.random.default_rng(0)
N = 6
G, H = rng.integers(0, 4, N), rng.integers(0, 3, N)
X, x = rng.normal(size=(N, 4)), rng.normal(size=N)
v, w, s, c = (
    pt.tensor(name, shape=shape)
    for name, shape in {"v": (4,), "w": (3, 2), "s": (), "c": (1,)}.items()
)
tau, k = pt.dscalar("tau"), pt.dvector("k")
z = pt.tensor("z", shape=(4,))
VALUES = {
    v: rng.normal(size=4),
    w: rng.normal(size=(3, 2)),
    s: np.array(0.7),
    c: np.array([1.3]),
    z: rng.normal(size=4),
    tau: np.array(1.7),
    k: rng.normal(size=4),
}
FACTOR = pt.stack([pt.stack([tau, 0.0]), pt.stack([1.0, tau])])
# name -> expression, entries of each variable in a row, variables whose factors are kept apart
CASES = {
    "groups": (v[G], {v: 1}, ""),
    "columns": (pt.dot(X, v), {v: 4}, ""),
    "scaled groups": (tau * v[G] + 3, {v: 1}, "v"),
    "scaled weights": (pt.dot(X, v * k), {v: 4}, "v"),
    "slopes": (w[H, 0] + w[H, 1] * x, {w: 2}, ""),
    "numbers": (s + v[G] * 2 - x, {s: 1, v: 1}, ""),
    "cumulated": (pt.cumsum(v)[G], {v: 4}, ""),
    "joined": (pt.concatenate([pt.zeros(1), v])[G], {v: 1}, ""),
    "stacked": (pt.stack([s, s * 2, -s])[H], {s: 1}, ""),
    "sum of products": ((X * v[None, :]).sum(1), {v: 4}, ""),
    "correlated": (pt.dot(w, FACTOR)[H, 1], {w: 2}, ""),
    "one entry": (c + x, {c: 1}, ""),
    "where": (pt.switch(x > 0, v[G], 0.0), {v: 1}, ""),
    "mean": (v.mean() + x, {v: 4}, ""),
    "flattened": (w.ravel()[G], {w: 1}, ""),
    "transposed": (w.T[1][H], {w: 1}, ""),
    "centred": ((v - v.mean())[G], {v: 5}, ""),
    "some": (v[1:][H] * tau, {v: 1}, "v"),
    "divided": (v[G] / (1 + tau), {v: 1}, "v"),
    "product from the left": ((v[None, :] @ X.T)[0], {v: 4}, ""),
    "three": (v[G] * tau + w[H, 1] * k[0] + s, {v: 1, w: 1, s: 1}, "vw"),
    "sum, scaled": ((v + z) * tau, {v: 1, z: 1}, "vz"),
    "number added, groups": ((v + 3.0)[G], {v: 1}, ""),
    "number added, sum": ((v + 3.0).sum() + x, {v: 4}, ""),
    "number added, cumulated": (pt.cumsum(v - tau)[G], {v: 4}, ""),
    "filled": (pt.full((N,), s) * x, {s: 1}, ""),
    "joined and scaled": (pt.concatenate([v[:2] * tau, v[:1], s[None]])[H], {v: 1, s: 1}, ""),
}


def value_of(expression):
    needed = {one: VALUES[one] for one in explicit_graph_inputs([expression])}
    return pytensor.function([*needed], expression, mode="FAST_COMPILE")(*needed.values())


@pytest.mark.parametrize("name", CASES)
def test_the_map_is_the_expression(name):
    expression, widths, scaled = CASES[name]
    affine = read_affine_map(expression, [v, w, s, c, z], set(VALUES))
    assert {one: value_of(m.index).shape[-1] for one, m in affine.maps.items()} == widths
    assert {one.name for one, m in affine.maps.items() if m.scale is not None} == set(scaled)
    total = 0.0 if affine.offset is None else value_of(affine.offset)
    for one, m in affine.maps.items():
        scale = 1.0 if m.scale is None else value_of(m.scale)
        coefficients = np.broadcast_to(VALUES[one] * scale, np.shape(VALUES[one])).reshape(-1)
        total = total + (value_of(m.factor) * coefficients[value_of(m.index)]).sum(-1)
        folded = VALUES[one].reshape(-1)[value_of(m.index)] * value_of(m.folded)
        np.testing.assert_allclose(
            folded.sum(-1), (value_of(m.factor) * coefficients[value_of(m.index)]).sum(-1)
        )
    np.testing.assert_allclose(total, value_of(expression))


@pytest.mark.parametrize(
    "expression",
    [
        pt.exp(v)[G],
        v[G] * v[G],
        pt.dot(w, w.T)[H, 0],
        v[G] * s,
        v[pt.cast(s, "int64")] + x,
        x / v[G],
        pt.maximum(v[G], x),
        pt.cumprod(v)[G],
        pt.switch(v[G] > 0, x, 0.0),
        v.max() + x,
    ],
)
def test_what_is_not_affine_is_refused(expression):
    with pytest.raises(NotRecognisedError):
        read_affine_map(expression, [v, w, s], set(VALUES))


def test_largest_parts():
    """All that an expression sees of v and s are the parts of it that are linear in them."""
    expression = pt.exp(2 * (v[G] + s)) + (tau * v).sum() * s
    parts = read_affine_parts([expression, -v], [v, s], {v, s, tau})
    read = {frozenset(u.name for u in one.maps) for one in parts.values()}
    assert read == {frozenset("vs"), frozenset("v"), frozenset("s")}
    assert len(parts) == 4  # 2 (v + s), the sum, s and -v
