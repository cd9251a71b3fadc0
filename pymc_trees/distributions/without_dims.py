"""A model with named dimensions as one without: the same graph, of tensors.

A variable of `pymc.dims` is an xtensor, whose Ops have axes by name. PyTensor lowers them to Ops of
tensors before it compiles. Here all variables of a model are lowered at once, so that code that
reads a graph (likelihoods, noise, functions of rows) sees the model as if declared without names.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import transforms as plain
from pymc.logprob.transforms import Transform
from pytensor.compile import optdb
from pytensor.compile.ops import ViewOp, view_op
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.basic import dfs_rewriter, node_rewriter
from pytensor.graph.traversal import ancestors
from pytensor.scalar.basic import Clip
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.rewriting.basic import local_dimshuffle_rv_lift
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.xtensor.basic import tensor_from_xtensor, xtensor_from_tensor
from pytensor.xtensor.type import XTensorSharedVariable

from pymc_trees.distributions.data.named import is_named

_LOWERED: WeakKeyDictionary[pm.Model, tuple[list[Variable], pm.Model | None]] = WeakKeyDictionary()
"""The variables that a model had, and the model of tensors made of them; None for itself."""


def without_dims(model: pm.Model) -> pm.Model:
    """The model whose variables are tensors: itself, if none of them has named dimensions.

    Its variables, values among them, have the names that they have in the model, and its data are
    those of the model, also after `pymc.set_data`.
    """
    variables = [*model.basic_RVs, *model.potentials, *model.deterministics, *model.data_vars]
    current = [*variables, *model.rvs_to_values.values()]
    before, tensors = _LOWERED.get(model, ([], None))
    unchanged = len(before) == len(current)
    if not unchanged or any(v is not w for v, w in zip(before, current, strict=True)):
        everything = list(ancestors(current))
        has_dims = any(map(is_named, everything))
        tensors = _lowered(model, variables, everything) if has_dims else None
        _LOWERED[model] = current, tensors
    return model if tensors is None else tensors


def counterpart(model: pm.Model, variable: Any) -> Any:
    """The variable of `without_dims` that stands for one of the model's; anything else as it is."""
    tensors = without_dims(model)
    if tensors is model or not any(variable is v for v in model.named_vars.values()):
        return variable
    return tensors[variable.name]


def random_variables(model: pm.Model, given: Any) -> list:
    """The random variables of what a step is given: some of them, or of their values, or one.

    Anything else stays as it is. Looked for by identity: an array, say, cannot be looked up.
    """
    given = given if isinstance(given, list | tuple) else [given]
    return [next((r for v, r in model.values_to_rvs.items() if v is u), u) for u in given]


def _lowered(model: pm.Model, variables: list[Variable], everything: list[Variable]) -> pm.Model:
    data = {v: _as_tensor_data(v) for v in everything if is_named(v) and v.owner is None}
    twins = dict(zip(variables, lowered(variables, data), strict=True))
    twins |= {rv: _of_pymc(twins[rv]) for rv in model.observed_RVs}
    tensors = pm.Model(model=None)
    tensors._coords, tensors._dim_lengths = model._coords, model._dim_lengths
    named: set[Variable] = set()
    for variable, twin in twins.items():
        if twin in named:  # a Deterministic may be a variable as it is
            twin = twins[variable] = view_op(twin)
        twin.name, twin.tag = variable.name, variable.tag  # such as the names of the columns of X
        named.add(twin)
    for rv, value in model.rvs_to_values.items():
        transform = None
        if rv in model.observed_RVs:
            tensors.observed_RVs.append(twins[rv])
            [value] = [twins[value]] if value in twins else lowered([value], data)
        else:
            tensors.free_RVs.append(twins[rv])
            transform = _of_tensors(model.rvs_to_transforms[rv], rv, value)
            if is_named(value):
                value = pt.TensorType(value.dtype, shape=value.type.shape)(value.name)
            tensors.set_initval(twins[rv], _initval(model.rvs_to_initial_values[rv], rv))
        tensors.create_value_var(
            twins[rv], transform=transform, default_transform=None, value_var=value
        )
    tensors.potentials.extend(twins[v] for v in model.potentials)
    tensors.deterministics.extend(twins[v] for v in model.deterministics)
    tensors.data_vars.extend(twins[v] for v in model.data_vars)
    for name, variable in model.named_vars.items():
        tensors.add_named_variable(twins[variable], dims=model.named_vars_to_dims.get(name))
    return tensors


def _of_pymc(twin: Variable) -> Variable:
    """An observed variable as PyMC itself declares it."""
    node = twin.owner
    op = None if node is None else node.op
    if not isinstance(op, Elemwise) or not isinstance(op.scalar_op, Clip):
        return twin
    # of `pymc.dims.Censored`, where a bound that is none is the variable itself
    law, lower, upper = node.inputs
    if law.owner is None or not isinstance(law.owner.op, RandomVariable):
        return twin
    return pm.Censored.dist(
        law, lower=None if lower is law else lower, upper=None if upper is law else upper
    )


def _initval(initval: Any, rv: Variable) -> Any:
    """Where a variable starts, as its tensor takes it."""
    if isinstance(initval, Variable) and is_named(initval):
        return lowered([initval.transpose(*rv.type.dims)])[0]
    return initval.transpose(*rv.type.dims).values if hasattr(initval, "dims") else initval


def _as_tensor_data(data: Variable) -> Variable:
    """The same data as a tensor: what is set in one is in the other."""
    of = pt.TensorType(data.dtype, data.type.shape)
    if not isinstance(data, XTensorSharedVariable):
        return of.make_constant(data.data) if isinstance(data, Constant) else of(data.name)
    tensor = TensorSharedVariable(
        type=of, value=None, strict=None, container=data.container, name=data.name
    )
    tensor.tag = data.tag
    return tensor


def lowered(
    expressions: list[Variable], data: Mapping[Variable, Variable] | None = None
) -> list[Variable]:
    """Expressions as tensors, given tensors in place of variables with named dimensions."""
    outputs = [tensor_from_xtensor(v) if is_named(v) else v for v in expressions]
    replaced = {v: xtensor_from_tensor(w, v.type.dims) for v, w in (data or {}).items()}
    outputs = clone_replace(outputs, replaced, rebuild_strict=False)
    graph = FunctionGraph(outputs=outputs, clone=True, copy_inputs=False, copy_orphans=False)
    dfs_rewriter(_lower_view).rewrite(graph)
    optdb.query("+lower_xtensor").rewrite(graph)
    # a variable whose dims= have another order than those of its parameters
    dfs_rewriter(local_dimshuffle_rv_lift).rewrite(graph)
    return list(graph.outputs)


@node_rewriter([ViewOp])
def _lower_view(fgraph, node):
    """A Deterministic is a view, which has no dimensions of its own."""
    [variable] = node.inputs
    if not is_named(variable):
        return None
    view = node.op(tensor_from_xtensor(variable))
    view.name = node.outputs[0].name
    return [xtensor_from_tensor(view, variable.type.dims)]


class OfTensors(Transform):
    """A transform of variables with named dimensions, for tensors."""

    def __init__(self, transform: Transform, dims: tuple[str, ...], value_dims: tuple[str, ...]):
        self.transform, self.dims, self.value_dims = transform, dims, value_dims
        self.name = transform.name

    def forward(self, value, *inputs):
        """Value of the transformed variable."""
        return self._called("forward", value, self.dims)

    def backward(self, value, *inputs):
        """Value of the variable."""
        return self._called("backward", value, self.value_dims)

    def log_jac_det(self, value, *inputs):
        """Log-determinant of the Jacobian of `backward`."""
        return self._called("log_jac_det", value, self.value_dims)

    def _called(self, method: str, value, dims):
        [tensor] = lowered([getattr(self.transform, method)(xtensor_from_tensor(value, dims))])
        return tensor


def _of_tensors(transform: Transform | None, rv: Variable, value: Variable) -> Transform | None:
    """The transform for a variable's tensor: that of PyMC, where it has the same."""
    if transform is None or not is_named(rv):
        return transform
    # by now a user has imported it, which makes PyMC lower every logp: not for models without it
    from pymc.dims.distributions import transforms as named

    if isinstance(transform, named.LogTransform):
        return plain.log
    if isinstance(transform, named.LogOddsTransform):
        return plain.logodds
    if isinstance(transform, named.SimplexTransform) and transform.core_dim == rv.type.dims[-1]:
        return plain.simplex
    return OfTensors(transform, rv.type.dims, value.type.dims)
