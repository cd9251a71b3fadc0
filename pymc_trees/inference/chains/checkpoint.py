"""Checkpoints: draws and states in a file during a run, for `resume`."""

import time
import warnings
from collections.abc import Callable

import xarray as xr

from pymc_trees.arguments import check_number
from pymc_trees.inference.chains.states import GROUP, WHY, is_tuning, result_so_far, states_alone
from pymc_trees.posterior.saving import check_path, save

WRITES = 10
"""Default number of checkpoints; each writes all draws so far."""


class Checkpoint:
    """The file, and when it is written.

    Parameters
    ----------
    path : str or path
        The file.
    every : int or None
        Iterations of each chain between two writes; None for a tenth of the run.
    total : int
        Iterations of a chain, tuning included.
    joined : callable
        Function from a result to the content of the file.
    """

    def __init__(self, path, every, total: int, joined: Callable = lambda new: new):
        self.path = check_path("checkpoint", path)
        self.every = -(-total // WRITES) if every is None else check_number("every", every, 1)
        self.joined, self.start = joined, time.time()
        self.warned = False

    def write_traces(self, traces, tune: int, settings: dict) -> None:
        """Write the draws so far."""
        found = self._so_far(traces, tune, settings)
        if found is not None:
            self.write(self.joined(found))

    def write(self, idata: xr.DataTree) -> None:
        """Write the file; if that fails, issue a warning and continue."""
        states = idata.children.get(GROUP)
        if states is not None and not states.children and not self.warned:
            self.warned = True
            warnings.warn(
                f"checkpoint={str(self.path)!r} holds draws from which chains cannot be resumed. "
                f"{states.attrs[WHY]}",
                stacklevel=2,
            )
        try:
            save(idata, self.path)
        except OSError as error:
            warnings.warn(
                "checkpoint: this one was not written. The run continues, and the previous "
                f"checkpoint is unchanged. {error}",
                stacklevel=2,
            )

    def _so_far(self, traces, tune: int, settings: dict) -> xr.DataTree | None:
        discards, model = settings["discard_tuned_samples"], settings["model"]
        if not any(len(trace) for trace in traces):
            return None
        if is_tuning(traces, tune, discards):
            return states_alone(traces, tune, model)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Found chain dimension to be longer")  # a few draws
            return result_so_far(traces, tune, time.time() - self.start, discards, model)


def check_checkpoint(checkpoint, every, total: int, *joined) -> Checkpoint | None:
    """A checkpoint, if requested, or an error that names the argument."""
    if checkpoint is None:
        if every is not None:
            raise ValueError(
                f"every={every!r} needs a checkpoint: give the name of a file as checkpoint=."
            )
        return None
    return Checkpoint(checkpoint, every, total, *joined)
