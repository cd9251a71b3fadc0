"""Mondrian forests with a window beside river's adaptive forests, on river's drift generators.

    python -m benchmarks.streams --python /path/to/python/with/river
    python -m benchmarks.streams --rows 4000 --trees 20 --windows 1000

Each row is predicted before it is learnt. river learns one row after the other; a Mondrian forest
learns ``--block`` rows at a time, which it has all predicted before, so that it knows the latest
labels a little later. The first 200 rows are learnt by all and not scored: they give Mondrian
forests the ranges of the columns (``scaling="first"``). Loss is the share of wrong classes, or the
root of the mean squared error.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import pymc_trees as pmt

SKIP = 200


def prequential(forest, X, y, block):
    """Losses before each block is learnt, and CPU seconds."""
    is_classes = isinstance(forest, pmt.MondrianForestClassifier)
    more = {"classes": np.unique(y)} if is_classes else {}
    forest.partial_fit(X[:SKIP], y[:SKIP], **more)
    forest.predict(X[:block])
    losses, start = [], process_time()
    for first in range(SKIP, len(X), block):
        rows = slice(first, first + block)
        predicted = forest.predict(X[rows])
        losses.append(predicted != y[rows] if is_classes else (predicted - y[rows]) ** 2)
        forest.partial_fit(X[rows], y[rows])
    return float(np.mean(np.concatenate(losses))), process_time() - start


def of_streams(folder, options):
    """Results of Mondrian forests on the streams of a folder."""
    for path in sorted(folder.glob("*.npz")):
        held = np.load(path)
        X, y = held["X"], held["y"]
        is_classes = y.dtype.kind in "bi"
        maker = pmt.MondrianForestClassifier if is_classes else pmt.MondrianForestRegressor
        for trees, window in itertools.product(options.trees, (None, *options.windows)):
            if trees > 10 and (window is None or not is_classes):
                continue  # slow: nothing is forgotten; settings are searched for at each block
            forest = maker(
                n_estimators=trees,
                window=window,
                scaling="first",
                random_state=1,
                progressbar=False,
            )
            loss, seconds = prequential(forest, X, y, options.block)
            name = "Mondrian forest" + (f", window={window}" if window else "")
            yield {
                "stream": path.stem,
                "model": name,
                "trees": trees,
                "loss": loss,
                "seconds": seconds,
            }


def run_river(folder, options):
    """Make the streams, and river's results, in its own environment, unless they are there."""
    if (folder / "river.json").exists():
        return json.loads((folder / "river.json").read_text())
    script = Path(__file__).with_name("run_river.py")
    command = [options.python, str(script), "--rows", str(options.rows), "--skip", str(SKIP)]
    done = subprocess.run([*command, "--out", str(folder)], capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1]
        sys.exit(
            f"river did not run ({last}): pip install river into an environment, whose Python "
            "--python names."
        )
    return json.loads((folder / "river.json").read_text())


def show(results):
    """A table: a row for each stream, a column for each model."""
    models = list(dict.fromkeys((r["model"], r["trees"]) for r in results))
    for what, decimals in (("loss", 3), ("seconds", 1)):
        print(f"\n| {what} | " + " | ".join(f"{m}, {t} trees" for m, t in models) + " |")
        print("|---" * (len(models) + 1) + "|")
        for stream in dict.fromkeys(r["stream"] for r in results):
            known = {(r["model"], r["trees"]): r for r in results if r["stream"] == stream}
            cells = []
            for one in models:
                value = known[one][what] if one in known else None
                if what == "loss" and value is not None and stream.startswith("Friedman"):
                    value = np.sqrt(value)
                cells.append("" if value is None else f"{value:.{decimals}f}")
            print(f"| {stream} | " + " | ".join(cells) + " |")


def main():
    """Run both, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="a Python that has river")
    parser.add_argument("--folder", type=Path, help="keeps streams and river's results")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--trees", type=int, nargs="*", default=[10, 100])
    parser.add_argument("--windows", type=int, nargs="*", default=[500, 2000])
    parser.add_argument("--block", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        results = run_river(folder, options)
        for one in of_streams(folder, options):
            print(one, file=sys.stderr, flush=True)
            results.append(one)
    show(results)


if __name__ == "__main__":
    main()
