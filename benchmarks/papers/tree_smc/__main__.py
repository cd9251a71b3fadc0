"""Figures 3.2 to 3.7 of the thesis as tables and pictures.

    python -m benchmarks.papers.tree_smc                          2 seeds, minutes
    python -m benchmarks.papers.tree_smc --seeds 10 --budget 120  as the thesis
    python -m benchmarks.papers.tree_smc --data madelon --only design

Seconds are of CPU and of one thread, islands one after the other. What was measured is kept in
``<out>/results.json`` and taken up again.
"""

import argparse
import json
from pathlib import Path

from benchmarks.peers.data import MissingData

from . import fits, pictures, plan, tables
from .data import NAMES, load


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.tree_smc",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", nargs="+", choices=NAMES, default=list(NAMES))
    add("--only", choices=("design", "islands", "cgm", "sklearn"))
    add("--seeds", type=int, default=2)
    add("--budget", type=float, default=30.0, help="CPU seconds of a CGM chain")
    add("--out", type=Path, default=Path("tree_smc_results"))
    return parser.parse_args(arguments)


def measure(run, data, tree, seed, budget):
    """Scores of one run: several for CGM, one otherwise."""
    if run.method == "smc":
        settings = run.particles, run.islands, run.proposal, run.expansion
        return [fits.smc(data, tree, *settings, seed)]
    if run.method == "cgm":
        return fits.cgm(data, tree, budget, seed)
    if run.method == "cart":
        return [fits.cart(data, run.proposal)]
    return [fits.forests(data, run.method)]


def main(arguments=None):
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "results.json"
    results = json.loads(store.read_text()) if store.exists() else {}
    for name in options.data:
        try:
            data = load(name)
        except MissingData as error:
            print(f"{name}: not run. {error}")
            continue
        tree = fits.read(data)
        if not options.only or options.only in ("design", "islands"):
            for proposal in ("prior", "optimal"):  # compiles
                fits.smc(data, tree, 2, 1, proposal, "node", 0)
        fits.cgm(data, tree, 0.001, 0, 1)
        for run in plan.runs(name, options.only):
            for seed in range(options.seeds if run.is_random else 1):
                key = plan.key(name, run, seed, options.budget)
                if key in results:
                    continue
                scores = measure(run, data, tree, seed, options.budget)
                results[key] = [list(map(float, s)) for s in scores]
                last = scores[-1]
                print(
                    f"{key}: {last.seconds:.2f} s, log p {last.log_p:.3f}, "
                    f"accuracy {last.accuracy:.3f}",
                    flush=True,
                )
                store.write_text(json.dumps(results, indent=1) + "\n")
    found = {key: [fits.Score(*s) for s in scores] for key, scores in results.items()}
    text = tables.write(found, options.out / "tables.md")
    pictures.write(found, options.out)
    print(text)


if __name__ == "__main__":
    main()
