"""Settings of DCC-Tree: their defaults and their checks."""

from typing import NamedTuple

from pymc_trees.arguments import check_number, check_positive, check_share


class Settings(NamedTuple):
    """Numbers of a run; defaults are those of the paper or of the authors' program."""

    chains: int = 16
    """N_c, local chains per topology."""
    local_draws: int = 100
    """N_s, draws per chain and visit."""
    tune: int = 2000
    """N_INIT, warm-up per chain."""
    importance_draws: int = 10
    """N_M, pseudo-draws per Gaussian."""
    initial_trees: int = 100
    """T_0, topologies of the prior to start with."""
    threshold: int = 5
    """C_0, proposals that make no topology active yet."""
    max_active: int = 100
    """T_max, active topologies at most."""
    exploration: float = 0.0
    """Delta of eq. 10."""
    optimism: float = 0.1
    """Beta of eq. 10."""
    screening: float = 0.2
    """Share of the warm-up before a topology's first visit."""


RUN = Settings()
"""Defaults of `sample_dcc`."""

STEP = Settings(chains=4)
"""Defaults of `DCCTree`: `pymc.sample` makes several runs, one for each chain of its own."""

LEAST = {
    "chains": 1,
    "local_draws": 2,
    "tune": 20,
    "importance_draws": 1,
    "initial_trees": 1,
    "threshold": 0,
    "max_active": 1,
}


def check_settings(**given) -> Settings:
    """The settings of these names, when all are in range."""
    numbers = {name: check_number(name, given[name], low) for name, low in LEAST.items()}
    return Settings(
        **numbers,
        exploration=check_share("exploration", given["exploration"]),
        optimism=check_positive("optimism", given["optimism"]),
        screening=check_share("screening", given["screening"]),
    )
