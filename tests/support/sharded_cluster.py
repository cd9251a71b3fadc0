"""Shards on a real cluster of two processes, Dask's or Ray's; run as a script that fails or not.

In a process of its own: both leave threads behind.
"""

import contextlib
import logging
import os
import signal
import sys

import numpy as np

import pymc_trees as pmt
from pymc_trees.sharded.transports import ShardLostError
from support.small_models import assert_same_draws, bart_model

RUN = {"draws": 10, "tune": 10, "chains": 2, "random_seed": 5, "progressbar": False}


@contextlib.contextmanager
def on_dask():
    from dask.distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client, list(client.run(os.getpid).values())


@contextlib.contextmanager
def on_ray():
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray, None
    ray.shutdown()


def draws(cluster):
    """Those of shards in one process, to the bit."""
    model = bart_model(sigma=None)
    expected = pmt.sample_sharded(model, 3, **RUN)
    with cluster() as (shards, _):
        found = pmt.sample_sharded(model, shards, **RUN)
    assert found.attrs["shards"] == 2
    assert_same_draws(found, expected)


def lost(cluster):
    """A process that ends is reported, and the draws made before are kept."""
    from pymc_trees.sharded import sample_sharded as module

    model = bart_model(sigma=None)
    expected = pmt.sample_sharded(model, 1, **RUN)
    with cluster() as (shards, processes):
        make, rounds = module.make_shards, [0]

        def fragile(*given):
            held = make(*given)
            ask = held.answers

            def answers(messages):
                rounds[0] += 1
                if rounds[0] == 80:  # after some 3 draws that are kept
                    _kill(held, processes)
                return ask(messages)

            held.answers = answers
            return held

        module.make_shards = fragile
        try:
            pmt.sample_sharded(model, shards, **RUN)
        except ShardLostError as error:
            said, kept = str(error), error.idata
        else:
            raise AssertionError("nothing was said")
    assert "A shard does not respond" in said and "error.idata" in said, said
    made = kept.posterior.sizes["draw"]
    assert 1 <= made < RUN["draws"]
    for name in kept.posterior.data_vars:
        np.testing.assert_array_equal(kept.posterior[name], expected.posterior[name][:, :made])


def _kill(held, processes):
    if processes is None:
        held._ray.kill(held.actors[1])
    else:
        os.kill(processes[1], signal.SIGKILL)


if __name__ == "__main__":
    {"draws": draws, "lost": lost}[sys.argv[2]]({"dask": on_dask, "ray": on_ray}[sys.argv[1]])
