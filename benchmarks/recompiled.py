"""How many kernels does an edit of the core recompile? Past commits, replayed.

    python -m benchmarks.recompiled
    python -m benchmarks.recompiled --commits 30

A few small models are sampled, so that their kernels are compiled or loaded. For each of the last
commits that changed a file of `pymc_trees/core` which is still there, kernels are counted whose
code depends on one of these files by now (`core/compile/depends.py`), and those with a whole sweep
or the like, which Python calls. With a digest of all of the core each commit recompiled all.
"""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import pymc as pm

import pymc_trees as pmt
from pymc_trees.core.compile import depends

ROOT = Path(__file__).parents[1]


def sample_some():
    """A normal leaf, a Poisson, levels and missing cells, a linear leaf, a soft forest."""
    rng = np.random.default_rng(1)
    X, y = rng.random((60, 3)), rng.normal(size=60)
    gaps = X.copy()
    gaps[::7, 1] = np.nan
    counts = rng.poisson(2.0, 60)

    def forest(X=X, **settings):
        mu = pmt.BART("mu", X, y, m=3, **settings)
        pm.Normal("y", mu, 1.0, observed=y)

    def poisson():
        mu = pmt.BART("mu", X, m=3, leaf=pmt.NormalLeaf(0, 0.3))
        pm.Poisson("y", pm.math.exp(mu), observed=counts)

    def soft():
        pm.Normal("y", pmt.SoftBART("mu", X, y, m=3), 1.0, observed=y)

    models = [forest, lambda: forest(gaps), lambda: forest(leaf=pmt.LinearLeaf()), poisson, soft]
    for declare in models:
        with pm.Model():
            declare()
            pm.sample(2, tune=2, chains=1, cores=1, progressbar=False, quiet=True)


def edits(n: int, until: str):
    """Hash, first line and changed modules of the last commits to the core."""
    log = ["git", "log", "--no-merges", "--format=@%h %s", "--name-only", until]
    log += ["--", "pymc_trees/core"]
    text = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for commit in text.split("@")[1:]:
        title, *names = commit.strip().splitlines()
        paths = [name for name in names if name.endswith(".py") and (ROOT / name).exists()]
        modules = {p.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for p in paths}
        if modules:
            found.append((title, modules))
    return found[:n]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recompiled", description=__doc__)
    parser.add_argument("--commits", type=int, default=12)
    parser.add_argument("--until", default="HEAD", help="the last commit to be replayed")
    options = parser.parse_args()
    sample_some()
    kernels = []
    for (dispatcher, _), modules in depends.kept_by_kernel().items():
        name = getattr(getattr(dispatcher, "py_func", None), "__module__", None) or ""
        if name.startswith("pymc_trees.core"):
            uses = depends.closure(modules | {name})
            kernels.append((uses, not dispatcher.targetoptions.get("no_cpython_wrapper")))
    roots = sum(is_root for _, is_root in kernels)
    print(f"{len(kernels)} kernels, {roots} of them called from Python\n")
    print("| commit | files of the core | kernels | called from Python |\n|---|---|---|---|")
    shares = []
    for title, modules in edits(options.commits, options.until):
        stale = [is_root for uses, is_root in kernels if uses & modules]
        shares.append((len(stale) / len(kernels), sum(stale) / roots))
        print(f"| {title[:60]} | {len(modules)} | {len(stale)} | {sum(stale)} |")
    mean, mean_roots = np.mean(shares, axis=0)
    print(f"\nmean share: {mean:.2f} of all kernels, {mean_roots:.2f} of those called from Python")


if __name__ == "__main__":
    main()
