"""A predictor as JSON: everything it holds, in lists that any language reads.

`docs/data_model/predictor_json.md` has the schema.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_trees._version import __version__
from pymc_trees.predictors.elsewhere.trees import check_hard, leaves_of, levels_in, splits_of
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.packed import SOFT, PackedForest

FORMAT, VERSION = "pymc_trees predictor", 1


def text_of(evaluator: Evaluator, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
    """The text."""
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": __version__,
        "chains": about["chains"],
        "draws": about["draws"],
        "tables": [_table(one) for one in about["tables"]],
        "data": about["data"],
        "forests": [_forest(one) for one in evaluator.forests],
        "program": [_step(one, arrays) for one in about["program"]],
        "functions": about["functions"],
        "parameters": {name: plain(arrays[f"draws/{name}"]) for name in about["parameters"]},
        "response": about["response"],
        "classes": about["classes"],
        "coords": about["coords"],
    }
    return json.dumps(facts, separators=(",", ":"), allow_nan=False)


def _table(table: Mapping[str, Any]) -> dict[str, Any]:
    names = table["names"] or [None] * len(table["rules"])
    columns = [
        {"name": name, "levels": levels}
        for name, levels in zip(names, table["levels"], strict=True)
    ]
    return {"name": table["name"], "columns": columns}


def _step(step: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """An instruction, with its numbers beside it."""
    step = {"of": [], **step}
    if step["op"] == "constant":
        return {"op": "constant", "of": [], "value": plain(arrays[f"constant/{step['number']}"][0])}
    if step["op"] == "draws":
        return {**step, "value": plain(arrays[f"draws/{step['name']}"])}
    return step


def plain(array: np.ndarray) -> Any:
    """Nested lists of numbers; text for what JSON has no number for."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        words = {np.inf: "Infinity", -np.inf: "-Infinity"}
        cells = [v if np.isfinite(v) else words.get(v, "NaN") for v in array.reshape(-1).tolist()]
        return np.array(cells, dtype=object).reshape(array.shape).tolist()
    return array.tolist()


def _forest(forest: PackedForest) -> dict[str, Any]:
    check_hard(forest, "to_json", soft=True)
    links, arrays = forest.links, forest.arrays
    total, is_split = len(arrays["rules"]), arrays["rules"] > 0
    column, right = np.full(total, -1), np.full(total, -1)
    column[links.split], right[links.split] = links.column, links.right
    nodes: dict[str, list] = {
        "column": column.tolist(),
        "right": right.tolist(),
        "cut": _at(links.split, links.cut.tolist(), total),
    }
    facts = {"name": forest.about.get("name"), "kind": forest.kind, "draws": forest.draws}
    facts |= {"trees": forest.trees, "outputs": forest.n_outputs}
    facts |= {"roots": links.roots[:-1].tolist(), "nodes": nodes}
    if forest.kind == SOFT:
        nodes["value"] = _at(np.flatnonzero(~is_split), forest.values.tolist(), total)
        offsets = arrays["offsets"]
        facts["map"] = [
            {
                name: arrays[name][offsets[j] : offsets[j + 1]].tolist()
                for name in ("knots", "heights")
            }
            | {"hard": bool(arrays["hard"][j])}
            for j in range(forest.p)
        ]
        return facts | {"bandwidths": arrays["bandwidths"].tolist()}
    splits, leaves = splits_of(forest), leaves_of(forest)
    nodes["missing_left"] = _at(links.split, splits.missing_left.tolist(), total)
    nodes["value"] = _at(np.flatnonzero(~is_split), leaves.values.tolist(), total)
    nodes["set"] = [None] * total
    known = arrays["levels"].tolist() if forest.mixed else [0] * forest.p
    for at in np.flatnonzero(splits.is_set):
        node = int(links.split[at])
        nodes["set"][node] = levels_in(splits.cut[at], known[splits.column[at]])
        nodes["cut"][node] = None
    facts["known_levels"] = known
    if len(leaves.columns):
        scale = dict(zip(("mean", "sd", "low", "high"), leaves.scale.T.tolist(), strict=True))
        facts["slopes"] = {"columns": leaves.columns.tolist(), **scale, "clipped": leaves.clipped}
    return facts


def _at(nodes: np.ndarray, values: list, total: int) -> list:
    """Values at their nodes, None elsewhere."""
    found = [None] * total
    for node, value in zip(nodes.tolist(), values, strict=True):
        found[node] = value
    return found
