"""What every picture shares: its keywords and backend, its size and layout, and its panels."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from arviz_base import rcParams
from arviz_plots import PlotCollection, visuals

from pymc_trees.arguments import check_choice
from pymc_trees.posterior.reading.features import renamed

WRAP, WIDE = 2, 3
"""Panels in a row, of up to four and of more: their words can be read on a narrow page."""
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


def panels_in_a_row(number: int, layout: dict[str, Any]) -> int:
    """At most so many of these panels are side by side, unless the caller says otherwise."""
    return layout.get("col_wrap", WRAP if number <= WRAP**2 else WIDE)


def name_values(collection, name: str, label: str) -> None:
    """Write what a y axis shows on the first panel of each row."""
    first = collection.viz["col_index"].to_dataset()[name].to_numpy() == 0
    plots = collection.viz["plot"].to_dataset()[name].to_numpy()
    for target in plots[first]:
        visuals.backend_from_object(target).ylabel(label, target)


def colour_bar(collection, visual: str, name: str, label: str) -> None:
    """The scale of filled contours, one for all panels, which share their colours."""
    drawn = np.ravel(collection.viz[visual].to_dataset()[name].to_numpy())[-1]
    plots = np.ravel(collection.viz["plot"].to_dataset()[name].to_numpy()).tolist()
    if collection.backend == "matplotlib":
        from matplotlib.ticker import MaxNLocator

        figure = plots[-1].figure
        figure.colorbar(drawn, ax=plots, label=label, ticks=MaxNLocator(6))
    elif collection.backend == "plotly":
        [contours] = plots[-1].figure.select_traces(
            {"type": "contour"}, row=plots[-1].row, col=plots[-1].col
        )
        contours.update(showscale=True, colorbar={"title": {"text": label, "side": "right"}})
    elif collection.backend == "bokeh":
        plots[-1].add_layout(drawn.construct_color_bar(title=label), "right")


def targets(collection, name: str):
    """Each panel of a variable, and which output it shows, in words."""
    plots = collection.viz["plot"].to_dataset()[name]
    for at in np.ndindex(plots.shape):
        words = [f"{dim} = {plots[at][dim].item()}" for dim in plots.dims if dim in plots.coords]
        yield plots[at].item(), words
