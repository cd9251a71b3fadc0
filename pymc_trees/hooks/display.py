"""A forest in a printed model: its settings by name, without the arrays that the Op takes."""

import pymc.distributions.distribution
import pymc.printing
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.forest_inputs import forest_inputs
from pymc_trees.distributions.tree_variable import is_tree_variable
from pymc_trees.hooks.wrap import arguments, wrap


def show_forests() -> None:
    """Wrap what writes one distribution, of a model or alone."""
    wrap([pymc.distributions.distribution, pymc.printing], "str_for_dist", _show)


def _show(original, *args, **kwargs):
    call = arguments(original, args, kwargs)
    forest = call["dist"]
    if not is_tree_variable(forest):
        return original(*args, **kwargs)
    text = original(*args, **kwargs | {"include_params": False})
    if not call.get("include_params", True):
        return text
    if "latex" not in call.get("formatting", "plain"):
        return f"{text}({', '.join(settings(forest, False))})"
    return f"{text.removesuffix('$')}({',~'.join(settings(forest, True))})$"


def settings(forest: Variable, latex: bool) -> list[str]:
    """Settings of a forest as they would be given, but for those that are arrays."""
    op, named = forest.owner.op, {}
    if hasattr(op, "inputs_type"):
        inputs = forest_inputs(forest)
        named = {"m": op.layout.m, "alpha": inputs.alpha, "beta": inputs.beta}
        if getattr(op.layout, "timed", False):
            named = {"m": op.layout.m, "lifetime": inputs.alpha}
        if not isinstance(inputs.weights, Constant):
            named["split_prior"] = inputs.weights
        leaf = inputs.leaf
    else:  # one soft tree: its fingerprint, and the leaf
        named = {"alpha": op.alpha, "beta": op.beta}
        _, *leaf = op.dist_params(forest.owner)
    kind = op.leaf_type.__name__ if hasattr(op, "leaf_type") else "NormalLeaf"
    values = [f"{_words(name, latex)}={_value(v, latex)}" for name, v in named.items()]
    return [*values, f"{_words(kind, latex)}({', '.join(_value(v, latex) for v in leaf)})"]


def _value(variable, latex: bool) -> str:
    """A number, the name of a variable, or f of the variables it follows from."""
    if isinstance(variable, int | float):
        return f"{variable:.3g}" if isinstance(variable, float) else str(variable)
    if isinstance(variable, Constant):
        return f"{float(variable.data):.3g}" if variable.ndim == 0 else _words("<array>", latex)
    if variable.name:
        return _words(variable.name, latex)
    names = sorted({v.name for v in ancestors([variable]) if v.name and v.owner})
    return f"f({', '.join(_words(name, latex) for name in names)})"


def _words(text: str, latex: bool) -> str:
    return rf"\text{{{text.replace('_', chr(92) + '_')}}}" if latex else text
