"""The model that draws are asked with, or an error that says what was given in its place."""

import pymc as pm


def model_of(model) -> pm.Model:
    """The model given, or that on the context stack.

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
    return found
