"""The tables of all runs, beside the paper's numbers."""

import numpy as np
import pandas as pd

from benchmarks.papers.dcc_tree import data, reported

SETTINGS = ("iterations", "chains", "warm_up", "threshold", "local_draws")
"""Settings of DCC-Tree; the other samplers have none."""
SPEEDS = ("ours", "written_out", "ours_in_nuts", "written_out_in_nuts")


def report(results: pd.DataFrame) -> None:
    """Print the scores over runs, seconds, and what was found; then the speed of gradients.

    Seconds are those of the quickest run: other programs only add to them.
    """
    print(
        "| data | sampler | visits, chains, warm-up, C_0, draws | runs | train | test "
        "| truth at test | paper: train | paper: test | least s per proposal | paper "
        "| most probable |"
    )
    print("|---" * 12 + "|")
    for name in data.SETTINGS:
        for sampler in reported.TEST:
            own = results[(results.data == name) & (results.sampler == sampler)]
            for settings, group in own.groupby(list(SETTINGS), dropna=False):
                print(f"| {' | '.join(row(name, sampler, settings, group))} |")
    if (results.sampler == "speed").any():
        print(
            "| data | d | gradients per s | written out in PyMC | within NUTS | written out "
            "| gradients per draw, variances of each chain | covariances of all |"
        )
        print("|---" * 8 + "|")
        for one in results[results.sampler == "speed"].itertuples():
            rates = " | ".join(f"{getattr(one, key):,.0f}" for key in SPEEDS)
            draws = f"{one.variances:.0f} | {one.covariances:.0f}"
            print(f"| {one.data} | {one.dimension:.0f} | {rates} | {draws} |")


def row(name: str, sampler: str, settings: tuple, group: pd.DataFrame) -> list[str]:
    """Cells of the runs of a sampler with the same settings."""
    is_dcc = sampler == "dcc"
    papers = reported.TRAIN_OF_DCC.get(name) if is_dcc else None, reported.TEST[sampler].get(name)
    paper_s = reported.SECONDS_PER_PROPOSAL.get(sampler, {}).get(name)
    cells = [name, sampler, ", ".join(f"{v:g}" for v in settings) if is_dcc else ""]
    cells += [str(len(group)), spread(group.train), spread(group.test)]
    cells.append(f"{group.floor.iloc[0]:.4f}" if is_dcc and group.floor.notna().any() else "")
    cells += ["" if paper is None else f"{paper[0]:.3f} ({paper[1]:.2g})" for paper in papers]
    cells.append("" if sampler == "smc" else f"{group.seconds_per_proposal.min():.4f}")
    cells.append("" if paper_s is None else f"{paper_s:.4g}")
    best = {next(iter(found)) for found in group.topologies} if is_dcc else set()
    return [*cells, ", ".join(sorted(best))]


def spread(values) -> str:
    """Mean and standard deviation over runs."""
    return f"{np.mean(values):.4f} ({np.round(np.std(values), 12):.2g})"
