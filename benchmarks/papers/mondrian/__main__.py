"""Figures 5.3 and 6.1, tables 5.1, 6.2 and 6.3 of the thesis, and speed, beside its numbers.

    PYMC_TREES_DATA=path/to/data python -m benchmarks.papers.mondrian --out mondrian_results
    PYMC_TREES_DATA=path/to/data python -m benchmarks.papers.mondrian --only speed

Each part writes ``<out>/<part>.md`` and its pictures.
"""

import argparse
from pathlib import Path

from . import accuracy, bayesopt, calibration, speed

PARTS = ("accuracy", "calibration", "bayesopt", "speed")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.mondrian",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=list(PARTS))
    add("--out", type=Path, default=Path("mondrian_results"))
    add("--jobs", type=int, default=2)
    add("--seeds", type=int, default=5, help="of figure 5.3")
    add("--sets", nargs="+", choices=accuracy.SETS, default=list(accuracy.SETS))
    add("--river-trees", type=int, default=10, help="of figure 5.3; speed takes 100")
    add("--river-seconds", type=float, default=600, help="for each data set; 0 leaves river out")
    add("--runs", type=int, default=15, help="of Bayesian optimisation")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.only:
        if part == "accuracy":
            results = {}
            for name in options.sets:
                results[name] = accuracy.run(
                    name, options.seeds, options.jobs, options.river_trees, options.river_seconds
                )
            text = accuracy.table(results) + "\n\n" + accuracy.depth_table(results)
            accuracy.picture(results, options.out / "figure_5_3.png")
        elif part == "calibration":
            text = calibration.tables(calibration.run(jobs=options.jobs)) + "\n\n"
            text += calibration.away_from_the_data(options.out / "figure_6_1.png", options.jobs)
        elif part == "bayesopt":
            results = bayesopt.run(options.runs, options.jobs)
            text = bayesopt.table(results)
            bayesopt.picture(results, options.out / "table_6_3.png")
        else:
            text = speed.run(options.river_seconds, options.jobs)
        (options.out / f"{part}.md").write_text(text + "\n")
        print(f"## {part}\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
