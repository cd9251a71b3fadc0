"""Figures 3.2 to 3.7: scores against CPU time and particles, islands, CGM."""

import numpy as np

from .tables import grouped

COLOURS = {"prior": "C3", "optimal": "C0"}
STYLES = {"node": "-", "layer": "--"}
FIELDS = {"log_p": "mean test log p(y | x)", "accuracy": "test accuracy"}


def _curves(methods, islands):
    """(proposal, expansion) -> rows of particles, then mean scores, in order of particles."""
    out: dict = {}
    for settings, seeds in methods.items():
        words = settings.split(" ")
        if words[0] != "smc" or words[2] not in COLOURS or words[3] not in STYLES:
            continue
        particles, n = map(int, words[1].split("/"))
        if n == islands:
            last = np.array([scores[-1] for scores in seeds])
            out.setdefault((words[2], words[3]), []).append([particles, *last.mean(axis=0)])
    return {key: np.array(sorted(rows)) for key, rows in out.items()}


def _axes(plt, title, n_columns=2):
    figure, axes = plt.subplots(2, n_columns, figsize=(1.6 + 3.6 * n_columns, 6), squeeze=False)
    figure.suptitle(title)
    for line, label in zip(axes, FIELDS.values()):
        line[0].set_ylabel(label)
    return figure, axes


def design(plt, name, methods):
    """Left against CPU seconds, right against particles."""
    figure, axes = _axes(plt, f"{name}: proposals (colour), node-wise and layer-wise")
    for (proposal, expansion), rows in _curves(methods, 1).items():
        style = {"color": COLOURS[proposal], "ls": STYLES[expansion], "marker": "o", "ms": 4}
        for k in range(2):
            axes[k, 0].plot(rows[:, 1], rows[:, 2 + k], label=f"{proposal}, {expansion}", **style)
            axes[k, 1].plot(rows[:, 0], rows[:, 2 + k], **style)
    for line in axes:
        for ax, label in zip(line, ("CPU seconds", "particles")):
            ax.set_xscale("log")
            ax.set_xlabel(label)
    axes[0, 0].legend(fontsize=8)
    return figure


def islands(plt, name, methods):
    """2,000 particles in I islands."""
    rows = []
    for settings, seeds in methods.items():
        if settings.startswith("smc 2000/") and settings.endswith("prior node"):
            last = np.array([scores[-1] for scores in seeds])
            rows.append([int(settings.split("/")[1].split(" ")[0]), *last.mean(axis=0)])
    if len(rows) < 3:
        return None
    rows = np.array(sorted(rows))
    figure, axes = _axes(plt, f"{name}: 2,000 particles in I islands", 1)
    for k in range(2):
        axes[k, 0].semilogx(rows[:, 0], rows[:, 2 + k], "s-", color="C3")
    axes[1, 0].set_xlabel("islands I")
    return figure


def against(plt, name, methods):
    """SMC in five islands, CGM, and scikit-learn's as lines."""
    figure, axes = _axes(plt, f"{name}: SMC (5 islands), CGM, scikit-learn", 1)
    for (proposal, _), rows in _curves(methods, 5).items():
        for k in range(2):
            axes[k, 0].plot(
                rows[:, 1], rows[:, 2 + k], "o-", color=COLOURS[proposal], ms=4, label=proposal
            )
    for settings, seeds in methods.items():
        chains = np.array(seeds)
        if settings.startswith("cgm"):
            mean = chains.mean(axis=0)
            for k in range(2):
                axes[k, 0].plot(mean[:, 0], mean[:, 1 + k], "kd-", ms=3, label="CGM")
        elif not settings.startswith("smc"):
            for k in range(2):
                axes[k, 0].axhline(
                    chains[0, 0, 1 + k], color="0.6", ls=":" if "cart" in settings else "-."
                )
                axes[k, 0].annotate(
                    settings, (1, chains[0, 0, 1 + k]), xycoords=("axes fraction", "data"),
                    fontsize=6,
                )  # fmt: skip
    for line in axes:
        line[0].set_xscale("log")
    axes[1, 0].set_xlabel("CPU seconds")
    axes[0, 0].legend(fontsize=8)
    return figure


def evidence(plt, name, methods):
    """Figure 3.7: log evidence against particles."""
    figure, ax = plt.subplots(figsize=(4.4, 3.4))
    for (proposal, expansion), rows in _curves(methods, 1).items():
        ax.semilogx(
            rows[:, 0], rows[:, 4], "o", ls=STYLES[expansion], color=COLOURS[proposal],
            label=f"{proposal}, {expansion}",
        )  # fmt: skip
    ax.set(title=f"{name}: log evidence", xlabel="particles", ylabel="mean log Z")
    ax.legend(fontsize=8)
    return figure


FIGURES = {"design": design, "islands": islands, "cgm": against, "evidence": evidence}


def write(results, folder):
    """One file for each data set and figure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, methods in grouped(results).items():
        for kind, draw in FIGURES.items():
            figure = draw(plt, name, methods)
            if figure is not None:
                figure.tight_layout()
                figure.savefig(folder / f"{name}_{kind}.png", dpi=70)
                plt.close(figure)
