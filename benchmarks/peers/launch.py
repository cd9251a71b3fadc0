"""Starts runners as processes of their own, on one core and with one thread."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from . import protocol

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pymc_trees", "pymc_bart", "stochtree", "bartz", "dbarts", "xbart")
SPEED_ONLY = ("pymc_trees_sweep",)
ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
MISSING = ("No module named", "ModuleNotFoundError")


class RunnerFailed(Exception):
    """A runner stopped: the package is missing, or the last line says why."""


def split_name(name):
    """``package`` or ``package:variant``."""
    package, _, variant = name.partition(":")
    known = PACKAGES + SPEED_ONLY
    if package not in known:
        raise ValueError(f"package {package!r}: choose from {', '.join(known)}")
    return package, variant


def quiet_core():
    """The allowed core with the least to do at the moment; None where it cannot be set."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    load = psutil.cpu_percent(interval=0.3, percpu=True)
    return min(os.sched_getaffinity(0), key=lambda core: load[core] if core < len(load) else 0)


def environment():
    env = os.environ | dict.fromkeys(ONE_THREAD, "1")
    env["JAX_PLATFORMS"] = "cpu"
    env["PYTHONWARNINGS"] = "ignore"
    return env


def explain(package, text):
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no output"]
    for line in lines:
        if any(word in line for word in MISSING):
            return f"{package} is missing ({line.split(': ', 1)[-1]})"
    errors = [line for line in lines if "Error" in line]
    return (errors or lines)[-1]


def run(package, problem, python=sys.executable, timeout=None):
    """The :class:`protocol.Result` of one package on one problem."""
    core = quiet_core()
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "problem.npz", Path(folder) / "result.npz"
        protocol.save(given, problem)
        command = [python, "-m", f"benchmarks.peers.run_{package}", str(given), str(made)]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(),
                preexec_fn=pin,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired as error:
            raise RunnerFailed(f"stopped after {timeout:.0f} s") from error
        except OSError as error:
            raise RunnerFailed(str(error)) from error
        if done.returncode == -signal.SIGKILL:
            raise RunnerFailed("killed, as the system does with a process when memory runs out")
        if not made.exists():
            raise RunnerFailed(explain(package, done.stdout + done.stderr))
        return protocol.load(made, protocol.Result)
