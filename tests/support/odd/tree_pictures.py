"""Odd inputs of `plot_tree`."""

import xarray as xr

from pymc_trees.plots.tree import plot_tree
from support.odd.answers import cached_frame, cached_two
from support.odd.table import Odd
from support.odd.trees import soft_draws


def _drawn(refused, of=cached_frame, change=lambda d: d, **given):
    def call():
        model, idata = of()
        return plot_tree(change(idata), model, **{"backend": "none"} | given)

    return Odd(call, refused, holds=lambda drawn: drawn.viz["box"].sizes["node"] > 0)


PLOT_TREE = {
    "None": _drawn(TypeError("idata"), change=lambda d: None),
    "no posterior": _drawn("idata", change=lambda d: xr.DataTree()),
    "no model": Odd(lambda: plot_tree(cached_frame()[1], None), TypeError("model")),
    "soft trees": _drawn("'mu_forest'", of=soft_draws),
    "forest missing": _drawn("forest", of=cached_two),
    "forest unknown": _drawn("forest", forest="nu"),
    "chain beyond": _drawn("chain", chain=2),
    "chain far below": _drawn("chain", chain=-3),
    "draw beyond": _drawn("draw", draw=4),
    "draw fraction": _drawn("draw", draw=0.5),
    "tree beyond": _drawn("tree", tree=4),
    "tree None": _drawn("tree", tree=None),
    "tree from the end": _drawn(None, tree=-1),
    "backend unknown": _drawn("backend", backend="svg"),
    "ax a list": _drawn(TypeError("ax"), ax=[1], backend=None),
}
