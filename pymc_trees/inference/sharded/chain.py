"""One chain: what it asks the shards, and what it records."""

from collections.abc import Generator

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.forest.counts import count_forest
from pymc_trees.core.moves.catalogue import MOVES, weighted
from pymc_trees.core.moves.contract import name_of
from pymc_trees.core.samplers.slice_draw import FIRST_WIDTH, adapted_width, slice_draw
from pymc_trees.core.shards.driver import Driver
from pymc_trees.core.shards.messages import Answer, Message
from pymc_trees.core.value.encode import encode
from pymc_trees.core.value.fields import sizes
from pymc_trees.inference.sharded.model import ShardedModel
from pymc_trees.targets.noise import Noise
from pymc_trees.targets.noise_density import NoiseDensity, compiled_at, numbers_at

WEIGHTS = (0.25, 0.25, 0.4, 0.1)
"""Of grow, prune, change and swap (Chipman 2010)."""


class Sigma:
    """The sd of the noise where it is a variable: its draws, and the precision of a row."""

    def __init__(self, model: pm.Model, rv: Variable, noise: Noise):
        self.name = model.rvs_to_values[rv].name
        self._density = NoiseDensity(model, rv, noise)
        [sd] = model.replace_rvs_by_values([noise.scale])
        self._sd, self._needs = compiled_at(model, [], sd.sum())

    def draw(self, rng, point: dict, root: float, n: int, width: float) -> float:
        """New value given the root of the residual sum of squares."""
        density = self._density.at(point, root, float(n))
        with np.errstate(all="ignore"):
            new, _ = slice_draw(rng, density, float(point[self.name]), width)
        if np.isnan(new):
            raise ValueError(
                f"At this point the density of {self.name} is 0: give it a prior that covers the "
                "spread of y, or an initial value (initval=) inside the prior."
            )
        return new

    def precision(self, point: dict) -> float:
        """Precision of a row at a point."""
        return float(self._sd(*numbers_at(point, self._needs))) ** -2.0


class Chain:
    """A chain that records its draws.

    Parameters
    ----------
    known : ShardedModel
    rng : numpy.random.Generator
    sigma : Sigma or None
    """

    def __init__(self, known: ShardedModel, rng: np.random.Generator, sigma: Sigma | None):
        layout = known.layout
        size = (layout.m, layout.max_nodes, layout.n_rows)
        moves = weighted(np.array(WEIGHTS))
        self.driver = Driver(rng, known.rootless, known.prior, known.scale, size, moves)
        self.known, self.rng, self.sigma = known, rng, sigma
        self.point, self.precision, self.width = dict(known.start), known.precision, FIRST_WIDTH
        self.points: list[dict] = []
        self.stats: list[dict] = []
        self.made = 0
        """Draws, those of tuning among them."""

    def run(self, tune: int, draws: int, sweeps: int) -> Generator[Message, Answer, None]:
        """Messages to the shards; the answer to each is sent back into the generator."""
        yield from self.driver.start()
        for k in range(tune + draws):
            self.driver.counts[:] = 0
            for _ in range(sweeps):
                yield from self.driver.sweep(self.precision)
                log_likelihood = self._log_likelihood()
                if self.sigma is not None:
                    self._draw_sigma(self.sigma, k if k < tune else None)
            if k >= tune:
                self._record(log_likelihood)
            self.made = k + 1

    def _log_likelihood(self) -> float:
        n, w = self.known.layout.n_rows, self.precision
        squares = (self._root()) ** 2
        return 0.5 * (n * np.log(w / (2 * np.pi)) - w * squares) + self.known.log_scale

    def _root(self) -> float:
        return self.known.scale.unit * float(np.sqrt(float(self.driver.square_sum)))

    def _draw_sigma(self, sigma: Sigma, n_tunes: int | None) -> None:
        old = float(self.point[sigma.name])
        root, n = self._root(), self.known.layout.n_rows
        new = sigma.draw(self.rng, self.point, root, n, self.width)
        if n_tunes is not None:
            self.width = adapted_width(self.width, abs(new - old), n_tunes)
        self.point[sigma.name] = np.array(new)
        self.precision = sigma.precision(self.point)

    def _record(self, log_likelihood: float) -> None:
        known, driver = self.known, self.driver
        trees, nodes = driver.forest.trees, driver.work.nodes
        given = (sizes(known.layout), known.fingerprint, nodes)
        value = encode(trees, driver.forest.design, known.prior, *given)
        self.points.append(self.point | {known.value_name: value})
        proposed, accepted = driver.counts
        stats: dict = {
            f"accept_{name_of(move)}": accepted[k] / proposed[k] if proposed[k] else np.nan
            for k, move in enumerate(MOVES)
        }
        inclusion = np.zeros(known.design.varies.size, dtype=np.int64)
        stats["n_leaves"], stats["max_depth"] = count_forest(trees, nodes, inclusion)
        stats |= {"variable_inclusion": inclusion, "log_likelihood": log_likelihood}
        self.stats.append(stats)
