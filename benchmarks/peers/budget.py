"""How many iterations to run: a fixed number, or as many as fit into a wall time."""

from dataclasses import replace

import numpy as np

PILOT_STEPS = 40
PILOT_SHARE = 0.1  # of the wall time, for the second pilot


def fixed(problem, n_warmup, n_draws, keep):
    """``n_warmup + n_draws`` iterations, thinned to at most ``keep`` draws per chain."""
    thin = max(1, int(np.ceil(n_draws / keep)))
    kept = max(1, n_draws // thin)
    warm = max(2, round(n_warmup / thin)) * thin  # whole numbers of kept draws
    return replace(problem, n_warmup=warm, n_draws=kept * thin, thin=thin)


def steps_per_second(run, problem, n_steps):
    """Speed of the later half of one chain of ``n_steps`` iterations."""
    half = max(2, n_steps // 2)
    pilot = replace(problem, chains=1, n_warmup=half, n_draws=half, thin=1)
    result = run(replace(pilot, X_test=problem.X_test[:0]))
    return half / max(result.seconds_sampling, 1e-6)


def for_seconds(run, problem, seconds, keep):
    """Iterations that take ``seconds`` per chain, the first half of them warm-up.

    Two pilots: a few iterations to find the scale, then a tenth of the time, because
    trees grow and later sweeps cost more.
    """
    speed = steps_per_second(run, problem, PILOT_STEPS)
    longer = int(speed * seconds * PILOT_SHARE)
    if longer > PILOT_STEPS:
        speed = steps_per_second(run, problem, longer)
    half = max(10, int(speed * seconds / 2))
    return fixed(problem, half, half, keep)
