"""Blocks of the guide that want a cluster run in two worker processes of this machine."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.full
@pytest.mark.parametrize(("cluster", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_clusters(cluster, package):
    """Chains of docs/saving.md and shards of docs/sharded.md, in two worker processes."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'pymc_trees[{cluster}]'")
    tests = DOCS.parent / "tests"
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE".lstrip(",")
    paths = os.pathsep.join([str(DOCS.parent), str(tests)])
    # Under `uv run`, Ray would build the environment anew for its workers: minutes.
    ray = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, tests / "support" / "guide_cluster.py", cluster],
        env=os.environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": paths} | ray,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-5000:]
