"""Table 6.2's measure and NLPD on the regression sets; figure 6.1."""

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

import pymc_trees as pmt

from . import reported
from .data import REGRESSION, numbers

LEVELS = np.arange(1, 10) / 10
TREES = 25


def others(seed, jobs):
    """Forests without a predictive distribution, as scikit-learn has them and as in 6.5.1."""
    kinds = {"random forest": RandomForestRegressor, "extra trees": ExtraTreesRegressor}
    return {
        f"{name}, min_samples_leaf={leaf}": kind(
            TREES, min_samples_leaf=leaf, n_jobs=jobs, random_state=seed
        )
        for leaf in (5, 1)
        for name, kind in kinds.items()
    }


def ours(seed, jobs):
    make = pmt.MondrianForestRegressor
    return {
        "Mondrian forest": make(TREES, n_jobs=jobs, random_state=seed),
        "Mondrian forest, heuristic": make(
            TREES, hyperparameters="heuristic", n_jobs=jobs, random_state=seed
        ),
        "Mondrian forest, fast": make(TREES, posterior="fast", n_jobs=jobs, random_state=seed),
    }


def between_trees(forest, X):
    """Mean and sd of the trees' predictions (thesis, 6.5.1)."""
    each = np.array([tree.predict(X) for tree in forest.estimators_])
    return each.mean(axis=0), each.std(axis=0)


def judge(forest, X, y, X_test, y_test):
    """(RMSE, NLPD, observed less ideal fraction at each level)."""
    forest.fit(X, y)
    if isinstance(forest, pmt.MondrianForestRegressor):
        mean, sd = forest.predict(X_test, return_std=True)
        nlpd = -forest.log_predictive_density(X_test, y_test).mean()
    else:
        mean, sd = between_trees(forest, X_test)
        nlpd = -norm.logpdf(y_test, mean, np.maximum(sd, 1e-9)).mean()
    away = np.abs(y_test - mean)
    inside = [(away <= norm.ppf(0.5 + level / 2) * sd).mean() - level for level in LEVELS]
    return np.sqrt(((mean - y_test) ** 2).mean()), nlpd, np.array(inside)


def run(names=REGRESSION, jobs=2):
    """{method: {data set: (RMSE, NLPD, differences)}}, averaged over splits."""
    results: dict = {}
    for name in names:
        for seed, split in enumerate(numbers(name)):
            for method, forest in (ours(seed, jobs) | others(seed, jobs)).items():
                found = judge(forest, *split)
                results.setdefault(method, {}).setdefault(name, []).append(found)
    return results


def tables(results):
    """Summary, calibration by level, and by data set."""
    mean = {
        method: {
            name: [np.mean([r[0] for r in runs]), np.mean([r[1] for r in runs]),
                   np.mean([np.abs(r[2]).mean() for r in runs]),
                   np.mean([r[2] for r in runs], axis=0)]
            for name, runs in sets.items()
        }
        for method, sets in results.items()
    }  # fmt: skip
    lines = [
        "| method | mean absolute calibration error | mean NLPD | median NLPD | RMSE / sd(y) |",
        "|---|---|---|---|---|",
    ]
    for method, sets in mean.items():
        rmse, nlpd, error = (np.array([s[k] for s in sets.values()]) for k in range(3))
        lines.append(
            f"| {method} | {error.mean():.4f} | {nlpd.mean():.3g} | {np.median(nlpd):.3f} "
            f"| {rmse.mean():.3f} |"
        )
    lines += ["", "| method | " + " | ".join(f"{v:.1f}" for v in LEVELS) + " |"]
    lines += ["|---" * 10 + "|"]
    for method, sets in mean.items():
        rows = np.mean([s[3] for s in sets.values()], axis=0)
        lines.append(f"| {method} | " + " | ".join(f"{v:+.2f}" for v in rows) + " |")
    for method, row in reported.CALIBRATION.items():
        lines.append(
            f"| thesis, flights: {method} | " + " | ".join(f"{v:+.2f}" for v in row) + " |"
        )
    lines += ["", "| data | " + " | ".join(mean) + " |", "|---" * (len(mean) + 1) + "|"]
    for name in next(iter(mean.values())):
        cells = [f"{sets[name][2]:.3f} / {sets[name][1]:.3g}" for sets in mean.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def away_from_the_data(path, jobs=2):
    """Figure 6.1: training inputs, and the predictive sd along the first column beyond them.

    The thesis' inputs, messages of expectation propagation, are not at hand: a curved cloud.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(0)
    a = rng.normal(0, 2, 1000)
    X = np.column_stack([a, 0.3 * a**2 + rng.normal(0, 0.6, 1000)])
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=1000)
    at = np.linspace(-15, 15, 301)
    tests = np.column_stack([at, np.full(301, 2.0)])
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.2))
    axes[0].plot(*X.T, ".", ms=2)
    axes[0].set(title="training inputs", xlabel="x1", ylabel="x2")
    forests = {"Mondrian forest": ours(0, jobs)["Mondrian forest"]} | others(0, jobs)
    rows, prior = [], float(y.std())
    for (name, forest), axis in zip(list(forests.items())[:3], axes[1:]):
        forest.fit(X, y)
        if name == "Mondrian forest":
            mean, sd = forest.predict(tests, return_std=True)
            far = forest.predict([[1e6, 1e6]], return_std=True)
        else:
            mean, sd = between_trees(forest, tests)
            far = between_trees(forest, np.array([[1e6, 1e6]]))
        axis.plot(at, sd)
        axis.axhline(prior, color="k", lw=0.6, ls="--")
        axis.set(title=name, xlabel="x1", ylim=(0, 1.3 * prior))
        near = np.abs(at) < 3
        rows.append(
            f"| {name} | {sd[near].mean():.3f} | {sd[np.abs(at) > 12].mean():.3f} "
            f"| {far[0][0]:.3f} | {far[1][0]:.3f} |"
        )
    axes[1].set_ylabel("predictive sd")
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)
    head = [f"Mean of y {y.mean():.3f}, sd of y {prior:.3f}.", "",
            "| method | sd, abs(x1) < 3 | sd, abs(x1) > 12 | mean at 1e6 | sd at 1e6 |",
            "|---|---|---|---|---|"]  # fmt: skip
    return "\n".join(head + rows)
