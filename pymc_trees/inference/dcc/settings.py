"""Checked settings of DCC-Tree."""

from pymc_trees.arguments import check_number, check_share
from pymc_trees.inference.dcc.dcc import Settings

LEAST = {
    "chains": 1,
    "local_draws": 2,
    "tune": 20,
    "importance_draws": 1,
    "initial_trees": 1,
    "threshold": 0,
    "max_active": 1,
}


def check_settings(settings: Settings) -> Settings:
    """The settings, when all are in range."""
    numbers = {
        name: check_number(name, getattr(settings, name), low) for name, low in LEAST.items()
    }
    return Settings(**numbers, exploration=check_share("exploration", settings.exploration))
