"""After `python -m pymc_trees.compile` nothing is left to compile, and draws are the same."""

import json
import os
import subprocess
import sys

import pytest

from pymc_trees import compile as ahead

CHILD = """
import json
import numpy as np
from numba.core import event
import pymc as pm
import pymc_trees as pmt

class Listener(event.Listener):
    compiled = []
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if (function.__module__ or "").startswith("pymc_trees.core."):
            self.compiled.append(function.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
rng = np.random.default_rng(5)
X = rng.random((70, 4))
with pm.Model():
    f = pmt.SoftBART("another_name", X, X[:, 0], m=5)
    pm.Normal("z", f, pm.HalfNormal("noise", 2.0), observed=X[:, 0])
    idata = pm.sample(5, tune=5, chains=1, cores=1, random_seed=2, progressbar=False, quiet=True)
print(json.dumps([Listener.compiled, idata.posterior["another_name"].values.tolist()]))
"""


def run(folder, *command):
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.full
def test_a_process_afterwards_compiles_nothing(tmp_path):
    told = run(tmp_path / "ahead", "-m", "pymc_trees.compile", "soft")
    assert "soft" in told and str(tmp_path / "ahead") in told
    compiled, draws = json.loads(run(tmp_path / "ahead", "-c", CHILD))
    assert compiled == []
    compiled, by_itself = json.loads(run(tmp_path / "by_itself", "-c", CHILD))
    assert compiled and by_itself == draws
    again = run(tmp_path / "ahead", "-m", "pymc_trees.compile", "soft")
    assert again.splitlines()[-1].startswith("0 kernels in ")


@pytest.mark.full
@pytest.mark.parametrize("kind", ahead.KINDS)
def test_each_kind_runs_and_leaves_nothing_to_compile(kind):
    ahead.compile_ahead([kind])
    assert ahead.compile_ahead([kind])[kind][0] == 0


def test_mistakes_are_named(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        ahead.main(["normal", "gaussian"])
    assert "gaussian: choose from normal, poisson" in capsys.readouterr().err
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "numba"))
    with pytest.raises(SystemExit):
        ahead.main(["normal"])
    assert "named by NUMBA_CACHE_DIR, cannot be written" in capsys.readouterr().err
