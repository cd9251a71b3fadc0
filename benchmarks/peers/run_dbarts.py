"""Runner for dbarts: writes the problem as plain binary, calls R, reads the draws back.

``dbarts:1.0`` is that version in the R library that DBARTS_LIBRARY names.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from . import protocol

SCRIPT = Path(__file__).with_name("run_dbarts.R")
SETTINGS = ("m", "n_warmup", "n_draws", "thin", "chains", "seed")


def write(folder, problem):
    for name in ("X", "y", "X_test"):
        array = np.asfortranarray(getattr(problem, name), dtype="<f8")
        (folder / f"{name}.bin").write_bytes(array.tobytes(order="F"))
    settings = {name: getattr(problem, name) for name in SETTINGS}
    settings |= {"n": len(problem.X), "p": problem.X.shape[1], "n_test": len(problem.X_test)}
    settings |= {"alpha": protocol.ALPHA, "beta": protocol.BETA, "k": protocol.K}
    text = "".join(f"{key},{value}\n" for key, value in settings.items())
    (folder / "settings.csv").write_text(text)


def read(folder, problem):
    f = np.fromfile(folder / "f.bin", "<f4")
    sigma = np.fromfile(folder / "sigma.bin", "<f8")
    costs = dict(line.split(",") for line in (folder / "costs.csv").read_text().split())
    return protocol.Result(
        f=f.reshape(problem.chains, problem.kept, len(problem.X_test)),
        sigma=sigma.reshape(problem.chains, problem.kept),
        seconds_compile=0.0,
        seconds_warmup=float(costs["warmup"]),
        seconds_sampling=float(costs["sampling"]),
        seconds_predict=float(costs["predict"]),
        sweeps_per_step=1.0,
        bytes_before=int(costs["before"]),
        bytes_peak=int(costs["peak"]),
        version=costs["version"],
    )


def run(problem):
    rscript = shutil.which("Rscript")
    if rscript is None:
        raise ModuleNotFoundError("No module named 'dbarts': Rscript is not on the path")
    env = dict(os.environ)
    if problem.variant:
        env["R_LIBS"] = os.environ.get("DBARTS_LIBRARY", "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, problem)
        subprocess.run([rscript, "--vanilla", str(SCRIPT), name], check=True, env=env)
        result = read(folder, problem)
    if not result.version.startswith(problem.variant):
        wanted = f"No module named 'dbarts' {problem.variant} in DBARTS_LIBRARY"
        raise ModuleNotFoundError(f"{wanted}: this is {result.version}")
    return result


if __name__ == "__main__":
    protocol.serve(run)
