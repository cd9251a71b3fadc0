"""Print p-values of uniform ranks: ``python -m benchmarks.sbc --replicates 400``.

With ``--coverage`` the share of rows at which 95% intervals of f hold the truth, instead.
"""

import argparse

import numpy as np
import pymc as pm

import pymc_trees as pmt
from benchmarks.sbc.cases import CASES
from benchmarks.sbc.run import coverage, ranks, uniformity


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--thin", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--move", choices=["CGM", "GrowPrune", "Hybrid"], default="CGM")
    parser.add_argument("--coverage", action="store_true")
    arguments = parser.parse_args()
    if arguments.coverage:
        covered(arguments)
        return
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


def covered(arguments):
    """A row for each case: all rows of all its functions."""
    length = 40
    print("| case | replicates | 95% intervals of f cover | standard error |")
    print("|---|---|---|---|")
    for name in arguments.cases:
        case = CASES[name]()
        n = pm.draw(case.model[case.functions[0]]).shape[-1]
        options = {"thin": arguments.thin, "seed": arguments.seed, "rows": range(n)}
        found = ranks(
            case,
            arguments.replicates,
            length=length,
            move=getattr(pmt, arguments.move),
            **options,
        )
        of_f = [rank for key, rank in found.items() if key.split("[")[0] in case.functions]
        share, error = coverage(np.array(of_f), length)
        print(f"| {name} | {arguments.replicates} | {share:.4f} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
