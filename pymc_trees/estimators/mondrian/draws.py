"""Draws of a predictive distribution as ArviZ data."""

import numpy as np
from arviz_base import from_dict


def predictive_data(draws, observed, attrs):
    """`DataTree` of (n, draws) predictive draws and what was observed, if anything."""
    groups = {"posterior_predictive": {"y": np.ascontiguousarray(draws.T)[None]}}
    if observed is not None:
        groups["observed_data"] = {"y": observed}
    dims = {"y": ["row"]}
    return from_dict(groups, dims=dims, attrs={"/": attrs})
