"""Gaussian rows of a model, and the forests and Gaussian vectors that make up their mean."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ZeroSumTransform
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.basic import LogNormalRV, MvNormalRV, NormalRV

from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable, tree_variables
from pymc_trees.targets.affine import Affine, LinearMap, read_affine_map
from pymc_trees.targets.conjugate import ConjugateTarget, LatentTarget
from pymc_trees.targets.graph import (
    ForestUseError,
    NotConjugateError,
    UnsupportedModelError,
    check_inputs,
    depends_on,
    inputs_seen,
    moves_rows,
    read_graph,
)
from pymc_trees.targets.likelihoods.contract import (
    LatentLikelihood,
    NotRecognisedError,
    recognise_rows,
    sole_term,
)
from pymc_trees.targets.likelihoods.observed import Part

# ------------------------------------- Gaussian priors of vectors, by the Op of the random variable
#
# Each is read as expressions of the mean, of the precision, and of the logarithm of whatever the
# density is multiplied by, so that for the flattened value v
#
#     log p(v | hyperparameters) = -(v - mean)' P (v - mean) / 2 + log_norm + constant.
#
# ``log_norm`` is that of PyMC's density: improper priors, and densities that PyMC does not
# normalise, are taken as they are.


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian density of K numbers."""

    mean: Variable
    """(K,)"""
    precision: Variable
    """(K,) where the numbers are independent, else (K, K)."""
    log_norm: Variable
    """A scalar: log density at the mean, up to what is constant."""


Reader = Callable[[Variable], "Gaussian | None"]
READERS: dict[type, Reader] = {}
"""By the type of the Op."""


def register_gaussian(op: type) -> Callable[[Reader], Reader]:
    """Add the reader of a distribution, as a decorator."""

    def add(reader: Reader) -> Reader:
        READERS[op] = reader
        return reader

    return add


def read_gaussian(model: pm.Model, rv: Variable) -> Gaussian | None:
    """The prior of the value of a free variable given other variables; None if it is no Gaussian.

    Expressions are of random variables.
    """
    reader = READERS.get(type(rv.owner.op)) if rv.owner else None
    transform = model.rvs_to_transforms.get(rv)
    expected = ZeroSumTransform if isinstance(rv.owner.op, pm.ZeroSumNormal.rv_type) else type(None)
    if reader is None or type(transform) is not expected:
        return None
    return reader(rv)


def zero_sum_basis(model: pm.Model, rv: Variable, shape: tuple[int, ...]) -> np.ndarray | None:
    """(K, k) matrix of a variable as a function of its value; None where they are equal.

    The columns are orthonormal (`pymc.distributions.transforms.ZeroSumTransform`).
    """
    transform = model.rvs_to_transforms.get(rv)
    if transform is None:
        return None
    axes = [axis % len(shape) for axis in transform.zerosum_axes]
    free = tuple(size - (k in axes) for k, size in enumerate(shape))
    units = pt.constant(np.eye(int(np.prod(free))).reshape(-1, *free))
    wide = ZeroSumTransform(tuple(axis - len(shape) for axis in axes)).backward(units)
    return wide.eval().reshape(len(units.data), -1).T.copy()


def _independent(mean: Variable, sd: Variable, shape) -> Gaussian:
    mean, sd = (pt.broadcast_to(v, shape).reshape((-1,)) for v in (mean, sd))
    return Gaussian(mean, sd**-2.0, -pt.log(sd).sum())


@register_gaussian(NormalRV)
def _normal(rv):
    mean, sd = rv.owner.op.dist_params(rv.owner)
    return _independent(mean, sd, tuple(rv.shape))


@register_gaussian(pm.Flat.rv_type)
def _flat(rv):
    zero = pt.zeros((rv.size,))
    return Gaussian(zero, zero, pt.constant(0.0))


@register_gaussian(pm.ZeroSumNormal.rv_type)
def _zero_sum(rv):
    """The value has independent entries, since the transform's basis is orthonormal."""
    sd = rv.owner.op.dist_params(rv.owner)[0]
    axes = rv.owner.op.ndim_supp
    # one sd for all entries that sum to zero: it has one entry along their axes
    batch = rv.ndim - axes
    free = (*tuple(rv.shape)[:batch], *(size - 1 for size in tuple(rv.shape)[batch:]))
    return _independent(pt.constant(0.0), sd, free)


@register_gaussian(MvNormalRV)
def _mv_normal(rv):
    mean, cov = rv.owner.op.dist_params(rv.owner)
    k = cov.shape[-1]
    if any(not one for one in cov.type.broadcastable[:-2]):
        return None  # a covariance of its own for each row
    cov = cov.reshape((k, k))
    precision = pt.linalg.inv(cov)
    copies = rv.size // k
    mean = pt.broadcast_to(mean, tuple(rv.shape)).reshape((-1,))
    log_norm = -0.5 * copies * pt.linalg.slogdet(cov)[1]
    return Gaussian(mean, pt.linalg.kron(pt.eye(copies), precision), log_norm)


@register_gaussian(pm.RandomWalk.rv_type)
def _random_walk(rv):
    start, step = rv.owner.inputs[:2]
    if not all(isinstance(v.owner.op, NormalRV) for v in (start, step)) or rv.ndim != 1:
        return None
    (first, first_sd), (drift, sd) = (v.owner.op.dist_params(v.owner) for v in (start, step))
    n = rv.shape[0]

    def joined(one, others):
        others = pt.broadcast_to(others.reshape((-1,)), (n - 1,))
        return pt.concatenate([one.reshape((1,)), others])

    mean, sd = joined(first, drift), joined(first_sd, sd)
    differences = pt.eye(n) - pt.eye(n, k=-1)
    scaled = differences / sd[:, None]
    return Gaussian(pt.cumsum(mean), pt.dot(scaled.T, scaled), -pt.log(sd).sum())


@register_gaussian(pm.ICAR.rv_type)
def _icar(rv):
    W, sd, zero_sum_sd = rv.owner.op.dist_params(rv.owner)
    if rv.ndim != 1:
        return None
    lower = pt.eq(pt.tril(W), 1).astype("float64")
    near = lower + lower.T
    n = near.shape[0]
    laplacian = pt.diag(near.sum(axis=0)) - near
    total = pt.ones((n, n)) / (zero_sum_sd * n) ** 2
    return Gaussian(pt.zeros((n,)), laplacian / sd**2 + total, -pt.log(zero_sum_sd))


@register_gaussian(pm.CAR.rv_type)
def _car(rv):
    mean, W, alpha, tau, _ = rv.owner.op.dist_params(rv.owner)
    if rv.ndim != 1:
        return None
    W = W.toarray() if hasattr(W, "toarray") else W  # sparse
    W = W.toarray() if hasattr(W, "toarray") else W  # sparse
    counts = W.sum(axis=0)
    n = counts.shape[0]
    tau, alpha = tau.reshape(()), alpha.reshape(())
    root = 1 / pt.sqrt(counts)
    eigenvalues = pt.linalg.eigvalsh(root[:, None] * W * root[None, :])
    log_norm = 0.5 * (n * pt.log(tau) + pt.log(1 - alpha * eigenvalues).sum())
    mean = pt.broadcast_to(mean, (n,))
    return Gaussian(mean, tau * (pt.diag(counts) - alpha * W), log_norm)


# -------------------------------------------------------------------------------------------------


MOST_COEFFICIENTS = 800
"""Of all vectors around the forests of one likelihood; a larger vector is left to NUTS."""
GAUSSIAN_LEAVES = {"normal", "linear", "normal_vector"}
"""Leaf priors under which leaf values are Gaussian given the trees, by name."""


@dataclass
class GaussianRows:
    """One observed variable whose rows are Gaussian, given latent variables at most."""

    observed: Variable
    """The random variable."""
    likelihood: LatentLikelihood | None
    """None for a Normal or LogNormal."""
    of_logs: bool
    wanted: list[Variable]
    """Observed value, then sd or the parameters of the likelihood."""
    forests: list[Variable]
    """Those whose leaf values are drawn with the vectors."""
    outputs: list[Variable]
    """(n, K) inputs that stand for the forests."""
    vectors: list[Variable]
    """Free variables that are Gaussian, and enter the mean linearly."""
    natural: list[Variable]
    """Inputs that stand for them, with their static shapes."""
    affine: Affine
    """The mean as a function of both."""
    hypers: dict[Variable, list[int]] = field(default_factory=dict)
    """Scalar variables that enter only the priors or scales of vectors: of which."""
    priors: list[Gaussian] = field(default_factory=list)
    """Of each vector, as expressions of values."""
    bases: list[np.ndarray | None] = field(default_factory=list)
    """Of each vector, as a function of its value; None where it is its value."""


_KNOWN: WeakKeyDictionary[pm.Model, tuple[tuple, tuple, list[GaussianRows]]] = WeakKeyDictionary()


def read_rows(model: pm.Model) -> list[GaussianRows]:
    """Rows of a model with vectors to be drawn jointly with forests; those of one likelihood each.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions (`without_dims`).
    """
    present = (*model.basic_RVs, *model.potentials)
    lengths = [v for v in model.dim_lengths.values() if hasattr(v, "get_value")]
    sizes = tuple(v.get_value().item() for v in lengths)  # `set_dim` and `set_data` change them
    sizes += tuple(v.get_value(borrow=True).shape for v in model.data_vars)
    before, sizes_before, made = _KNOWN.get(model, ((), (), []))
    same = len(before) == len(present) and all(map(operator.is_, before, present))
    if same and sizes == sizes_before:
        return made
    made = _read_all(model)
    if _are_at_training_inputs(model):  # at others no forest has a target, whatever their sizes
        _KNOWN[model] = present, sizes, made
    return made


def _are_at_training_inputs(model) -> bool:
    try:
        for rv in (tree.rv for tree in tree_variables(model) if is_sum_of_trees(tree.rv)):
            check_inputs(rv, inputs_seen(model, rv))
    except ForestUseError:
        return False
    return True


def _read_all(model):
    found: list[GaussianRows] = []
    seen: set[Variable] = set()
    for forest in (tree.rv for tree in tree_variables(model) if is_sum_of_trees(tree.rv)):
        try:
            term = sole_term(read_graph(model, forest))
        except NotConjugateError:
            continue
        if term is None or term.rv in seen or term.rv.ndim != 1:
            continue
        candidates = []
        if term.rv in model.observed_RVs:
            candidates = [rv for rv in model.free_RVs if _is_candidate(model, rv, term.rv)]
        if candidates and not _has_gaussian_leaves(model, forest):
            continue  # another forest of these rows may have them
        seen.add(term.rv)
        rows = _read_one(model, forest, term, candidates) if candidates else None
        if rows is not None:
            found.append(rows)
    return found


def _read_one(model, forest, term, candidates) -> GaussianRows | None:
    observed = term.rv
    read = _read_likelihood(model, forest, term)
    if read is None:
        return None
    likelihood, of_logs, mean, parameters, outputs = read
    expressions = [mean, *parameters, term.value]
    forests, stands = [forest], [outputs]
    for other in model.free_RVs:
        if is_sum_of_trees(other) and other is not forest:
            value = model.rvs_to_values[other]
            places = evaluations(expressions, value)
            if not places or read_graph(model, other).terms != [observed]:
                continue
            if not _has_gaussian_leaves(model, other):
                continue  # it stays a function of its value
            layout = other.owner.op.layout
            stand = pt.TensorType(
                "float64",
                shape=(layout.n_rows, layout.n_outputs),
            )(f"outputs_{other.name}")
            replaced = clone_replace(
                expressions, {one.outputs: stand for one in places}, rebuild_strict=False
            )
            if any(v is value for v in ancestors(replaced)):
                continue
            expressions, forests, stands = replaced, [*forests, other], [*stands, stand]
    # forests first: a vector that multiplies one of them is left out, and not the forest
    shapes = model.eval_rv_shapes()
    chosen: list[Variable] = []
    naturals: list[Variable] = []
    changing = {*model.value_vars, *stands}
    affine = try_affine(expressions[0], stands, changing)
    if affine is None or not affine.maps:
        return None
    n_coefficients = 0
    for rv in candidates:
        size = int(np.prod(shapes[rv.name]))
        if n_coefficients + size > MOST_COEFFICIENTS:
            continue
        natural = pt.TensorType("float64", shape=shapes[rv.name])(f"natural_{rv.name}")
        replaced = replaced_by(model, rv, natural, expressions)
        if replaced is None:
            continue
        members = [*stands, *naturals, natural]
        new = try_affine(replaced[0], members, changing | {*naturals, natural})
        if new is None or natural not in new.maps or conflict(new, members, model.value_vars):
            continue
        if any(depends_on([e], natural, set()) for e in replaced[1:]):
            continue
        expressions, affine = replaced, new
        chosen.append(rv)
        naturals.append(natural)
        n_coefficients += size
    if not chosen:
        return None
    affine = without_shapes(affine, [*stands, *naturals])
    rows = GaussianRows(
        observed,
        likelihood,
        of_logs,
        [expressions[-1], *expressions[1:-1]],
        [f for f, s in zip(forests, stands, strict=True) if s in affine.maps],
        [s for s in stands if s in affine.maps],
        chosen,
        naturals,
        affine,
    )
    if any(depends_on(rows.wanted, s, set()) for s in stands):
        return None
    for rv, natural in zip(chosen, naturals, strict=True):
        one = affine.maps[natural]
        if model.rvs_to_transforms.get(rv) is not None and one.scale is not None:
            if not all(one.scale.type.broadcastable):  # a basis and a scale do not commute
                affine.maps[natural] = LinearMap(one.index, one.folded)
        prior = read_gaussian(model, rv)
        assert prior is not None
        rows.priors.append(
            Gaussian(*model.replace_rvs_by_values([prior.mean, prior.precision, prior.log_norm]))
        )
        rows.bases.append(zero_sum_basis(model, rv, shapes[rv.name]))
    rows.hypers = _hyperparameters(model, rows)
    return rows


def _read_likelihood(model, forest, term):
    """Likelihood or None, whether logs are normal, mean, parameters and the forest's outputs."""
    if isinstance(term.rv.owner.op, NormalRV | LogNormalRV):
        (mean, sd), outputs = term.opened()
        return None, isinstance(term.rv.owner.op, LogNormalRV), mean, [sd], outputs
    try:
        seen, likelihood, predictor = recognise_rows(read_graph(model, forest), LatentLikelihood)
    except (NotRecognisedError, NotConjugateError):
        return None
    if isinstance(seen, Part):  # a part of a mixture, whose other parts may see the vectors too
        return None
    return likelihood, False, predictor.eta, predictor.parameters, predictor.outputs


def is_sum_of_trees(rv) -> bool:
    """Whether a variable is a forest, hard or soft."""
    return is_forest(rv) or is_soft_forest(rv)


def _is_candidate(model, rv, observed) -> bool:
    value = model.rvs_to_values[rv]
    if is_tree_variable(rv) or rv.dtype != "float64" or value.dtype != "float64":
        return False
    if any(is_tree_variable(v) for v in ancestors([rv])):
        return False
    try:
        if read_gaussian(model, rv) is None:
            return False
    except NotImplementedError:
        return False
    graph = read_graph(model, rv)
    return not graph.potentials and graph.terms == [observed] and not moves_rows(model, rv)


def _has_gaussian_leaves(model, forest) -> bool:
    op = forest.owner.op
    if op.leaf not in GAUSSIAN_LEAVES:
        return False
    graph = read_graph(model, forest)
    for kind in (ConjugateTarget, LatentTarget)[: 1 if op.leaf == "linear" else 2]:
        try:
            kind(graph)
        except UnsupportedModelError:
            continue
        return True
    return False


def try_affine(expression, members, changing) -> Affine | None:
    """An expression as an affine function of members, or None."""
    try:
        return read_affine_map(expression, members, changing)
    except NotRecognisedError:
        return None


def without_shapes(affine: Affine, members) -> Affine:
    """Expressions that ask members for their shapes ask constants of the same shapes instead."""
    zeros = {v: pt.zeros(v.type.shape) for v in members}

    def cleaned(e):
        return None if e is None else clone_replace([e], zeros, rebuild_strict=False)[0]

    maps = {
        v: LinearMap(cleaned(one.index), cleaned(one.factor), cleaned(one.scale))
        for v, one in affine.maps.items()
    }
    return Affine(cleaned(affine.offset), maps)


def conflict(affine: Affine, members, values) -> bool:
    """Whether what one of them is multiplied by depends on another, or an index on a variable."""
    if any(depends_on([one.index for one in affine.maps.values()], v, set()) for v in values):
        return True
    parts = [
        part
        for one in affine.maps.values()
        for part in (one.factor, one.scale, one.index)
        if part is not None
    ]
    return any(depends_on(parts, v, set()) for v in members)


def replaced_by(model, rv, natural, expressions) -> list[Variable] | None:
    """Expressions of the input that stands for a variable, in place of its value."""
    value = model.rvs_to_values[rv]
    if model.rvs_to_transforms.get(rv) is None:
        found = {value}
    else:  # as `replace_rvs_by_values` names what it makes of the value
        found = {v for v in ancestors(expressions) if v.name == rv.name and v is not rv}
    replaced = clone_replace(expressions, {v: natural for v in found}, rebuild_strict=False)
    return None if any(v is value for v in ancestors(replaced)) else replaced


def _hyperparameters(model, rows: GaussianRows) -> dict[Variable, list[int]]:
    """Scalar variables on which the priors and scales of vectors depend, and nothing else."""
    maps = rows.affine.maps
    fixed = [one.factor for one in maps.values()]
    fixed += [maps[s].folded for s in rows.outputs]
    fixed += rows.wanted if rows.affine.offset is None else [rows.affine.offset, *rows.wanted]
    found = {}
    for rv in model.free_RVs:
        value = model.rvs_to_values[rv]
        if is_tree_variable(rv) or rv in rows.vectors or rv.dtype != "float64":
            continue
        if value.dtype != "float64" or not all(rv.type.broadcastable) or rv.ndim > 0:
            continue
        graph = read_graph(model, rv)
        if graph.potentials or not all(
            any(term is v for v in [*rows.vectors, rows.observed]) for term in graph.terms
        ):
            continue
        if depends_on(fixed, value, set()):
            continue
        enters = []
        for k, (prior, natural) in enumerate(zip(rows.priors, rows.natural, strict=True)):
            scale = maps[natural].scale
            parts = [prior.mean, prior.precision, prior.log_norm]
            if depends_on([*parts, *([] if scale is None else [scale])], value, set()):
                enters.append(k)
        if enters:
            found[rv] = enters
    return found
