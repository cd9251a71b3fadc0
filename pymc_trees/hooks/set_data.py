"""`pymc.set_data` of the inputs of a forest, which encodes them as `pymc_trees.set_data` does.

PyMC masks NaN in data, and a compiled function then fails with an error about array types.
"""

import pymc as pm

from pymc_trees.distributions.data.variables import encode_for
from pymc_trees.hooks.wrap import wrap


def encode_new_data() -> None:
    """Wrap `pymc.Model.set_data`."""
    wrap([pm.Model], "set_data", _encode)


def _encode(original, self, name, values, coords=None):
    return original(self, name, encode_for(self, name, values), coords=coords)
