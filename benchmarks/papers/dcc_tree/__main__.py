"""Tables 1, 2 and 6 of the DCC-Tree paper, made again and printed beside its numbers.

    export PYMC_TREES_DATA=path/to/data
    python -m benchmarks.papers.dcc_tree --out benchmarks/results/dcc_tree.jsonl
    python -m benchmarks.papers.dcc_tree --out benchmarks/results/dcc_tree.jsonl --full
    python -m benchmarks.papers.dcc_tree --out benchmarks/results/dcc_tree.jsonl --report

The first makes 3 runs of each data set by each sampler, DCC-Tree with 60 global iterations of 8
chains and a quarter of the warm-up. So few iterations rarely propose a topology of five leaves
often enough for a visit, which CGM needs: ``--threshold 1`` helps. ``--full`` is the paper's 10
runs of 500 iterations of 16 chains: by the seconds per proposal of the note days of a processor,
and CGM alone longer than all others. Every run is a line of ``--out``: one that is there with the
same settings is not made again, so that a command that was cut off goes on where it was. Seconds
are those of the processor where one core is used, else of the clock.
"""

import argparse
from pathlib import Path

from benchmarks.papers.dcc_tree import data, runs, speed
from benchmarks.papers.dcc_tree.tables import SETTINGS, report
from benchmarks.peers.data import MissingData
from benchmarks.tables.lines import kept_lines

KEYS = ("sampler", "data", "seed", *SETTINGS)
SAMPLERS = ("dcc", "cgm", "wu", "smc", "hmc_df", "hmc_dfi", "speed")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.dcc_tree",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("dcc_tree.jsonl"))
    add("--sets", nargs="+", choices=list(data.SETTINGS), default=list(data.SETTINGS))
    add("--samplers", nargs="+", choices=SAMPLERS, default=list(SAMPLERS[:-1]))
    add("--runs", type=int, default=3)
    add("--first", type=int, default=0, help="seed of the first run")
    add("--iterations", type=int, default=60)
    add("--chains", type=int, default=8)
    add("--warm-up", type=float, default=0.25, help="share of the paper's")
    add("--threshold", type=int, default=5, help="C_0; few iterations need a smaller one")
    add("--local-draws", type=int, default=100, help="N_s")
    add("--cores", type=int, default=1, help="processes of DCC-Tree")
    add("--full", action="store_true", help="10 runs, 500 iterations, 16 chains, all the warm-up")
    add("--report", action="store_true", help="print the table of the results")
    options = parser.parse_args(arguments)
    if options.full:
        options.runs, options.iterations, options.chains, options.warm_up = 10, 500, 16, 1.0
    jobs = [] if options.report else jobs_of(options)
    report(kept_lines(options.out, KEYS, jobs, lambda *job: run(options.cores, *job)))


def jobs_of(options) -> list[tuple]:
    """Values of `KEYS`, for data that are there."""
    settings = tuple(getattr(options, name) for name in SETTINGS)
    jobs = []
    for name in options.sets:
        try:
            loaded = data.load(name)
        except MissingData as error:
            print(f"{name} is left out: {error}")
            continue
        for sampler in options.samplers:
            if sampler == "smc" and not loaded.classes:
                continue
            number = 1 if sampler == "speed" else options.runs
            seeds = range(options.first, options.first + number)
            given = settings if sampler == "dcc" else (None,) * len(settings)
            jobs += [(sampler, name, seed, *given) for seed in seeds]
    return jobs


def run(cores, sampler, name, seed, *settings):
    """What is measured of a job."""
    loaded, given = data.load(name), dict(zip(SETTINGS, settings, strict=True))
    if sampler == "speed":
        found = speed.measure(loaded)
    elif sampler == "dcc":
        tune = round(given.pop("warm_up") * loaded.tune)
        found = runs.dcc(loaded, seed, tune=tune, cores=cores, **given)
    else:
        found = getattr(runs, sampler)(loaded, seed)
    print(sampler, name, seed, {k: v for k, v in found.items() if k != "topologies"}, flush=True)
    return found


if __name__ == "__main__":
    main()
