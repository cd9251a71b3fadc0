"""Which runs there are."""

from typing import NamedTuple


class Run(NamedTuple):
    """One method with its settings."""

    method: str
    particles: int = 0
    islands: int = 1
    proposal: str = ""
    expansion: str = ""

    @property
    def is_random(self):
        return self.method in ("smc", "cgm")


SIZES = (10, 100, 500, 1000, 2000)
OPTIMAL_SIZES = (10, 50, 100, 500)
ISLANDS = (1, 2, 5, 10, 20, 50, 100)


def design(name):
    """Figures 3.2, 3.3, 3.4 and 3.7: proposal, expansion, number of particles; one island."""
    for particles in SIZES:
        yield Run("smc", particles, 1, "prior", "node")
        if name != "madelon":
            yield Run("smc", particles, 1, "prior", "layer")
    for particles in OPTIMAL_SIZES:
        yield Run("smc", particles, 1, "optimal", "node")
        if name != "madelon" and particles <= 100:
            yield Run("smc", particles, 1, "optimal", "layer")
    yield Run("smc", 1000, 1, "empirical", "node")
    yield Run("smc", 1000, 1, "prior", "lowest")


def islands(name):
    """Figure 3.5: 2,000 particles in I islands."""
    for n in ISLANDS:
        yield Run("smc", 2000, n, "prior", "node")


def against_cgm(name):
    """Figure 3.6: five islands, and a chain."""
    for particles in (100, 200, *SIZES[2:]):
        yield Run("smc", particles, 5, "prior", "node")
    for particles in OPTIMAL_SIZES[1:]:
        yield Run("smc", particles, 5, "optimal", "node")
    yield Run("cgm")


def sklearn(name):
    """CART by both criteria, and forests."""
    yield Run("cart", proposal="gini")
    yield Run("cart", proposal="entropy")
    yield Run("random forest")
    yield Run("extra trees")


GROUPS = {"sklearn": sklearn, "design": design, "cgm": against_cgm, "islands": islands}


def runs(name, only=None):
    """Runs of a data set, each once."""
    seen = []
    for group, members in GROUPS.items():
        if only in (None, group) and not (name == "madelon" and group == "islands"):
            seen += [run for run in members(name) if run not in seen]
    return seen


def key(name, run, seed, budget):
    """Name of a run in the results."""
    parts = [name, run.method]
    if run.method == "smc":
        parts += [f"{run.particles}/{run.islands}", run.proposal, run.expansion]
    if run.method == "cgm":
        parts += [f"{budget:g}s"]
    if run.method == "cart":
        parts += [run.proposal]
    return " ".join([*parts, f"seed{seed}"])
