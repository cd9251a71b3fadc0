"""Traces of the number of leaves and of the test error, one panel for each sampler (figure 3)."""

from pathlib import Path

import numpy as np


def traces(records, path, title, right=None, test_every=1):
    """Write a picture.

    Parameters
    ----------
    records : dict of sampler -> list of `chain.Record`
    path : Path
    right : float, optional
        Number of leaves of the true tree.
    test_every : int
        Iterations from one test error to the next.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(records), figsize=(2.6 * len(records), 4.4), sharex=True, sharey="row", squeeze=False
    )
    for (name, chains), (top, bottom) in zip(records.items(), axes.T):
        for record in chains:
            top.plot(record.leaves, lw=0.5)
            at = test_every * np.arange(len(record.test_mse))
            bottom.plot(at, record.test_mse, lw=0.5)
        top.set_title(name)
        if right:
            top.axhline(right, color="k", ls="--", lw=0.7)
        bottom.set_yscale("log")
        bottom.set_xlabel("iteration")
    axes[0, 0].set_ylabel("leaves")
    axes[1, 0].set_ylabel("test MSE")
    figure.suptitle(title)
    figure.tight_layout()
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)
