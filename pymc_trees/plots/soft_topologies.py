"""`plot_topologies`: the posterior of the topologies (Cochrane 2024, figure 1)."""

import matplotlib.pyplot as plt
import numpy as np

from pymc_trees.arguments import check_number


def plot_topologies(idata, top=15, *, highlight=None, ax=None):
    """Bar chart of the posterior and prior weights of topologies.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `sample_dcc`.
    top : int, default 15
        Number of topologies shown, in order of decreasing weight.
    highlight : str, optional
        Label of a topology to show in another colour, for example the one behind the data.
    ax : matplotlib.axes.Axes, optional
        Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        When ``idata`` has no group ``topologies``, or ``top`` is not a whole number of at least 1.

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    figure 1.

    Examples
    --------
    >>> import numpy as np, xarray as xr, pymc_trees as pmt
    >>> found = xr.Dataset(
    ...     {"weight": ("topology", [0.9, 0.1]), "log_prior": ("topology", [-1.3, -3.0])},
    ...     coords={"topology": ["SLL", "L"]},
    ... )
    >>> ax = pmt.plot_topologies(xr.DataTree.from_dict({"topologies": found}))
    >>> [bar.get_height() for bar in ax.containers[0]]
    [np.float64(0.9), np.float64(0.1)]
    """
    if "topologies" not in getattr(idata, "children", {}):
        raise ValueError("idata has no group 'topologies': pass the result of sample_dcc.")
    first = slice(check_number("top", top, 1))
    found = idata["topologies"].to_dataset().isel(topology=first)
    labels = found["topology"].values.tolist()
    ax = plt.subplots(figsize=(1.5 + 0.5 * len(labels), 3.5))[1] if ax is None else ax
    at = np.arange(len(labels))
    colours = ["C3" if label == highlight else "C0" for label in labels]
    ax.bar(at, found["weight"].values, 0.8, color=colours, label="posterior")
    ax.plot(at, np.exp(found["log_prior"].values), "k_", ms=12, label="prior")
    ax.set_xticks(at, labels, rotation=60, ha="right", family="monospace")
    ax.set_ylabel("probability")
    ax.legend(frameon=False)
    return ax
