"""An edit of a file compiles anew what depends on it, and nothing else."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pymc_trees
from pymc_trees.core.compile import depends

CHILD = """
import json, sys
import numpy as np
from numba.core import event

class Listener(event.Listener):
    compiled = []
    def on_start(self, event):
        self.compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.dirichlet import make_dirichlet
from pymc_trees.core.leaves.normal_gamma import make_normal_gamma
from pymc_trees.core.leaves.contract import log_likelihood_of
if sys.argv[1] == "more":
    import pymc_trees.core.samplers.backfitting, pymc_trees.core.leaves.normal

found = {}
for name, leaf in (
    ("dirichlet", make_dirichlet(1.0, 2, np.array([0, 1, 1]))),
    ("normal_gamma", make_normal_gamma(1.0, 3.0, 1.0, np.array([0.0, 1.0, 3.0]))),
):
    trees = make_trees(1, 5, 2, 3)
    trees.values[:] = 0.5
    Listener.compiled.clear()
    found[name] = [log_likelihood_of(leaf, trees), list(Listener.compiled)]
print(json.dumps(found))
"""
ROOTS = {"log_likelihood_of"}


@pytest.fixture
def copied(tmp_path):
    """Run the child on a copy of the package."""
    package = tmp_path / "copy" / "pymc_trees"
    shutil.copytree(
        Path(pymc_trees.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "PYTHONPATH": str(tmp_path / "copy"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run(*, more=False):
        command = [sys.executable, "-c", CHILD, "more" if more else ""]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def edit(file, old, new):
        path = package / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return run, edit


@pytest.mark.full
def test_an_edit_costs_what_depends_on_it(copied):
    run, edit = copied
    first = run()
    assert all(ROOTS <= set(compiled) for _, compiled in first.values())
    again = run(more=True)  # whatever else is imported
    assert {name: value for name, (value, _) in again.items()} == {
        name: value for name, (value, _) in first.items()
    }
    assert all(compiled == [] for _, compiled in again.values())

    # a kernel that is picked by the type of the leaf
    edit("core/leaves/normal_gamma.py", "error = leaf.y[i] +", "error = 1.0 + leaf.y[i] +")
    changed = run()
    assert changed["dirichlet"] == [first["dirichlet"][0], []]
    value, compiled = changed["normal_gamma"]
    assert value != first["normal_gamma"][0] and {*ROOTS, "_log_row"} <= set(compiled)
    assert "_n_stats" not in compiled

    # a file that neither knows, and one that both import
    edit("core/leaves/normal.py", "LANES = 8", "LANES = 4")
    assert run() == changed | {"normal_gamma": [value, []]}
    edit("core/leaves/contract.py", "    total = 0.0\n", "    total = 1.0\n")
    both = run()
    assert both["dirichlet"][0] == pytest.approx(first["dirichlet"][0] + 1.0)
    assert both["normal_gamma"][0] == pytest.approx(value + 1.0)

    # the order of the fields of a type: kernels find them by their place
    edit(
        "core/leaves/normal_gamma.py",
        "    a: float\n    nu: float\n",
        "    nu: float\n    a: float\n",
    )
    edit(
        "core/leaves/normal_gamma.py",
        "NormalGammaData(float(a), float(nu), ",
        "NormalGammaData(float(nu), float(a), ",
    )
    assert run()["normal_gamma"][0] == pytest.approx(value + 1.0)


def test_modules_of_a_kernel():
    """Imports are those of the sources, through other modules and in parentheses."""
    name = "pymc_trees.core.samplers.backfitting"
    found = depends.closure({name})
    core = "pymc_trees.core."
    assert {name, core + "leaves.contract", core + "columns.design", core + "random"} <= found
    assert not {core + "leaves.normal", core + "leaves.dirichlet", "pymc_trees"} & found
    importlib.import_module(name)
    assert found <= set(sys.modules), "every module of the closure exists, and is imported"


def test_modules_of_a_call_with_defaults():
    kernel = object()
    depends.keep(kernel, ("int64",), {"a"})
    depends.keep(kernel, ("float64",), {"b"})
    assert depends.kept(kernel, ("int64",)) == {"a"}
    assert depends.kept(kernel, ()) == {"a", "b"} and depends.kept(object(), ()) == frozenset()


def test_what_is_noted_reaches_every_kernel_around():
    with depends.noted():
        with depends.noted():
            depends.note({"inner"})
            assert depends.noted_now() == {"inner"}
        depends.note({"outer"})
        assert depends.noted_now() == {"inner", "outer"}
    depends.note({"nobody"})
