"""`predictor` of a fitted Mondrian forest: its trees and beliefs, without the rows it has seen.

The boxes of its nodes are the extents of their rows; of a node with one row they are that row.
"""

from typing import Any

import numpy as np

from pymc_trees.mondrian.kernels.tree import ROOT
from pymc_trees.predictors.mondrian import CLASSES, EXACT, FAST, MAX_TIMES, MONDRIAN
from pymc_trees.predictors.predictor import Predictor


def predictor_of(ensemble, name: str, posterior: str, own, law, classes=None) -> Predictor:
    """A predictor of the trees of an ensemble.

    Parameters
    ----------
    ensemble : Ensemble
        Trees, scale and names of the columns.
    name : str
        Of the function of rows.
    posterior : {"exact", "fast", "classes"}
        What is known of a node.
    own : dict of str and list of array
        Arrays by tree, with an entry for each place of the tree.
    law : str
        Of the response.
    classes : list, optional
        Labels.
    """
    trees = [tree for tree, _ in ensemble.trees]
    orders = [_preorder(tree) for tree in trees]
    arrays: dict[str, Any] = {
        "sizes": np.array([len(order) for order, _ in orders], dtype=np.uint32),
        "column": np.concatenate([t.column[o] for t, (o, _) in zip(trees, orders)]).astype(int),
        "cut": np.concatenate([t.cut[o] for t, (o, _) in zip(trees, orders)]),
        "right": np.concatenate([right for _, right in orders]),
        "end": np.concatenate(
            [np.minimum(t.time[o], t.lifetime[0]) for t, (o, _) in zip(trees, orders)]
        ),
        "box": np.concatenate([t.box[o] for t, (o, _) in zip(trees, orders)]),
    }
    split = arrays["column"] >= 0
    arrays["column"] = np.where(split, arrays["column"], -1)
    arrays["cut"] = np.where(split, arrays["cut"], 0.0)
    p, low = ensemble.n_columns, ensemble.scaling.low
    arrays["low"] = np.zeros(p) if low is None else low
    arrays["width"] = np.ones(p) if low is None else ensemble.scaling.width
    for key, parts in own.items():
        if key in ("prior", "smoothing"):
            arrays[key] = np.array(parts, dtype=float)
        else:
            arrays[key] = np.concatenate([part[o] for part, (o, _) in zip(parts, orders)])
    names = None if ensemble.names is None else [str(one) for one in ensemble.names]
    table = {"name": "X", "names": names, "rules": ["continuous"] * p, "levels": [None] * p}
    deepest = max(_depth(arrays["right"], arrays["sizes"], arrays["column"]))
    outputs = len(classes) if classes is not None else 3 * deepest * (MAX_TIMES + 1)
    program: list[dict[str, Any]] = [
        {"op": "rows", "of": [], "table": 0},
        {"op": "forest", "of": [0], "forest": 0},
        {"op": "forest", "of": [0], "forest": 0, "means": True},
    ]
    of = 1 if classes is not None else 2
    facts = {
        "chains": 1,
        "draws": len(trees),
        "tables": [table | {"complete": True}],
        "data": [],
        "forests": [
            {"name": name, "kind": MONDRIAN, "posterior": posterior, "draws": len(trees)}
            | {"trees": 1, "columns": p, "outputs": outputs}
        ],
        "program": program[: of + 1],
        "functions": {
            name: {"of": of, "axis": 0, "dims": ["row"] if of == 2 else ["row", "class"]}
        },
        "parameters": [],
        "coords": {"chain": [0], "draw": list(range(len(trees)))},
        "response": {"name": "y", "law": law, "of": [1], "ndim": 1, "axis": 0},
        "why_no_law": "",
        "classes": classes,
        "default": name,
    }
    if classes is not None:
        facts["coords"]["class"] = classes
    return Predictor(facts, {f"forest0/{key}": one for key, one in arrays.items()})


def of_numbers(ensemble, beliefs, exact: bool) -> Predictor:
    """Of a regressor, given the belief of each tree."""
    if exact:
        own = {
            "below": [np.stack([b.mean_below, b.var_below], axis=1) for b in beliefs],
            "above": [np.stack([b.mean_above, b.var_above], axis=1) for b in beliefs],
            "prior": [tuple(b.prior) for b in beliefs],
        }
        return predictor_of(ensemble, "f", EXACT, own, "normal_mixture")
    moments = []
    for (_, labels), prior in zip(ensemble.trees, beliefs):
        with np.errstate(all="ignore"):  # unused places
            moments.append(np.stack([labels.mean, labels.squares / labels.n + prior.noise], axis=1))
    return predictor_of(ensemble, "f", FAST, {"moments": moments}, "normal_mixture")


def of_classes(ensemble, smoothing) -> Predictor:
    """Of a classifier."""
    counts = [labels.counts.astype(np.int64) for _, labels in ensemble.trees]
    labels = [one.item() if isinstance(one, np.generic) else one for one in ensemble.classes]
    own = {"counts": counts, "smoothing": tuple(map(float, smoothing))}
    return predictor_of(ensemble, "p", CLASSES, own, "categorical", labels)


def _preorder(tree) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in preorder, and of each its right child's place among them, -1 in leaves."""
    order: list[int] = []
    right: list[int] = []
    waiting = [(int(tree.state[ROOT]), -1)]
    while waiting:
        node, above = waiting.pop()
        if above >= 0:
            right[above] = len(order)
        at = len(order)
        order.append(node)
        right.append(-1)
        if tree.column[node] >= 0:
            waiting += [(int(tree.right[node]), at), (int(tree.left[node]), -1)]
    return np.array(order), np.array(right)


def _depth(right, sizes, column) -> list[int]:
    """Nodes on the longest path of each tree."""
    found, stop = [], 0
    for size in sizes.tolist():
        start, stop = stop, stop + size
        depth = np.ones(size, dtype=int)
        for node in range(size):
            if column[start + node] >= 0:
                depth[node + 1] = depth[right[start + node]] = depth[node] + 1
        found.append(int(depth.max()))
    return found
