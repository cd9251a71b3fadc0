"""Compiled kernels whose folder is empty, missing, full or damaged: the same results still."""

import json
import os
import shutil
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from numba import typeof
from numba.core.registry import cpu_target
from support.scale import scaled

from pymc_trees.core.compile.cache import KernelFile
from pymc_trees.core.value.fields import compute_checksum

CHILD = """
import json, os, sys, warnings

settings = json.loads(sys.argv[1])
if "limit" in settings:  # no file may grow beyond it: writing ends as on a full disk
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (settings["limit"], settings["limit"]))
from numba.core.caching import CacheImpl

# numba has no other folder to turn to than the one in NUMBA_CACHE_DIR
CacheImpl._locator_classes = [
    c for c in CacheImpl._locator_classes if "UserProvided" in c.__name__
]
import numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from pymc_trees.core.value.fields import compute_checksum

    if settings.get("vanish"):
        import shutil
        shutil.rmtree(os.environ["NUMBA_CACHE_DIR"])
        open(os.environ["NUMBA_CACHE_DIR"], "w").close()
    value = np.arange(12.0).reshape(-1, 2)
    checksums = [compute_checksum(v, 1, 3.0) for v in (value, value.astype(np.float32))]
print(json.dumps({
    "checksums": checksums,
    "warnings": [f"{w.category.__name__}: {w.message}" for w in caught],
    "hits": sum(compute_checksum.stats.cache_hits.values()),
}))
"""


def start(folder, **settings):
    """A process that runs a kernel with its compiled code in a folder."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process):
    """What the process found."""
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(out)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A folder with compiled code, and the checksums of the process that made it."""
    folder = tmp_path_factory.mktemp("kept") / "numba"
    first = outcome(start(folder))
    assert first["warnings"] == [] and first["hits"] == 0
    return folder, first["checksums"]


@pytest.mark.full
@pytest.mark.parametrize("limit", [0, 1500], ids=["nothing fits", "an index fits"])
def test_a_full_disk_costs_one_warning(tmp_path, kept, limit):
    pytest.importorskip("resource")
    found = outcome(start(tmp_path, limit=limit))
    assert found["checksums"] == kept[1] and found["hits"] == 0
    (warning,) = found["warnings"]
    assert "UserWarning" in warning and "NUMBA_CACHE_DIR" in warning
    after = outcome(start(tmp_path))  # there is room again
    assert after["checksums"] == kept[1] and after["warnings"] == []


@pytest.mark.full
def test_no_folder_can_be_written(tmp_path, kept):
    (tmp_path / "file").touch()
    found = outcome(start(tmp_path / "file" / "numba"))
    assert found["checksums"] == kept[1] and len(found["warnings"]) == 1


@pytest.mark.full
def test_the_folder_vanishes_after_the_import(tmp_path, kept):
    found = outcome(start(tmp_path / "numba", vanish=True))
    assert found["checksums"] == kept[1] and len(found["warnings"]) == 1


@pytest.mark.full
def test_truncated_files_are_made_again(tmp_path, kept):
    folder = tmp_path / "numba"
    shutil.copytree(kept[0], folder)
    for path in folder.rglob("*.nb[ic]"):
        path.write_bytes(path.read_bytes()[:-50])
    found = outcome(start(folder))
    assert found["checksums"] == kept[1] and found["warnings"] == [] and found["hits"] == 0
    assert outcome(start(folder))["hits"] == 2


@pytest.mark.full
def test_what_kernels_call_comes_back_from_disk_too(tmp_path, kept):
    folder = tmp_path / "numba"
    shutil.copytree(kept[0], folder)
    called = set(folder.rglob("*.linked.*"))
    assert called
    for path in set(folder.rglob("*.nb[ic]")) - called:
        path.unlink()
    found = outcome(start(folder))
    assert found["checksums"] == kept[1] and found["warnings"] == [] and found["hits"] == 0
    assert set(folder.rglob("*.linked.*")) == called


def test_two_processes_on_an_empty_folder(tmp_path, kept):
    both = [start(tmp_path) for _ in range(2)]
    for process in both:
        found = outcome(process)
        assert found["checksums"] == kept[1] and found["warnings"] == []


def cut(content, rng):
    return content[: rng.integers(len(content))]


def flip(content, rng):
    at = rng.integers(len(content))
    return content[:at] + bytes([content[at] ^ (1 << rng.integers(8))]) + content[at + 1 :]


def noise(content, rng):
    return rng.bytes(len(content))


@pytest.mark.parametrize("damage", [cut, flip, noise])
def test_damaged_files_are_as_good_as_none(tmp_path, rng, damage):
    file = KernelFile(str(tmp_path), "kernel", "stamp")
    file.save("one", b"code of one" * 20)
    file.save("other", b"code of other" * 20)
    paths = sorted(tmp_path.iterdir())
    assert [path.suffix for path in paths] == [".nbc", ".nbc", ".nbi"]
    good = {path: path.read_bytes() for path in paths}
    for k in range(scaled(300)):
        path = paths[k % 3]
        path.write_bytes(damage(good[path], rng))
        found = [file.load("one"), file.load("other")]
        assert None in found and set(found) <= {None, b"code of one" * 20, b"code of other" * 20}
        path.write_bytes(good[path])
    assert file.load("one") == b"code of one" * 20
    paths[2].write_bytes(noise(good[paths[2]], rng))
    file.save("one", b"again")
    assert file.load("one") == b"again"


def test_code_of_another_signature_is_not_loaded(tmp_path):
    file = KernelFile(str(tmp_path), "kernel", "stamp")
    file.save("one", b"code of one")
    file.save("other", b"code of other")
    first, second = sorted(tmp_path.glob("*.nbc"))
    second.write_bytes(first.read_bytes())  # as when two processes chose the same name
    assert file.load("one") == b"code of one" and file.load("other") is None


def test_code_of_another_version_of_the_package_is_not_loaded(tmp_path):
    """Also where another process has saved its own under the same name just before."""
    old, new = (KernelFile(str(tmp_path), "kernel", ("stamp", version)) for version in (1, 2))
    old.save("one", b"old code")
    assert new.load("one") is None
    new.save("one", b"new code")
    assert new.load("one") == b"new code" and old.load("one") is None
    (code,) = tmp_path.glob("*.nbc")
    kept = code.read_bytes()
    old.save("one", b"old code")
    stale = code.read_bytes()
    new.save("one", b"new code")
    assert code.read_bytes() == kept
    code.write_bytes(stale)
    assert new.load("one") is None


def test_types_of_one_name_are_told_apart_and_need_not_be_there_to_read_the_index():
    """Text alone is kept of a type: another process may not have the script that defines it."""
    values = np.zeros(3)
    words = []
    for module in ("one_script", "another_script"):
        leaf = namedtuple("Leaf", ["values"], module=module)
        signature = (typeof((leaf(values), 1)), typeof(values))
        key = compute_checksum._cache._index_key(signature, cpu_target.target_context.codegen())
        assert isinstance(key[0], str) and f"{module}.Leaf" in key[0]
        words.append(key[0])
    assert words[0] != words[1]
