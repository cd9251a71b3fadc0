"""Variables that only scale the noise around forests, recognised in the graph."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors, explicit_graph_inputs
from pytensor.scalar import basic as scalars
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import LogNormalRV, NormalRV

from pymc_trees.distributions.ops.soft_tree_rv import is_soft_tree
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.targets.affine import passes_through
from pymc_trees.targets.graph import dependent_on, read_graph


class Noise(NamedTuple):
    """``observed ~ Normal(mean, scale * factors)``, in which a variable only affects the scale.

    Or a LogNormal: then the logarithm of the observations is normal.
    """

    observed: Variable
    """The observed variable."""
    mean: Variable
    scale: Variable
    """One number for all rows, a function of the variable and of data."""
    factors: list[Variable]
    """Data that the scale is multiplied by: numbers of each row or of all."""
    of_logs: bool


def read_noise(model: pm.Model, rv: Variable) -> Noise | None:
    """The noise that a scalar variable scales, if it enters nothing else.

    Returns
    -------
    Noise or None
        None unless the variable enters one observed Normal or LogNormal, whose mean sees a forest
        but not the variable, and whose sd is a function of the variable times data.
    """
    if not _is_number(model, rv):
        return None
    trees = [tree.rv for tree in tree_variables(model)]
    if any(is_soft_tree(tree) for tree in trees):  # DCC-Tree infers all variables together
        return None

    def seen_by(variables):
        return [v for v in ancestors(variables, blockers=model.basic_RVs) if v in known]

    known = set(model.basic_RVs)
    if any(v in trees for v in seen_by(rv.owner.inputs)):
        return None
    graph = read_graph(model, rv)
    if graph.potentials or len(graph.terms) != 1:
        return None
    [observed] = graph.terms
    law = observed.owner.op
    if observed not in model.observed_RVs or not isinstance(law, NormalRV | LogNormalRV):
        return None
    if model.rvs_to_transforms.get(observed) is not None:
        return None
    mean, sd = law.dist_params(observed.owner)
    in_mean = seen_by([mean])
    if rv in in_mean or not any(v in trees for v in in_mean) or seen_by([sd]) != [rv]:
        return None
    found = _product(sd, rv)
    of_logs = isinstance(law, LogNormalRV)
    return None if found is None else Noise(observed, mean, *found, of_logs)


def _is_number(model, rv):
    """Whether a variable is a free one of one real number, as its value is."""
    if not isinstance(rv, Variable) or not any(rv is free for free in model.free_RVs):
        return False
    return all(v.dtype == "float64" and v.ndim == 0 for v in (rv, model.rvs_to_values[rv]))


def _product(sd: Variable, rv: Variable) -> tuple[Variable, list[Variable]] | None:
    """Scale and factors of an sd that sees one variable, if the Ops in between are known."""
    between = dependent_on([sd], rv)
    for v in between - {rv}:
        # checks of parameters are not among the supported Ops
        if passes_through(v) is None and not isinstance(v.owner.op, Elemwise | DimShuffle):
            return None
    factors: list[Variable] = []
    while not all(sd.type.broadcastable):
        inner = passes_through(sd)
        if inner is not None:
            sd = inner
            continue
        op, inputs = sd.owner.op, list(sd.owner.inputs)
        if not isinstance(op, Elemwise):
            return None
        one = [v for v in inputs if v in between]
        others = [v for v in inputs if v not in between]
        if len(one) != 1:
            return None
        if isinstance(op.scalar_op, scalars.Mul):
            factors += others
        elif isinstance(op.scalar_op, scalars.TrueDiv) and one[0] is inputs[0]:
            factors += [1.0 / v for v in others]
        else:
            return None
        [sd] = one
    return sd, factors


# ------------ The density of the scale of the noise around forests, given the rows' sum of squares


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
