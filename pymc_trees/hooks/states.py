"""States of step methods, stored with the draws of models with trees for `resume`.

In this process they are read when a chain ends or is interrupted, between two iterations;
`process_states` handles those of other processes.
"""

import warnings

import pymc.sampling.mcmc
import xarray as xr

from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.hooks.wrap import arguments, wrap
from pymc_trees.inference.chains.left import (
    STATE,
    is_tuning,
    note_states,
    state_of,
    states_alone,
)

STOPPED_TUNING = (
    "The run was stopped during tuning: the result holds no draws, only the states of the chains "
    "that had started, from which pymc_trees.resume continues."
)


def keep_states() -> None:
    """Wrap PyMC's sampling loop and the function that builds the result."""
    wrap([pymc.sampling.mcmc], "_iter_sample", _iterate)
    wrap([pymc.sampling.mcmc], "_sample_return", _note)


def _iterate(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    try:
        yield from original(*args, **kwargs)
    except Exception:  # during an iteration; interrupts are handled between two
        raise
    except BaseException:
        _keep(given)
        raise
    else:
        _keep(given)


def _keep(given) -> None:
    if _has_trees(given.get("model")):
        setattr(given["trace"], STATE, state_of(given["step"]))


def _has_trees(model) -> bool:
    return model is not None and bool(tree_variables(model))


def _note(original, *args, **kwargs):
    given = arguments(original, args, kwargs)
    traces, tune, model = given["traces"], given["tune"], given["model"]
    discards = given["discard_tuned_samples"]
    if given["return_inferencedata"] and is_tuning(traces, tune, discards):
        alone = states_alone(traces, tune, model)
        if alone is not None:
            warnings.warn(STOPPED_TUNING, stacklevel=2)
            return alone
    found = original(*args, **kwargs)
    if isinstance(found, xr.DataTree):
        note_states(found, traces, tune, discards, model)
    return found
