"""Markdown tables beside the paper's numbers."""

import numpy as np

from . import reported
from .judge import is_right


def number(value, digits=3):
    """Short, and empty for what there is not."""
    if value is None:
        return ""
    if not np.isfinite(value):
        return "inf" if value == np.inf else "-"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def mean_and_spread(values):
    """``mean (least to greatest)``."""
    values = np.asarray(values, float)
    if values.size == 0:
        return "none"
    return f"{number(values.mean())} ({number(values.min())} to {number(values.max())})"


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def share(flags):
    flags = np.asarray(flags, bool)
    return f"{flags.sum()} of {flags.size}"


def hypercube_row(D, name, family, result):
    """One sampler on one dimension. ``result``: chains and groups of all data seeds."""
    chains, groups = result["chains"], result["groups"]
    found = [is_right(c["leaves_warm"], c["error_warm"], D) for c in chains]
    counts = [is_right(c["leaves"], c["error"], D) for c in chains]
    ours = [c["ess"] for c, right in zip(chains, counts) if right]
    speed = [c["ess_per_second"] for c, right in zip(chains, counts) if right]
    paper = reported.of(reported.HYPERCUBE_ESS[D], family)
    paper_speed = reported.of(reported.HYPERCUBE_ESS_PER_SECOND[D], family)
    times = f"{np.mean(speed) / paper_speed:.0f}" if ours and paper_speed else ""
    rhats = [g["rhat"] for g in groups]
    finite = [r for r in (g["rhat_leaves"] for g in groups) if not np.isnan(r)]
    return [
        str(D),
        name,
        share(found),
        share(counts),
        mean_and_spread([c["leaves"] for c in chains]),
        f"{number(np.median(rhats))}, {number(np.median(finite) if finite else np.nan)}",
        mean_and_spread(ours),
        number(np.mean([c["ess"] for c in chains])),
        number(paper),
        number(np.median([g["ess_all"] for g in groups])),
        number(np.mean([c["ms"] for c in chains])),
        number(np.mean(speed) if ours else None),
        number(paper_speed),
        times,
    ]


HYPERCUBE_HEAD = [
    "D",
    "sampler",
    "found in warm-up",
    "counts",
    "leaves",
    "R-hat: log-lik., leaves",
    "ESS, chains that count",
    "ESS, any chain",
    "paper",
    "ESS, four chains",
    "ms",
    "ESS/s",
    "paper",
    "times",
]


def houses_row(name, family, result):
    chains, groups = result["chains"], result["groups"]
    speed = np.mean([c["ess_per_second"] for c in chains])
    paper = reported.of(reported.HOUSES_ESS_PER_SECOND, family)
    return [
        name,
        mean_and_spread([c["ess"] for c in chains]),
        number(reported.of(reported.HOUSES_ESS, family)),
        number(np.median([g["ess_all"] for g in groups])),
        number(np.median([g["rhat"] for g in groups])),
        mean_and_spread([c["leaves"] for c in chains]),
        number(np.mean([c["test_mse"] for c in chains])),
        number(np.mean([c["ms"] for c in chains])),
        number(speed),
        number(paper),
        number(speed / paper if paper else None),
    ]


HOUSES_HEAD = [
    "sampler",
    "ESS",
    "paper",
    "ESS, all chains of a set",
    "R-hat",
    "leaves of all trees",
    "test MSE",
    "ms",
    "ESS/s",
    "paper",
    "times",
]
