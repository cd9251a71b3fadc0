"""Fitted estimators in netCDF files."""

import json
from typing import Any

import numpy as np
import xarray as xr

from pymc_trees.distributions.data.schema import Schema
from pymc_trees.distributions.data.variables import TrainingInputs
from pymc_trees.posterior.saving import save

ABOUT = "pymc_trees_estimator"
"""Attribute of the file: what was fitted, and the training columns."""
FITTED = {"classes_", "groups_", "n_features_in_", "feature_names_in_"}
"""Attributes that `fit` learns beside the draws."""
TRAINING = "training"
"""Group of the rows that were fitted."""


def write(estimator, path) -> None:
    """The settings, the training rows and the draws of a fitted estimator, whole or not at all."""
    inputs, known = estimator._training
    rows: dict[str, Any] = {name: ("row", row) for name, row in known.items()}
    rows["X"] = (("row", "column"), inputs.values)
    about = {
        "class": type(estimator).__name__,
        "settings": _plain(estimator.get_params(deep=False)),
        "columns": _columns(inputs.schema),
        "fitted": {
            name: _listed(getattr(estimator, name)) for name in FITTED & vars(estimator).keys()
        },
    }
    tree = estimator.idata_.copy()
    tree[TRAINING] = xr.DataTree(xr.Dataset(rows))
    tree.attrs[ABOUT] = json.dumps(about)
    save(tree, path)


def read(cls, path):
    """An estimator of class ``cls`` from a file that `write` wrote."""
    with xr.open_datatree(path, engine="h5netcdf") as stored:
        tree = stored.load()
    if ABOUT not in tree.attrs:
        raise ValueError(f"{path} holds no estimator: give a file written by save().")
    about = json.loads(tree.attrs.pop(ABOUT))
    if about["class"] != cls.__name__:
        raise ValueError(f"{path} holds a {about['class']}: read it with {about['class']}.load.")
    estimator = cls(**about["settings"])
    rows = tree[TRAINING].to_dataset()
    known = {name: row.to_numpy() for name, row in rows.items() if name != "X"}
    training = (TrainingInputs(rows["X"].to_numpy(), _schema(about["columns"])), known)
    for name, value in about["fitted"].items():
        setattr(estimator, name, np.array(value) if isinstance(value, list) else value)
    if "feature_names_in_" in about["fitted"]:
        estimator.feature_names_in_ = estimator.feature_names_in_.astype(object)
    del tree[TRAINING]
    estimator._training, estimator.idata_, estimator._kept = training, tree, {}
    return estimator


def _plain(settings: dict) -> dict:
    """Settings as JSON has them, or an error."""
    found = {}
    for name, value in settings.items():
        value = _listed(value)
        try:
            json.dumps(value)
        except TypeError:
            if name != "random_state":
                raise ValueError(
                    f"{name}={value!r} cannot be written to a file: give numbers, words, or lists "
                    "and dicts of them."
                ) from None
            value = None  # a generator that has moved on since
        found[name] = value
    return found


def _listed(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value


def _columns(schema: Schema) -> dict:
    """What is known of the columns, as JSON has it."""
    levels = [None if one is None else [_listed(level) for level in one] for one in schema.levels]
    names = None if schema.names is None else [_listed(name) for name in schema.names]
    return {"names": names, "rules": schema.rules, "levels": levels}


def _schema(about: dict) -> Schema:
    names = None if about["names"] is None else tuple(about["names"])
    levels = tuple(None if one is None else tuple(one) for one in about["levels"])
    return Schema(names, tuple(about["rules"]), levels)
