"""Effective samples of f per CPU second by sets of local moves, kernels without PyMC.

    python -m benchmarks.mixing.local_moves

Friedman's first function, ten columns, noise of sd 1. One sweep of moves, then sigma from its
conditional under the prior ``1 / sigma**2`` of the variance. Chains take turns on one core, each
until it has used its CPU seconds; the first quarter of them is dropped. ESS (bulk) and R-hat of f
are ArviZ's, over evenly spaced training rows and along the leading principal components of these.
"""

import numpy as np

from benchmarks.mixing import turns
from benchmarks.mixing.directions import along, principal
from benchmarks.peers.metrics import ess, of_each
from pymc_trees.core.columns.design import make_design
from pymc_trees.core.compile.cache import njit
from pymc_trees.core.forest.trees import make_trees
from pymc_trees.core.leaves.normal import make_normal
from pymc_trees.core.moves.catalogue import MOVES
from pymc_trees.core.moves.contract import make_weighted_moves
from pymc_trees.core.moves.perturb import Perturb
from pymc_trees.core.moves.problem import Problem, make_workspace
from pymc_trees.core.moves.restructure import Restructure
from pymc_trees.core.moves.rotate import Rotate
from pymc_trees.core.priors.cgm import make_prior
from pymc_trees.core.samplers.backfitting import sweep

# grow, prune, change, swap, perturb, rotate, restructure; largest step of a cut as a share of its
# column's range; moves of a tree at each visit
SETS = {
    "CGM": ([0.25, 0.25, 0.4, 0.1], None, 1),
    "CGM, three a visit": ([0.25, 0.25, 0.4, 0.1], None, 3),
    "perturb .05": ([0.125, 0.125, 0.1, 0.05, 0.6], 0.05, 1),
    "perturb .3": ([0.125, 0.125, 0.1, 0.05, 0.6], 0.3, 1),
    "perturb .3, three a visit": ([0.125, 0.125, 0.1, 0.05, 0.6], 0.3, 3),
    "perturb .3, five a visit": ([0.125, 0.125, 0.1, 0.05, 0.6], 0.3, 5),
    "perturb .3, four a visit": ([0.125, 0.125, 0.1, 0.05, 0.6], 0.3, 4),
    "and rotate .1": ([0.11, 0.11, 0.09, 0.05, 0.54, 0.1], 0.3, 4),
    "and rotate .3": ([0.09, 0.09, 0.07, 0.04, 0.41, 0.3], 0.3, 4),
    "and restructure .1": ([0.11, 0.11, 0.09, 0.05, 0.54, 0.0, 0.1], 0.3, 4),
    "perturb 1": ([0.125, 0.125, 0.1, 0.05, 0.6], 1.0, 1),
    "perturb .3, less": ([0.2, 0.2, 0.15, 0.05, 0.4], 0.3, 1),
}
EVERY = 10
"""Sweeps between two draws that are kept."""


@njit(cache=True, nogil=True)
def run_block(rng, problem, moves, work, y, n_sweeps, counts):
    """Sweeps, each followed by sigma; the last sigma."""
    leaf, n = problem.leaf, y.size
    sigma = 0.0
    for _ in range(n_sweeps):
        if not sweep(rng, problem, moves, work, counts):
            raise ValueError("full")
        total = 0.0
        for i in range(n):
            total += leaf.r[i] ** 2
        sigma2 = 0.5 * total / rng.standard_gamma(0.5 * n)
        leaf.w[0] = 1.0 / sigma2
        sigma = np.sqrt(sigma2)
    return sigma


def moves_of(name):
    """`WeightedMoves` of a set."""
    weights, largest, per_visit = SETS[name]
    moves = (*MOVES, Perturb(largest or 0.0), Rotate(), Restructure())[: len(weights)]
    return make_weighted_moves(moves, np.array(weights) / np.sum(weights), per_visit)


def start(case, design=None):
    """Stumps, and all that a sweep takes; the rows are those of the case unless given."""
    n, m = len(case.y), case.m
    max_nodes = 40 * m
    y = case.y - case.y.mean()
    leaf = make_normal(0.0, np.ptp(y) / (4 * np.sqrt(m)), y.copy(), 1 / y.var(), max_nodes)
    prior = make_prior(0.95, 2.0, np.full(case.X.shape[1], 1 / case.X.shape[1]))
    design = make_design(case.X) if design is None else design
    problem = Problem(make_trees(m, max_nodes, 1, n), design, prior, leaf)
    return problem, make_workspace(max_nodes, 2, design), y


def chain(case, name, seconds, seed):
    """Draws of f and sigma after the warm-up, sweeps made, and counts of moves."""
    problem, work, y = start(case)
    moves, rng = moves_of(name), np.random.default_rng(seed)
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    rows = turns.rows_of(len(y))
    fs, sigmas = [], []
    for is_kept in turns.blocks(seconds):
        sigma = run_block(rng, problem, moves, work, y, EVERY, counts)
        if is_kept:
            fs.append(y[rows] - problem.leaf.r[rows])
            sigmas.append(sigma)
    return np.array(fs), np.array(sigmas), counts


def measure(case, name, seconds, seeds):
    """A row of the table."""
    compiled = start(case)
    counts = np.zeros((2, len(SETS[name][0])), dtype=np.int64)
    run_block(np.random.default_rng(0), compiled[0], moves_of(name), *compiled[1:], 1, counts)
    n_chains = len(seeds)
    chains = [chain(case, name, seconds, seed) for seed in seeds]
    f, sigma = (turns.together([c[k] for c in chains]) for k in (0, 1))
    counts = sum(c[2] for c in chains)
    used = n_chains * seconds * (1 - turns.WARM_UP)
    sweeps = counts[0].sum() / (case.m * SETS[name][2])
    shares = " ".join(f"{share:.2f}" for share in counts[1] / np.maximum(counts[0], 1))
    return [
        name,
        f"{1e3 * n_chains * seconds / sweeps:.3f}",
        *turns.agreement(f, used),
        " ".join(f"{value:.2f}" for value in of_each(ess, along(f, principal(f, 3))) / used),
        f"{ess(sigma) / used:.2f}",
        f"{f.mean(axis=(0, 1)).std():.3f}",
        shares,
    ]


def main(arguments=None):
    options = turns.parse("benchmarks.mixing.local_moves", "sets", SETS, arguments)
    header = ["moves", "ms a sweep", "ESS f/s, median (least)", "R-hat f, mean (worst)"]
    header += ["ESS/s of components", "ESS sigma/s", "sd of mean f", "accepted, by move"]
    turns.show(header, measure, options, options.sets)


if __name__ == "__main__":
    main()
