"""Effective samples of f per CPU second by settings of the default step, without the rest of PyMC.

    python -m benchmarks.mixing.settings --rows 1000 --trees 50

Friedman's first function, ten columns. A step is called on its own point; sigma is drawn from its
conditional under the prior ``1 / sigma**2`` of the variance after it, at no cost worth naming.
Chains take turns on one core, each until it has used its CPU seconds; the first quarter of them is
dropped. ESS (bulk) and R-hat are ArviZ's, of f at evenly spaced training rows and of the three
leading principal components of these.
"""

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.mixing import turns
from benchmarks.mixing.directions import along, principal
from benchmarks.peers.metrics import ess, of_each

CGM = {"grow": 0.25, "prune": 0.25, "change": 0.4, "swap": 0.1}
SETTINGS = {
    "default": {},
    "as it was": {"moves": CGM, "moves_per_visit": 1, "batch": (1.0, 1.0), "temperatures": 1},
    "1 temperature": {"temperatures": 1},
    "2 temperatures": {"temperatures": 2},
    "4 temperatures": {"temperatures": 4},
    "10 sweeps": {"local_sweeps": 10},
    "20 sweeps": {"local_sweeps": 20},
    "3 moves": {"moves_per_visit": 3},
    "6 moves": {"moves_per_visit": 6},
    "a tenth redrawn": {"batch": (0.1, 0.1)},
    "all redrawn": {"batch": (1.0, 1.0)},
}
COMPONENTS = 3


def chain(case, model, step, seconds, seed):
    """Draws of f and of sigma after the warm-up, and steps made."""
    rng, n = np.random.default_rng(seed), len(case.y)
    rows = turns.rows_of(n)
    step.setup_chain(rng, 1, 0)
    step.rng = rng
    point, _ = step.step(model.initial_point(random_seed=seed))
    fs, sigmas, n_steps = [], [], 0
    for is_kept in turns.blocks(seconds):
        point, _ = step.step(point)
        n_steps += 1
        f = step.states[0].forest.fit[:, 0]
        sigma2 = 0.5 * np.sum((case.y - f) ** 2) / rng.standard_gamma(0.5 * n)
        point["sigma_log__"] = np.array(0.5 * np.log(sigma2))
        if is_kept:
            if step.tune:
                step.stop_tuning()
            fs.append(f[rows].copy())
            sigmas.append(np.sqrt(sigma2))
    return np.array(fs), np.array(sigmas), n_steps


def measure(case, name, seconds, seeds):
    """A row of the table."""
    with pm.Model() as model:
        mu = pmt.BART("mu", case.X, case.y, m=case.m)
        sigma = pm.HalfNormal("sigma", case.y.std())
        pm.Normal("y", mu, sigma, observed=case.y, shape=mu.shape)
        step = pmt.Hybrid([mu], **SETTINGS[name])
    chain(case, model, step, 0.2, 0)  # compiles
    chains = [chain(case, model, step, seconds, seed) for seed in seeds]
    f, sigma = (turns.together([c[k] for c in chains]) for k in (0, 1))
    used = len(seeds) * seconds * (1 - turns.WARM_UP)
    slow = of_each(ess, along(f, principal(f, COMPONENTS))) / used
    return [
        name,
        f"{1e3 * len(seeds) * seconds / sum(c[2] for c in chains):.2f}",
        *turns.agreement(f, used),
        " ".join(f"{value:.2f}" for value in slow),
        f"{ess(sigma) / used:.2f}",
    ]


def main(arguments=None):
    options = turns.parse("benchmarks.mixing.settings", "settings", SETTINGS, arguments)
    header = ["settings", "ms a step", "ESS f/s, median (least)", "R-hat f, mean (worst)"]
    header += ["ESS/s of components", "ESS sigma/s"]
    turns.show(header, measure, options, options.settings)


if __name__ == "__main__":
    main()
