"""What a row of the table of odd inputs says: what is given, and what must happen."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import pymc_trees as pmt

_rng = np.random.default_rng(3)
X = _rng.random((20, 2))
Y = 4.0 * (X[:, 0] > 0.5) + _rng.normal(0, 0.5, 20)
LEAF = pmt.NormalLeaf(0.0, 1.0)
FRAME = pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 10})


class Odd(NamedTuple):
    """One odd input."""

    call: Callable[[], Any]
    refused: str | Exception | None = None
    """What the refusal names, the argument as a rule; None for a defined result.

    In an exception of the type that is raised, unless that is a ValueError.
    """
    holds: Callable[[Any], Any] = lambda result: True
    """What is true of a defined result."""

    def check(self):
        """Make the call; the error has its type and names the argument, or the result holds."""
        if self.refused is None:
            assert self.holds(self.call())
            return
        wanted = self.refused if isinstance(self.refused, Exception) else ValueError(self.refused)
        with pytest.raises(type(wanted), match=rf"(?<!\w){re.escape(str(wanted))}(?!\w)"):
            self.call()


def with_entry(values, entry):
    """A copy whose entry [3, 1] or [3] is another."""
    values = values.copy()
    values[(3, 1) if values.ndim == 2 else 3] = entry
    return values


def declare(front_end, **given):
    """A front-end on ordinary data but for what is given."""
    with pm.Model():
        return front_end("mu", **{"X": X, "Y": Y, **given})


def finite(drawn):
    """Whether a variable's prior draw holds numbers only."""
    return np.isfinite(pm.draw(drawn, random_seed=1)).all()
