"""Memory of fits, extensions, predictions and copies of Mondrian forests is given back."""

import gc
import pickle
import tracemalloc

from support.scale import scaled

import pymc_trees as pmt


def round_of(rng, X, y):
    for forest, labels in (
        (pmt.MondrianForestRegressor(5, random_state=1, hyperparameters="heuristic"), y),
        (pmt.MondrianForestClassifier(5, random_state=1), (y > 0.5).astype(int)),
    ):
        forest.fit(X[:100], labels[:100])
        for k in range(100, 150):
            forest.partial_fit(X[k : k + 1], labels[k : k + 1])
        again = pickle.loads(pickle.dumps(forest)).partial_fit(X, labels)
        again.predict(X[:20])
        again.sample_y(X[:20], 2, random_state=1)


def test_rounds_leave_nothing_behind(rng):
    """One forest a round that stays would be seen: ten hold some 500 kB of rows.

    What Python traces goes up and down by some 20 kB, without growth over 40 rounds. Trees are
    allocated by kernels, outside of what is traced: ten rounds make some 20 MB of them, so that
    the memory of the process is looked at too, where the system tells it.
    """
    X = rng.random((1000, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=1000)

    def resident():
        gc.collect()
        try:
            with open("/proc/self/statm") as file:
                return 4096 * int(file.read().split()[1])
        except OSError:
            return 0

    round_of(rng, X, y)
    round_of(rng, X, y)
    tracemalloc.start()
    try:
        round_of(rng, X, y)
        gc.collect()
        traced, held = tracemalloc.get_traced_memory()[0], resident()
        for _ in range(scaled(10)):
            round_of(rng, X, y)
        gc.collect()
        more = tracemalloc.get_traced_memory()[0] - traced
        assert more < 150_000, f"{more} bytes more are held"
        assert resident() - held < 10_000_000
    finally:
        tracemalloc.stop()
