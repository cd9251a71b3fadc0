"""Print p-values of uniform ranks: ``python -m benchmarks.sbc --replicates 400``."""

import argparse

import pymc_trees as pmt
from benchmarks.sbc.cases import CASES
from benchmarks.sbc.run import ranks, uniformity


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--thin", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--move", choices=["CGM", "GrowPrune", "Hybrid"], default="CGM")
    arguments = parser.parse_args()
    length = 10
    print("| case | quantity | replicates | chi-squared p |")
    print("|---|---|---|---|")
    for name in arguments.cases:
        found = ranks(
            CASES[name](),
            arguments.replicates,
            length=length,
            thin=arguments.thin,
            seed=arguments.seed,
            move=getattr(pmt, arguments.move),
        )
        for quantity, rank in found.items():
            p = uniformity(rank, length)
            print(f"| {name} | {quantity} | {rank.size} | {p:.3f} |", flush=True)


if __name__ == "__main__":
    main()
