"""What forests were declared with, kept with their draws: columns, levels by name, sizes, leaves.

Each group `GROUP` of a result has a text for each forest, an object in JSON. It holds no row of the
training data; docs/data_model/draws.md describes it.
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.traversal import ancestors

from pymc_trees.core.value.fields import is_intact
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import (
    ForestVariable,
    evaluations,
    tree_variables,
)
from pymc_trees.predictors.columns import CONTINUOUS, Schema

GROUP = "forests"
"""Group of a result of `pymc.sample`, beside the draws."""
RULE = "rule"
LEVELS = "levels"
NAME = "name"


def forests_of(model: pm.Model) -> list[ForestVariable]:
    """Forests among the tree variables of a model, of hard or soft trees."""
    return [tree for tree in tree_variables(model) if isinstance(tree, ForestVariable)]


def declared_group(model: pm.Model) -> xr.Dataset | None:
    """The group of a model; None for a model without forests."""
    forests = forests_of(model)
    if not forests:
        return None
    return xr.Dataset({tree.name: ((), json.dumps(declaration(model, tree))) for tree in forests})


def declaration(model: pm.Model, tree: ForestVariable) -> dict[str, Any]:
    """What a forest was declared with, as JSON has it."""
    layout, X = tree.op.layout, training_rows(tree.rv)
    schema = schema_of(tree.rv) or Schema.of_numbers(X.shape[1])
    return {
        "version": 1,
        "trees": layout.m,
        "nodes": layout.max_nodes,
        "rows": layout.n_rows,
        "kind": "soft" if tree.is_soft else "hard",
        "leaf": tree.op.leaf_type.__name__,
        "leaf_values": layout.n_values,
        "tree_prior": getattr(tree.op, "tree_prior", "soft"),
        "checksum": tree.fingerprint,
        "data": _data_of(model, tree),
        "columns": [
            {
                NAME: None if schema.names is None else schema.names[j],
                RULE: schema.rules[j],
                LEVELS: None if levels is None else [_plain(level) for level in levels],
            }
            for j, levels in enumerate(schema.levels)
        ],
    }


def _data_of(model: pm.Model, tree: ForestVariable) -> list[str]:
    """Names of the model data that hold its columns."""
    everything = [*model.basic_RVs, *model.deterministics, *model.potentials]
    above = set(ancestors([one.X for one in evaluations(everything, tree.rv)]))
    return [v.name for v in model.data_vars if v in above and schema_of(v) is not None]


def _plain(level):
    level = level.item() if isinstance(level, np.generic) else level
    return level if isinstance(level, str | bool | int | float) else str(level)


def read_declarations(idata) -> dict[str, dict[str, Any]]:
    """What the forests of draws were declared with, by their names.

    Raises
    ------
    ValueError
        Where the draws do not say.
    """
    children = getattr(idata, "children", {})
    if GROUP not in children or "posterior" not in children:
        missing = [name for name in ("posterior", GROUP) if name not in children]
        raise ValueError(
            f"idata: the draws are no fit, for the groups {missing} are missing. Give the whole "
            "result of pm.sample or sample_chains, or a file of it, as this release makes them."
        )
    return declarations_in(idata)


def declarations_in(idata: xr.DataTree) -> dict[str, dict[str, Any]]:
    """`read_declarations`, empty where the draws do not say."""
    texts = idata[GROUP].data_vars if GROUP in idata.children else {}
    return {str(name): json.loads(str(text.item())) for name, text in texts.items()}


# ------------------------------------------------------ In what two declarations of a forest differ


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """In words, what keeps trees of one declaration from being trees of another.

    The rows may differ, and the levels of a column that is split by sets of them; all else is that
    of the same function of the same columns.
    """
    words = [
        f"{what}: {old[key]} in the draws, {new[key]} in the model"
        for key, what in (
            ("trees", "number of trees"),
            ("kind", "kind of trees"),
            ("leaf", "leaf"),
            ("leaf_values", "values in a leaf"),
            ("tree_prior", "tree_prior"),
        )
        if old[key] != new[key]
    ]
    names = [[column[NAME] for column in one["columns"]] for one in (old, new)]
    if len(names[0]) != len(names[1]):
        return [*words, f"number of columns: {len(names[0])} in the draws, {len(names[1])}"]
    if names[0] != names[1] and None not in (*names[0], *names[1]):
        return [*words, f"columns: {names[0]} in the draws, {names[1]} in the model"]
    for before, now in zip(old["columns"], new["columns"], strict=True):
        words += _of_column(before, now, now[NAME])
    return words


def _of_column(old: dict[str, Any], new: dict[str, Any], name) -> Iterable[str]:
    if old[RULE] != new[RULE]:
        yield f"split rule of {name!r}: {old[RULE]} in the draws, {new[RULE]} in the model"
        return
    before, now = old[LEVELS], new[LEVELS]
    if (before is None) != (now is None):
        kinds = ["levels" if levels else "numbers" for levels in (before, now)]
        yield f"cells of {name!r}: {kinds[0]} in the draws, {kinds[1]} in the model"
    elif before is None or before == now:
        return
    elif old[RULE] == CONTINUOUS:  # codes in order, and cuts between them
        yield f"levels of {name!r}, split by cuts: {before} in the draws, {now} in the model"
    elif not set(before) & set(now):
        yield f"levels of {name!r}: none of {before} in the draws is among {now} in the model"


def is_of(declared: dict[str, Any], value: np.ndarray) -> bool:
    """Whether a value is unchanged since a forest of this declaration was encoded."""
    nodes = declared["nodes"]
    return value.ndim == 2 and len(value) > nodes and is_intact(value, nodes, declared["checksum"])
