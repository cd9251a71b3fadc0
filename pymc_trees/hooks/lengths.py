"""A line on how long chains need be, where those of a large table would be far longer."""

import logging

import pymc as pm

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.inference.chains.lengths import MOST, lengths

_log = logging.getLogger("pymc.trees")

LONGER = 2
"""Times as long as is usually enough, from which on it is said."""


def say_lengths() -> None:
    """Wrap `pymc.sample`."""
    wrap(SAMPLE, "sample", _sample)


def _sample(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    model = pm.modelcontext(given.get("model"))
    if tree_variables(model) and given.get("step") is None and not given.get("quiet"):
        enough = lengths(model)
        asked = given.get("draws", MOST) + given.get("tune", MOST)
        if enough.draws < MOST and asked > LONGER * (enough.draws + enough.tune):
            _log.info(
                f"A draw of {enough.rows:,} rows and {enough.trees} trees is five sweeps: "
                f"pm.sample(draws={enough.draws}, tune={enough.tune}, chains={enough.chains}) is "
                "long enough for most tables of this size, all chains taken together."
            )
    return original(*args, **kwargs)
