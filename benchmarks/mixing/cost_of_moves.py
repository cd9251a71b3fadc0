"""What a visit of a tree and each further move cost, kernels without PyMC.

    python -m benchmarks.mixing.cost_of_moves --rows 1000 --trees 50

Friedman's first function, ten columns. After 400 sweeps of all moves the trees are visited with
one kind of move alone, once and nine times a visit: the difference is what eight further moves
take. The least of nine times of 20 sweeps, CPU. To compare two versions, run both at once, a core
each.
"""

import argparse
from time import process_time

import numpy as np

from benchmarks.mixing.local_moves import moves_of, run_block, start
from benchmarks.peers import data, table
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import WeightedMoves
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.moves.rotate import Rotate

NEVER = 1e-9
KINDS = {
    "grow and prune": [0.5, 0.5, 0.0, 0.0, 0.0],
    "change": [NEVER, NEVER, 1.0, 0.0, 0.0],
    "swap": [NEVER, NEVER, 0.0, 1.0, 0.0],
    "perturb": [NEVER, NEVER, 0.0, 0.0, 1.0],
    "rotate": [NEVER, NEVER, 0.0, 0.0, 0.0, 1.0],
}
REPEATS, SWEEPS, MANY = 9, 20, 9


def microseconds(arrays, rng, weights, per_visit):
    """CPU time of a visit."""
    problem, work, y = arrays
    weights = np.array(weights) / np.sum(weights)
    moves = WeightedMoves((*MOVES, Perturb(), Rotate())[: weights.size], weights, per_visit)
    counts = np.zeros((2, weights.size), dtype=np.int64)
    times = []
    for _ in range(REPEATS):
        begin = process_time()
        run_block(rng, problem, moves, work, y, SWEEPS, counts)
        times.append(process_time() - begin)
    return 1e6 * min(times) / SWEEPS / problem.trees.roots.size


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.cost_of_moves")
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--trees", type=int, default=50)
    options = parser.parse_args(arguments)
    arrays = start(data.friedman("friedman", options.rows, options.trees))
    rng, counts = np.random.default_rng(0), np.zeros((2, 5), dtype=np.int64)
    run_block(rng, arrays[0], moves_of("perturb .3"), *arrays[1:], 400, counts)
    rows = []
    for name, weights in KINDS.items():
        one, many = (microseconds(arrays, rng, weights, k) for k in (1, MANY))
        rows.append([name, f"{one:.2f}", f"{(many - one) / (MANY - 1):.2f}"])
    print(table.markdown(["moves", "us a visit with one", "us each further"], rows))


if __name__ == "__main__":
    main()
