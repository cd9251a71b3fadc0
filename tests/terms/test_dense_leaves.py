"""Leaves with dense columns in the joint draw: its Gaussian, against matrices in plain numpy."""

import numpy as np
import pymc as pm
import pytest
from support.naive import soft_forest as naive

import pymc_trees as pmt
from pymc_trees.terms import joint as joint_draw
from pymc_trees.terms import leaves as terms_leaves
from pymc_trees.terms.leaves import ForestLeaves, LinearLeaves, SoftLeaves

pytestmark = pytest.mark.usefixtures("quick_compile")
RNG = np.random.default_rng(5)
N, M, NODES = 30, 4, 90
X, Y, G = RNG.random((N, 2)), RNG.normal(size=N), np.arange(N) % 3
FACTOR, SDS = RNG.normal(size=N), RNG.uniform(0.3, 0.9, N)
LEAF = pmt.NormalLeaf(0.1, 0.6)
OPTIONS = {"m": M, "leaf": LEAF, "max_nodes": NODES}


def soft(name="f", **options):
    return pmt.SoftBART(name, X, alpha=0.9, beta=1.0, **OPTIONS | options)


def plain():
    a = pm.Normal("a", 0.2, pm.HalfNormal("tau"), shape=3)
    pm.Normal("y", soft() + a[G], 0.5, observed=Y)


def weighted():
    """With a factor, a precision of each row, a column whose gates are steps, and a slope."""
    a, b = pm.Normal("a", 0.2, 0.7, shape=3), pm.Normal("b")
    f = soft(hard=[1])
    pm.Normal("y", 1.0 + FACTOR * f + a[G] + b * FACTOR, SDS, observed=Y)


def two():
    """Soft trees beside others."""
    a = pm.Normal("a", 0.2, 0.7, shape=3)
    g = pmt.BART("g", X, alpha=0.9, beta=1.0, **OPTIONS)
    pm.Normal("y", soft() * FACTOR + g + a[G], 0.5, observed=Y)


def lines():
    """Leaves with a slope in each column of their path."""
    leaf = pmt.LinearLeaf(0.1, 0.6, 0.4, columns="path", p_constant=0.2)
    f = pmt.BART("f", X, alpha=0.9, beta=0.5, **OPTIONS | {"leaf": leaf})
    pm.Normal("y", f + pm.Normal("a", 0.2, 0.7, shape=3)[G], 0.5, observed=Y)


GROUPS = np.eye(3)[G]
CASES = {
    plain: (GROUPS, 0.0, 0.5),
    weighted: (np.column_stack([GROUPS, FACTOR]), 1.0, SDS),
    two: (GROUPS, 0.0, 0.5),
    lines: (GROUPS, 0.0, 0.5),
}


def naive_columns(part):
    """Columns of the leaves of a forest, each with the mean and sd of its coefficient."""
    trees = part.state.trees
    if isinstance(part, SoftLeaves):
        unit, hard = naive.to_unit(X, X), np.flatnonzero(part.forest.hard)
        pairs = naive.read_trees(part.state.value, M, NODES)
        chosen = [pairs[t] for t in np.unique(part.at[0])]
        return [(w, 0.1, 0.6) for pair in chosen for w, _ in naive.leaves(*pair, unit, hard)]
    found, z = [], (X - X.mean(axis=0)) / X.std(axis=0)
    for node in dict.fromkeys(part.at[0] if isinstance(part, LinearLeaves) else part.nodes):
        inside = (trees.leaf_of[part.chosen] == node).any(axis=0)
        found.append((inside, 0.1, 0.6))
        if isinstance(part, LinearLeaves):
            code = int(max(trees.values[node, -1], 0))
            found += [(inside * z[:, j], 0.0, 0.4) for j in range(2) if code >> j & 1]
    return found


def drawn_from_prior(model, seed):
    """A point with trees and vectors drawn from their prior."""
    names = [name for name in ("f_forest", "g_forest", "a", "b") if name in model.named_vars]
    drawn = pm.draw([model[name] for name in names], random_seed=seed)
    return model.initial_point() | dict(zip(names, drawn, strict=True))


@pytest.mark.parametrize("most_leaves", [1_000, 6])
@pytest.mark.parametrize("declare", CASES, ids=lambda declare: declare.__name__)
def test_rows_as_a_function_of_leaf_values_and_vectors(declare, most_leaves, monkeypatch):
    monkeypatch.setattr(terms_leaves, "ROWS_AT_ONCE", 7)  # the last block has two rows
    G_, offset, sd = CASES[declare]
    with pm.Model() as model:
        declare()
        step = pmt.GaussianTerms(most_leaves=most_leaves)
    [one] = step._draws
    sizes = []
    for seed in range(4):
        point = drawn_from_prior(model, seed)
        found, parts = one.integrate(np.random.default_rng(seed), point)
        factors = {"f": FACTOR if declare in (weighted, two) else 1.0, "g": 1.0}
        B, means, sds, rest = np.empty((N, 0)), [], [], Y - offset
        for part in parts:
            by = np.broadcast_to(factors[part.forest.name.removesuffix("_forest")], (N,))
            columns, mean, sd_of = zip(*naive_columns(part), strict=True)
            mine, trees = by[:, None] * np.array(columns).T, part.state.trees
            at = (part.nodes, 0) if isinstance(part, ForestLeaves) else part.at
            old = (trees.number if isinstance(part, SoftLeaves) else trees.values)[at]
            B, means, sds = np.concatenate([B, mine], axis=1), means + [*mean], sds + [*sd_of]
            rest = rest - by * part.state.fit[:, 0] + mine @ old
        W, Q = np.diag(np.broadcast_to(sd, (N,)) ** -2.0), np.diag(np.array(sds) ** -2.0)
        P = B.T @ W @ B + Q
        lower = np.linalg.cholesky(P)
        np.testing.assert_allclose(np.tril(found.lower), lower, atol=1e-9)
        np.testing.assert_allclose(found.X, np.linalg.solve(lower, B.T @ W @ G_), atol=1e-9)
        h = B.T @ W @ rest + Q @ np.array(means)
        np.testing.assert_allclose(found.x, np.linalg.solve(lower, h), atol=1e-9)
        inner = W - W @ B @ np.linalg.solve(P, B.T @ W)
        np.testing.assert_allclose(found.M, G_.T @ inner @ G_, atol=1e-9)
        r = G_.T @ W @ (rest - B @ np.linalg.solve(P, h))
        np.testing.assert_allclose(found.r, r, atol=1e-9)
        sizes.append(B.shape[1])
        one._hold([None] * len(parts))
    assert max(sizes) > (3 if most_leaves == 6 else 2 * M)  # some trees were split


def test_new_leaf_values_are_those_that_were_drawn(monkeypatch):
    with pm.Model() as model:
        two()
        step = pmt.GaussianTerms()
    kept = []
    draw = joint_draw.draw_leaves
    monkeypatch.setattr(
        joint_draw, "draw_leaves", lambda *given: kept.append(draw(*given)) or kept[-1]
    )
    step.setup_chain(np.random.default_rng(1), 10, 10)
    start = drawn_from_prior(model, 1)
    point, [stats] = step.step(start)
    [u] = kept
    assert stats["gaussian_terms_leaves"] == len(u)
    trees, before = (naive.read_trees(at["f_forest"], M, NODES) for at in (point, start))
    unit = naive.to_unit(X, X)
    new = [v for tree, tau in trees for _, v in naive.leaves(tree, tau, unit)]
    np.testing.assert_array_equal(new, u[-len(new) :])  # g comes first
    for (_, tau), (_, same) in zip(trees, before, strict=True):
        assert tau == same
    [f] = model.replace_rvs_by_values([model["f"]])
    found = model.compile_fn(f, inputs=model.value_vars, on_unused_input="ignore")(point)
    np.testing.assert_allclose(found, naive.function(trees, unit), atol=1e-9)
    assert np.isfinite(model.compile_logp()(point))
