"""Checked settings of whole runs."""

import numpy as np

from pymc_trees.inference.dcc import Settings

LEAST = {
    "chains": 1,
    "local_draws": 2,
    "tune": 20,
    "importance_draws": 1,
    "initial_trees": 1,
    "threshold": 0,
    "max_active": 1,
}


def check_number(name: str, value, least: int) -> int:
    """A whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}: must be a whole number of at least {least}.")
    return int(value)


def check_share(name: str, value) -> float:
    """A number from 0 to 1."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}: must be a number from 0 to 1.")
    return float(value)


def check_settings(settings: Settings) -> Settings:
    """The settings, when all are in range."""
    numbers = {
        name: check_number(name, getattr(settings, name), low) for name, low in LEAST.items()
    }
    return Settings(**numbers, exploration=check_share("exploration", settings.exploration))


def check_seed(random_seed) -> np.random.Generator:
    """Generator of a seed."""
    try:
        return np.random.default_rng(random_seed)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"random_seed={random_seed!r}: must be None, a whole number of at least 0, a sequence "
            "of such, or a numpy.random.Generator."
        ) from error
