"""The laws of random columns of X at rows: their priors, and measurements of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import NormalRV
from pytensor.tensor.subtensor import AdvancedSubtensor
from scipy.special import ndtr

from pymc_trees.distributions.data.random_columns import cells_at, latent_part
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.reading.functions import bases_of, random_beside
from pymc_trees.posterior.reading.whole import Part
from pymc_trees.targets.graph import stripped


class Measurement(NamedTuple):
    """An observed variable that a random column alone explains."""

    column: str
    sd: Variable | None
    """Of a Normal around the column; None for another law."""


class ColumnLaw(NamedTuple):
    """The prior of a column."""

    latent: Variable
    """The random variable."""
    parameters: list[Variable]
    """As PyTensor has them, for the rows of the model."""
    errors: dict[str, Variable]
    """Sds of measurements that are given, by name."""
    after: set[str]
    """Other random columns that it depends on."""

    @property
    def is_normal(self) -> bool:
        """Whether its prior is Normal."""
        return isinstance(self.latent.owner.op, NormalRV)


def measurements_of(model: pm.Model, columns: Mapping[str, Variable]) -> dict[str, Measurement]:
    """Observed variables that depend on a column and on no trees, by name.

    The model data that hold their values name them, too.
    """
    found: dict[str, Measurement] = {}
    for rv in model.observed_RVs:
        inputs = list(rv.owner.inputs) if rv.owner else []
        if evaluations(inputs, blockers=model.basic_RVs):
            continue
        above = set(ancestors(inputs, blockers=model.basic_RVs))
        for name, column in columns.items():
            latent = latent_part(model, column)
            if latent not in above or rv.name == f"{column.name}_observed":
                continue
            one = Measurement(name, _error_of(rv, column, latent))
            found[str(rv.name)] = one
            value = model.rvs_to_values[rv]
            if isinstance(value, SharedVariable) and value.name:
                found[str(value.name)] = one
    return found


def _error_of(rv: Variable, column: Variable, latent: Variable) -> Variable | None:
    """The sd of a vector of Normals around a column, whose errors do not depend on it."""
    if not isinstance(rv.owner.op, NormalRV) or rv.ndim != 1:
        return None
    mean, sd = rv.owner.op.dist_params(rv.owner)
    if stripped(mean) is not column or latent in ancestors([sd]):
        return None
    return sd


def law_of(
    model: pm.Model,
    columns: Mapping[str, Variable],
    name: str,
    errors: Mapping[str, Variable],
) -> ColumnLaw:
    """The law of a column, by its name."""
    latent = latent_part(model, columns[name])
    assert latent is not None
    parameters = list(latent.owner.op.dist_params(latent.owner))
    if latent is not columns[name]:
        lost = cells_at(model, columns[name], latent)[1]
        parameters = _of_all_rows(model, parameters, lost)
    graphs = [*parameters, *errors.values()]
    above = set(ancestors(graphs, blockers=model.basic_RVs))
    latents = {other: latent_part(model, v) for other, v in columns.items() if other != name}
    after = {other for other, v in latents.items() if v in above}
    return ColumnLaw(latent, parameters, dict(errors), after)


def _of_all_rows(model: pm.Model, parameters: list[Variable], lost: np.ndarray) -> list[Variable]:
    """Parameters of missing cells as those of all cells, from which PyMC takes them by a mask."""
    rebuilt: dict[Variable, Variable] = {}
    variables = set(model.basic_RVs)

    def whole(v: Variable) -> Variable:
        if v.owner is None or v in variables:  # a copy of a variable would be another one
            return v
        if v not in rebuilt:
            inputs = list(v.owner.inputs)
            if _takes(v, lost):
                rebuilt[v] = whole(inputs[0])
                return rebuilt[v]
            new = [whole(one) for one in inputs]
            rebuilt[v] = v
            if any(a is not b for a, b in zip(new, inputs, strict=True)):
                node = v.owner.clone_with_new_inputs(new, strict=False)
                rebuilt[v] = node.outputs[v.owner.outputs.index(v)]
        return rebuilt[v]

    return [whole(v) for v in parameters]


def _takes(v: Variable, lost: np.ndarray) -> bool:
    """Whether it is the missing cells of a vector."""
    if not isinstance(v.owner.op, AdvancedSubtensor):
        return False
    array, *index = list(v.owner.inputs)
    if len(index) != 1 or not isinstance(index[0], Constant) or array.ndim != 1:
        return False
    mask = index[0].data
    return mask.dtype == bool and np.array_equal(mask, lost)


def parts_of(model: pm.Model, law: ColumnLaw, name: str, like: Part) -> list[Part]:
    """Parameters and errors as functions of rows, each of as many entries as trees of ``like``."""
    trees = like.evaluated[0].outputs[:, 0]
    parts = []
    for v in [*law.parameters, *law.errors.values()]:
        whole = pt.second(trees, v.astype("float64"))
        found = evaluations([whole], blockers=model.basic_RVs)
        parts.append(Part(whole, name, found, bases_of(found, model)))
    return parts


def random_of(model: pm.Model, parts: Sequence[Part]) -> list[Variable]:
    """Random variables below them, trees too."""
    return list(dict.fromkeys(rv for one in parts for rv in random_beside(model, one.variable)))


def cdf_of(law: ColumnLaw) -> Callable[..., np.ndarray]:
    """Distribution function at cuts, (n, cuts), given (n,) parameters."""
    if law.is_normal:  # of full precision, which PyMC's has not
        return lambda cuts, mean, sd: ndtr((cuts - mean[:, None]) / sd[:, None])
    k = len(law.parameters)
    cuts = pt.tensor("cuts", dtype="float64", shape=(1, None))
    given = [pt.tensor(f"parameter_{i}", dtype="float64", shape=(None, 1)) for i in range(k)]
    _, rv = law.latent.owner.op(*given, rng=pt.random.shared_rng(seed=None), return_next_rng=True)
    shares = pt.exp(pm.logcdf(rv, cuts))
    compiled = pm.compile([cuts, *given], shares, mode="FAST_COMPILE", on_unused_input="ignore")

    def shares_at(cuts, *parameters):
        with np.errstate(all="ignore"):
            return compiled(cuts[None], *(v[:, None] for v in parameters))

    return shares_at
