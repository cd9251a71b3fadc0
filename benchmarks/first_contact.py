"""What a user waits for at first: compilers, and nothing else.

    python -m benchmarks.first_contact --out first_contact.json

Every line of the table is a fresh process on ``--cores`` cores. "empty caches" are fresh folders
for the compiled code of numba and PyTensor; the lines below go on with what those above left there.
Beside wall time, which neighbours on the machine stretch, stand CPU seconds of the process and of
all it started. Kernels are counted by the files that they leave in the package's cache. Packages
have their bytecode, as pip installs them: it is written before the first measurement.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def declare(rows, m, max_nodes, trees):
    """The README's model on the first rows of its data; or a linear one, for PyMC's own costs."""
    import pymc as pm

    import pymc_trees as pmt
    from pymc_trees.datasets import load_bikes

    bikes = load_bikes()
    X = bikes[["hour", "temperature", "humidity", "workingday"]].to_numpy(dtype=float)[::2][:rows]
    y = bikes["count"].to_numpy(dtype=float)[::2][:rows]
    with pm.Model() as model:
        data = pm.Data("X", X)
        if trees:
            mu = pmt.BART("mu", data, y, m=m, max_nodes=max_nodes)
        else:
            mu = pm.Deterministic("mu", pm.math.dot(data, pm.Normal("b", 0, 100, shape=4)))
        sigma = pm.HalfNormal("sigma", y.std())
        pm.Normal("y", mu, sigma, observed=y, shape=mu.shape)
    return model


def sample(sizes, chains, cores):
    """Run models one after the other; for each, seconds from pm.sample to the first draw."""
    import pymc as pm

    found = []
    for size in sizes:
        drawn: list[float] = []
        with declare(*size):
            begun = time.perf_counter()
            pm.sample(
                draws=10,
                tune=10,
                chains=chains,
                cores=cores,
                progressbar=False,
                compute_convergence_checks=False,
                random_seed=1,
                callback=lambda trace, draw, drawn=drawn: drawn.append(time.perf_counter()),
            )
        found.append({"first_draw": drawn[0] - begun, "all": time.perf_counter() - begun})
    return found


def cpu_seconds(who):
    """CPU seconds of a process or of its children that ended."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def kernels_in(folder):
    """Kernels whose code numba keeps in a folder."""
    return len(list(folder.rglob("*.nbc")))


def environment_of(scratch):
    """Environment of a process: caches of its own, and bytecode that is kept."""
    found = {**os.environ, "NUMBA_CACHE_DIR": str(scratch / "numba")}
    found["PYTENSOR_FLAGS"] = f"base_compiledir={scratch / 'pytensor'}"
    if found.pop("PYTHONDONTWRITEBYTECODE", None):
        found["PYTHONPYCACHEPREFIX"] = str(Path(tempfile.gettempdir()) / "first_contact_bytecode")
    return found


def write_bytecode():
    """Import what the runs import, so that its bytecode is on disk."""
    with tempfile.TemporaryDirectory() as folder:
        code = "import arviz, h5netcdf, matplotlib.pyplot, pymc, pymc_trees; pymc_trees.BART"
        subprocess.run([sys.executable, "-c", code], env=environment_of(Path(folder)), check=True)


def run(command, scratch, cores):
    """Run a command on some cores with the caches in ``scratch``."""
    (scratch / "numba").mkdir(exist_ok=True)
    kernels, cpu = kernels_in(scratch / "numba"), cpu_seconds(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(
        command,
        env=environment_of(scratch),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    return done.stdout, {
        "process": time.perf_counter() - begun,
        "cpu": cpu_seconds(resource.RUSAGE_CHILDREN) - cpu,
        "kernels": kernels_in(scratch / "numba") - kernels,
    }


def measure_samples(name, sizes, scratch, options):
    """Records of models that one process samples."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.first_contact"]
    command += ["--watch", json.dumps(sizes), "--chains", str(options.chains)]
    text, measured = run(command, scratch, options.cores)
    found = json.loads(text.splitlines()[-1])
    names = [name] if len(found) == 1 else [f"{name}, model {k + 1}" for k in range(len(found))]
    return [{"name": n, **one, **measured} for n, one in zip(names, found, strict=True)]


def measure(options):
    """All records, in order: later ones use the caches of earlier ones."""
    write_bytecode()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-m", "pymc_trees", "--out", folder]
        _, measured = run(command, Path(folder), options.cores)
        records.append({"name": "main job, empty caches", **measured})
    with tempfile.TemporaryDirectory() as folder:
        linear, first, others = [174, 0, None, False], [174, 50, None, True], [160, 60, 700, True]
        cases = [
            ("linear model, empty caches", [linear]),
            ("first model, empty caches", [first]),
            ("the same in a new process", [first]),
            ("other rows, m and max_nodes in a new process", [others]),
            ("two more sizes in one process", [[150, 40, 600, True], [140, 30, 500, True]]),
            ("linear model, other rows in a new process", [[160, 0, None, False]]),
        ]
        for name, sizes in cases:
            records += measure_samples(name, sizes, Path(folder), options)
    return records


def print_table(records):
    """Print the records."""
    print("| | s to the first draw | s of the process | CPU s | kernels compiled |")
    print("|---|---|---|---|---|")
    for one in records:
        first = f"{one['first_draw']:.1f}" if "first_draw" in one else ""
        numbers = f"{one['process']:.1f} | {one['cpu']:.1f} | {one['kernels']}"
        print(f"| {one['name']} | {first} | {numbers} |")


def main():
    """Measure, or be the process that is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="JSON file of all numbers")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--watch", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch is not None:
        cores = min(4, len(os.sched_getaffinity(0)))
        print(json.dumps(sample(options.watch, options.chains, cores)))
        return
    options.cores = sorted(os.sched_getaffinity(0))[: options.cores]
    records = measure(options)
    print_table(records)
    if options.out is not None:
        options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
