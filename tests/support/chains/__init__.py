"""Chains of a sampler on tiny data, run inside compiled code and reduced to counts."""

from .local_moves import (
    ALL_MOVES,
    CGM,
    CHANGE_SWAP,
    GROW_PRUNE,
    MOVE_SETS,
    PERTURB,
    THREE_A_VISIT,
    run_chain,
    sweep_on,
    with_weights,
)
from .particles import make_tools, run_guided, run_particles
from .record import partition_code, partition_of, record
from .setups import Setup, design_of, make_setup, weights_of, with_float_cells

__all__ = [
    "CGM",
    "ALL_MOVES",
    "CHANGE_SWAP",
    "GROW_PRUNE",
    "MOVE_SETS",
    "PERTURB",
    "Setup",
    "THREE_A_VISIT",
    "design_of",
    "make_setup",
    "make_tools",
    "partition_code",
    "partition_of",
    "record",
    "run_chain",
    "run_guided",
    "run_particles",
    "sweep_on",
    "weights_of",
    "with_float_cells",
    "with_weights",
]
