"""Fitted estimators in netCDF files."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.distributions.data.table import Table
from pymc_trees.posterior.saving import save, without_rows
from pymc_trees.predictors.columns import Schema
from pymc_trees.predictors.load import content_of, from_content

ABOUT = "pymc_trees_estimator"
"""Attribute of the file: what was fitted, and the training columns."""
FITTED = {"classes_", "groups_", "n_features_in_", "feature_names_in_"}
"""Attributes that `fit` sets in addition to the draws."""
TRAINING = "training"
"""Group of the rows that were fitted."""
ALONE = "predictor"
"""Group of a predictor, where the rows are left out."""
ITEMS = "pymc_trees_items"
"""Key of the items of a dict whose keys are not text alone, as those of JSON are."""


def write_file(estimator, path, training_data: bool = True) -> None:
    """The settings, the training rows and the draws of a fitted estimator, whole or not at all.

    Without the rows there is a predictor in their place.
    """
    save(_tree_of(estimator, training_data), path)


def _tree_of(estimator, training_data: bool) -> xr.DataTree:
    """What the file holds; estimators that are attributes have groups of their own."""
    about = {
        "class": type(estimator).__name__,
        "settings": _plain(estimator._settings),
        "columns": _columns(estimator._training[0].schema) if estimator._training else None,
        "fitted": {
            name: _listed(getattr(estimator, name)) for name in FITTED & vars(estimator).keys()
        },
    }
    tree = estimator.idata_.copy()
    if training_data and estimator._training:
        table, arrays = estimator._training
        rows: dict[str, Any] = {name: ("row", row) for name, row in arrays.items()}
        rows["X"] = (("row", "column"), table.values)
        tree[TRAINING] = xr.DataTree(xr.Dataset(rows))
    else:
        if not estimator._predicts_alone:
            raise ValueError(
                f"training_data=False: a {type(estimator).__name__} computes answers from the "
                "training rows. Leave training_data out, or save what predicts alone, with "
                ".predictor().save(path)."
            )
        tree = without_rows(tree)
        about["known"] = estimator._known_of_rows()
        content = np.frombuffer(content_of(estimator.predictor()), np.uint8)
        tree[ALONE] = xr.DataTree(xr.Dataset({"content": ("byte", content)}))
    for name in estimator._inner.keys() & vars(estimator).keys():
        tree[name] = _tree_of(getattr(estimator, name), training_data)
    tree.attrs[ABOUT] = json.dumps(about)
    return tree


def read_file(cls, path):
    """An estimator of class ``cls`` from a file that `write_file` wrote."""
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        tree = stored.load()
    if ABOUT not in tree.attrs:
        raise ValueError(f"{path} holds no estimator: give a file written by save().")
    about = json.loads(tree.attrs.pop(ABOUT))
    if about["class"] != cls.__name__:
        raise ValueError(f"{path} holds a {about['class']}: read it with {about['class']}.load.")
    return _estimator_of(cls, tree, about)


def _estimator_of(cls, tree: xr.DataTree, about: dict):
    """The estimator of which `_tree_of` made a tree."""
    estimator = cls(**{name: _with_keys(value) for name, value in about["settings"].items()})
    for name in cls._inner.keys() & tree.children.keys():
        inner = tree.children[name].copy()  # a root of its own
        of_inner = json.loads(inner.attrs.pop(ABOUT))
        [kind] = [one for one in cls._inner[name] if one.__name__ == of_inner["class"]]
        setattr(estimator, name, _estimator_of(kind, inner, of_inner))
        del tree[name]
    training = None
    if TRAINING in tree.children:
        rows = tree[TRAINING].to_dataset()
        arrays = {name: row.to_numpy() for name, row in rows.items() if name != "X"}
        training = (Table(rows["X"].to_numpy(), _schema(about["columns"])), arrays)
        del tree[TRAINING]
    else:
        content = tree[ALONE]["content"].to_numpy().tobytes()
        estimator._alone, estimator._known = from_content(content), about["known"]
        del tree[ALONE]
    for name, value in about["fitted"].items():
        setattr(estimator, name, np.array(value) if isinstance(value, list) else value)
    if "feature_names_in_" in about["fitted"]:
        estimator.feature_names_in_ = estimator.feature_names_in_.astype(object)
    estimator._training, estimator.idata_, estimator._kept = training, tree, {}
    estimator._settings = estimator.get_params(deep=False)
    return estimator


def _plain(settings: dict) -> dict:
    """Settings as JSON has them, or an error."""
    plain = {}
    for name, value in settings.items():
        value = _listed(value)
        if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
            value = {ITEMS: [[_listed(key), _listed(one)] for key, one in value.items()]}
        try:
            json.dumps(value)
        except TypeError:
            if name != "random_state":
                raise ValueError(
                    f"{name}={value!r} cannot be written to a file: give numbers, words, or lists "
                    "and dicts of them."
                ) from None
            value = None  # a generator that has moved on since
        plain[name] = value
    return plain


def _with_keys(value):
    """A setting that `_plain` wrote."""
    return dict(value[ITEMS]) if isinstance(value, dict) and value.keys() == {ITEMS} else value


def _listed(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _columns(schema: Schema) -> dict:
    """A schema as JSON has it."""
    levels = [None if ls is None else [_listed(level) for level in ls] for ls in schema.levels]
    names = None if schema.names is None else [_listed(name) for name in schema.names]
    return {"names": names, "rules": schema.rules, "levels": levels}


def _schema(about: dict) -> Schema:
    names = None if about["names"] is None else tuple(about["names"])
    levels = tuple(None if ls is None else tuple(ls) for ls in about["levels"])
    return Schema(names, tuple(about["rules"]), levels)
