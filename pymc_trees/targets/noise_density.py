"""The density of the scale of the noise around forests, given the rows' sum of squares."""

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs

from pymc_trees.targets.noise import Noise


class NoiseDensity:
    """Log density of a variable's value, its prior and its rows, up to a constant.

    Parameters
    ----------
    model : pymc.Model
    rv : TensorVariable
        A free variable of one number.
    noise : Noise
        What it is the noise of.
    compile_kwargs : dict, optional
        Of `pymc.compile`.
    """

    def __init__(self, model: pm.Model, rv: Variable, noise: Noise, compile_kwargs=None):
        value = model.rvs_to_values[rv]
        [sd] = model.replace_rvs_by_values([noise.scale])
        # the root of the sum of squares and not the sum: for a tiny sd its square is 0
        sd, root, count = sd.sum(), pt.dscalar("root"), pt.dscalar("count")
        of_rows = -count * pt.log(sd) - 0.5 * (root / sd) ** 2
        log_density = model.logp(vars=[rv]) + pt.switch(sd > 0, of_rows, -np.inf)
        first = [value, root, count]
        self._log_density, self._parents = compiled_at(model, first, log_density, compile_kwargs)
        self._log_density.trust_input = True

    def at(self, point: dict, root, count) -> Callable[[float], float]:
        """The log density at a point, ``count`` rows having the root of a sum of squares."""
        parents = numbers_at(point, self._parents)
        root, count = np.asarray(root), np.asarray(count)
        return lambda value: float(self._log_density(np.array(value), root, count, *parents))


def compiled_at(model: pm.Model, first: list, expressions, compile_kwargs=None):
    """Function of ``first`` and of the value variables that are needed, and of which they are."""
    several = expressions if isinstance(expressions, list) else [expressions]
    needed = set(explicit_graph_inputs(several)) - set(first)
    values = [v for v in model.value_vars if v in needed]
    function = pm.compile([*first, *values], expressions, **(compile_kwargs or {}))
    return function, [(v.name, v.dtype) for v in values]


def numbers_at(point: dict, needs: list) -> list[np.ndarray]:
    """Numbers of a point that such a function takes."""
    return [np.asarray(point[name], dtype=dtype) for name, dtype in needs]
