"""Whether chains agree on held-out f as rows are added: R-hat against n.

    python -m benchmarks.mixing.agreement --out agreement.json
    python -m benchmarks.mixing.agreement --quick
    python -m benchmarks.mixing.agreement --seconds 60 --chains 4 --rows 1000 5000

The protocol is that of Tan, Ronen, Saarinen and Yu, "On the Computational Efficiency of Bayesian
Additive Regression Trees" (arXiv 2406.19958; its first version, with Duncan, is called "The
Computational Curse of Big Data for Bayesian Additive Regression Trees: A Hitting Time Analysis").
Read from yanshuotan/bart-comp-efficiency (`consolidated_configs/trees.yaml`, `runner.py`,
`utils.py`, `master_results_cache.csv`) and yanshuotan/bart-playground (`DataGenerator.py`):

- 200, 500, 1,000, 5,000 and 10,000 rows (100 too in one experiment), 200 trees (10 to 500), 8
  chains, 1,000 sweeps of warm-up, 10,000 draws, up to 25 repeats with new data;
- two simulated functions of ten normal columns, four tables, two of which are here
  (`benchmarks.mixing.processes`); 10,000 rows held out, or 10% of a table;
- R-hat of Gelman and Rubin (1992), no ranks, chains not split, of the root mean squared error of
  each draw over the held-out rows, against f where it is known, else against y. In a variant
  (500 held-out rows) the same of quantiles of f over rows.

Theirs is the column "R-hat of RMSE, 1992", with what they found beside it ("paper"; their sampler
is another program with the moves of `CGM`). R-hat of f at each held-out row, and the rank R-hat of
that RMSE (ArviZ), are not theirs, and tell more. Nor are 50 rows, Friedman's function, 500
held-out rows by default, and draws thinned to `--keep`. An iteration is whatever a sampler makes
of it: `Hybrid` makes several sweeps. `--seconds` gives all samplers the same wall time instead.
"""

import argparse
import json
import sys
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.mixing import processes, samplers
from benchmarks.mixing.published import rhat_of_rmse
from benchmarks.peers import data, launch, table
from benchmarks.peers.metrics import of_each, rhat

PROCESSES = ["friedman", "low", "piecewise", "california"]
SAMPLERS = ["default", "CGM", "dbarts"]
ROWS = [50, 200, 500, 1_000, 5_000]
QUICK = {"rows": [50, 200], "trees": 20, "chains": 2, "tune": 50, "draws": 50, "points": 50}
QUICK |= {"processes": ["friedman", "low"], "seeds": [1]}
HEADER = ["process", "rows", "sampler", "R-hat of f, mean", "worst", "R-hat of RMSE"]
HEADER += ["R-hat of RMSE, 1992", "paper", "RMSE", "seconds"]
KEYS = ["rhat_f_mean", "rhat_f_worst", "rhat_rmse", "rhat_rmse_1992", "paper", "rmse", "seconds"]
DIGITS = dict.fromkeys(KEYS, 3) | {"seconds": 1}


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixing.agreement")
    add = parser.add_argument
    known = f"{', '.join([*processes.SIMULATED, *processes.TABLES])}, or a data set"
    add("--processes", nargs="+", default=PROCESSES, metavar="PROCESS", help=known)
    add("--rows", nargs="+", type=int, default=ROWS)
    add("--samplers", nargs="+", default=SAMPLERS, metavar="SAMPLER")
    add("--trees", type=int, default=200)
    add("--chains", type=int, default=8)
    add("--tune", type=int, default=1_000)
    add("--draws", type=int, default=10_000)
    add("--seconds", type=float, help="wall time of a chain, in place of --tune and --draws")
    add("--keep", type=int, default=2_000, help="thin to at most this many draws per chain")
    add("--points", type=int, default=500, help="at most so many held-out rows")
    add("--seeds", nargs="+", type=int, default=[1], help="one repeat with new data each")
    add("--timeout", type=float, help="give up on a fit after so many seconds")
    add("--python", action="append", default=[], metavar="PACKAGE=EXECUTABLE")
    add("--quick", action="store_true", help=f"other defaults: {QUICK}")
    add("--out", type=Path, help="JSON with every fit")
    if parser.parse_args(arguments).quick:
        parser.set_defaults(**QUICK)
    return parser.parse_args(arguments)


def judge(result, case):
    """R-hat of f over rows, and of each draw's held-out error."""
    truth = case.y_test if case.f_test is None else case.f_test
    f = np.asarray(result.f, float)
    of_rows = of_each(rhat, f)
    of_draws = np.sqrt(np.mean((f - truth) ** 2, axis=2))
    return {
        "rhat_f_mean": float(of_rows.mean()),
        "rhat_f_worst": float(of_rows.max()),
        "rhat_rmse": float(rhat(of_draws)),
        "rhat_rmse_1992": float(rhat(of_draws, method="identity")),
        "rmse": float(np.sqrt(np.mean((f.mean(axis=(0, 1)) - truth) ** 2))),
        "rmse_against": "y" if case.f_test is None else "f",
        "seconds": result.seconds,
        "version": result.version,
    }


def repeat(name, case, effort, seed):
    """Numbers of one fit, or the reason there are none."""
    try:
        problem, result = samplers.fit(name, case, effort, seed)
    except launch.RunnerFailed as error:
        return {"error": str(error)}
    iterations = {"tune": problem.n_warmup, "draws": problem.n_draws, "thin": problem.thin}
    return iterations | judge(result, case)


def runs(options):
    """Every fit, one after the other."""
    effort = samplers.Effort(
        chains=options.chains,
        keep=options.keep,
        seconds=options.seconds,
        tune=options.tune,
        draws=options.draws,
        timeout=options.timeout,
        pythons=tuple(options.python),
    )
    load = partial(processes.load, m=options.trees, n_test=options.points)
    for process, n, seed in product(options.processes, options.rows, options.seeds):
        where = {"process": process, "rows": n, "seed": seed}
        try:
            case = load(process, n, seed=seed)
        except data.MissingData as error:
            yield where | {"sampler": "-", "error": str(error)}
            continue
        if case is None:
            yield where | {"sampler": "-", "error": f"{process} has no {n} rows for training"}
            continue
        for name in options.samplers:
            print(*where.values(), name, file=sys.stderr, flush=True)
            line = where | {"sampler": name} | repeat(name, case, effort, seed)
            yield line | {"paper": rhat_of_rmse(process, options.trees, n)}


def over_repeats(lines):
    """Means over repeats, and of the worst R-hat the largest."""
    merged = {key: lines[0][key] for key in ("process", "rows", "sampler", "paper")}
    for key in set(KEYS) - {"paper"}:
        merged[key] = (max if key == "rhat_f_worst" else np.mean)([line[key] for line in lines])
    return merged


def cells(line):
    numbers = ["-" if line[k] is None else f"{line[k]:.{DIGITS[k]}f}" for k in KEYS]
    return [line["process"], f"{line['rows']}", line["sampler"], *numbers]


def text_of(found, options):
    """A line for each process, n and sampler, then what failed, each reason once."""
    groups, failed = {}, {}
    for line in found:
        if "error" in line:
            failed.setdefault((line["sampler"], line["error"]), []).append(line)
        else:
            groups.setdefault((line["process"], line["rows"], line["sampler"]), []).append(line)
    repeats = f"{len(options.seeds)} repeat{'s' if len(options.seeds) > 1 else ''}"
    head = f"{options.trees} trees, {options.chains} chains, {repeats}. {table.machine()}.\n\n"
    text = head + table.markdown(HEADER, [cells(over_repeats(group)) for group in groups.values()])
    for (name, reason), lines in failed.items():
        where = sorted({f"{line['process']} {line['rows']}" for line in lines})
        text += f"\n\n- {name}: {reason} ({', '.join(where)})"
    return text


def main(arguments=None):
    options = parse(arguments)
    samplers.check(options.samplers)
    found = []
    for line in runs(options):
        found.append(line)
        if options.out:  # rewritten after every fit: an interrupted run keeps what it has
            stored = {"settings": vars(options), "fits": found}
            options.out.write_text(json.dumps(stored, indent=1, default=str) + "\n")
    print(text_of(found, options))


if __name__ == "__main__":
    main()
