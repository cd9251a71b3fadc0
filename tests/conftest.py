"""Set before anything is imported: where compiled code is kept. And fixtures for all tests."""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import shutil
import signal
import sys
import time
import zlib
from importlib.metadata import version
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]
# Compiled code of the checkout's sources, out of git's sight; a folder may be deleted at any time.
KEPT = ROOT / ".pytest_cache" / "kernels"
DAY = 24 * 3600.0


def _digest() -> str:
    """Name of all that compiled code depends on: kernels, those of the tests too, and compilers."""
    digest = hashlib.sha256(platform.processor().encode())
    for name in ("numba", "numpy", "pytensor"):
        digest.update(version(name).encode())
    core = [*ROOT.glob("pymc_trees/core/**/*.py"), *ROOT.glob("pymc_trees/*/kernels/*.py")]
    helpers = (path for path in (ROOT / "tests").rglob("*.py") if not path.match("test_*.py"))
    kernels = (path for path in helpers if b"njit" in path.read_bytes())
    for path in [*sorted(core), *sorted(kernels)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _one_thread_each() -> None:
    """OpenMP and BLAS keep to one thread, unless the environment says otherwise.

    Threads of OpenMP that wait spin, and workers share the cores: gradient boosting of scikit-learn
    took 52 s beside two busy processes, and .3 s with one thread.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _keep_compiled_code() -> None:
    """Name the caches of numba and PyTensor, unless the environment does (as .ci/versions).

    Both libraries read these variables when they are first imported; workers of pytest-xdist and
    other processes inherit them, so that what one compiled the others load.
    """
    here = KEPT / _digest()
    if "NUMBA_CACHE_DIR" not in os.environ:
        os.environ["NUMBA_CACHE_DIR"] = str(here / "numba")
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    if "compiledir" not in flags:
        os.environ["PYTENSOR_FLAGS"] = f"{flags},base_compiledir={here / 'pytensor'}".lstrip(",")
    if sys.dont_write_bytecode:  # then each process would compile PyMC's sources, for ten seconds
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(KEPT / "bytecode")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    here.mkdir(parents=True, exist_ok=True)
    os.utime(here)
    for other in KEPT.iterdir():  # another run may be at work in one that is not old
        if time.time() - other.stat().st_mtime > DAY:
            shutil.rmtree(other, ignore_errors=True)


_one_thread_each()
_keep_compiled_code()
os.environ.setdefault("MPLBACKEND", "Agg")  # no window is opened

# numba's compiler makes many objects that live on, and most of the time here is spent in it: with
# Python's thresholds, looking through them takes a fifth of that.
gc.set_threshold(100_000, 20, 100)

# A process started in the background ignores interrupts; those of the tests are to be answered.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Two workers that need the same kernels at once would both compile them. So a folder or a file goes
# to one worker, and while it compiles what most tests need, the other is at kernels of other kinds.
FIRST = (
    "tests/test_notebooks.py",  # long
    "tests/step_methods/test_assignment.py",
    "tests/mondrian/",
    "tests/estimators/",
    "tests/soft/",
    "tests/inference/",
    "tests/core/",
)


def _place(nodeid: str) -> int:
    return next((k for k, path in enumerate(FIRST) if nodeid.startswith(path)), len(FIRST))


class ByKernels(LoadFileScheduling):
    """Parts named in `FIRST` stay together, other tests by file."""

    def _split_scope(self, nodeid: str) -> str:
        return [*FIRST, super()._split_scope(nodeid)][_place(nodeid)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Give parts to workers in the order of `FIRST`."""
    config.option.loadscopereorder = False
    return ByKernels(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of a share."""
    from support.shares import read_share

    told = "run the K-th of N shares of the tests that are selected, file by file"
    parser.addoption("--share", type=read_share, metavar="K/N", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out other shares, if one is asked for."""
    from support.shares import Share

    if share := config.getoption("share", None):
        config.pluginmanager.register(Share(*share), "share")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even read files that are outside the quick tier, when it alone is run."""
    from support.tiers import is_left_out

    return is_left_out(collection_path, config) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order files; mark those outside the quick tier, unless they were asked for by name."""
    from support.tiers import QUICK_FILES, all_are_asked_for

    items.sort(key=lambda item: _place(item.nodeid))
    by_file = all_are_asked_for(config)
    for item in items:
        if by_file and item.path not in QUICK_FILES:
            item.add_marker("full")


@pytest.fixture
def rng(request: pytest.FixtureRequest):
    """Return a generator of this test alone: always the same, whatever ran before."""
    import numpy as np

    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session", autouse=True)
def checked_calls():
    """Have direct calls of compiled kernels check the types of their arguments."""
    from support.checked_calls import check_direct_calls

    check_direct_calls()


@pytest.fixture(autouse=True)
def closed_figures():
    """No test sees the figures of another."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="module")
def quick_compile():
    """PyTensor without numba, for tests that build many models and run each only a little.

    Compiling the graph of one model with numba takes seconds; the Ops' Python side does the same.
    """
    import pytensor

    # Functions within Ops would be compiled in C, which takes a second for each.
    with pytensor.config.change_flags(mode="FAST_COMPILE", cxx=""):
        yield
