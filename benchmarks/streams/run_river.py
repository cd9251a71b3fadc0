"""Streams of river's generators, and its adaptive forests on them, in river's own environment.

    python benchmarks/streams/run_river.py --rows 10000 --out FOLDER

writes ``<stream>.npz`` with the rows and ``river.json`` with the results. It imports nothing of
this package.
"""

import argparse
import itertools
import json
from pathlib import Path
from time import process_time

import numpy as np
from river import forest
from river.datasets import synth

SEED = 1
TREES = 10
"""River's default."""


def streams(n):
    """Name -> stream of n rows; the drift is in the middle, or slow and everywhere."""
    half = n // 2
    return {
        "SEA": _joined(half, (synth.SEA(variant=k, seed=SEED + k, noise=0.1) for k in (0, 3))),
        "Agrawal": _joined(
            half, (synth.Agrawal(classification_function=k, seed=SEED + k) for k in (0, 4))
        ),
        "LED": _joined(
            half,
            (
                synth.LEDDrift(
                    seed=SEED, noise_percentage=0.1, irrelevant_features=True, n_drift_features=k
                )
                for k in (0, 7)
            ),
        ),
        "Hyperplane": synth.Hyperplane(
            seed=SEED, n_features=10, n_drift_features=5, mag_change=0.01
        ).take(n),
        "RandomRBF": synth.RandomRBFDrift(
            seed_model=SEED,
            seed_sample=SEED,
            n_classes=4,
            n_features=10,
            n_centroids=20,
            change_speed=0.001,
            n_drift_centroids=20,
        ).take(n),
        "Friedman, local": synth.FriedmanDrift(
            drift_type="lea", position=(n // 4, n // 2, 3 * n // 4), seed=SEED
        ).take(n),
        "Friedman, global": synth.FriedmanDrift(
            drift_type="gsg", position=(half, 3 * n // 4), transition_window=n // 20, seed=SEED
        ).take(n),
    }


def _joined(half, parts):
    return itertools.chain.from_iterable(part.take(half) for part in parts)


def prequential(model, rows, skip):
    """Mean loss of each row before it is learnt, from a row on, and CPU seconds."""
    losses, start = [], process_time()
    for k, (x, y) in enumerate(rows):
        if k >= skip:
            predicted = model.predict_one(x)
            is_class = isinstance(y, int | np.integer | bool)
            losses.append(predicted != y if is_class else (predicted - y) ** 2)
        model.learn_one(x, y)
    return float(np.mean(losses)), process_time() - start


def main():
    """Write streams and results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--skip", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = []
    for name, stream in streams(options.rows).items():
        rows = list(stream)
        y = np.array([y for _, y in rows])
        X = np.array([[float(v) for v in x.values()] for x, _ in rows])
        np.savez_compressed(options.out / f"{name}.npz", X=X, y=y)
        maker = forest.ARFRegressor if name.startswith("Friedman") else forest.ARFClassifier
        model = maker(n_models=TREES, seed=SEED)
        loss, seconds = prequential(model, rows, options.skip)
        one = {"stream": name, "model": "river ARF", "trees": TREES, "loss": loss}
        results.append(one | {"seconds": seconds})
        print(results[-1], flush=True)
    (options.out / "river.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
