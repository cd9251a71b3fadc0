"""Where the shards are: in this process, in actors of Dask, in actors of Ray."""

from abc import ABC, abstractmethod
from typing import Any

from pymc_trees.sharded.kernels.messages import Answer, Message, total
from pymc_trees.sharded.kernels.rows import Shard
from pymc_trees.sharded.model import ShardedModel


class ShardLostError(RuntimeError):
    """A shard does not answer: its process or its machine is gone.

    Attributes
    ----------
    idata : xarray.DataTree or None
        The draws made before; None without any.
    """

    idata = None


class Shards(ABC):
    """All shards of a run."""

    n_shards: int

    @abstractmethod
    def answers(self, messages: dict[int, Message]) -> list[dict[int, Answer]]:
        """What each shard answers to the messages of some chains, in the order of the rows."""

    def ask(self, messages: dict[int, Message]) -> dict[int, Answer]:
        """What all rows answer."""
        found = self.answers(messages)
        return {chain: total([one[chain] for one in found]) for chain in messages}

    @abstractmethod
    def close(self) -> None:
        """Let go of the shards."""


class LocalShards(Shards):
    """Shards in this process, one after the other."""

    def __init__(self, known: ShardedModel, n_shards: int, chains: int):
        self.n_shards = n_shards
        self.shards = [Shard(part, chains) for part in known.parts(n_shards)]

    def answers(self, messages):
        """What each shard answers."""
        return [shard.visit(messages) for shard in self.shards]

    def close(self):
        """Let go of the rows."""
        self.shards = []


class DaskShards(Shards):
    """An actor on each worker of a Dask cluster.

    Parameters
    ----------
    known : ShardedModel
    client : distributed.Client
    chains : int
    """

    def __init__(self, known: ShardedModel, client: Any, chains: int):
        workers = sorted(client.nthreads())[: known.layout.n_rows]
        if not workers:
            raise ValueError("shards: the Dask client has no workers; start some first.")
        self.n_shards = len(workers)
        parts = zip(known.parts(self.n_shards), workers, strict=True)
        with _told_of_loss("Dask"):
            made = [
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
            self.actors = [one.result() for one in made]

    def answers(self, messages):
        """What each shard answers."""
        with _told_of_loss("Dask"):
            asked = [actor.visit(messages) for actor in self.actors]
            return [one.result() for one in asked]

    def close(self):
        """Let go of the actors."""
        self.actors = []


class RayShards(Shards):
    """Actors of Ray, one for each of its processors.

    Parameters
    ----------
    known : ShardedModel
    ray : the module ray, initialised
    chains : int
    """

    def __init__(self, known: ShardedModel, ray: Any, chains: int):
        if not ray.is_initialized():
            raise ValueError("shards: Ray is not running; call ray.init() first.")
        processors = int(ray.cluster_resources().get("CPU", 0))
        self.n_shards, self._ray = max(1, min(processors, known.layout.n_rows)), ray
        actor = ray.remote(Shard)
        with _told_of_loss("Ray"):
            self.actors = [actor.remote(part, chains) for part in known.parts(self.n_shards)]

    def answers(self, messages):
        """What each shard answers."""
        with _told_of_loss("Ray"):
            message = self._ray.put(messages)
            return self._ray.get([actor.visit.remote(message) for actor in self.actors])

    def close(self):
        """End the actors."""
        for actor in self.actors:
            self._ray.kill(actor)


class _told_of_loss:  # noqa: N801 (used like a function)
    """Context in which whatever a cluster raises says that a shard is lost."""

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


def make_shards(shards: Any, known: ShardedModel, chains: int) -> Shards:
    """Shards as a user asks for them, with the rows of a model."""
    n = known.layout.n_rows
    if isinstance(shards, int) and not isinstance(shards, bool) and 1 <= shards <= n:
        return LocalShards(known, shards, chains)
    if all(hasattr(shards, name) for name in ("submit", "scatter", "nthreads")):
        return DaskShards(known, shards, chains)
    if all(hasattr(shards, name) for name in ("remote", "get", "put", "is_initialized")):
        return RayShards(known, shards, chains)
    raise ValueError(
        f"shards={shards!r}: give a distributed.Client, the module ray after ray.init(), or a "
        f"number of shards in this process, from 1 to the {n} rows of X."
    )
