"""Speed: beside river's online forest and scikit-learn's extra trees, and against depth.

Seconds are of CPU, over all threads, so that what else the machine does matters less.
"""

from time import perf_counter, process_time

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier

import pymc_trees as pmt

from .accuracy import mean_depths
from .data import classes

TREES = 100


def seconds_of(function, *arguments):
    begin, wall = process_time(), perf_counter()
    function(*arguments)
    return process_time() - begin, perf_counter() - wall


def feed(X, y, size, jobs, mark=()):
    """Seconds after each number of rows in ``mark`` of a forest fed ``size`` rows at a time."""
    forest = pmt.MondrianForestClassifier(TREES, n_jobs=jobs, random_state=0)
    every, seconds, out = np.unique(y), 0.0, {}
    for start in range(0, len(X), size):
        rows = slice(start, start + size)
        begin = process_time()
        forest.partial_fit(X[rows], y[rows], classes=every)
        seconds += process_time() - begin
        if min(start + size, len(X)) in mark:
            out[min(start + size, len(X))] = (seconds, mean_depths(forest).mean())
    return out


def river(X, y, marks, limit):
    """Seconds after each number of rows in ``marks``, as far as ``limit`` seconds reach."""
    from river.forest import AMFClassifier

    forest = AMFClassifier(n_estimators=TREES, seed=0)
    rows, out, seconds, done = [dict(enumerate(x)) for x in X], {}, 0.0, 0
    for mark in marks:
        begin = process_time()
        while done < mark:
            forest.learn_one(rows[done], y[done])
            done += 1
            if seconds + process_time() - begin > limit:
                return out, done, seconds + process_time() - begin
        seconds += process_time() - begin
        out[mark] = (seconds, np.nan)
    return out, done, seconds


def run(limit, jobs):
    """Text: tables of one pass over letter, of seconds per row, and of batch fits."""
    X, y, _, _ = classes("letter")
    marks = [150, 300, 600, 1200, 2400, 4800, 9600, 15000]
    for size in (150, 1):
        feed(X[:300], y[:300], size, 1)  # compiles
    block, single = feed(X, y, 150, 1, marks), feed(X, y, 1, 1, marks)
    theirs, done, spent = river(X, y, marks, limit)
    lines = [
        "| rows of letter | 150 rows a call | one row a call | river | river / 150 rows | river / "
        "one row |",
        "|---" * 6 + "|",
    ]
    for mark in marks:
        cells = [f"{block[mark][0]:.2f}", f"{single[mark][0]:.2f}"]
        if mark in theirs:
            own = theirs[mark][0]
            cells += [f"{own:.1f}", f"{own / block[mark][0]:.1f}", f"{own / single[mark][0]:.1f}"]
        lines.append(f"| {mark} | " + " | ".join(cells + [""] * (5 - len(cells))) + " |")
    lines += ["", f"river was stopped after {done} rows, {spent:.0f} s.", ""]
    lines += [
        "| rows | microseconds per row and tree | mean depth | quotient |",
        "|---|---|---|---|",
    ]
    for a, b in zip(marks[1:-1], marks[2:]):
        each = (block[b][0] - block[a][0]) / (b - a) / TREES * 1e6
        depth = (block[a][1] + block[b][1]) / 2
        lines.append(f"| {a} to {b} | {each:.2f} | {depth:.1f} | {each / depth:.3f} |")
    lines += [
        "",
        f"Batch fit of 100 trees, n_jobs={jobs}, least of five: seconds of CPU, of a clock.",
        "",
    ]
    lines += [
        "| data | Mondrian | extra trees | ratio of CPU | ratio of the clock |",
        "|---" * 5 + "|",
    ]
    for name in ("letter", "satimage", "usps"):
        X, y, _, _ = classes(name)
        mine = pmt.MondrianForestClassifier(TREES, n_jobs=jobs, random_state=0)
        extra = ExtraTreesClassifier(TREES, n_jobs=jobs, random_state=0)
        times = [(seconds_of(mine.fit, X, y), seconds_of(extra.fit, X, y)) for _ in range(5)]
        (a, wall), (b, other) = np.min(times, axis=0)
        lines.append(
            f"| {name} | {a:.2f}, {wall:.2f} | {b:.2f}, {other:.2f} | {a / b:.2f} "
            f"| {wall / other:.2f} |"
        )
    return "\n".join(lines)
