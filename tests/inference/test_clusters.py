"""Chains on real clusters: joblib's backends of Dask and Ray, with two worker processes each."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.mark.full
@pytest.mark.parametrize("what", ["draws", "lost"])
@pytest.mark.parametrize("cluster", PACKAGES)
def test_chains_on_a_cluster(cluster, what, tmp_path):
    if find_spec(PACKAGES[cluster]) is None:
        pytest.skip(f"{PACKAGES[cluster]} is not installed: pip install 'pymc_trees[{cluster}]'")
    # Workers have no `quick_compile` but this; and only then are their sums added up as here.
    flags = f"{os.environ.get('PYTENSOR_FLAGS', '')},mode=FAST_COMPILE".lstrip(",")
    # Under `uv run`, Ray would build the environment anew for its workers: minutes.
    ray = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    paths = os.pathsep.join([str(TESTS.parent), str(TESTS)])
    done = subprocess.run(
        [sys.executable, TESTS / "support" / "cluster.py", cluster, what, tmp_path],
        env=os.environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": paths} | ray,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-5000:]
