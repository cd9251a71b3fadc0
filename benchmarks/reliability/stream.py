"""A million rows through `partial_fit`: is one lost, and what do they take?

    python -m benchmarks.reliability.stream
    python -m benchmarks.reliability.stream --rows 100000 --kind classes --trees 100

Rows come in chunks, and at even distances some come one by one. At the end, and at each line of
the table, every tree is asked whether it holds all rows (those of its leaves, counted), and at the
end a copy through pickle is, whose arrays are looked at one by one. Memory is the peak of the
process; Linux only.
"""

import argparse
import pickle
import resource
from time import perf_counter, process_time

import numpy as np

import pymc_trees as pmt
from pymc_trees.mondrian.kernels.tree import NONE, USED


def rows(rng, n):
    X = rng.random((n, 3))
    return X, 3 * np.sin(6 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def held(forest):
    """Rows in the leaves of each tree."""
    return [
        int(tree.count[: tree.state[USED]][tree.column[: tree.state[USED]] == NONE].sum())
        for tree, _ in forest._fitted.trees
    ]


def nodes_mb(forest):
    """Nodes of a tree, on average, and MB of all arrays of trees and rows."""
    grown = forest._fitted
    arrays = [a for tree, labels in grown.trees for a in (*tree, *labels)]
    used = np.mean([tree.state[USED] for tree, _ in grown.trees])
    return used, sum(a.nbytes for a in (*arrays, grown.rows.X, grown.rows.y)) / 2**20


def main():
    """Stream, and print a line for each tenth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--chunk", type=int, default=1000)
    parser.add_argument("--single", type=float, default=0.02, help="share that comes one by one")
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--kind", choices=["numbers", "classes"], default="numbers")
    parser.add_argument("--max-leaf-nodes", type=int)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    settings = {
        "n_estimators": options.trees,
        "max_leaf_nodes": options.max_leaf_nodes,
        "random_state": 1,
    }
    if options.kind == "numbers":
        forest, more = pmt.MondrianForestRegressor(posterior="fast", **settings), {}
    else:
        forest, more = pmt.MondrianForestClassifier(**settings), {"classes": [0, 1]}
    X, y = rows(rng, 300)
    y = y if options.kind == "numbers" else (y > 1).astype(int)
    warm = type(forest)(10).partial_fit(X, y, **more)  # compiles
    warm.partial_fit(X, y).partial_fit(X[:1], y[:1])
    alone = round(options.chunk * options.single)
    seen, seconds, one_by_one, lines = 0, 0.0, 0.0, 1
    print("     rows   nodes a tree   arrays MB   peak MB   us a row in chunks   us a row alone")
    begin = perf_counter()
    while seen < options.rows:
        n = min(options.chunk, options.rows - seen)
        X, y = rows(rng, n)
        y = y if options.kind == "numbers" else (y > 1).astype(int)
        first = min(alone, n) if seen else 0
        start = process_time()
        for k in range(first):
            forest.partial_fit(X[k : k + 1], y[k : k + 1], **more)
        between = process_time()
        if first < n:
            forest.partial_fit(X[first:], y[first:], **more)
        seen += n
        one_by_one += between - start
        seconds += process_time() - between
        if forest.n_samples_seen_ != seen:
            raise SystemExit(f"{seen} rows were given, {forest.n_samples_seen_} are counted")
        if 10 * seen >= lines * options.rows:
            if set(held(forest)) != {seen}:
                raise SystemExit(f"{seen} rows were given, the trees hold {held(forest)}")
            nodes, mb = nodes_mb(forest)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            singles = max(1, (seen - options.chunk) * alone // options.chunk)
            chunked, single = 1e6 * seconds / max(1, seen - singles), 1e6 * one_by_one / singles
            print(
                f"{seen:9d}   {nodes:12.0f}   {mb:9.0f}   {peak:7.0f}   "
                f"{chunked:18.1f}   {single:14.1f}",
                flush=True,
            )
            lines = 10 * seen // options.rows + 1
    copy = pickle.loads(pickle.dumps(forest, protocol=5))  # looks at every tree
    X, _ = rows(rng, 100)
    alike = np.array_equal(copy.predict(X), forest.predict(X))
    print(
        f"{forest.n_samples_seen_} rows counted, {sorted(set(held(forest)))} in the leaves of each "
        f"tree, a copy predicts alike: {alike}; {perf_counter() - begin:.0f} s in all"
    )


if __name__ == "__main__":
    main()
