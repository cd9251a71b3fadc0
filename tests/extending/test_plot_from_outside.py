"""A plot that is no part of the package: numbers and picture apart."""

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr

from extending.depths import depth_distribution, plot_depths

mpl.use("Agg")
DEPTH = np.array([[1, 2, 2, 3], [2, 2, 2, 2]])
IDATA = xr.DataTree.from_dict(
    {"sample_stats": xr.Dataset({"max_depth": (("chain", "draw"), DEPTH)}, {"chain": [0, 1]})}
)


def test_shares_of_each_chain():
    found = depth_distribution(IDATA)
    np.testing.assert_allclose(found.values, [[0.0, 0.25, 0.5, 0.25], [0.0, 0.0, 1.0, 0.0]])


def test_the_picture_shows_the_numbers():
    ax = plot_depths(IDATA)
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    np.testing.assert_allclose(heights, depth_distribution(IDATA).values)


def test_something_else_is_refused():
    with pytest.raises(ValueError, match="max_depth"):
        plot_depths(xr.DataTree())
