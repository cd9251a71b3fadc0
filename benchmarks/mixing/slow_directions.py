"""Chains judged by the directions of f that they forget most slowly, through `pm.sample`.

    python -m benchmarks.mixing.slow_directions --steps default CGM --seconds 60 --out slow.json

Friedman's first function, or a case of `benchmarks.peers` (`--case concrete-200`). Each sampler
runs on one core for `--seconds` a chain, half of them warm-up, and f is read at rows held out, or
of training (`--at`). Then, for each of these, its share of f's variance, ESS (bulk, all chains)
per second, seconds per effective sample (the integrated autocorrelation time, IACT), and R-hat:

- the leading principal components of f over chains and draws, those of all samplers together
  ("shared", the same for every sampler), and each sampler's own;
- the leading directions of the means of half chains, chosen where they disagree: compare those
  between samplers, not with 1;
- the additive part of f and the interaction of two columns (`--pair`, from 1), at random rows;
- f at random rows, for reference.

Seconds are those of sampling, without warm-up: about half of what the table of `benchmarks.peers`
divides by. An ESS of chains that disagree is a rough measure. `--steps` takes steps of
`pymc_trees`, `default`, and packages of `benchmarks.peers`.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.mixing import directions, parts, samplers
from benchmarks.peers import data, launch, table
from benchmarks.peers.metrics import ess, of_each, rhat

N_RANDOM = 50
"""Random rows at which f and its parts are judged."""
HEADER = ["sampler", "direction", "share of variance", "ESS/s", "IACT s", "R-hat"]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.slow_directions")
    add = parser.add_argument
    add("--case", help="of benchmarks.peers, in place of --rows and --trees")
    add("--rows", type=int, default=1_000)
    add("--trees", type=int, default=50)
    add("--steps", nargs="+", default=["default", "CGM"], metavar="STEP")
    add("--seconds", type=float, default=60.0, help="wall time of a chain, warm-up counted")
    add("--chains", type=int, default=4)
    add("--seed", type=int, default=1)
    add("--keep", type=int, default=2_000, help="thin to at most this many draws per chain")
    add("--at", choices=["held-out", "training"], default="held-out", help="rows of f")
    add("--points", type=int, default=500, help="at most so many rows of f; 200 are the least")
    add("--components", type=int, default=5, help="principal components")
    add("--between", type=int, default=3, help="directions between chains")
    add("--pair", type=int, nargs=2, default=[1, 2], help="columns of the interaction, from 1")
    add("--timeout", type=float, help="give up on a sampler after so many seconds")
    add("--python", action="append", default=[], metavar="PACKAGE=EXECUTABLE")
    add("--out", type=Path, help="JSON with every number")
    return parser.parse_args(arguments)


def load(options):
    """The case, with the rows at which f is read as its held-out rows."""
    case = data.load(options.case or f"friedman-{options.rows}-{options.trees}")
    X = case.X if options.at == "training" else case.X_test
    if len(X) < 200 or options.points < 200:
        raise SystemExit(f"{case.name}: f at {len(X)} rows, --points {options.points}: 200 needed")
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), options.points)).round().astype(int))
    return replace(case, X_test=X[rows])


def of_directions(name, f, axes, seconds):
    """Numbers of each direction."""
    draws, total = directions.along(f, axes), directions.variance(f)
    effective, agree = of_each(ess, draws), of_each(rhat, draws)
    return [
        {
            "direction": f"{name} {k + 1}",
            "share": directions.variance(draws[:, :, k : k + 1]) / total,
            "ess_per_second": float(effective[k] / seconds),
            "iact": float(seconds / effective[k]),
            "rhat": float(agree[k]),
        }
        for k in range(len(axes))
    ]


def of_rows(name, values, total, seconds):
    """Numbers of the median and of the worst of the random rows."""
    n_rows = values.shape[2]
    rows = np.random.default_rng(0).choice(n_rows, min(N_RANDOM, n_rows), replace=False)
    effective, agree = of_each(ess, values[:, :, rows]), of_each(rhat, values[:, :, rows])
    share = directions.variance(values) / total
    return [
        {
            "direction": f"{name}, {which} row",
            "share": share,
            "ess_per_second": float(e / seconds),
            "iact": float(seconds / e),
            "rhat": float(r),
        }
        for which, e, r in (
            ("median", np.median(effective), np.median(agree)),
            ("worst", effective.min(), agree.max()),
        )
    ]


def judge(f, seconds, case, axes, options):
    """All lines of one sampler; ``axes`` are the shared components."""
    pair = [j - 1 for j in options.pair]
    total = directions.variance(f)
    lines = of_directions("shared component", f, axes, seconds)
    own = directions.principal(f, options.components)
    lines += of_directions("own component", f, own, seconds)
    apart = directions.between(f, options.between)
    lines += of_directions("between half chains", f, apart, seconds)
    sums, products = parts.additive(case.X_test), parts.interaction(case.X_test, pair)
    name = f"interaction of x{options.pair[0]} and x{options.pair[1]}"
    lines += of_rows("additive part", parts.project(f, sums), total, seconds)
    lines += of_rows(name, parts.project(f, products), total, seconds)
    lines += of_rows("f", f, total, seconds)
    return lines


def cells(name, line):
    numbers = [f"{line['share']:.3f}", f"{line['ess_per_second']:.3g}", f"{line['iact']:.3g}"]
    return [name, line["direction"], *numbers, f"{line['rhat']:.3f}"]


def report(case, found, failed, options):
    """Text of all samplers, and the lines by sampler."""
    fits = [result.f for _, result in found.values()]
    axes = directions.shared(fits, options.components) if fits else None
    lines = {
        name: judge(result.f, result.seconds_sampling, case, axes, options)
        for name, (_, result) in found.items()
    }
    rows = [cells(name, line) for name, judged in lines.items() for line in judged]
    head = f"{case.name}: {len(case.y)} rows, {case.m} trees, f at {len(case.X_test)} "
    head += f"{options.at} rows, {options.chains} chains. {table.machine()}.\n\n"
    text = head + table.markdown(HEADER, rows) + "\n"
    text += "".join(f"\n- {name}: {reason}" for name, reason in failed.items())
    return text, lines


def entry(problem, result, lines):
    """What the JSON file holds of a sampler."""
    return {
        "version": result.version,
        "iterations": [problem.n_warmup, problem.n_draws],
        "thin": problem.thin,
        "seconds_warmup": result.seconds_warmup,
        "seconds_sampling": result.seconds_sampling,
        "seconds_compile": result.seconds_compile,
        "lines": lines,
    }


def main(arguments=None):
    options = parse(arguments)
    samplers.check(options.steps)
    try:
        case = load(options)
    except data.MissingData as error:
        raise SystemExit(str(error)) from error
    effort = samplers.Effort(
        chains=options.chains,
        keep=options.keep,
        seconds=options.seconds,
        timeout=options.timeout,
        pythons=tuple(options.python),
    )
    found, failed = {}, {}
    for name in options.steps:
        print(f"{case.name}: {name}", file=sys.stderr, flush=True)
        try:
            found[name] = samplers.fit(name, case, effort, options.seed)
        except launch.RunnerFailed as error:
            failed[name] = str(error)
            print(error, file=sys.stderr)
            continue
        if options.out:  # rewritten after every sampler: an interrupted run keeps what it has
            _, lines = report(case, found, failed, options)
            stored = {"case": case.name, "settings": vars(options), "failed": failed}
            stored["samplers"] = {s: entry(*found[s], lines[s]) for s in found}
            options.out.write_text(json.dumps(stored, indent=1, default=str) + "\n")
    print(report(case, found, failed, options)[0])


if __name__ == "__main__":
    main()
