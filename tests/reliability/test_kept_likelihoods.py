"""Native functions of likelihoods are read from disk by later processes: the same, bit for bit."""

import json
import os
import subprocess
import sys

import pytest

CHILD = """
import ctypes, gc, json, sys, warnings, weakref

import numpy as np, pymc as pm, pytensor.tensor as pt
from numba.core import event
from pytensor.compile.ops import as_op

import pymc_trees as pmt
from pymc_trees.core.compile.generated import GeneratedCache
from pymc_trees.targets.choose import read_target

name = sys.argv[1]
compiled, caught, environments = [], [], []


class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass


@as_op(itypes=[pt.dvector], otypes=[pt.dvector])
def in_python(x):
    return x**2


def logp(value, f):
    power = 4 if name != "another power" else 6
    more = in_python(f) if name == "an Op in Python" else 0
    return -pm.math.log(1 + (value - f) ** power) - more


rng = np.random.default_rng(1)
X, y = rng.random((12, 2)), rng.normal(size=12)
with pm.Model() as model:
    f = pmt.BART("f", X, m=2, leaf=pmt.NormalLeaf(0.0, 0.5), max_nodes=46)
    if name == "a whole":
        pm.Potential("y", -((pt.cumsum(f) - y) ** 4).sum())
    elif name == "kernels":
        pm.Poisson("y", pm.math.exp(f), observed=np.arange(12))
    else:
        pm.CustomDist("y", f, logp=logp, observed=y)
load_overload = GeneratedCache.load_overload


def load(cache, *types):
    found = load_overload(cache, *types)
    if found is not None:
        environments.extend(weakref.ref(one) for one in found.referenced_envs)
    return found


GeneratedCache.load_overload = load
target = read_target(model, model["f_forest"])
_, seen = target.at(model.initial_point())
event.register("numba:compile", Listener())
outputs, rows = rng.normal(size=(12, 1)), np.arange(12)
found = {"kind": target.kind, "hits": [], "results": []}
functions = [(target.value, 1)]
functions += [(target.gradient if target.kind == "joint" else target.slopes, 2)]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for function, width in functions:
        result = np.zeros((12, width))
        function.address
        gc.collect()
        pointers = (v.ctypes.data for v in (rows, outputs, seen.table, seen.data, result))
        assert function._compiled.ctypes(12, *pointers) == 1
        found["hits"].append(function._compiled.cache_hits)
        found["results"].append(result.tobytes().hex())
found["compiled"] = len(compiled)
found["environments"] = [one() is not None for one in environments]
found["warnings"] = [str(w.message) for w in caught if "Cannot cache" in str(w.message)]
print(json.dumps(found))
"""


def start(folder, name):
    """A process that evaluates a likelihood, and derivatives, with compiled code in a folder."""
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    flags = ",".join(one for one in flags.split(",") if one and "compiledir" not in one)
    own = {
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTENSOR_FLAGS": f"{flags},base_compiledir={folder / 'pytensor'}".lstrip(","),
    }
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, name],
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(process):
    """What the process found."""
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.mark.parametrize(
    ("name", "kind"), [("by rows", "rowwise"), ("a whole", "joint"), ("kernels", "rowwise")]
)
def test_a_second_process_compiles_nothing(folder, name, kind):
    first, second = (outcome(start(folder, name)) for _ in range(2))
    assert first["kind"] == second["kind"] == kind
    assert first["compiled"] > 0 and first["hits"] == [0, 0]
    assert second["compiled"] == 0 and second["hits"] == [1, 1]
    assert first["results"] == second["results"]
    # objects whose addresses are in the code that was read
    assert len(second["environments"]) > 2 and all(second["environments"])


def files(folder):
    """Files of the functions, which stand beside those of other kernels."""
    return sorted((folder / "numba").rglob("generated.c_function*.nb*"))


def test_another_graph_is_another_function(folder):
    one, other = outcome(start(folder, "by rows")), outcome(start(folder, "another power"))
    assert one["hits"] == [1, 1] and other["hits"] == [0, 0]
    assert one["results"][0] != other["results"][0]


@pytest.mark.parametrize("how", ["cut short", "another byte", "empty"])
def test_damaged_files_are_compiled_anew(folder, how):
    known = outcome(start(folder, "by rows"))
    before = files(folder)
    assert before
    for path in before:
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        content[middle] ^= 1
        kept = {"cut short": content[:middle], "another byte": content, "empty": b""}[how]
        path.write_bytes(kept)
    again, after = (outcome(start(folder, "by rows")) for _ in range(2))
    assert again["hits"] == [0, 0] and after["hits"] == [1, 1]
    assert known["results"] == again["results"] == after["results"]


def test_two_processes_at_once(folder):
    for path in files(folder):
        path.unlink()
    both = [start(folder, "by rows") for _ in range(2)]
    found = [outcome(one) for one in both]
    assert found[0]["results"] == found[1]["results"]
    assert outcome(start(folder, "by rows"))["hits"] == [1, 1]


def test_code_that_calls_python_is_not_kept(folder):
    """Its Op may be another one tomorrow, and has an address of this process."""
    found = [outcome(start(folder, "an Op in Python")) for _ in range(2)]
    assert [one["hits"][0] for one in found] == [0, 0]  # the second has no gradient, and zeros
    assert found[0]["warnings"] == []
    assert found[0]["results"] == found[1]["results"]
