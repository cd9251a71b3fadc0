"""How sharded sampling reads a model with one BART, and what it refuses."""

from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.design import Design, make_design
from pymc_trees.core.priors.cgm import CGMPrior
from pymc_trees.core.value.fields import Layout
from pymc_trees.distributions.forest_inputs import declared
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.tree_variable import tree_variables
from pymc_trees.sharded.kernels.driver import Scale
from pymc_trees.sharded.kernels.shard import ShardData, to_fixed, unit_of
from pymc_trees.targets.choose import refuse_random
from pymc_trees.targets.conjugate import ConjugateTarget
from pymc_trees.targets.graph import (
    NotConjugateError,
    UnsupportedModelError,
    check_inputs,
    inputs_seen,
    read_graph,
)
from pymc_trees.targets.likelihoods.normal import NormalLikelihood
from pymc_trees.targets.noise import read_noise, split_sd

ELSE = "or sample the model by pm.sample()"
SPREAD = 6.0
"""Number of prior sds of the sum of trees that the scale of residuals includes."""


class ShardedModel(NamedTuple):
    """A model with one BART, as numbers."""

    forest: Variable
    value_name: str
    layout: Layout
    fingerprint: float
    design: Design
    prior: CGMPrior
    scale: Scale
    target: np.ndarray
    """(n,) int64: what the sum of trees is fitted to, in units of the scale."""
    start: dict
    """Initial point of the model."""
    precision: float
    """Precision of every row at the initial point."""
    log_scale: float
    """Log density of the observed values minus that of the target."""
    sigma: tuple[Variable, Variable] | None
    """The variable in the sd of the noise, if there is one, and the sd as its function."""

    @property
    def without_cells(self) -> Design:
        """The design without cells."""
        return self.design._replace(columns=self.design.columns[:, :0].copy())

    def parts(self, n_shards: int) -> list[ShardData]:
        """The rows, divided evenly between shards."""
        m, most = self.layout.m, self.layout.max_nodes
        columns = np.array_split(self.design.columns, n_shards, axis=1)
        targets = np.array_split(self.target, n_shards)
        return [
            ShardData(np.ascontiguousarray(cells), self.design.varies, target, m, most)
            for cells, target in zip(columns, targets, strict=True)
        ]


def read_model(model: pm.Model) -> ShardedModel:
    """Read a model.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        Unless the model is one BART with a `NormalLeaf` over numeric columns in the mean of one
        Normal with the same sd for all rows, and no other variable has to be sampled.
    """
    forest = _the_forest(model)
    sigma = _the_sigma(model, forest)
    graph = read_graph(model, forest)
    refuse_random(graph)
    try:
        conjugate = ConjugateTarget(graph)
    except NotConjugateError as error:
        raise NotConjugateError(
            f"sample_sharded needs leaf values that integrate out. {error} pm.sample() "
            "samples a NormalLeaf forest under any likelihood."
        ) from None
    start = model.initial_point()
    settings, seen = conjugate.at(start)
    if seen is None:
        raise ValueError(
            f"Nothing observed depends on {forest.name}: sample_sharded needs pm.Normal(..., "
            "observed=y) around it. For draws of the prior call pm.sample_prior_predictive()."
        )
    check_inputs(forest, inputs_seen(model, forest))
    layout, declaration = forest.owner.op.layout, declared(forest)
    if seen[3] is not None:
        raise UnsupportedModelError(
            f"The mean of the observed variable is a multiple of {forest.name}: sample_sharded "
            f"supports the function itself plus terms that are data. Scale y instead, {ELSE}."
        )
    assert isinstance(conjugate.likelihood, NormalLikelihood)  # that of a NormalLeaf
    target, precision = conjugate.likelihood.scaled(*seen)
    if precision.size > 1 and np.ptp(precision) > 0:
        raise UnsupportedModelError(
            "sigma varies between rows: sample_sharded needs one number for all rows. Give one, "
            f"{ELSE}."
        )
    mean, sd = settings.leaf
    target = target - layout.m * mean
    size = np.abs(target).max() + SPREAD * np.sqrt(layout.m) * sd
    scale = Scale(unit_of(size, layout.n_rows), mean, sd)
    design = make_design(declaration.X, declaration.cuts)
    assert isinstance(design, Design)  # mixed columns are refused above
    design = design._replace(varies=design.varies & (settings.weights > 0))
    kernel = forest.owner.op.prior_type.kernel
    return ShardedModel(
        forest,
        model.rvs_to_values[forest].name,
        layout,
        declaration.fingerprint,
        design,
        kernel(settings.alpha, settings.beta, np.ascontiguousarray(settings.weights)),
        scale,
        to_fixed(target, scale.unit),
        start,
        float(precision.flat[0]),
        conjugate.log_scale(seen),
        sigma,
    )


def _the_forest(model: pm.Model) -> Variable:
    """The only forest, if it is of a kind that can be sampled in shards."""
    trees = [tree.rv for tree in tree_variables(model)]
    if len(trees) != 1:
        raise ValueError(
            f"sample_sharded needs a model with one BART; this one has {len(trees)}. Several "
            "forests are sampled by pm.sample()."
        )
    [forest] = trees
    if not is_forest(forest):
        raise NotImplementedError(
            f"{forest.name} holds soft trees, in which every row is in every leaf: sample_sharded "
            f"supports trees with hard splits. Declare a BART, {ELSE}."
        )
    op = forest.owner.op
    if op.leaf != "normal":
        raise NotImplementedError(
            f"{forest.name} has leaves of kind {op.leaf!r}: sample_sharded supports constant "
            f"NormalLeaf values without monotone columns. Use these, {ELSE}."
        )
    if op.tree_prior != "depth":
        raise NotImplementedError(
            f"{forest.name} has a tree_prior of its own: sample_sharded supports the prior of "
            f"alpha and beta. Leave tree_prior out, {ELSE}."
        )
    if op.layout.mixed:
        raise NotImplementedError(
            f"{forest.name} has columns of levels or with missing cells: sample_sharded supports "
            f"numeric columns only. Encode levels as numbers and impute missing cells, {ELSE}."
        )
    return forest


def _the_sigma(model: pm.Model, forest: Variable) -> tuple[Variable, Variable] | None:
    """The variable in the sd of the noise, if there is one, and the sd."""
    others = [rv for rv in model.free_RVs if rv is not forest]
    sigmas = [(rv, sd) for rv in others if (sd := _common_sd(model, rv)) is not None]
    refused = [rv.name for rv in others if not any(rv is sigma for sigma, _ in sigmas)]
    if refused or len(others) > 1:
        names = refused or [rv.name for rv in others]
        raise NotImplementedError(
            f"sample_sharded samples the forest and one sigma of the observed Normal, but {names} "
            f"would have to be sampled too. Give numbers instead, {ELSE}."
        )
    return sigmas[0] if sigmas else None


def _common_sd(model: pm.Model, rv: Variable) -> Variable | None:
    """The sd of all rows, if it is a function of a scalar variable that enters nothing else."""
    noises = read_noise(model, rv)
    if rv.ndim > 0 or len(noises) != 1:
        return None
    split = split_sd(noises[0].sd, [rv])
    if split is None or split.labels is not None or split.factors:
        return None
    return split.scale
