"""Odd inputs of `plot_tree`."""

import xarray as xr

from pymc_trees.plots.tree import plot_tree
from support.odd.answers import cached_frame, cached_two
from support.odd.table import Odd
from support.odd.trees import soft_draws


def _drawn(said, of=cached_frame, change=lambda d: d, **given):
    def call():
        model, idata = of()
        return plot_tree(change(idata), model, **{"backend": "none"} | given)

    return Odd(call, said, holds=lambda drawn: drawn.viz["box"].sizes["node"] > 0)


PLOT_TREE = {
    "None": _drawn(r"idata must be", change=lambda d: None),
    "no posterior": _drawn(r"no posterior", change=lambda d: xr.DataTree()),
    "no model": Odd(lambda: plot_tree(cached_frame()[1], None), r"[Mm]odel"),
    "soft trees": _drawn(r"\['mu_forest'\] are soft.*plot_soft_tree", of=soft_draws),
    "forest missing": _drawn(r"forests \['f_0_forest', .*by forest", of=cached_two),
    "forest unknown": _drawn(r"forest='nu' is not one forest.*'mu_forest'", forest="nu"),
    "chain beyond": _drawn(r"chain=2: there are 2", chain=2),
    "chain far below": _drawn(r"chain=-3", chain=-3),
    "draw beyond": _drawn(r"draw=4: there are 4", draw=4),
    "draw fraction": _drawn(r"draw=0.5", draw=0.5),
    "tree beyond": _drawn(r"tree=4: there are 4", tree=4),
    "tree None": _drawn(r"tree=None.*tree_text", tree=None),
    "tree from the end": _drawn(None, tree=-1),
    "backend unknown": _drawn(r"backend='svg'.*'plotly'", backend="svg"),
    "ax a list": _drawn(r"ax=list.*Axes", ax=[1], backend=None),
}
