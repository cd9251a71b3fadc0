"""Tables 1, 2, 4 and 5 and figures of the paper, beside its numbers.

    python -m benchmarks.papers.pg_bart                  minutes
    python -m benchmarks.papers.pg_bart --full           hours: 4 chains x 10 data seeds, all D
    python -m benchmarks.papers.pg_bart --only hypercube --D 4 5 --samplers PG "50 CGM, PG"

Seconds are of CPU, one thread for each chain, so that chains may run side by side. What was
measured is kept in ``<out>/results.json`` and taken up again, unless --afresh is given; the
tables are written anew after every group of chains.
"""

import argparse
import json
from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.peers.data import MissingData

from . import chain, judge, pictures, tables
from .samplers import SAMPLERS

MAIN = ("CGM", "GrowPrune", "PG", "PG optimal", "Hybrid", "Hybrid 50")
PICTURED = 4  # D of figure 3


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.pg_bart",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--full", action="store_true", help="4 chains x 10 data seeds, D = 2, 3, 4, 5, 7")
    add("--only", choices=("hypercube", "houses"))
    add("--D", type=int, nargs="+", choices=(2, 3, 4, 5, 7))
    add("--samplers", nargs="+", choices=list(SAMPLERS), default=list(MAIN), metavar="NAME")
    add("--seeds", type=int, help="data seeds of the hypercube")
    add("--chains", type=int, help="chains for each data set")
    add("--warmup", type=int, default=1_000)
    add("--draws", type=int, default=1_000)
    add("--trees", type=int, default=200, help="of the houses")
    add("--jobs", type=int, default=2, help="chains side by side")
    add("--out", type=Path, default=Path("pg_bart_results"))
    add("--afresh", action="store_true", help="forget earlier results in --out")
    options = parser.parse_args(arguments)
    options.D = options.D or ([2, 3, 4, 5, 7] if options.full else [2, 3, 4])
    options.seeds = options.seeds or (10 if options.full else 2)
    options.chains = options.chains or (4 if options.full else 2)
    return options


def groups_of(options):
    """(case, size, sampler, data seeds) in the order in which they are run."""
    groups = []
    if options.only != "houses":
        groups += [("hypercube", D, s, options.seeds) for D in options.D for s in options.samplers]
    if options.only != "hypercube":
        sets = 3 if options.full else 1
        groups += [("houses", options.trees, s, sets) for s in options.samplers]
    return groups


def run_group(case, size, sampler, seeds, options):
    """Numbers of all chains of a sampler on a case; records of the first data set."""
    tasks = [
        [
            chain.Task(
                case, size, seed, k, sampler, options.warmup, options.draws,
                10 if case == "houses" else 2,
            )
            for k in range(options.chains)
        ]
        for seed in range(seeds)
    ]  # fmt: skip
    flat = [task for row in tasks for task in row]
    chain.run(flat[0]._replace(warmup=2, draws=2))  # compiles once, not in each process
    records = Parallel(n_jobs=options.jobs, inner_max_num_threads=1)(
        delayed(chain.run)(task) for task in flat
    )
    rows = [records[k : k + options.chains] for k in range(0, len(flat), options.chains)]
    sets = [chain.data_of(row[0]) for row in tasks]
    return {
        "chains": [
            judge.chain_numbers(record, task, data)
            for row, here, data in zip(rows, tasks, sets)
            for record, task in zip(row, here)
        ],
        "groups": [judge.group_numbers(row, here[0]) for row, here in zip(rows, tasks)],
    }, rows[0]


def write(results, options):
    """`tables.md` and `results.json`."""
    cubes, houses = [], []
    order = list(SAMPLERS)
    for result in sorted(results.values(), key=lambda r: (r["size"], order.index(r["sampler"]))):
        family = SAMPLERS[result["sampler"]].family
        if result["case"] == "hypercube":
            cubes.append(tables.hypercube_row(result["size"], result["sampler"], family, result))
        else:
            houses.append(tables.houses_row(result["sampler"], family, result))
    parts = ["# Particle Gibbs for BART: the paper's tables\n"]
    if cubes:
        parts += ["## Hypercube\n", tables.markdown(tables.HYPERCUBE_HEAD, cubes), ""]
    if houses:
        parts += ["## California houses\n", tables.markdown(tables.HOUSES_HEAD, houses), ""]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "tables.md").write_text("\n".join(parts))
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    return "\n".join(parts)


def main(arguments=None):
    options = parse(arguments)
    store = options.out / "results.json"
    results = json.loads(store.read_text()) if store.exists() and not options.afresh else {}
    pictured = {}
    for case, size, sampler, seeds in groups_of(options):
        length = f"{options.warmup}+{options.draws}"
        key = f"{case} {size} {sampler} {seeds}x{options.chains} {length}"
        if key in results:
            continue
        print(key, flush=True)
        try:
            numbers, records = run_group(case, size, sampler, seeds, options)
        except MissingData as error:
            print(error)
            continue
        results[key] = {"case": case, "size": size, "sampler": sampler} | numbers
        text = write(results, options)
        if case == "houses" or size == PICTURED:
            here = pictured.setdefault(case, {})
            here[sampler] = records
            pictures.traces(
                here,
                options.out / f"{case}.png",
                f"{case}-{size}",
                2**size if case == "hypercube" else None,
                10 if case == "houses" else 2,
            )
        print(text.splitlines()[-1], flush=True)
    print(write(results, options))


if __name__ == "__main__":
    main()
