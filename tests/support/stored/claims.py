"""Sentences of pages on stored results: what their numbers are, and whether a comparison holds.

`SENTENCES` gives for each page the words that must stand there, their numbers put in from the
results. `COMPARISONS` gives sentences without numbers, and whether the results bear them out.
"""

from collections.abc import Callable

from .results import cells, stored


def plain(text: str) -> str:
    """Words in one line, without marks of bold type."""
    return " ".join(text.replace("**", "").split())


OURS = "pymc_trees:grid"


def peers(column: str):
    """A column of the comparison of four packages, by package and rows."""
    latest = stored("scale_peers").drop_duplicates(["package", "n"], keep="last")
    return latest.set_index(["package", "n"])[column]


def chains_of_peers() -> list[str]:
    """How long the chains ran that are compared."""
    budget = peers("budget").groupby("n").first()
    assert (peers("chains") == 2).all() and budget[1_000] == budget[10_000]
    return [
        f"two chains of {budget[1_000]:.0f} seconds with the steps",
        f"two chains of {budget[10_000]:.0f} seconds at 10,000 rows, "
        f"of {budget[1_000_000]:.0f} at a million",
    ]


def chains_of_the_readme() -> list[str]:
    return [f"two chains of {peers('budget')[OURS, 10_000]:.0f} seconds each"]


def chains_of_the_comparison() -> list[str]:
    shown = peers("budget").unstack("n")[[100, 1_000, 10_000, 1_000_000]]
    [seconds] = set(shown.to_numpy().ravel())
    return [f"two chains of {seconds:.0f} seconds."]


def large_table() -> list[str]:
    """Memory and time of ten million rows, and ten times the time."""
    found = stored("large_table").set_index("n").loc[10_000_000]
    sweep = 10 * found.mean_seconds_per_step
    return [
        f"the peak was {found.gb_own_peak:.1f} GB of private memory, "
        f"{found.gb_peak:.1f} GB with file pages",
        f"took {found.mean_seconds_per_step:.1f} s on average",
        f"takes some {sweep:.0f} s, and 1,000 sweeps about {1000 * sweep / 3600:.0f} hours",
    ]


SHARDED_TREES = 50


def sharded_times() -> dict[str, float]:
    """Milliseconds of a visit of a tree: of the driver, of a round trip, of a row (ns)."""
    found = stored("sharded")
    found = found.assign(visit=1000 * found.sweep / SHARDED_TREES)
    visit = found.set_index(["place", "rows"]).visit
    small = found[found.rows <= 100_000].groupby("place").visit
    one, two = (visit["Dask, 1 process"], visit["Dask, 2 processes"])
    return {
        "driver": round(1000 * (found.sweep - found.asking).median() / SHARDED_TREES, 1),
        "one": round(small.min()["Dask, 1 process"]),
        "one at most": round(small.max()["Dask, 1 process"]),
        "two": round(small.min()["Dask, 2 processes"]),
        "two at most": round(small.max()["Dask, 2 processes"]),
        "further": round((two - one).drop(1_000_000).mean()),
        "row": round(1e6 * (visit["here", 1_000_000] - visit["here", 100]) / (1_000_000 - 100)),
    }


def sharded() -> list[str]:
    t = sharded_times()
    return [
        f"t_driver = {t['driver']} ms; t_trip = {t['one']} to {t['one at most']} ms to one actor "
        f"of Dask and {t['two']} to {t['two at most']} ms to two, with up to 100,000 rows; "
        f"c = {t['row']} ns a row",
        f"One shard has a round trip of {t['one']} ms. Of more, the first number assumes a round "
        f"trip of {t['two']} ms for any S; the second adds {t['further']} ms for each further "
        f"shard to the {t['one']} ms of one",
    ]


def sharded_sweeps() -> list[str]:
    """Rows of the table of docs/sharded.md: seconds of a sweep by the formula above it."""
    t, rows = sharded_times(), []
    for millions in (1, 10, 100):
        row = [f"{millions} million"]
        for shards in (1, 8, 16, 32, 64):
            trips = [t["two"], t["one"] + t["further"] * (shards - 1)] if shards > 1 else [t["one"]]
            seconds = [
                SHARDED_TREES * (t["driver"] + trip + millions * t["row"] / shards) / 1000
                for trip in trips
            ]
            row.append(" to ".join(f"{one:.1f}" for one in seconds))
        rows.append(f"| {' | '.join(row)} |")
    return rows


def a_hundred_million_rows() -> list[str]:
    """What docs/large_data.md says of sixteen shards."""
    least, most = (float(cell) for cell in cells(sharded_sweeps()[2])[3].split(" to "))
    return [f"A sweep takes [{least:.0f} to {most:.0f} s](sharded.md"]


def capacity() -> list[str]:
    """Room for the nodes of a forest by default, and the bytes of a draw."""
    from pymc_trees.distributions.capacity import default_max_nodes

    few, some, many, most = (
        default_max_nodes(50, n, 0.95, 2.0) for n in (1_700, 10_000, 200_000, 1_000_000)
    )
    assert default_max_nodes(50, 1_800, 0.95, 2.0) > few
    return [
        f"that is {few} nodes up to 1,700 rows, {some:,} for 10,000 rows "
        f"({16 * some / 1000:.0f} kB a draw), {many:,} for 200,000 ({16 * many / 1000:.0f} kB) "
        f"and {most:,} for a million ({16 * most / 1e6:.0f} MB,",
        f"{default_max_nodes(200, 1_000, 0.95, 2.0):,} nodes by default",
    ]


SENTENCES: dict[str, tuple[Callable[[], list[str]], ...]] = {
    "README.md": (chains_of_the_readme,),
    "docs/benchmarks.md": (chains_of_peers,),
    "docs/comparison.md": (chains_of_the_comparison,),
    "docs/data_model/capacity.md": (capacity,),
    "docs/large_data.md": (large_table, a_hundred_million_rows),
    "docs/sharded.md": (sharded, sharded_sweeps),
}
"""What a page must say, by functions of the stored results."""


def said(page: str) -> list[str]:
    """Sentences with numbers that a page must contain."""
    return [plain(words) for function in SENTENCES.get(page, ()) for words in function()]


def ranks_of_uci():
    """Rank of each method on each set by NLL."""
    mean = stored("uci").groupby(["set", "method"]).nll.mean().unstack()
    return mean.rank(axis=1)


def best_or_second() -> bool:
    ours = ranks_of_uci().drop(columns="pymc_trees, one sigma")
    ours = ours.rank(axis=1)["pymc_trees"]
    return len(ours) == 5 and bool((ours <= 2).all())


def least_errors_of_uci() -> bool:
    rmse = stored("uci").groupby(["set", "method"]).rmse.mean().unstack()
    best = rmse.loc[["wine_quality_red", "concrete", "energy"]].idxmin(axis=1)
    return list(best) == ["gradient boosting", *["pymc_trees, one sigma"] * 2]


def constant_leaves_fail() -> bool:
    mean = stored("extrapolation").groupby("method").outside.mean()
    constant = mean.index.str.endswith("constant")
    return bool(sum(constant) == 2 and mean[constant].min() > 2 * mean[~constant].max())


def lower_errors() -> bool:
    rmse = peers("rmse").unstack()[[1_000, 10_000]]
    return bool((rmse.loc[["bartz", "stochtree"]] < rmse.loc[OURS]).all(axis=None))


def most_memory() -> bool:
    return bool((peers("gb_peak").unstack()[[10_000, 100_000, 1_000_000]].idxmax() == OURS).all())


def only_wtw() -> bool:
    both = stored("two_modes").groupby("sampler").both
    least = both.min()[both.size() == both.size().max()]  # of those run on all data sets
    return bool(least["RestructureCGM"] == 1 and (least.drop("RestructureCGM") < 1).all())


def fewest_and_most_rows() -> bool:
    rate = peers("ess_f_per_second").unstack()
    middle = rate[[1_000, 10_000]]
    few = (rate.loc[["dbarts", "bartz"], 100] > rate.loc[OURS, 100]).all()
    return bool(few and (middle.idxmax() == OURS).all())


def no_agreement() -> bool:
    many = [100_000, 1_000_000]
    quickest = peers("seconds_per_iteration").unstack()[many].idxmin()
    return bool((peers("rhat_f").unstack()[many] > 1.1).all(axis=None)) and all(quickest == "bartz")


def second_process() -> bool:
    sweep = stored("sharded").pivot(index="rows", columns="place", values="sweep")
    pays = sweep["Dask, 2 processes"] < sweep[["here", "Dask, 1 process"]].min(axis=1)
    return list(pays[pays].index) == [1_000_000]


def flat_stream() -> bool:
    us = stored("stream").pivot(index="rows", columns="case", values="us_per_row")
    return bool((abs(us.loc[10_000_000] / us.loc[2_000_000] - 1) < 0.1).all())


COMPARISONS: dict[str, dict[str, Callable[[], bool]]] = {
    "docs/benchmarks.md": {
        "only `RestructureCGM` visits both in every chain of all data sets": only_wtw,
        "At 100 rows bartz and dbarts give more effective samples a second, from 1,000 to 10,000 "
        "pymc_trees.": fewest_and_most_rows,
        "From 100,000 on no chains agree yet, and iterations of bartz are quicker": no_agreement,
        "on two cores the second pays from a million rows on": second_process,
        "in the same time after ten million rows as after two": flat_stream,
    },
    "docs/comparison.md": {
        "It is best or second among packages on all five sets.": best_or_second,
        "stochtree is best on wine": lambda: (
            ranks_of_uci().idxmin(axis=1)["wine_quality_red"] == "stochtree"
        ),
        "our own model with one sigma is best on boston": lambda: (
            ranks_of_uci().idxmin(axis=1)["boston"] == "pymc_trees, one sigma"
        ),
        "Boosting predicts wine with the least error, and one sigma": least_errors_of_uci,
        "At 100 rows dbarts and bartz give more effective samples a second; from 1,000 to 10,000 "
        "rows `pymc_trees` does.": fewest_and_most_rows,
        "bartz and stochtree have the lower error of f at 1,000 and 10,000 rows.": lower_errors,
        "From 10,000 rows on `pymc_trees` takes the most memory": most_memory,
        "At a million rows no chains agree yet": no_agreement,
        "bartz is quickest": no_agreement,
        "Constant leaves fail beyond the data, in both packages.": constant_leaves_fail,
    },
    "docs/papers/wtw.md": {"All chains of `RestructureCGM` visit both kinds.": only_wtw},
}
"""Comparisons in words, and whether the stored results bear them out."""
