"""What every picture shares: its keywords and backend, its size and layout, and its panels."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from arviz_base import rcParams
from arviz_plots import PlotCollection

from pymc_trees.arguments import check_choice
from pymc_trees.posterior.reading.features import renamed

BACKENDS = ("matplotlib", "plotly", "bokeh", "none")


def picture[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """A function that draws, which refuses other backends, and keywords of pymc-bart."""
    named = renamed(function)

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.get("backend") is not None:
            check_choice("backend", kwargs["backend"], BACKENDS)
        return named(*args, **kwargs)

    return drawn


def wrapped(ds, size: tuple[float, float], backend, layout: dict[str, Any], **figure):
    """`PlotCollection.wrap` for a figure of `size` dots, unless `layout` has another size.

    A caller's ``figsize`` is in inches, as everywhere in ArviZ-plots, unless
    ``figsize_units`` comes with it.
    """
    own = layout.get("figure_kwargs", {})
    if "figsize" not in own:
        figure |= {"figsize": size, "figsize_units": "dots"}
    if (backend or rcParams["plot.backend"]) == "matplotlib":
        figure["layout"] = "constrained"
    return PlotCollection.wrap(ds, backend=backend, **layout | {"figure_kwargs": figure | own})


def targets(collection, name: str):
    """Each panel of a variable, and which output it shows, in words."""
    plots = collection.viz["plot"].to_dataset()[name]
    for at in np.ndindex(plots.shape):
        words = [f"{dim} = {plots[at][dim].item()}" for dim in plots.dims if dim in plots.coords]
        yield plots[at].item(), words
