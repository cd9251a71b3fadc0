"""How much faster slow directions of f move when the likelihood counts for less.

    python -m benchmarks.mixing.temperatures --rows 1000 --trees 50

Tempering passes states of a flatter posterior, p(f) p(y | f)**b, down to the one wanted. It can pay
only if chains at some b move much faster than at b = 1 along the directions that are slow there:
K temperatures cost K sweeps, so that K times is the least. Friedman's first function, sigma at its
true 1; kernels without PyMC, moves and weights of the default step. The directions are the leading
principal components of f at b = 1, and each chain is judged along them: IACT in CPU milliseconds,
the variance of f along them relative to that at b = 1, and R-hat.
"""

import numpy as np

from benchmarks.mixing import turns
from benchmarks.mixing.directions import along, principal
from benchmarks.mixing.local_moves import EVERY, moves_of, start
from benchmarks.peers.metrics import ess, of_each, rhat
from pymc_trees.core.samplers.backfitting import sweeps

POWERS = {"1": 1.0, "0.8": 0.8, "0.5": 0.5, "0.25": 0.25, "0.1": 0.1}
COMPONENTS = 3
_AXES: dict = {}


def chain(case, power, seconds, seed):
    """Draws of f at the power after the warm-up."""
    problem, work, y = start(case)
    moves, rng = moves_of("perturb .3, four a visit"), np.random.default_rng(seed)
    counts = np.zeros((2, moves.weights.size), dtype=np.int64)
    rows = turns.rows_of(len(y))
    problem.leaf.w[0] = power
    fs = []
    for is_kept in turns.blocks(seconds):
        if not sweeps(rng, problem, moves, work, EVERY, counts):
            raise ValueError("full")
        if is_kept:
            fs.append(y[rows] - problem.leaf.r[rows])
    return np.array(fs)


def measure(case, name, seconds, seeds):
    """A row of the table."""
    chain(case, POWERS[name], 0.1, 0)  # compiles
    f = turns.together([chain(case, POWERS[name], seconds, seed) for seed in seeds])
    if not _AXES:
        axes = principal(f, COMPONENTS)
        _AXES["axes"], _AXES["variance"] = axes, along(f, axes).var(axis=(0, 1))
    draws = along(f, _AXES["axes"])
    used = 1e3 * len(seeds) * seconds * (1 - turns.WARM_UP)
    share = draws.var(axis=(0, 1)) / _AXES["variance"]
    return [
        name,
        " ".join(f"{used / e:.0f}" for e in of_each(ess, draws)),
        " ".join(f"{value:.2f}" for value in share),
        " ".join(f"{value:.3f}" for value in of_each(rhat, draws)),
        f"{used / np.median(of_each(ess, f)):.0f}",
    ]


def main(arguments=None):
    options = turns.parse("benchmarks.mixing.temperatures", "powers", POWERS, arguments)
    header = ["b", "IACT of components, ms", "variance", "R-hat", "IACT of f, median row, ms"]
    turns.show(header, measure, options, ["1", *(p for p in options.powers if p != "1")])


if __name__ == "__main__":
    main()
