"""The model that draws are asked with, or an error that says what was given in its place."""

import pymc as pm

from pymc_trees.distributions.without_dims import without_dims


def model_of(model) -> pm.Model:
    """The model given, or that on the context stack, without named dimensions (`without_dims`).

    Raises
    ------
    TypeError
        For anything else, such as a frame or a variable of the model; without a model at all.
    """
    found = pm.modelcontext(model)
    if not isinstance(found, pm.Model):
        raise TypeError(
            f"model={type(model).__name__}: must be the pymc.Model of the draws. Give other rows "
            "by keyword, X=, and a function of the model by name, var_name='mu'."
        )
    return without_dims(found)
