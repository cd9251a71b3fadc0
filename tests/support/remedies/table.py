"""What a row of the table of remedies says: a message, what provokes it, and what it proposes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pymc as pm

import pymc_trees as pmt
from support.odd.table import LEAF, Odd, X, Y


class Remedy(NamedTuple):
    """A message that proposes something."""

    message: str
    """A piece of it, as `house.test_messages` reads it from the source: … for each value put in."""
    wrong: Callable[[], Any]
    """What provokes it."""
    right: tuple[Callable[[], Any], ...]
    """What it proposes, one for each proposal; true, or a result, where that comes through."""
    full: bool = False
    """Whether the row samples for long."""


def remedy(message: str, wrong: Odd | Callable[[], Any], *right, full: bool = False) -> Remedy:
    """A row, whose provocation may be a row of the table of odd inputs."""
    call = wrong.call if isinstance(wrong, Odd) else wrong
    return Remedy(message, call, right, full)


def declared(front_end, **given):
    """What declares a front-end on ordinary data but for what is given."""

    def call():
        with pm.Model():
            return front_end("mu", **{"X": X, "Y": Y, **given})

    return call


def bart(**given):
    """What declares a `BART`."""
    return declared(pmt.BART, **{"m": 3, **given})


def tree(**given):
    """What declares a `DecisionTree`."""
    return declared(pmt.DecisionTree, **given)


def soft_tree(**given):
    """What declares a `SoftDecisionTree`."""
    return declared(pmt.SoftDecisionTree, **given)


def soft_bart(**given):
    """What declares a `SoftBART`."""
    return declared(pmt.SoftBART, **{"m": 3, **given})


def forest(**given):
    """What declares a `Forest`."""

    def call():
        with pm.Model():
            return pmt.Forest("trees", **{"X": X, "leaf": LEAF, "m": 3, **given})

    return call


def short_dcc():
    """A run of DCC-Tree on the model at hand, as short as can be."""
    few = {"chains": 2, "tune": 20, "initial_trees": 2, "local_draws": 5}
    return pmt.sample_dcc(2, 5, **few, cores=1, progressbar=False, random_seed=1)
