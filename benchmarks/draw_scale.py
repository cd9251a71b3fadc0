"""Cost against the number of rows, from the stored results.

python -m benchmarks.draw_scale    # docs/pictures_of_results/scale.png
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "pictures_of_results" / "scale.png"
# Okabe and Ito's colours, which colour-blind readers tell apart; markers differ as well.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"


def stored(name: str) -> pd.DataFrame:
    """Results of a benchmark."""
    return pd.read_json(ROOT / "benchmarks" / "results" / f"{name}.jsonl", lines=True)


def draw():
    """Milliseconds of an iteration by rows, and microseconds a row of a stream by rows learnt."""
    figure, (peers, steps, stream) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    large, sharded, learnt = stored("large_table"), stored("sharded"), stored("stream")
    line = dict(linewidth=1.5, markersize=6)
    of_peers = stored("scale_peers").dropna(subset="seconds_per_iteration")
    looks = zip(of_peers.package.unique(), (BLUE, ORANGE, GREEN, PURPLE), "os^D")
    for package, colour, marker in looks:
        one = of_peers[of_peers.package == package].sort_values("n")
        label = package.replace("pymc_trees:grid", "pymc_trees (Hybrid and NUTS)")
        milliseconds = 1e3 * one.seconds_per_iteration
        peers.loglog(one.n, milliseconds, color=colour, marker=marker, label=label, **line)
    peers.set(
        xlabel="rows", ylabel="milliseconds", title="An iteration, 50 trees, 10 columns, one core"
    )
    steps.loglog(
        large.n,
        1e3 * large.seconds_per_step,
        color=BLUE,
        marker="o",
        label="a step of Hybrid, pm.sample",
        **line,
    )
    for place, colour, marker in (
        ("here", ORANGE, "s"),
        ("Dask, 2 processes", GREEN, "^"),
    ):
        one = sharded[sharded.place == place]
        label = f"a sweep, sample_sharded, {place.replace('here', 'one process')}"
        steps.loglog(one.rows, 1e3 * one.sweep, color=colour, marker=marker, label=label, **line)
    steps.set(
        xlabel="rows",
        ylabel="milliseconds",
        title="50 trees, rows in one piece or shards",
        ylim=(8, 2e4),
    )
    for case, colour, marker in (("regression", BLUE, "o"), ("classes", PURPLE, "D")):
        one = learnt[learnt.case == case]
        stream.plot(one.rows / 1e6, one.us_per_row, color=colour, marker=marker, label=case, **line)
    stream.set(
        xlabel="rows learnt, millions",
        ylabel="CPU microseconds a row",
        title="Mondrian forest, 10 trees, 100 MB",
        ylim=(0, None),
    )
    for axes in (peers, steps, stream):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            frameon=False, fontsize=8, loc="upper right" if axes is stream else "upper left"
        )
    return figure


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    draw().savefig(PICTURE, dpi=150)
