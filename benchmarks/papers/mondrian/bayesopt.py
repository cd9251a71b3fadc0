"""Table 6.3: Bayesian optimisation of Branin and Hartmann-6 on grids of 250,000 points."""

import numpy as np

import pymc_trees as pmt

from . import reported

_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])


def branin(X):
    """Less the Branin function, its square brought to [0, 1]; greatest value -0.397887."""
    a, b = 15 * X[:, 0] - 5, 15 * X[:, 1]
    bowl = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return -(bowl + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def hartmann6(X):
    """Less the Hartmann function of six columns; greatest value 3.32237."""
    out = np.zeros(len(X))
    for alpha, a, p in zip(_ALPHA, _A, _P):
        out += alpha * np.exp(-(((X - p) ** 2) @ a))
    return out


FUNCTIONS = {"branin": (branin, 2), "hartmann6": (hartmann6, 6)}


def optimise(name, grid_seed, seed, evaluations=200, points=250_000, jobs=2, n_trees=10):
    """Greatest value found after each evaluation; the greatest on the grid.

    UCB is predictive mean + sd, as in the thesis; the first point is random.
    """
    f, D = FUNCTIONS[name]
    X = np.random.default_rng([grid_seed, D]).random((points, D))
    y = f(X)
    rng = np.random.default_rng(seed)
    forest = pmt.MondrianForestRegressor(
        n_trees, min_samples_split=2, posterior="fast", n_jobs=jobs, random_state=seed
    )
    free, i, seen = np.ones(points, dtype=bool), int(rng.integers(points)), []
    for _ in range(evaluations):
        free[i] = False
        seen.append(y[i])
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
        mean, sd = forest.predict(X, return_std=True)
        bound = np.where(free, mean + sd, -np.inf)
        i = int(rng.choice(np.flatnonzero(bound == bound.max())))
    return np.maximum.accumulate(seen), y.max()


def run(runs=15, jobs=2, **settings):
    """{function: [(curve, greatest)]}, three grids in turn."""
    return {
        name: [optimise(name, k % 3, k, jobs=jobs, **settings) for k in range(runs)]
        for name in FUNCTIONS
    }


def table(results):
    """Table 6.3."""
    lines = ["| function | best on the grid | found, mean +- sd | least | runs | thesis | SMAC |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, runs in results.items():
        best = np.array([curve[-1] for curve, _ in runs])
        mean, sd, other, other_sd = reported.BAYESOPT[name]
        lines.append(
            f"| {name} | {np.mean([top for _, top in runs]):.3f} | {best.mean():.4f} +- "
            f"{best.std():.4f} | {best.min():.4f} | {len(runs)} | {mean:.3f} +- {sd} "
            f"| {other} +- {other_sd} |"
        )
    return "\n".join(lines)


def picture(results, path):
    """Greatest value found against evaluations, every run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(results), figsize=(4.5 * len(results), 3.4), squeeze=False)
    for (name, runs), axis in zip(results.items(), axes[0]):
        for curve, top in runs:
            axis.plot(np.arange(1, len(curve) + 1), top - curve + 1e-6, lw=0.7)
        axis.set(title=name, xlabel="evaluations", ylabel="distance to the best", yscale="log")
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)
