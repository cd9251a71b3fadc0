"""Trees in words, and which are probable, against f and against the enumeration."""

from collections import Counter
from functools import cache

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from support import oracle as o
from support.fitted import frame, on_a_frame, predicted, two_functions

import pymc_trees as pmt
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.tree_text import chosen, nodes_of

pytestmark = pytest.mark.usefixtures("quick_compile")
_on_a_frame, _two_functions = cache(on_a_frame), cache(two_functions)
SIZES = ["small", "middle", "large"]
X = np.array([[0.1, 0.7], [0.3, 0.2], [0.5, 0.9], [0.6, 0.1], [0.9, 0.4]])
Y = np.array([0.0, 0.2, 1.9, 2.2, 2.0])


@cache
def one_tree():
    with pm.Model() as model:
        mu = pmt.DecisionTree("mu", X, leaf=pmt.NormalLeaf(1.0, 1.0), alpha=0.9, beta=1.0)
        pm.Normal("y", mu, 0.4, observed=Y, shape=mu.shape)
        options = {"islands": 4, "cores": 1, "random_seed": 1, "progressbar": False}
        return model, pmt.sample_tree_smc(4000, **options)


def test_leaves_of_all_trees_add_up_to_f():
    model, idata = _on_a_frame()
    draws = ForestDraws(idata, model)
    f = predicted(model, idata, frame())
    for chain, draw in [(0, 0), (1, 3)]:
        value, trees = chosen(draws, chain, draw, None)
        total = np.zeros(len(draws.X_train))
        for tree in trees:
            for node in nodes_of(draws, value, tree):
                if not node.rule:
                    total[node.rows] += node.values[0]
        np.testing.assert_allclose(total, f[chain, draw], rtol=0, atol=1e-12)


def test_text_has_a_line_for_each_node():
    model, idata = _on_a_frame()
    draws = ForestDraws(idata, model)
    whole = pmt.tree_text(idata, model, chain=1, draw=2, tree=None)
    value, trees = chosen(draws, 1, 2, None)
    counts = [len(nodes_of(draws, value, tree)) for tree in trees]
    assert whole.count("tree ") == 4 and len(whole.splitlines()) == 4 + sum(counts)
    assert whole.count("leaf ") == sum((n + 1) // 2 for n in counts)
    parts = [pmt.tree_text(idata, model, chain=1, draw=2, tree=k) for k in range(4)]
    assert whole == "\n".join(f"tree {k}\n{part}" for k, part in enumerate(parts))
    for part in parts:
        assert part.splitlines()[0].endswith("[12]")


def test_levels_and_missing_cells_are_named():
    model, idata = _on_a_frame()
    shapes = np.ndindex(*ForestDraws(idata, model).shape)
    every = "\n".join(pmt.tree_text(idata, model, chain=c, draw=d, tree=None) for c, d in shapes)
    assert "age <= " in every and "dose <= " in every
    assert "site in {" in every and " or missing" in every


@cache
def on_whole_numbers(missing=False):
    """Years, zip codes and ordered levels; with missing cells or without."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"year": rng.integers(1990, 2021, 40), "zip": rng.integers(94100, 94130, 40)})
    sizes = pd.Categorical(rng.choice(SIZES, 40), SIZES, ordered=True)
    X["size"] = pd.Series(sizes).mask(X["year"] == 2000) if missing else sizes
    with pm.Model() as model:
        pmt.BART("mu", X, m=20, leaf=pmt.NormalLeaf(0, 1), alpha=0.99, beta=0.5)
        prior = pm.sample_prior_predictive(6, random_seed=3)
    return X, model, xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})


@pytest.mark.parametrize("missing", [False, True])
def test_rules_as_they_are_written_sort_the_rows(missing):
    X, model, idata = on_whole_numbers(missing)
    draws, seen = ForestDraws(idata, model), Counter()
    place = X["size"].cat.codes
    for chain, draw in np.ndindex(*draws.shape):
        value, trees = chosen(draws, chain, draw, None)
        for nodes in (nodes_of(draws, value, tree) for tree in trees):
            for node in nodes:
                if not node.rule or " <= " not in node.rule:
                    continue
                last = node.rule.removeprefix(f"{node.column} <= ").removesuffix(" or missing")
                if node.column == "size":
                    left = place <= SIZES.index(last)
                    left &= (place >= 0) | node.rule.endswith("missing")
                else:
                    left = X[node.column] <= float(last)
                wanted = [k for k in node.rows if left[k]]
                np.testing.assert_array_equal(nodes[node.children[0]].rows, wanted)
                seen[node.column] += 1
    assert min(seen[name] for name in X) > 20


def test_rules_are_written_alike_everywhere():
    _, model, idata = on_whole_numbers()
    draws = ForestDraws(idata, model)
    value, [tree] = chosen(draws, 0, 1, 3)
    rules = {node.rule for node in nodes_of(draws, value, tree) if node.rule}
    at = {"draw": 1, "tree": 3}
    text, dot = (pmt.tree_text(idata, model, format=one, **at) for one in ("text", "dot"))
    drawn = pmt.plot_tree(idata, model, backend="none", **at).viz["text"]["tree"].to_numpy()
    boxes = " ".join(one["string"].replace("\n", " ") for one in drawn)
    assert rules
    for rule in rules:
        assert rule in text and rule in dot and rule in boxes


def test_a_graph_for_graphviz():
    model, idata = _on_a_frame()
    draws = ForestDraws(idata, model)
    dot = pmt.tree_text(idata, model, draw=1, tree=None, format="dot")
    value, trees = chosen(draws, 0, 1, None)
    nodes = [nodes_of(draws, value, tree) for tree in trees]
    assert dot.count("[label=") == sum(2 * len(one) - 1 for one in nodes)
    assert dot.count("->") == sum(len(one) - 1 for one in nodes) == 2 * dot.count('"yes"')
    assert dot.count("{") - dot.count("in {") == dot.count("}") - dot.count("in {") == 5
    assert r"\n12 rows" in dot


def test_partitions_have_their_exact_probabilities():
    model, idata = one_tree()
    found = pmt.summarise_trees(idata, model, by="partition", top=None)
    trees = o.enumerate_trees(X, alpha=0.9, beta=1.0)
    weights, _ = o.posterior(trees, o.NormalLeaf(Y, 0.4, 1.0, 1.0))
    exact = o.partition_probabilities(trees, weights)
    draws = ForestDraws(idata, model)
    for k in range(5):
        at = int(found["chain_of"][k]), int(found["draw_of"][k])
        value, _ = chosen(draws, *at, 0)
        parts = frozenset(
            frozenset(n.rows.tolist()) for n in nodes_of(draws, value, 0) if not n.rule
        )
        # 16,000 resampled particles of four islands: an error of some 0.006
        np.testing.assert_allclose(found["probability"][k], exact[parts], atol=0.03)
        assert found["mcse"][k] < 0.02
    np.testing.assert_allclose(found["probability"].sum(), 1.0)


def test_columns_are_counted_as_they_stand():
    model, idata = one_tree()
    found = pmt.summarise_trees(idata, model, top=3)
    draws, texts = ForestDraws(idata, model), Counter()
    for chain, draw in np.ndindex(*draws.shape):
        value, _ = chosen(draws, chain, draw, 0)
        columns = value[: draws.layout.max_nodes, 0]
        texts[tuple(columns[columns > -2])] += 1
    shares = [n / (draws.shape[0] * draws.shape[1]) for _, n in texts.most_common(3)]
    np.testing.assert_allclose(found["probability"], shares, rtol=0, atol=1e-12)
    assert str(found["label"].to_numpy()[0]) == "x0(., .)"
    of_first = (found["topology_of"] == 0).mean()
    np.testing.assert_allclose(of_first, found["probability"][0])
    assert (found["topology_of"] == -1).any()


def test_a_sum_of_trees_is_refused_unless_one_is_named():
    model, idata = _two_functions()
    with pytest.raises(ValueError, match=r"g_forest is a sum of 2 trees.*shap_values"):
        pmt.summarise_trees(idata, model, forest="g")
    found = pmt.summarise_trees(idata, model, forest="g", tree=1, top=None)
    np.testing.assert_allclose(found["probability"].sum(), 1.0)
