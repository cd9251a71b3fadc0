"""Shapley values beside the package shap's (C++), the same forest and rows, one thread.

``python -m benchmarks.shapley``: ms a draw by both definitions, over 100 draws here and
5 there, and the largest difference. Needs the package shap.
"""

import argparse
import logging
import time

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.posterior.reading.forests import ForestDraws

ROWS, BACKGROUND, DRAWS, COMPARED = 1000, 100, 100, 5
PLAIN = {"progressbar": False, "cores": 1}


def as_shap(value: np.ndarray, layout, X: np.ndarray) -> dict:
    """A forest of numbers without missing cells, in the form that `shap.TreeExplainer` reads."""
    row = 0
    trees = []
    for _ in range(layout.m):
        names = ("children_left", "children_right", "features", "thresholds", "values", "size")
        nodes: dict[str, list[float]] = {name: [] for name in names}

        def grow(rows: np.ndarray, nodes=nodes) -> int:
            nonlocal row
            (column, number), row = value[row, :2], row + 1
            here = len(nodes["size"])
            for one in nodes.values():
                one.append(-1)
            nodes["size"][here] = len(rows)
            nodes["values"][here] = number if column < 0 else 0.0
            if column >= 0:
                left = X[rows, int(column)] <= number
                nodes["features"][here], nodes["thresholds"][here] = int(column), number
                nodes["children_left"][here] = grow(rows[left])
                nodes["children_right"][here] = grow(rows[~left])
            return here

        grow(np.arange(len(X)))
        whole = {name: np.array(nodes[name], dtype=np.int64) for name in names[:3]}
        tree = whole | {"children_default": whole["children_left"]}
        tree["thresholds"] = np.array(nodes["thresholds"], dtype=np.float64)
        tree["values"] = np.array(nodes["values"], dtype=np.float64)[:, None]
        tree["node_sample_weight"] = np.array(nodes["size"], dtype=np.float64)
        trees.append(tree)
    about = {"objective": "squared_error", "tree_output": "raw_value"}
    return {"trees": trees, "internal_dtype": np.float64, "input_dtype": np.float64} | about


def by_shap(value: np.ndarray, layout, X: np.ndarray, background=None):
    """(n, p) values of one draw by the package shap, path-dependent without a background.

    And the seconds that it took, without those for reading the forest.
    """
    import shap

    kind = "tree_path_dependent" if background is None else "interventional"
    read = as_shap(value, layout, X)
    explainer = shap.TreeExplainer(read, data=background, feature_perturbation=kind)
    found, seconds = timed(explainer.shap_values, X, check_additivity=False)
    return np.asarray(found).reshape(X.shape), seconds


def timed(function, *arguments, **given):
    start = time.perf_counter()
    found = function(*arguments, **given)
    return found, time.perf_counter() - start


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    logging.getLogger("pymc").setLevel(logging.ERROR)
    rng = np.random.default_rng(0)
    X = rng.random((ROWS, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y = f + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=ROWS)
    with pm.Model() as model:
        mu = pmt.BART("mu", X, y, m=200)
        pm.Normal("y", mu, pm.HalfNormal("sigma", 3), observed=y, shape=mu.shape)
        idata = pm.sample(draws=DRAWS, tune=200, chains=1, random_seed=1, progressbar=False)
    forest = ForestDraws(idata, model)
    values = [value for _, _, value in forest.each_draw()][:COMPARED]
    few = idata.isel(draw=slice(COMPARED))
    print("| definition | pymc_trees, ms a draw | shap, ms a draw | largest difference |")
    print("|---|---|---|---|")
    for words, background in (("path-dependent", None), ("interventional", X[:BACKGROUND])):
        given = {"background": background} | PLAIN
        pmt.shap_values(few, model, **given)  # compiled
        ours, seconds = timed(pmt.shap_values, idata, model, **given)
        theirs = [by_shap(value, forest.layout, X, background) for value in values]
        gap = np.abs(ours["values"].to_numpy()[0, :COMPARED] - [one for one, _ in theirs]).max()
        other = 1000 * sum(took for _, took in theirs) / COMPARED
        print(f"| {words} | {1000 * seconds / DRAWS:.2f} | {other:.2f} | {gap:.1e} |")


if __name__ == "__main__":
    main()
