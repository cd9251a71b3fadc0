"""The laws of random columns of X at rows: their priors, and measurements of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random import basic as random
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor
from scipy.special import ndtr

from pymc_trees.distributions.data.random_columns import cells_at, latent_part, support_of
from pymc_trees.distributions.tree_variable import evaluations
from pymc_trees.posterior.reading.functions import bases_of, random_beside
from pymc_trees.posterior.reading.whole import Part
from pymc_trees.predictors.integration import LAWS, Continuous, Discrete
from pymc_trees.targets.graph import stripped

FAMILIES: dict[type, str] = {
    random.NormalRV: "normal",
    random.UniformRV: "uniform",
    random.ExponentialRV: "exponential",
    random.CategoricalRV: "categorical",
    random.BernoulliRV: "bernoulli",
    random.BinomialRV: "binomial",
    pm.DiscreteUniform.rv_type: "discrete_uniform",
}
"""Laws of `predictors.integration`, by their names there."""


class Measurement(NamedTuple):
    """An observed variable that random columns alone explain."""

    rv: Variable
    columns: list[str]
    """All that it depends on."""
    sd: Variable | None
    """Of a Normal around the only one; None for another law."""


class ColumnLaw(NamedTuple):
    """The prior of a column, and how it is measured."""

    name: str
    latent: Variable
    """The random variable."""
    parameters: list[Variable]
    """As PyTensor has them, for the rows of the model."""
    errors: dict[str, Variable]
    """Sds of Normal measurements that are given, by name."""
    likelihoods: dict[str, list[Variable]]
    """Parameters of other measurements, which take the column; of a discrete column."""
    ops: dict[str, Any]
    """Their laws."""
    after: set[str]
    """Other random columns that it depends on."""

    @property
    def family(self) -> str | None:
        """As `FAMILIES` have it."""
        return FAMILIES.get(type(self.latent.owner.op))

    @property
    def is_discrete(self) -> bool:
        """Whether it has whole numbers."""
        return support_of(self.latent) is not None

    @property
    def expressions(self) -> list[tuple[Variable, int]]:
        """All parameters, and their axes behind that of the rows."""
        own = self.latent.owner.op.ndims_params
        found = list(zip(self.parameters, own, strict=True))
        found += [(v, 0) for v in self.errors.values()]
        for name, of in self.likelihoods.items():
            found += list(zip(of, self.ops[name].ndims_params, strict=True))
        return found


def measurements_of(model: pm.Model, columns: Mapping[str, Variable]) -> dict[str, Measurement]:
    """Observed variables that depend on columns and on no trees, by name.

    The model data that hold their values name them, too.
    """
    found: dict[str, Measurement] = {}
    for rv in model.observed_RVs:
        inputs = list(rv.owner.inputs) if rv.owner else []
        if evaluations(inputs, blockers=model.basic_RVs):
            continue
        above = set(ancestors(inputs, blockers=model.basic_RVs))
        taken = {
            name: column
            for name, column in columns.items()
            if latent_part(model, column) in above and rv.name != f"{column.name}_observed"
        }
        if not taken:
            continue
        first = next(iter(taken.values()))
        latent = latent_part(model, first)
        assert latent is not None
        error = _error_of(rv, first, latent) if len(taken) == 1 else None
        one = Measurement(rv, list(taken), error)
        found[str(rv.name)] = one
        value = model.rvs_to_values[rv]
        if isinstance(value, SharedVariable) and value.name:
            found[str(value.name)] = one
    return found


def _error_of(rv: Variable, column: Variable, latent: Variable) -> Variable | None:
    """The sd of a vector of Normals around a column, whose errors do not depend on it."""
    if not isinstance(rv.owner.op, random.NormalRV) or rv.ndim != 1:
        return None
    mean, sd = rv.owner.op.dist_params(rv.owner)
    if stripped(mean) is not column or latent in ancestors([sd]):
        return None
    return sd


def law_of(
    model: pm.Model,
    columns: Mapping[str, Variable],
    name: str,
    measured: Mapping[str, Measurement] | None = None,
) -> ColumnLaw | None:
    """The law of a column by its name, and of measurements of it.

    None where it is not known given these.
    """
    latent = latent_part(model, columns[name])
    assert latent is not None
    parameters = list(latent.owner.op.dist_params(latent.owner))
    if latent is not columns[name]:
        lost = cells_at(model, columns[name], latent)[1]
        parameters = _of_all_rows(model, parameters, lost)
    law = ColumnLaw(name, latent, parameters, {}, {}, {}, set())
    for other, one in (measured or {}).items():
        op = one.rv.owner.op
        if law.is_discrete and isinstance(op, RandomVariable) and op.ndim_supp == 0:
            law.likelihoods[other] = list(op.dist_params(one.rv.owner))
            law.ops[other] = op
        elif law.family == "normal" and one.sd is not None:
            law.errors[other] = one.sd
        else:
            return None
    above = set(ancestors([v for v, _ in law.expressions], blockers=model.basic_RVs))
    latents = {other: latent_part(model, v) for other, v in columns.items() if other != name}
    return law._replace(after={other for other, v in latents.items() if v in above})


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
    if len(index) != 1 or not isinstance(index[0], Constant):
        return False
    mask = index[0].data
    return mask.dtype == bool and np.array_equal(mask, lost)


def parts_of(model: pm.Model, law: ColumnLaw, like: Part) -> list[Part]:
    """All its parameters as functions of rows, each with as many entries as trees of ``like``."""
    trees = like.evaluated[0].outputs[:, 0]
    parts = []
    for v, own in law.expressions:
        behind = pt.shape_padleft(v, 1) if v.ndim == own else v
        whole = pt.second(pt.shape_padright(trees, own), behind.astype("float64"))
        found = evaluations([whole], blockers=model.basic_RVs)
        parts.append(Part(whole, law.name, found, bases_of(found, model)))
    return parts


def random_of(model: pm.Model, parts: Sequence[Part]) -> list[Variable]:
    """Random variables below them, trees too."""
    return list(dict.fromkeys(rv for one in parts for rv in random_beside(model, one.variable)))


def cells_of(law: ColumnLaw) -> Continuous | Discrete:
    """Its values with their probabilities, or intervals of them."""
    if law.is_discrete and law.family is not None:
        return LAWS[law.family]
    if law.family == "normal":
        return Continuous(lambda cuts, mean, sd: ndtr((cuts - mean) / sd))
    k = len(law.parameters)
    cuts = pt.tensor("cuts", dtype="float64", shape=(1, None))
    given = [pt.tensor(f"parameter_{i}", dtype="float64", shape=(None, 1)) for i in range(k)]
    _, rv = law.latent.owner.op(*given, rng=pt.random.shared_rng(seed=None), return_next_rng=True)
    shares = pt.exp(pm.logcdf(rv, cuts))
    compiled = pm.compile([cuts, *given], shares, mode="FAST_COMPILE", on_unused_input="ignore")
    return Continuous(lambda cuts, *parameters: compiled(cuts[None], *parameters))


def log_likelihood(law: ColumnLaw, name: str, parameters: list[Variable], seen: Variable):
    """Of a measurement of each row, as a graph; what is no value of it has -inf."""
    _, rv = law.ops[name](*parameters, rng=pt.random.shared_rng(seed=None), return_next_rng=True)
    if rv.dtype.startswith("float"):
        return pm.logp(rv, seen)
    whole = pt.round(seen)
    return pt.switch(pt.eq(whole, seen), pm.logp(rv, whole.astype(rv.dtype)), -np.inf)
