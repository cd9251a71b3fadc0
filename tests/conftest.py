"""Set before anything is imported: empty compile caches. And the fixtures all tests share."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import zlib
from pathlib import Path

import pytest

# An edited callee leaves its callers' compiled code stale, in numba's cache and in PyTensor's, so
# a test session starts with empty ones. Both libraries read these variables when they are first
# imported. The workers of pytest-xdist inherit them and share one cache: what one compiled the
# other loads. A variable that is already set (as .ci/run does) is respected.
_made_here: list[Path] = []


def _use_empty_caches() -> None:
    if "NUMBA_CACHE_DIR" not in os.environ:
        _made_here.append(Path(tempfile.mkdtemp(prefix="numba-")))
        os.environ["NUMBA_CACHE_DIR"] = str(_made_here[-1])
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    if "compiledir" not in flags:
        _made_here.append(Path(tempfile.mkdtemp(prefix="pytensor-")))
        flags = f"{flags},base_compiledir={_made_here[-1]}".lstrip(",")
        os.environ["PYTENSOR_FLAGS"] = flags


_use_empty_caches()

# A process started in the background ignores interrupts; those of the tests are to be answered.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the caches; only the process that made them has any in its list."""
    for path in _made_here:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def rng(request: pytest.FixtureRequest):
    """Return a generator of this test alone: always the same, whatever ran before."""
    import numpy as np

    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="module")
def quick_compile():
    """PyTensor without numba, for tests that build many models and run each only a little.

    Compiling the graph of one model with numba takes seconds; the Ops' Python side does the same.
    """
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield
