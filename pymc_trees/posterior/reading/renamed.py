"""Keywords of pymc-bart that have another name here, and an error that says which."""

import inspect
from collections.abc import Callable
from functools import wraps

RENAMED = {
    "bartrv": "idata and model come first",
    "Y": "leave it out: the model knows its response",
    "var_idx": "features=",
    "var_discrete": "leave it out: levels and up to six numbers are found in the data",
    "xs_interval": 'grid="quantile" or grid="linear"',
    "xs_values": "grid=, a number or the values themselves",
    "samples": "draws=, evenly spaced",
    "instances": "subsample=",
    "centered": "centred=",
    "random_seed": "random_state=, where rows are taken at random; draws are evenly spaced",
    "smooth": "leave it out: f has steps, and is shown with them",
    "smooth_kwargs": "leave it out: f has steps, and is shown with them",
    "ref_line": "leave it out: the picture has its own",
    "grid": "col_wrap=, the number of panels in a row",
    "sharey": 'figure_kwargs={"sharey": ...}',
    "figsize": 'figure_kwargs={"figsize": ...}',
    "ax": "leave it out: pictures are ArviZ-plots' collections, with figures of their own",
    "color_mean": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "plot_kwargs": "leave it out: what is drawn is in the collection's viz, to be changed there",
    "labels": "leave it out: columns have the names of the training frame",
    "bart_var_name": "forest=",
    "to_kulprit": "vi_to_kulprit, of what compute_variable_importance returns",
}
"""What does the work here, by the keyword there. `docs/from_pymc_bart.md` has the same table."""


def renamed[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """The function, with an error for each keyword of pymc-bart that is none of its own."""
    foreign = RENAMED.keys() - inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name in foreign:
                raise TypeError(
                    f"{function.__name__} has no {name}=, a keyword of pymc-bart. Here: "
                    f"{RENAMED[name]}."
                )
        return function(*args, **kwargs)

    return checked
