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
from pymc_trees.sharded.kernels.messages import to_fixed, unit_of
from pymc_trees.sharded.kernels.rows import Part
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
from pymc_trees.targets.parameters import Noise, read_noise

ELSE = "or sample the model by pm.sample()"
SPREAD = 6.0
"""Prior sds of the sum of trees that count to the scale of residuals."""


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
    """(n,) int64: observed values less what the trees do not explain, in units of the scale."""
    start: dict
    """The model's initial point."""
    precision: float
    """Of every row, at that point."""
    log_scale: float
    """Log density of what was observed less that of the target."""
    sigma: tuple[Variable, Noise] | None
    """The one other variable and how it enters, or None."""

    @property
    def rootless(self) -> Design:
        """The design without cells."""
        return self.design._replace(columns=self.design.columns[:, :0].copy())

    def parts(self, n_shards: int) -> list[Part]:
        """The rows dealt out, as evenly as can be."""
        m, most = self.layout.m, self.layout.max_nodes
        columns = np.array_split(self.design.columns, n_shards, axis=1)
        targets = np.array_split(self.target, n_shards)
        return [
            Part(np.ascontiguousarray(cells), self.design.varies, target, m, most)
            for cells, target in zip(columns, targets, strict=True)
        ]


def read_model(model: pm.Model) -> ShardedModel:
    """The numbers of a model.

    Raises
    ------
    ValueError, NotImplementedError, UnsupportedModelError
        When the model is not one BART with a `NormalLeaf` over columns of numbers, in the mean of
        one Normal with one sd for all rows, and nothing else to infer but that sd.
    """
    forest = _the_forest(model)
    sigma = _the_sigma(model, forest)
    graph = read_graph(model, forest)
    refuse_random(graph)
    try:
        found = ConjugateTarget(graph)
    except NotConjugateError as error:
        raise NotConjugateError(
            f"sample_sharded needs leaf values that integrate out. {error} pm.sample() "
            "samples a NormalLeaf forest under any likelihood."
        ) from None
    start = model.initial_point()
    settings, seen = found.at(start)
    if seen is None:
        raise ValueError(
            f"Nothing observed depends on {forest.name}: sample_sharded needs pm.Normal(..., "
            "observed=y) around it. For draws of the prior call pm.sample_prior_predictive()."
        )
    check_inputs(forest, inputs_seen(model, forest))
    layout, known = forest.owner.op.layout, declared(forest)
    if seen[3] is not None:
        raise UnsupportedModelError(
            f"The mean of the observed variable is a multiple of {forest.name}: sample_sharded "
            f"supports the function itself plus terms that are data. Scale y instead, {ELSE}."
        )
    assert isinstance(found.likelihood, NormalLikelihood)  # that of a NormalLeaf
    target, precision = found.likelihood.scaled(*seen)
    if precision.size > 1 and np.ptp(precision) > 0:
        raise UnsupportedModelError(
            "sigma varies between rows: sample_sharded needs one number for all rows. Give one, "
            f"{ELSE}."
        )
    mean, sd = settings.leaf
    target = target - layout.m * mean
    size = np.abs(target).max() + SPREAD * np.sqrt(layout.m) * sd
    scale = Scale(unit_of(size, layout.n_rows), mean, sd)
    design = make_design(known.X, known.cuts)
    assert isinstance(design, Design)  # mixed columns are refused above
    design = design._replace(varies=design.varies & (settings.weights > 0))
    kernel = forest.owner.op.prior_type.kernel
    return ShardedModel(
        forest,
        model.rvs_to_values[forest].name,
        layout,
        known.fingerprint,
        design,
        kernel(settings.alpha, settings.beta, np.ascontiguousarray(settings.weights)),
        scale,
        to_fixed(target, scale.unit),
        start,
        float(precision.flat[0]),
        found.log_scale(seen),
        sigma,
    )


def _the_forest(model: pm.Model) -> Variable:
    """The one forest, of a kind that can be sampled in shards."""
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


def _the_sigma(model: pm.Model, forest: Variable) -> tuple[Variable, Noise] | None:
    """The sd of the noise where it is a variable."""
    others = [rv for rv in model.free_RVs if rv is not forest]
    found = [(rv, read_noise(model, rv)) for rv in others]
    known = [(rv, noise) for rv, noise in found if noise is not None and not noise.factors]
    unknown = [rv.name for rv in others if not any(rv is one for one, _ in known)]
    if unknown or len(others) > 1:
        names = unknown or [rv.name for rv in others]
        raise NotImplementedError(
            f"sample_sharded samples the forest and one sigma of the observed Normal, but {names} "
            f"would have to be sampled too. Give numbers instead, {ELSE}."
        )
    return known[0] if known else None
