"""Figure 5.3 and table 5.1: accuracy against share of data and time, depth of the trees."""

from time import perf_counter

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

import pymc_trees as pmt
from pymc_trees.mondrian.kernels.tree import ROOT, USED, depths

from . import reported
from .data import classes

SETS = ("usps", "satimage", "letter", "dna", "dna60")
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BATCH = {
    "random forest": lambda seed, jobs: RandomForestClassifier(100, n_jobs=jobs, random_state=seed),
    "extra trees": lambda seed, jobs: ExtraTreesClassifier(100, n_jobs=jobs, random_state=seed),
    "extra trees, 1 split": lambda seed, jobs: ExtraTreesClassifier(
        100, max_features=1, n_jobs=jobs, random_state=seed
    ),
}


def mean_depths(forest):
    """Depth of a row, averaged over the rows, of each tree."""
    out = []
    for tree, _ in forest._fitted.trees:
        depth = np.empty(tree.column.size, dtype=np.int64)
        depths(tree, depth)
        leaves = np.flatnonzero(tree.column[: tree.state[USED]] == -1)
        out.append((depth[leaves] * tree.count[leaves]).sum() / tree.count[tree.state[ROOT]])
    return np.array(out)


def stream(X, y, X_test, y_test, seed, jobs, n_trees=100):
    """{share: (accuracy, seconds of learning)} of a forest fed 100 mini-batches; the forest."""
    forest = pmt.MondrianForestClassifier(
        n_trees, smoothing="kneser-ney", concentration=0, n_jobs=jobs, random_state=seed
    )
    every, seconds, curve = np.unique(y), 0.0, {}
    for k, rows in enumerate(np.array_split(np.arange(len(X)), 100), start=1):
        begin = perf_counter()
        forest.partial_fit(X[rows], y[rows], classes=every)
        seconds += perf_counter() - begin
        if k / 100 in SHARES:
            curve[k / 100] = (forest.score(X_test, y_test), seconds)
    return curve, forest


def batch(make, X, y, X_test, y_test, seed, jobs):
    """{share: (accuracy, seconds)} of a batch forest fitted anew to each share."""
    curve = {}
    for share in SHARES:
        n = max(2, round(share * len(X)))
        forest = make(seed, jobs)
        begin = perf_counter()
        forest.fit(X[:n], y[:n])
        seconds = perf_counter() - begin
        curve[share] = (forest.score(X_test, y_test), seconds)
    return curve


def river_stream(X, y, X_test, y_test, seed, n_trees, limit):
    """{share: (accuracy, seconds)} of river's forest, as far as ``limit`` seconds reach."""
    from river.forest import AMFClassifier

    forest = AMFClassifier(n_estimators=n_trees, seed=seed)
    rows = [dict(enumerate(x)) for x in X]
    some = np.random.default_rng(seed).permutation(len(X_test))[:500]
    tests = [dict(enumerate(X_test[i])) for i in some]
    curve, seconds, done = {}, 0.0, 0
    for share in SHARES:
        begin = perf_counter()
        while done < round(share * len(X)):
            forest.learn_one(rows[done], y[done])
            done += 1
            if seconds + perf_counter() - begin > limit:
                return curve
        seconds += perf_counter() - begin
        right = [forest.predict_one(x) == y_test[i] for x, i in zip(tests, some)]
        curve[share] = (float(np.mean(right)), seconds)
    return curve


def run(name, seeds, jobs, river_trees, river_seconds):
    """All curves of a data set: {method: [{share: (accuracy, seconds)}]}; depths."""
    curves: dict = {"Mondrian forest": []}
    found = []
    X, y, X_test, y_test = classes(name, 0)
    stream(X[:200], y[:200], X_test[:5], y_test[:5], 0, jobs)  # compiles
    for seed in range(seeds):
        data = classes(name, seed)
        curve, forest = stream(*data, seed, jobs)
        curves["Mondrian forest"].append(curve)
        found.append(mean_depths(forest))
        for method, make in BATCH.items():
            curves.setdefault(method, []).append(batch(make, *data, seed, jobs))
    if river_seconds > 0:
        method = f"river AMF, {river_trees} trees"
        curves[method] = [river_stream(*classes(name, 0), 0, river_trees, river_seconds)]
        if river_trees != 100:  # a forest of equal size beside it
            equal = stream(*classes(name, 0), 0, jobs, river_trees)[0]
            curves[f"Mondrian forest, {river_trees} trees"] = [equal]
    return curves, np.concatenate(found)


def table(results):
    """Accuracy with all data, by method."""
    lines = ["| data | method | accuracy at 10% | at 100% | sd over seeds | seconds of learning |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, (curves, _) in results.items():
        for method, runs in curves.items():
            at = {
                s: ([r[s][0] for r in runs if s in r], [r[s][1] for r in runs if s in r])
                for s in (0.1, 1.0)
            }
            early = f"{np.mean(at[0.1][0]):.4f}" if at[0.1][0] else "out of time"
            if at[1.0][0]:
                last = f"{np.mean(at[1.0][0]):.4f} | {np.std(at[1.0][0]):.4f}"
                last += f" | {np.mean(at[1.0][1]):.2f}"
            else:
                last = "out of time | |"
            lines.append(f"| {name} | {method} | {early} | {last} |")
    return "\n".join(lines)


def depth_table(results):
    """Table 5.1."""
    lines = ["| data | depth | sd over trees | thesis |", "|---|---|---|---|"]
    for name, (_, found) in results.items():
        if name in reported.DEPTH:
            mean, sd = reported.DEPTH[name]
            lines.append(f"| {name} | {found.mean():.1f} | {found.std():.1f} | {mean} +- {sd} |")
    return "\n".join(lines)


def picture(results, path):
    """Figure 5.3."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(results), figsize=(3.2 * len(results), 6), squeeze=False)
    for (name, (curves, _)), column in zip(results.items(), axes.T):
        for method, runs in curves.items():
            shares = [s for s in SHARES if all(s in r for r in runs)]
            scores = [np.mean([r[s][0] for r in runs]) for s in shares]
            seconds = [np.mean([r[s][1] for r in runs]) for s in shares]
            column[0].plot(shares, scores, marker=".", label=method)
            column[1].plot(seconds, scores, marker=".", label=method)
        column[0].set(title=name, xlabel="share of the training data")
        column[1].set(xlabel="seconds of learning", xscale="log")
    axes[0, 0].set_ylabel("test accuracy")
    axes[1, 0].set_ylabel("test accuracy")
    axes[0, -1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    plt.close(figure)
