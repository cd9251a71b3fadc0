"""What a visit of a tree and each further move cost, kernels without PyMC.

    python -m benchmarks.mixing.cost_of_moves --rows 1000 --trees 50

Friedman's first function, ten columns; with `--mixed` also after three of them have become eight
levels each and two have lost a tenth of their cells. After 400 sweeps of all moves the trees are
visited with one kind of move alone, once and nine times a visit: the difference is what eight
further moves take. The least of nine times of 20 sweeps, CPU. To compare two versions, run both at
once, a core each.
"""

import argparse
from time import process_time

import numpy as np

from benchmarks.mixing.local_moves import moves_of, run_block, start
from benchmarks.peers import data, table
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.moves.catalogue import standard_moves

NEVER = 1e-9
KINDS = {
    "grow and prune": [0.5, 0.5, 0.0, 0.0, 0.0],
    "change": [NEVER, NEVER, 1.0, 0.0, 0.0],
    "swap": [NEVER, NEVER, 0.0, 1.0, 0.0],
    "perturb": [NEVER, NEVER, 0.0, 0.0, 1.0],
    "rotate": [NEVER, NEVER, 0.0, 0.0, 0.0, 1.0],
    "restructure": [NEVER, NEVER, 0.0, 0.0, 0.0, 0.0, 1.0],
}
REPEATS, SWEEPS, MANY = 9, 20, 9


def microseconds(arrays, rng, weights, per_visit):
    """CPU time of a visit."""
    problem, work, y = arrays
    weights = np.array(weights) / np.sum(weights)
    moves = standard_moves(weights)._replace(per_visit=per_visit)
    counts = np.zeros((2, weights.size), dtype=np.int64)
    times = []
    for _ in range(REPEATS):
        begin = process_time()
        run_block(rng, problem, moves, work, y, SWEEPS, counts)
        times.append(process_time() - begin)
    return 1e6 * min(times) / SWEEPS / problem.trees.roots.size


def with_levels_and_gaps(X):
    """Design of the same rows, of whose columns half are of another kind."""
    X, rng, kinds = X.copy(), np.random.default_rng(1), np.zeros(X.shape[1], dtype=np.int64)
    levels, gaps = [1, 4, 7], [2, 8]
    X[:, levels], kinds[levels] = np.floor(8 * X[:, levels]), 8
    for column in gaps:
        X[rng.random(len(X)) < 0.1, column] = MISSING
    return make_design(X, None, kinds)


def costs(arrays, label):
    """Rows of the table."""
    rng, counts = np.random.default_rng(0), np.zeros((2, 5), dtype=np.int64)
    run_block(rng, arrays[0], moves_of("perturb .3"), *arrays[1:], 400, counts)
    for name, weights in KINDS.items():
        one, many = (microseconds(arrays, rng, weights, k) for k in (1, MANY))
        yield [label, name, f"{one:.2f}", f"{(many - one) / (MANY - 1):.2f}"]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.cost_of_moves")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--mixed", action="store_true")
    options = parser.parse_args(arguments)
    case = data.friedman("friedman", options.rows, options.trees)
    designs = {"numbers": make_design(case.X)}
    if options.mixed:
        designs["levels and missing cells too"] = with_levels_and_gaps(case.X)
    rows = [row for name, d in designs.items() for row in costs(start(case, d), name)]
    print(table.markdown(["columns", "moves", "us a visit with one", "us each further"], rows))


if __name__ == "__main__":
    main()
