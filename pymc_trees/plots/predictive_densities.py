"""`plot_predictive_densities`: predictive densities at single rows (Cochrane 2024, figure 2)."""

import matplotlib.pyplot as plt
import numpy as np
from arviz_stats.base import array_stats

from pymc_trees.posterior.draws import SAMPLE


def plot_predictive_densities(idata, rows, *, var_name="y", truth=None, others=None, axes=None):
    """Densities of the posterior predictive at some rows, one panel a row.

    Parameters
    ----------
    idata : xarray.DataTree or a mapping of str to xarray.DataTree
        With a group ``predictions`` or ``posterior_predictive``; several, by name, are drawn over
        each other.
    rows : sequence of int
        Rows to show.
    var_name : str, default "y"
        Variable of that group, with the dimensions chain, draw and that of the rows.
    truth : (n,) array, optional
        Observed outputs of all rows, drawn as solid lines.
    others : mapping of str to (n,) array, optional
        Point predictions of all rows, drawn as dashed lines.
    axes : sequence of matplotlib.axes.Axes, optional
        One a row. Default: a new figure.

    Returns
    -------
    numpy.ndarray of matplotlib.axes.Axes

    Raises
    ------
    ValueError
        When the group or the variable is missing or has several outputs, ``rows`` are not rows of
        it, or ``axes`` are not one a row.

    References
    ----------
    Cochrane, Wills and Johnson (2024). Divide, conquer, combine Bayesian decision tree sampling,
    figure 2.

    Examples
    --------
    >>> import numpy as np, xarray as xr, pymc_trees as pmt
    >>> y = np.random.default_rng(1).normal(size=(2, 100, 3))
    >>> draws = xr.Dataset({"y": (("chain", "draw", "row"), y)})
    >>> axes = pmt.plot_predictive_densities(xr.DataTree.from_dict({"predictions": draws}), [0, 2])
    >>> len(axes)
    2
    """
    several = idata if isinstance(idata, dict) else {"predictive": idata}
    drawn = {name: _drawn(tree, var_name) for name, tree in several.items()}
    rows = _check_rows(rows, min(values.shape[1] for values in drawn.values()))
    own = axes is None
    if axes is None:
        size = (3.0 * len(rows) + 1.0, 2.8)
        axes = plt.subplots(1, len(rows), figsize=size, squeeze=False, layout="constrained")[1][0]
    elif len(axes) != len(rows):
        raise ValueError(
            f"axes: {len(axes)} for {len(rows)} rows; give one for each row, or leave axes out."
        )
    for name, values in drawn.items():
        for ax, row in zip(axes, rows, strict=True):
            grid, density, _ = array_stats.kde(values[:, row])
            ax.plot(grid, density, label=name)
            ax.fill_between(grid, density, alpha=0.2)
    for ax, row in zip(axes, rows, strict=True):
        if truth is not None:
            ax.axvline(truth[row], color="k", label="truth")
        for k, (name, point) in enumerate((others or {}).items()):
            ax.axvline(point[row], color=f"C{len(several) + k}", ls="--", label=name)
        ax.set(title=f"row {row}", xlabel=var_name, yticks=[])
    if own:  # beside the panels, where it hides no density
        axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    else:
        axes[0].legend(frameon=False)
    return np.asarray(axes)


def _drawn(tree, var_name):
    for group in ("predictions", "posterior_predictive"):
        if group in tree.children and var_name in tree[group]:
            array = tree[group][var_name].transpose(*SAMPLE, ..., missing_dims="ignore")
            others = [str(dim) for dim in array.dims if dim not in SAMPLE]
            if len(others) > 1:
                one_of_each = ", ".join(f"{dim}=0" for dim in others[:-1])
                raise ValueError(
                    f"{var_name} of group {group!r} has the dimensions {others}: choose an output, "
                    f"as in idata.isel({one_of_each})."
                )
            return array.to_numpy().reshape(-1, array.shape[-1])
    raise ValueError(
        f"idata has no {var_name!r} in a group predictions or posterior_predictive: pass the "
        "result of pm.sample_posterior_predictive."
    )


def _check_rows(rows, n) -> list[int]:
    """Numbers of rows that there are."""
    chosen = np.asarray(rows)
    whole = chosen.ndim == 1 and chosen.size > 0 and chosen.dtype.kind in "iu"
    if not whole or (chosen < -n).any() or (chosen >= n).any():
        raise ValueError(
            f"rows={rows!r}: give a list of at least one of the {n} rows, counted from 0."
        )
    return chosen.tolist()
