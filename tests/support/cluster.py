"""Chains on a real cluster of two processes, Dask's or Ray's; run as a script that fails or not.

In a process of its own, for Ray changes joblib's pools for good, and both leave threads behind.
"""

import contextlib
import logging
import os
import signal
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.inference.chains.run import ChainPiece, Runner
from support.small_models import FAST, assert_same_draws, bart_model

RUN = {"draws": 4, "tune": 6, "random_seed": 5, **FAST}


@contextlib.contextmanager
def on_dask():
    import dask
    from dask.distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # A task whose worker died is not given to another: the test of it would take half a minute.
    allowed = {"distributed.scheduler.allowed-failures": int(sys.argv[2] == "draws")}
    with (
        dask.config.set(allowed),
        LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        Client(cluster),
        joblib.parallel_config("dask"),
    ):
        yield


@contextlib.contextmanager
def on_ray():
    import ray
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with joblib.parallel_config("ray"):
        yield
    ray.shutdown()


class Killed(pmt.Hybrid):
    """Ends the first process that comes to its fifth step."""

    flag = ""

    def step(self, point):
        self.steps = getattr(self, "steps", 0) + 1
        if self.flag and self.steps == 5 and not Path(self.flag).exists():
            Path(self.flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(point)


def draws(cluster, folder):
    """Those of pm.sample, to the bit; also where a worker was killed in the middle."""
    with bart_model(sigma=None) as model:
        expected = pm.sample(chains=3, cores=1, **RUN)
        step = Killed()
        step.flag = os.path.join(folder, "killed")
        with cluster(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert_same_draws(pmt.sample_chains(model, 3, **RUN), expected)
            found = pmt.sample_chains(model, 3, step=step, **RUN)
    assert Path(step.flag).exists()
    assert_same_draws(found, expected)
    said = any(
        "A process ended before its chain was complete" in str(one.message) for one in caught
    )
    assert said or cluster is on_dask  # Dask mostly gives the task to another worker by itself


def lost(cluster, folder):
    """A chain that ends every process is reported, and the others are kept."""

    def run(task):
        if task.chain == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return ChainPiece(task.chain, [{"x": np.ones(1) * task.chain}], [[{}]], None)

    given = joblib.delayed(run)
    joblib.delayed = lambda _: given
    traces = [Recorded() for _ in range(3)]
    with cluster(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Runner(-1, False)(
            draws=1,
            chains=3,
            traces=traces,
            start=[{}] * 3,
            rngs=np.random.default_rng(1).spawn(3),
            step=None,
            tune=0,
        )
    assert [len(trace) for trace in traces] == [1, 0, 1]
    said = " ".join(str(one.message) for one in caught)
    assert "one after the other" in said and "left out: chain 1" in said, said


class Recorded(list):
    def record(self, point, stats, *, in_warmup):
        self.append(point)

    def close(self):
        pass


if __name__ == "__main__":
    {"draws": draws, "lost": lost}[sys.argv[2]](
        {"dask": on_dask, "ray": on_ray}[sys.argv[1]], sys.argv[3]
    )
