"""Tables 1, 2 and 6 of the DCC-Tree paper, made again and printed beside its numbers.

    PYMC_TREES_DATA=path/to/data python -m benchmarks.papers.dcc_tree --out dcc_results
    PYMC_TREES_DATA=path/to/data python -m benchmarks.papers.dcc_tree --out dcc_full --full

The first makes 3 runs of each data set with 60 global iterations of 8 chains and a quarter of the
warm-up. So few iterations rarely propose a topology of five leaves often enough for a visit, which
CGM needs: ``--threshold 1`` helps. ``--full`` is the paper's 10 runs of 500 iterations of 16
chains: by the seconds per proposal of docs/papers/dcc_tree.md 70 core-hours without CGM, half of
them Raisin, and several hundred with it. With ``--cores 1`` seconds are those of the processor,
else of the clock. Every run is kept in
``<out>/<sampler>_<set>_<seed>.json`` and not made again; ``<out>/table.md`` holds what is there.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.peers.data import MissingData

from . import data, reported, runs, speed


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers.dcc_tree",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("dcc_results"))
    add("--sets", nargs="+", choices=list(data.SETTINGS), default=list(data.SETTINGS))
    add("--samplers", nargs="+", choices=["dcc", "cgm", "smc", "speed"], default=["dcc", "cgm"])
    add("--runs", type=int, default=3)
    add("--first", type=int, default=0, help="seed of the first run")
    add("--iterations", type=int, default=60)
    add("--chains", type=int, default=8)
    add("--warm-up", type=float, default=0.25, help="share of the paper's")
    add("--threshold", type=int, default=5, help="C_0; few iterations need a smaller one")
    add("--local-draws", type=int, default=100, help="N_s")
    add("--cores", type=int, default=2)
    add("--full", action="store_true", help="10 runs, 500 iterations, 16 chains, all the warm-up")
    options = parser.parse_args(arguments)
    if options.full:
        options.runs, options.iterations, options.chains, options.warm_up = 10, 500, 16, 1.0
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.sets:
        try:
            loaded = data.load(name)
        except MissingData as error:
            print(f"{name} is left out: {error}")
            continue
        for sampler in options.samplers:
            number = 1 if sampler == "speed" else options.runs
            for seed in range(options.first, options.first + number):
                one(options, loaded, sampler, seed)
    print(table(options.out))


def one(options, loaded, sampler, seed):
    """Make a run, unless its result is there."""
    path = options.out / f"{sampler}_{loaded.name}_{seed}.json"
    if path.exists() or (sampler == "smc" and not loaded.classes):
        return
    if sampler == "speed":
        result = speed.measure(loaded)
    elif sampler == "dcc":
        tune = round(options.warm_up * loaded.tune)
        names = ("iterations", "chains", "threshold", "local_draws")
        asked = {name: getattr(options, name) for name in names}
        result = runs.dcc(loaded, seed, tune=tune, cores=options.cores, **asked)
        result |= {**asked, "tune": tune}
    else:
        result = getattr(runs, sampler)(loaded, seed)
    path.write_text(json.dumps(result, indent=1))
    print(path.name, {k: v for k, v in result.items() if k != "topologies"}, flush=True)


def table(out):
    """Markdown: scores over runs beside the paper's, then seconds."""
    lines = [
        "| data | sampler | runs | train | test | truth at test | paper: train | paper: test "
        "| s per proposal | paper | most probable |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in data.SETTINGS:
        for sampler, paper in (
            ("dcc", reported.DCC),
            ("cgm", {k: (None, v) for k, v in reported.TEST_OF_CGM.items()}),
            ("smc", {k: (None, v) for k, v in reported.TEST_OF_SMC.items()}),
        ):
            found = [
                json.loads(p.read_text()) for p in sorted(out.glob(f"{sampler}_{name}_*.json"))
            ]
            if not found:
                continue
            cells = [name, sampler, str(len(found))]
            cells += [spread([f[part] for f in found]) for part in ("train", "test")]
            floor = found[0].get("floor")
            cells.append("" if floor is None else f"{floor:.4f}")
            cells += [
                "" if pair is None else f"{pair[0]:.3f} ({pair[1]:.2g})" for pair in paper[name]
            ]
            if sampler == "dcc":
                each = np.mean([f["seconds_per_proposal"] for f in found])
                best = sorted({next(iter(f["topologies"])) for f in found})
                cells += [f"{each:.4f}", f"{reported.SECONDS_PER_PROPOSAL[name]:.4f}"]
                cells += [", ".join(best)]
            else:
                cells += [""] * 3
            lines.append(f"| {' | '.join(cells)} |")
    measured = ("ours", "written_out", "ours_in_nuts", "written_out_in_nuts")
    lines += [
        "",
        "| data | d | gradients per s | written out in PyMC | within NUTS | written out |",
        "|---|---|---|---|---|---|",
    ]
    for name in data.SETTINGS:
        path = out / f"speed_{name}_0.json"
        if path.exists():
            f = json.loads(path.read_text())
            rates = " | ".join(f"{f[key]:,.0f}" for key in measured)
            lines.append(f"| {name} | {f['dimension']} | {rates} |")
    text = "\n".join(lines)
    (out / "table.md").write_text(text + "\n")
    return text


def spread(values):
    """Mean and standard deviation over runs."""
    return f"{np.mean(values):.4f} ({np.std(values):.2g})"


if __name__ == "__main__":
    main()
