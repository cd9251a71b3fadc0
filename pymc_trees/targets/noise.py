"""Variables that only scale the noise around forests, recognised in the graph."""

from typing import NamedTuple

import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
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
