"""States of step methods as numbers and text, for files: nothing is pickled.

A state is a tree of dataclasses, dicts, lists, arrays and generators. Its arrays are stored as
bytes, the rest as JSON, with positions of arrays and names of classes. Reading only creates objects
of state classes and named tuples, and imports nothing.
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
WORDS, NUMBERS = "state", "numbers"
"""Variables of a chain's group, of bytes: the JSON, and all arrays one after another."""


def to_dataset(state: dict) -> xr.Dataset:
    """A state as text and bytes."""
    numbers = bytearray()
    words = bytearray(json.dumps(_words(state, numbers)).encode())
    parts = ((WORDS, words), (NUMBERS, numbers))
    return xr.Dataset(
        {name: (f"byte_of_{name}", np.array(part, dtype=np.uint8)) for name, part in parts}
    )


def from_dataset(stored: xr.Dataset) -> dict:
    """A state from the output of `to_dataset`."""
    words = json.loads(stored[WORDS].to_numpy().tobytes())
    return _value(words, stored[NUMBERS].to_numpy().tobytes())


def _words(value: Any, numbers: bytearray) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        kind = "scalar" if isinstance(value, np.generic) else "array"
        start = len(numbers)
        numbers += value.tobytes()
        return {kind: [start, value.dtype.str, *value.shape]}
    name = f"{type(value).__module__}.{type(value).__name__}"
    if isinstance(value, DataClassState):
        inside = {one.name: _words(getattr(value, one.name), numbers) for one in fields(value)}
        return {"state": inside, "class": name}
    if isinstance(value, RandomGeneratorState):
        return {"generator": {k: _words(v, numbers) for k, v in value._asdict().items()}}
    if isinstance(value, dict):
        return {"dict": [[_words(k, numbers), _words(v, numbers)] for k, v in value.items()]}
    if isinstance(value, tuple):
        words = {"tuple": [_words(one, numbers) for one in value]}
        return words if type(value) is tuple else words | {"class": name}
    if isinstance(value, list):
        return {"list": [_words(one, numbers) for one in value]}
    raise TypeError(
        f"The state of a step method holds a {type(value).__name__}, which cannot be written to a "
        "file."
    )


def _value(words: Any, stored: bytes) -> Any:
    if not isinstance(words, dict):
        return words
    kind, inside = next(iter(words.items()))
    if kind in ("array", "scalar"):
        start, dtype, *shape = inside
        found = np.ndarray(tuple(shape), dtype, stored, start)
        return found.copy() if kind == "array" else found[()]
    if kind == "state":
        of = {name: _value(one, stored) for name, one in inside.items()}
        return _named(words["class"])(**of)
    if kind == "generator":
        return RandomGeneratorState(**{name: _value(one, stored) for name, one in inside.items()})
    if kind == "dict":
        return {_value(k, stored): _value(v, stored) for k, v in inside}
    several = [_value(one, stored) for one in inside]
    if kind == "list":
        return several
    return _named(words["class"])(*several) if "class" in words else tuple(several)


def _named(name: str) -> Any:
    """A state class or named tuple that the steps have imported; no other."""
    module, _, kind = name.rpartition(".")
    found = getattr(sys.modules.get(module), kind, None)
    if isinstance(found, type):
        if issubclass(found, DataClassState):
            return found
        if issubclass(found, tuple) and hasattr(found, "_fields"):
            return found
    raise ValueError(f"The state of a step names {name}, which is not a known class of states.")
