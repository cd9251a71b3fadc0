"""What every tree prior answers, dispatched on the type of its NamedTuple.

=========================================== =======================================================
``survey(prior, design, rows, start,        whether ``rows[start:stop]`` are all alike, and the
stop)``                                     node's rate (`Place`)
``survey_sides(prior, design, cells,        the same of the rows of ``rows[:n]`` whose cell is at
threshold, rows, n)``                       most the threshold and of the others, without moving
                                            rows: two unsplittable, two rates
``log_split(prior, place)``                 log probability that a node with a valid split splits
``log_stop(prior, place)``                  log probability that a node is a leaf
``draw_time(rng, prior, place)``            time of a split, given that there is one
``log_split_at(prior, place, time)``        `log_split` and the log density of the time
``draw_column(rng, prior, design, rows,     split column of ``rows[start:stop]``; one must vary
start, stop)``
``log_column(prior, design, column,         log probability of that column, where cuts have a given
log_cut, rate, rows, start, stop)``         log density
``column_weight(prior, column, extent)``    the same up to a factor, for proposals
``renew_times(rng, prior, trees, nodes)``   times of all trees from their conditional given all
                                            else; ``nodes`` is room
=========================================== =======================================================

The cut is uniform on the column's extent in the node under every prior. Rules of levels and of
missing cells (`core.columns.mixed`) are known to `CGMPrior` alone.
"""

from collections.abc import Callable
from typing import NamedTuple

from numba import types
from numba.extending import overload

from pymc_trees.core.compile.cache import njit

_PRIORS: dict[type, dict[str, Callable]] = {}


class Place(NamedTuple):
    """What a prior asks about a node."""

    depth: int
    time: float
    """Time of the parent's split; 0 for a root."""
    rate: float
    """Linear dimension of the box of its rows, for a Mondrian process; else unused."""
    unsplittable: bool
    """Whether its rows are all alike."""


@njit(cache=True, inline="always")
def place_of(trees, node):
    """Place of a node of a tree."""
    parent = trees.parent[node]
    time = trees.time[parent] if parent >= 0 else 0.0
    return Place(trees.depth[node], time, trees.rate[node], trees.unsplittable[node])


def register(prior: type, **kernels: Callable) -> None:
    """Give the kernels of a prior: names and arguments of the contract."""
    _PRIORS[prior] = kernels


def _kernel(prior, name):
    if isinstance(prior, types.BaseNamedTuple) and prior.instance_class in _PRIORS:
        return _PRIORS[prior.instance_class][name].py_func
    return None


def survey(prior, design, rows, start, stop):
    """Whether a node's rows are all alike, and its rate."""
    return _PRIORS[type(prior)]["survey"](prior, design, rows, start, stop)


def survey_sides(prior, design, cells, threshold, rows, n):
    """`survey` of both sides of a rule."""
    return _PRIORS[type(prior)]["survey_sides"](prior, design, cells, threshold, rows, n)


def log_split(prior, place):
    """Log probability that a node splits."""
    return _PRIORS[type(prior)]["log_split"](prior, place)


def log_stop(prior, place):
    """Log probability that a node is a leaf."""
    return _PRIORS[type(prior)]["log_stop"](prior, place)


def draw_time(rng, prior, place):
    """Time of a split."""
    return _PRIORS[type(prior)]["draw_time"](rng, prior, place)


def log_split_at(prior, place, time):
    """Log density of a split at a time."""
    return _PRIORS[type(prior)]["log_split_at"](prior, place, time)


def draw_column(rng, prior, design, rows, start, stop):
    """Split column."""
    return _PRIORS[type(prior)]["draw_column"](rng, prior, design, rows, start, stop)


def log_column(prior, design, column, log_cut, rate, rows, start, stop):
    """Log probability of a split column."""
    kernel = _PRIORS[type(prior)]["log_column"]
    return kernel(prior, design, column, log_cut, rate, rows, start, stop)


def column_weight(prior, column, extent):
    """Weight of a split column."""
    return _PRIORS[type(prior)]["column_weight"](prior, column, extent)


def renew_times(rng, prior, trees, nodes):
    """New times of all trees."""
    return _PRIORS[type(prior)]["renew_times"](rng, prior, trees, nodes)


@overload(survey)
def _survey(prior, design, rows, start, stop):
    return _kernel(prior, "survey")


@overload(survey_sides)
def _survey_sides(prior, design, cells, threshold, rows, n):
    return _kernel(prior, "survey_sides")


@overload(log_split)
def _log_split(prior, place):
    return _kernel(prior, "log_split")


@overload(log_stop)
def _log_stop(prior, place):
    return _kernel(prior, "log_stop")


@overload(draw_time)
def _draw_time(rng, prior, place):
    return _kernel(prior, "draw_time")


@overload(log_split_at)
def _log_split_at(prior, place, time):
    return _kernel(prior, "log_split_at")


@overload(draw_column)
def _draw_column(rng, prior, design, rows, start, stop):
    return _kernel(prior, "draw_column")


@overload(log_column)
def _log_column(prior, design, column, log_cut, rate, rows, start, stop):
    return _kernel(prior, "log_column")


@overload(column_weight)
def _column_weight(prior, column, extent):
    return _kernel(prior, "column_weight")


@overload(renew_times)
def _renew_times(rng, prior, trees, nodes):
    return _kernel(prior, "renew_times")
