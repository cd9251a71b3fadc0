"""Blocks of the guide that need a cluster, on one of two processes here; run as a script.

Blocks run as they stand on the pages, but for the cluster and the number of draws. In a process of
its own, for Ray changes joblib's pools for good, and both leave threads behind.
"""

import logging
import re
import sys
from pathlib import Path

import pymc as pm

import pymc_trees as pmt
from support.small_models import assert_same_draws, bart_model

DOCS = Path(__file__).parents[2] / "docs"
RUN = {"draws": 4, "tune": 4, "chains": 2, "random_seed": 1, "progressbar": False}
FEW = ", ".join(f"{name}={value}" for name, value in RUN.items())
CHAINS = {"chains=4, random_seed=1": FEW}
SHARDS = {"draws=1000, tune=1000, random_seed=1": FEW}


def run(page: str, package: str, names: dict, changes: dict[str, str]) -> None:
    """Run the block of a page that imports a package, with something put in place of its words."""
    found = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.S | re.M)
    (code,) = [code for code in found if re.search(rf"^(from|import) {package}\b", code, re.M)]
    for said, put in changes.items():
        assert said in code, f"docs/{page}.md says {said} no more"
        code = code.replace(said, put)
    exec(code, names)


def on_dask(chains: dict, shards: dict) -> None:
    from dask.distributed import LocalCluster

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with LocalCluster(
        n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        client = f"Client({cluster.scheduler_address!r})"
        run("saving", "dask", chains, CHAINS | {"Client()": client})
        run("sharded", "dask", shards, SHARDS | {'Client("host:8786")': client})


def on_ray(chains: dict, shards: dict) -> None:
    local = "ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)"
    run("saving", "ray", chains, CHAINS | {"ray.init()": local})
    there = "ray.init(ignore_reinit_error=True)"
    run("sharded", "ray", shards, SHARDS | {'ray.init(address="auto")': there})
    shards["ray"].shutdown()


if __name__ == "__main__":
    model = bart_model(sigma=None)
    chains, shards = {"pmt": pmt, "model": model}, {"pmt": pmt, "model": model}
    {"dask": on_dask, "ray": on_ray}[sys.argv[1]](chains, shards)
    assert shards["idata"].attrs["shards"] == 2
    assert_same_draws(shards["idata"], pmt.sample_sharded(model, 1, **RUN))
    with model:
        assert_same_draws(chains["idata"], pm.sample(cores=1, **RUN))
