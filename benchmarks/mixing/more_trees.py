"""More trees of fewer leaves: do their chains agree sooner, and is the fit as good?

    python -m benchmarks.mixing.more_trees --seconds 20

Friedman's first function, kernels without PyMC, moves and weights of the default step, sigma drawn.
The prior probability alpha that a root splits sets how many leaves a tree has; the sd of a leaf
value goes down with the root of the number of trees, as in the default model. RMSE is against the
true function at the rows that are followed.
"""

from dataclasses import replace

import numpy as np

from benchmarks.mixing import turns
from benchmarks.mixing.directions import along, principal
from benchmarks.mixing.local_moves import EVERY, moves_of, run_block, start
from benchmarks.peers import data
from benchmarks.peers.metrics import ess, of_each
from pymc_trees.core.priors.cgm import make_prior

FORESTS = {
    "50, .95": (50, 0.95),
    "100, .95": (100, 0.95),
    "100, .5": (100, 0.5),
    "200, .95": (200, 0.95),
    "200, .5": (200, 0.5),
    "200, .25": (200, 0.25),
}
COMPONENTS = 3


def chain(case, name, seconds, seed):
    """Draws of f after the warm-up, sweeps made, and leaves of a tree."""
    m, alpha = FORESTS[name]
    problem, work, y = start(replace(case, m=m))
    problem = problem._replace(prior=make_prior(alpha, 2.0, problem.prior.weights))
    moves, rng = moves_of("perturb .3, four a visit"), np.random.default_rng(seed)
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    rows, fs, leaves, sweeps = turns.rows_of(len(y)), [], [], 0
    for is_kept in turns.blocks(seconds):
        run_block(rng, problem, moves, work, y, EVERY, counts)
        sweeps += EVERY
        if is_kept:
            fs.append(y[rows] - problem.leaf.r[rows])
            places = len(problem.trees.column)
            leaves.append(((places - problem.trees.n_free[0]) / m + 1) / 2)
    return np.array(fs), sweeps, np.mean(leaves)


def measure(case, name, seconds, seeds):
    """A row of the table."""
    chain(case, name, 0.1, 0)  # compiles
    chains = [chain(case, name, seconds, seed) for seed in seeds]
    f = turns.together([draws for draws, _, _ in chains])
    used = len(seeds) * seconds * (1 - turns.WARM_UP)
    slow = of_each(ess, along(f, principal(f, COMPONENTS))) / used
    rows = turns.rows_of(len(case.y))
    error = f.mean(axis=(0, 1)) + case.y.mean() - data.friedman_function(case.X[rows])
    return [
        name,
        f"{np.mean([c[2] for c in chains]):.1f}",
        f"{1e3 * len(seeds) * seconds / sum(c[1] for c in chains):.2f}",
        *turns.agreement(f, used),
        " ".join(f"{value:.2f}" for value in slow),
        f"{np.sqrt(np.mean(error**2)):.3f}",
    ]


def main(arguments=None):
    options = turns.parse("benchmarks.mixing.more_trees", "forests", FORESTS, arguments)
    header = [
        "m, alpha",
        "leaves a tree",
        "ms a sweep",
        "ESS of f/s",
        "R-hat of f",
        "ESS/s of components",
        "RMSE",
    ]
    turns.show(header, measure, options, options.forests)


if __name__ == "__main__":
    main()
