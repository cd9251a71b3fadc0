"""What forests cost under other likelihoods, and how their chains agree.

    python -m benchmarks.likelihoods --out likelihoods.json
    python -m benchmarks.likelihoods --cases normal poisson --chains 2 --tune 500 --draws 500

Chains run through `pm.sample` with the steps it assigns, one after the other on one core, once
everything is compiled. A step is whatever a package makes of it: pymc-bart visits a tenth of its
trees in one. Seconds are of CPU, without warm-up; ESS (bulk) and R-hat are ArviZ's, of f at 60
training rows, median and worst row. Numbers of other packages, which may want an environment of
their own, are added to those in ``--out``. Data sets come from the folder `PYMC_TREES_DATA`.
"""

import argparse
import json
from pathlib import Path

from benchmarks.likelihoods.cases import CASES
from benchmarks.likelihoods.run import measure
from benchmarks.peers import table
from benchmarks.peers.data import MissingData

HEADER = ["case", "package", "ms a step", "us a row and tree", "ESS of f per s (least)"]
HEADER += ["R-hat of f (worst)", "visits taken", "s in all"]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.likelihoods")
    add = parser.add_argument
    add("--cases", nargs="+", choices=list(CASES), default=list(CASES), metavar="CASE")
    add("--package", choices=["pymc_trees", "pymc_bart"], default="pymc_trees")
    add("--chains", type=int, default=2)
    add("--tune", type=int, default=500)
    add("--draws", type=int, default=500)
    add("--seed", type=int, default=1)
    add("--out", type=Path, help="JSON with every number, added to")
    return parser.parse_args(arguments)


def row(name, package, found):
    """Cells of the table."""
    return [
        name,
        package,
        f"{found['ms_per_step']:.2f}",
        f"{found['us_per_row_and_tree']:.3f}",
        f"{found['ess_per_second']:.1f} ({found['least_ess_per_second']:.1f})",
        f"{found['rhat']:.3f} ({found['worst_rhat']:.2f})",
        f"{found['screened']:.2f}" if "screened" in found else "-",
        f"{found['seconds_of_all']:.0f}",
    ]


def main(arguments=None):
    options = parse(arguments)
    known = options.out and options.out.exists()
    kept = json.loads(options.out.read_text()) if known else {}
    for name in options.cases:
        try:
            case = CASES[name]()
        except MissingData as error:
            print(f"{name}: {error}")
            continue
        found = measure(
            case, options.package, options.tune, options.draws, options.chains, options.seed
        )
        kept.setdefault(name, {})[options.package] = found
        print(*row(name, options.package, found), sep=" | ", flush=True)
        if options.out:
            options.out.write_text(json.dumps(kept, indent=1))
    rows = [row(name, who, found) for name, of in kept.items() for who, found in of.items()]
    print(table.markdown(HEADER, rows))


if __name__ == "__main__":
    main()
