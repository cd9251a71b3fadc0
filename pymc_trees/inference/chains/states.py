"""States of step methods as numbers and text, for files: nothing is pickled.

A state is a tree of dataclasses, dicts, lists, arrays and generators. Its arrays become variables
of a Dataset, the rest JSON, in which an array is named. What class a dataclass is of, the step
itself knows that is to go on; of named tuples, only those of this package are read.
"""

import json
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import xarray as xr
from pymc.step_methods.state import DataClassState
from pymc.util import RandomGeneratorState

GROUP = "sampling_state"
"""Group of the draws, with a group for each chain."""
WORDS = "state"
"""Attribute of a chain's group: the JSON."""


def to_dataset(state: dict) -> xr.Dataset:
    """A state as arrays and text."""
    arrays: dict[str, np.ndarray] = {}
    words = json.dumps(_words(state, arrays))
    variables = {
        name: ([f"{name}_dim_{k}" for k in range(array.ndim)], array)
        for name, array in arrays.items()
    }
    return xr.Dataset(variables, attrs={WORDS: words})


def from_dataset(stored: xr.Dataset, like: dict) -> dict:
    """A state from what `to_dataset` made, with dataclasses as in the state of the steps."""
    return _value(json.loads(stored.attrs[WORDS]), stored, like)


def _words(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        name = f"array_{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"scalar" if isinstance(value, np.generic) else "array": name}
    if isinstance(value, DataClassState):
        inside = {one.name: _words(getattr(value, one.name), arrays) for one in fields(value)}
        return {"of": type(value).__name__, "fields": inside}
    if isinstance(value, RandomGeneratorState):
        return {"generator": {k: _words(v, arrays) for k, v in value._asdict().items()}}
    if isinstance(value, dict):
        return {"dict": [[_words(k, arrays), _words(v, arrays)] for k, v in value.items()]}
    if isinstance(value, tuple):
        words = {"tuple": [_words(one, arrays) for one in value]}
        kind = type(value)
        return words if kind is tuple else words | {"class": f"{kind.__module__}.{kind.__name__}"}
    if isinstance(value, list):
        return {"list": [_words(one, arrays) for one in value]}
    raise TypeError(f"The state of a step holds a {type(value).__name__}, which no file can keep.")


def _value(words: Any, stored: xr.Dataset, like: Any) -> Any:
    if not isinstance(words, dict):
        return words
    kind, inside = next(iter(words.items()))
    if kind == "array":
        return stored[inside].to_numpy().copy()
    if kind == "scalar":
        return stored[inside].to_numpy()[()]
    if kind == "of":
        if type(like).__name__ != inside:
            return None  # of other steps, whose names differ too
        found = {
            name: _value(one, stored, getattr(like, name, None))
            for name, one in words["fields"].items()
        }
        return type(like)(**found)
    if kind == "generator":
        return RandomGeneratorState(**{k: _value(v, stored, None) for k, v in inside.items()})
    if kind == "dict":
        known = like if isinstance(like, dict) else {}
        pairs = [(_value(k, stored, None), v) for k, v in inside]
        return {k: _value(v, stored, known.get(k)) for k, v in pairs}
    alike = like if isinstance(like, list) and len(like) == len(inside) else [None] * len(inside)
    several = [_value(one, stored, other) for one, other in zip(inside, alike, strict=True)]
    if kind == "list":
        return several
    return _named(words["class"])(*several) if "class" in words else tuple(several)


def _named(name: str) -> Any:
    """A class of named tuples of this package, which the steps have imported."""
    module, _, kind = name.rpartition(".")
    found = getattr(sys.modules.get(module), kind, None)
    if module.split(".")[0] != "pymc_trees" or not hasattr(found, "_fields"):
        raise ValueError(f"The state of a step names {name}, which is no tuple of this package.")
    return found
