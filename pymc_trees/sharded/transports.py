"""Where the shards are: in this process, in actors of Dask, in actors of Ray."""

from abc import ABC, abstractmethod
from typing import Any

from pymc_trees.sharded.kernels.shard import Answer, Message, Shard, total
from pymc_trees.sharded.model import ShardedModel


class ShardLostError(RuntimeError):
    """A shard does not answer: its process or machine has stopped.

    Attributes
    ----------
    idata : xarray.DataTree or None
        Draws made before, if any.
    """

    idata = None


class Shards(ABC):
    """All shards of a run."""

    n_shards: int

    @abstractmethod
    def answers(self, messages: dict[int, Message]) -> list[dict[int, Answer]]:
        """Answers of each shard to the messages, by chain; shards in the order of the rows."""

    def ask(self, messages: dict[int, Message]) -> dict[int, Answer]:
        """Answers about all rows to the messages, by chain."""
        answers = self.answers(messages)
        return {chain: total([shard[chain] for shard in answers]) for chain in messages}

    @abstractmethod
    def close(self) -> None:
        """Release the shards."""


class LocalShards(Shards):
    """Shards in this process, one after the other."""

    def __init__(self, model: ShardedModel, n_shards: int, chains: int):
        self.n_shards = n_shards
        self.shards = [Shard(part, chains) for part in model.parts(n_shards)]

    def answers(self, messages):
        """Answers of each shard."""
        return [shard.visit(messages) for shard in self.shards]

    def close(self):
        """Release the rows."""
        self.shards = []


class DaskShards(Shards):
    """An actor on each worker of a Dask cluster.

    Parameters
    ----------
    model : ShardedModel
    client : distributed.Client
    chains : int
    """

    def __init__(self, model: ShardedModel, client: Any, chains: int):
        workers = sorted(client.nthreads())[: model.layout.n_rows]
        if not workers:
            raise ValueError("shards: the Dask client has no workers; start some first.")
        self.n_shards = len(workers)
        parts = zip(model.parts(self.n_shards), workers, strict=True)
        with _loss_reported("Dask"):
            pending = [
                client.submit(
                    Shard,
                    client.scatter([part], workers=[worker], hash=False)[0],
                    chains,
                    actor=True,
                    workers=[worker],
                    pure=False,
                )
                for part, worker in parts
            ]
            self.actors = [one.result() for one in pending]

    def answers(self, messages):
        """Answers of each shard."""
        with _loss_reported("Dask"):
            pending = [actor.visit(messages) for actor in self.actors]
            return [one.result() for one in pending]

    def close(self):
        """Release the actors."""
        self.actors = []


class RayShards(Shards):
    """Actors of Ray, one for each of its processors.

    Parameters
    ----------
    model : ShardedModel
    ray : the module ray, initialised
    chains : int
    """

    def __init__(self, model: ShardedModel, ray: Any, chains: int):
        if not ray.is_initialized():
            raise ValueError("shards: Ray is not running; call ray.init() first.")
        processors = int(ray.cluster_resources().get("CPU", 0))
        self.n_shards, self._ray = max(1, min(processors, model.layout.n_rows)), ray
        actor = ray.remote(Shard)
        with _loss_reported("Ray"):
            self.actors = [actor.remote(part, chains) for part in model.parts(self.n_shards)]

    def answers(self, messages):
        """Answers of each shard."""
        with _loss_reported("Ray"):
            message = self._ray.put(messages)
            return self._ray.get([actor.visit.remote(message) for actor in self.actors])

    def close(self):
        """End the actors."""
        for actor in self.actors:
            self._ray.kill(actor)


class _loss_reported:  # noqa: N801 (used like a function)
    """Context that turns any error of a cluster into a `ShardLostError`."""

    def __init__(self, cluster: str):
        self.cluster = cluster

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, Exception):
            raise ShardLostError(
                f"A shard does not respond: {self.cluster} reports {type(error).__name__}: "
                f"{error}. Its rows and residuals are lost; check the worker and run again."
            ) from error


def make_shards(shards: Any, model: ShardedModel, chains: int) -> Shards:
    """Shards that the argument ``shards`` means, with the rows of a model."""
    n = model.layout.n_rows
    if isinstance(shards, int) and not isinstance(shards, bool) and 1 <= shards <= n:
        return LocalShards(model, shards, chains)
    if all(hasattr(shards, name) for name in ("submit", "scatter", "nthreads")):
        return DaskShards(model, shards, chains)
    if all(hasattr(shards, name) for name in ("remote", "get", "put", "is_initialized")):
        return RayShards(model, shards, chains)
    raise ValueError(
        f"shards={shards!r}: give a distributed.Client, the module ray after ray.init(), or a "
        f"number of shards in this process, from 1 to the {n} rows of X."
    )
