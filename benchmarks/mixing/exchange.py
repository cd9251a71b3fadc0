"""Exchange between chains of flatter posteriors (parallel tempering), against plain chains.

    python -m benchmarks.mixing.exchange --rows 1000 --trees 50

Each chain is K forests with targets p(f) p(y | f)**b, b from 1 down to a least one, evenly spaced
in log b. After every few sweeps of all of them neighbours of even or of odd place exchange their
places with probability min(1, (L(f') / L(f))**(b - b')), f being at b and f' at b'. Draws are those
at b = 1, and all CPU seconds count. Friedman's first function, sigma at its true 1; kernels without
PyMC.
"""

import numpy as np

from benchmarks.mixing import turns
from benchmarks.mixing.directions import along, principal
from benchmarks.mixing.local_moves import moves_of, start
from benchmarks.peers.metrics import ess, of_each
from pymc_trees.core.samplers.backfitting import sweeps

# places, least b, sweeps between exchanges
LADDERS = {
    "alone": (1, 1.0, 5),
    "2 to .95": (2, 0.95, 5),
    "2 to .9": (2, 0.9, 5),
    "2 to .85": (2, 0.85, 5),
    "3 to .8": (3, 0.8, 5),
    "3 to .7": (3, 0.7, 5),
    "4 to .7": (4, 0.7, 5),
    "4 to .6": (4, 0.6, 5),
    "4 to .5": (4, 0.5, 5),
    "6 to .4": (6, 0.4, 5),
}
COMPONENTS = 3
_AXES: dict = {}


def log_likelihoods(forests):
    """Of the rows, up to a constant, at b = 1."""
    return np.array([-0.5 * np.sum(problem.leaf.r**2) for problem, _, _ in forests])


def chain(case, ladder, seconds, seed):
    """Draws of f at b = 1 after the warm-up, and the share of exchanges by gap."""
    n_places, least, n_sweeps = ladder
    powers = np.geomspace(1.0, least, n_places)
    forests = [start(case) for _ in range(n_places)]  # in the order of their places
    moves, rng = moves_of("perturb .3, four a visit"), np.random.default_rng(seed)
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    y, rows = forests[0][2], turns.rows_of(len(case.y))
    tried, done = np.zeros(n_places), np.zeros(n_places)
    fs, turn = [], 0
    for is_kept in turns.blocks(seconds):
        for (problem, work, _), power in zip(forests, powers, strict=True):
            problem.leaf.w[0] = power
            if not sweeps(rng, problem, moves, work, n_sweeps, counts):
                raise ValueError("full")
        logs = log_likelihoods(forests)
        for k in range(turn % 2, n_places - 1, 2):
            tried[k] += 1
            if np.log(rng.random()) < (powers[k] - powers[k + 1]) * (logs[k + 1] - logs[k]):
                forests[k], forests[k + 1] = forests[k + 1], forests[k]
                done[k] += 1
        turn += 1
        if is_kept:
            fs.append(y[rows] - forests[0][0].leaf.r[rows])
    return np.array(fs), done / np.maximum(tried, 1)


def measure(case, name, seconds, seeds):
    """A row of the table."""
    chain(case, LADDERS[name], 0.1, 0)  # compiles
    chains = [chain(case, LADDERS[name], seconds, seed) for seed in seeds]
    f = turns.together([c[0] for c in chains])
    if not _AXES:
        _AXES["axes"] = principal(f, COMPONENTS)
    slow = of_each(ess, along(f, _AXES["axes"]))
    used = len(seeds) * seconds * (1 - turns.WARM_UP)
    shares = np.mean([c[1] for c in chains], axis=0)[:-1]
    return [
        name,
        *turns.agreement(f, used),
        " ".join(f"{value:.2f}" for value in slow / used),
        " ".join(f"{share:.2f}" for share in shares),
    ]


def main(arguments=None):
    options = turns.parse("benchmarks.mixing.exchange", "ladders", LADDERS, arguments)
    header = ["ladder", "ESS f/s, median (least)", "R-hat f, mean (worst)"]
    header += ["ESS/s of components", "exchanged, by place"]
    turns.show(header, measure, options, options.ladders)


if __name__ == "__main__":
    main()
