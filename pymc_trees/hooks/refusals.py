"""What PyMC cannot do with trees: a clear error before an obscure one of PyMC or PyTensor.

This concerns functions that do not support trees, backends that cannot compile them, initial values
that are not trees of the model, and draws that lack a forest or a variable that it depends on.
"""

from contextvars import ContextVar
from typing import Any

import numpy as np
import pymc as pm
import pymc.initial_point
import pymc.model.core
import pymc.sampling.deterministic
import pymc.sampling.forward
import pymc.sampling.mcmc
import pymc.smc.sampling
import pymc.stats
import pymc.stats.log_density
import pymc.tuning.starting
import pytensor.tensor as pt
from pymc.pytensorf import resolve_backend_compile_kwargs
from pymc.step_methods import BlockedStep
from pymc.step_methods.arraystep import ArrayStep, ArrayStepShared
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.mlx.linker import MLXLinker
from pytensor.link.pytorch.linker import PytorchLinker
from pytensor.tensor.random.op import RandomVariable as RV

from pymc_trees.distributions.tree_variable import (
    TreeVariable,
    is_tree_variable,
    tree_variable,
    tree_variables,
)
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.posterior.draws import mismatch

# ---------------- Methods of PyMC that would treat the numbers of an encoded forest as coordinates
#
# The values that they propose are not valid forests: optimisation would end at an invalid forest,
# random walks would never leave their initial trees, and sequential Monte Carlo would never leave
# those drawn from the prior.


FIND_MAP = [pm, pymc.tuning, pymc.tuning.starting]
SAMPLE_SMC = [pm, pymc.smc, pymc.smc.sampling]
"""Modules that export these functions."""

REASONS = {
    "find_MAP": "Name the other variables, find_MAP(vars=[...]), to leave the forest where it is",
    "sample_smc": "Its proposals are normal, and trees are not vectors",
}

REMEDY = (
    "sample with pm.sample(), which assigns pymc_trees.Hybrid (or give it step=pymc_trees.CGM()) "
    "to forests, pymc_trees.SoftCGM to sums of soft trees and pymc_trees.DCCTree to soft trees."
)


def reject_unsupported() -> None:
    """Make these methods raise an error if trees are among their variables."""
    wrap(FIND_MAP, "find_MAP", _refuse)
    wrap(SAMPLE_SMC, "sample_smc", _refuse)
    wrap([BlockedStep], "__new__", _make_step)
    wrap(SAMPLE, "sample", _sample)


def _refuse(original, *args, **kwargs):
    """`find_MAP` or `sample_smc`, for variables other than trees."""
    name, call = original.__name__, arguments(original, args, kwargs)
    model = pm.modelcontext(call.get("model"))
    forests = [
        tree.name for tree in tree_variables(model) if _is_among(tree, call.get("vars"), model)
    ]
    if forests:
        raise NotImplementedError(f"{name} cannot sample {forests}. {REASONS[name]}; or {REMEDY}")
    return original(*args, **kwargs)


def _is_among(tree: TreeVariable, given, model: pm.Model) -> bool:
    """Whether variables, or values of variables, include a tree; None stands for all of them."""
    given = given if given is None or isinstance(given, list | tuple) else [given]
    value = model.rvs_to_values[tree.rv]
    return given is None or any(v is tree.rv or v is value for v in given)


def _make_step(original, cls, *args, **kwargs):
    """Constructor of steps; those that operate on a vector raise an error for forests."""
    if issubclass(cls, ArrayStep | ArrayStepShared):
        model = pm.modelcontext(kwargs.get("model"))
        given = args[0] if args else kwargs.get("vars")
        forests = [tree.name for tree in tree_variables(model) if _is_among(tree, given, model)]
        if forests:
            raise NotImplementedError(
                f"{cls.__name__} works on vectors and cannot sample {forests}. Name the other "
                f"variables, {cls.__name__}([...]), and {REMEDY}"
            )
    return original(cls, *args, **kwargs)


def _sample(original, *args, **kwargs):
    """`pymc.sample`; samplers of other libraries have no steps other than NUTS."""
    sampler = kwargs.get("nuts_sampler")
    if sampler not in (None, "pymc"):
        model = pm.modelcontext(kwargs.get("model"))
        forests = [tree.name for tree in tree_variables(model)]
        if forests:
            raise NotImplementedError(
                f"nuts_sampler={sampler!r} cannot sample {forests}, which need PyMC's own "
                "sampler: leave nuts_sampler out, so that PyMC's NUTS samples the other "
                f"variables, and {REMEDY}"
            )
    return original(*args, **kwargs)


# ------------ PyTensor's backends that cannot run the compiled code of trees: JAX, PyTorch and MLX
#
# For an Op that it cannot translate, PyTensor raises an error about that Op, or about a library
# that is not installed. The linkers of these backends compile all functions, so they are wrapped;
# `pymc.sample` raises the error before it creates its steps.


BACKENDS = {JAXLinker: "jax", MLXLinker: "mlx", PytorchLinker: "pytorch"}
"""Names of the backends in `pymc.sample` and elsewhere."""


def refuse_backends() -> None:
    """Wrap `pymc.sample`, and the translation of graphs by each backend."""
    wrap(SAMPLE, "sample", _sample_with_backend)
    for linker in BACKENDS:
        wrap([linker], "fgraph_convert", _convert)


def _sample_with_backend(original, *args, **kwargs):
    trees = tree_variables(pm.modelcontext(kwargs.get("model")))
    if trees:
        options = resolve_backend_compile_kwargs(
            kwargs.get("backend"), kwargs.get("compile_kwargs")
        )
        linker = get_mode(options.get("mode")).linker
        if isinstance(linker, tuple(BACKENDS)):
            raise _refusal(linker, trees[0].name)
    return original(*args, **kwargs)


def _convert(original, linker, fgraph: FunctionGraph, *args, **kwargs):
    nodes = (n for n in fgraph.apply_nodes if type(n.op).__module__.startswith("pymc_trees."))
    node = next(nodes, None)
    if node is not None:
        names = [v.name for v in (*node.inputs, *node.outputs) if v.name]
        raise _refusal(linker, next(iter(names), "a forest"))
    return original(linker, fgraph, *args, **kwargs)


def _refusal(linker, name: str) -> NotImplementedError:
    backend = next(BACKENDS[kind] for kind in BACKENDS if isinstance(linker, kind))
    return NotImplementedError(
        f"The backend {backend!r} cannot compile functions of trees, here of {name}, whose code is "
        "compiled by numba: leave backend= (or mode=) out, or give backend='numba'."
    )


# ------------------------- Initial values of trees given by the user (``initvals`` and ``initval``)
#
# For values of another fit, PyTensor raises errors about the types of matrices. PyMC would ignore a
# value for the function of a forest, since that is a Deterministic.


def check_initial_values() -> None:
    """Wrap what makes initial points, for `pymc.sample`, `pymc.find_MAP` and others."""
    wrap([pymc.model.core, pymc.initial_point], "make_initial_point_fn", _checked)
    wrap([pm.Model], "set_initval", _set)


def _set(original, model, rv_var, initval):
    """Check a value given in the declaration."""
    if is_tree_variable(rv_var) and not isinstance(initval, str | Variable | None):
        initval = _check_value(tree_variable(rv_var), initval)
    return original(model, rv_var, initval)


def _checked(original, *, model, overrides=None, **kwargs):
    trees = tree_variables(model)
    if not trees:
        return original(model=model, overrides=overrides, **kwargs)
    given = {getattr(key, "name", key): value for key, value in (overrides or {}).items()}
    checked = {}
    for tree in trees:
        declared = model.rvs_to_initial_values[tree.rv]
        value = given.get(tree.name)
        value = declared if value is None else value
        if value is not None and not isinstance(value, str | Variable):
            checked[tree.name] = _check_value(tree, value)
    for function in model.deterministics:
        if given.get(function.name) is not None:
            _check_function(function, trees, given)
    for rv in model.free_RVs:
        value = given.get(rv.name)
        value = model.rvs_to_initial_values[rv] if value is None else value
        if rv.name not in checked and not isinstance(value, str | Variable | None):
            _check_support(rv, model.rvs_to_transforms[rv], value)
    return original(model=model, overrides={**given, **checked}, **kwargs)


def _check_value(tree: TreeVariable, given: Any) -> np.ndarray:
    """Encoded trees as PyMC takes them, or an error that says how they differ."""
    draw = f"idata.posterior[{tree.name!r}].values[0, -1]"
    remedy = f"Leave it out of initvals, or give one draw of a fit of this model, {draw}."
    try:
        value = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(
            f"initvals: {tree.name}={given!r} is not an array of trees. {remedy}"
        ) from None
    if value.shape != tree.shape:
        why = "it holds no trees"
        if value.ndim > 2 and value.shape[-2:] == tree.shape:
            why = "it holds several draws"
        elif value.ndim == 2:
            why = mismatch(tree, value)
        raise ValueError(
            f"initvals: {tree.name} has shape {value.shape}, but {tree.shape} in this model: "
            f"{why}. {remedy}"
        )
    if not tree.is_intact(value):
        raise ValueError(
            f"initvals: the value of {tree.name} is not a {tree.what} of this model: "
            f"{mismatch(tree, value)}. {remedy}"
        )
    return value


def _check_support(rv: Variable, transform, value: Any) -> None:
    """Raise an error for a number outside the support of a variable with a transform."""
    settings = rv.owner.inputs
    if transform is None or any(
        isinstance(v.owner and v.owner.op, RV) for v in ancestors(settings)
    ):
        return  # a support that another variable moves
    moved = transform.forward(pt.as_tensor(np.asarray(value, dtype=np.float64)), *settings)
    with np.errstate(all="ignore"):
        inside = np.isfinite(moved.eval(mode=Mode("py", None))).all()
    if not inside:
        prior = getattr(rv.owner.op, "_print_name", [rv.owner.op])[0]
        raise ValueError(
            f"initvals: {rv.name}={value!r} is outside the support of its prior, {prior}. "
            "Give it a value inside, or leave it out of initvals."
        )


def _check_function(function: Variable, trees: list[TreeVariable], given: dict) -> None:
    """Raise an error for a value of a function of trees, unless values of all trees are given."""
    above = set(ancestors([function]))
    unset = [tree.name for tree in trees if tree.rv in above and given.get(tree.name) is None]
    if unset:
        raise ValueError(
            f"initvals: {function.name} follows from the trees of {unset}, and cannot be set: "
            f"leave it out, or give {unset[0]!r} a draw of a fit of this model."
        )


# --------------------------------------------------------------------------------------------------
# Draws that lack a forest, or a variable that it depends on: an error instead of prior draws.
#
# `pymc.sample_posterior_predictive` samples variables that the draws lack from their prior, and
# says so only in a log line. The functions that compute densities end with a KeyError.


FORWARD = [pm, pymc.sampling, pymc.sampling.forward]
DENSITIES = [pymc.stats, pymc.stats.log_density]
DETERMINISTIC = [pm, pymc.sampling, pymc.sampling.deterministic]
"""Modules that export these functions."""

_PREDICTING: ContextVar[bool] = ContextVar("predicting", default=False)
"""Whether draws are used: prior predictive sampling has none."""


def refuse_missing_draws() -> None:
    """Wrap the functions that use draws."""
    wrap(FORWARD, "sample_posterior_predictive", _predict)
    wrap([pymc.sampling.forward], "compile_forward_sampling_function", _check_draws)
    wrap([pm, *DENSITIES], "compute_log_likelihood", _explain)
    wrap(DENSITIES, "compute_log_prior", _explain)
    wrap(DETERMINISTIC, "compute_deterministics", _explain)


def _predict(original, *args, **kwargs):
    token = _PREDICTING.set(True)
    try:
        return original(*args, **kwargs)
    finally:
        _PREDICTING.reset(token)


def _check_draws(compiler, *args, **kwargs):
    """Raise an error before compiling a function that would sample a forest from its prior."""
    call = arguments(compiler, args, kwargs)
    model = call.get("model")
    if _PREDICTING.get() and isinstance(model, pm.Model):
        in_trace = set(call["vars_in_trace"])
        frozen = set(call.get("freeze_vars") or ())
        available = in_trace | set(call.get("volatile_vars") or ())
        missing = _missing(model, call["outputs"], frozen, available)
        if missing:
            stored = [v for v in model.deterministics if v in in_trace]
            raise ValueError(
                _missing_message(model, missing, call["outputs"], stored, frozen, available)
            )
    return compiler(*args, **kwargs)


def _missing(model: pm.Model, outputs, frozen: set, available: set) -> list[Variable]:
    """Trees, and free variables that trees depend on, that outputs need and that are not given."""
    trees = [rv for rv in model.free_RVs if is_tree_variable(rv)]
    not_given = set(ancestors(trees)) - available - frozen
    candidates = set(ancestors(outputs, blockers=frozen)) & not_given
    missing = [rv for rv in model.free_RVs if rv in candidates]
    if not missing:
        return []
    # Of y ~ Normal(z, shape=mu.shape) mu is an ancestor, but only its number of rows is needed.
    inputs = {v: v.type(v.name) for v in [*missing, *frozen]}
    graphs = clone_replace(outputs, inputs, rebuild_strict=False)
    needed = set(ancestors(rewrite_graph(graphs, include=("ShapeOpt", "canonicalize"))))
    above = set(ancestors([rv for rv in missing if inputs[rv] in needed], blockers=frozen))
    return [rv for rv in missing if rv in above]


def _missing_message(model, missing, outputs, stored, frozen, available) -> str:
    """What is missing, and what can be done."""
    names = [rv.name for rv in missing]
    dependent = sorted(str(v.name) for v in outputs if set(ancestors([v], frozen)) & set(missing))
    message = (
        f"The draws lack {names}, which {dependent} depend on: PyMC would draw them from the "
        f"prior, ignoring the data. {_keep_names(names)}; or ask for var_names that do not."
    )
    stored = [v for v in stored if set(ancestors([v])) & set(missing)]
    stored = [v for v in stored if not set(ancestors([v])) & set(stored) - {v}]
    if stored and not _missing(model, outputs, frozen | set(stored), available):
        message += (
            f" If all data are those of the fit, freeze_vars={[v.name for v in stored]} "
            "takes their values from the draws."
        )
    return f"{message} sample_vars={names} draws from the prior on purpose."


def _keep_names(names: list[str]) -> str:
    them = "it" if len(names) == 1 else "them"
    return f"Sample again with {names} among var_names of pm.sample, and keep {them} in your files"


def _explain(original, *args, **kwargs):
    try:
        return original(*args, **kwargs)
    except KeyError as error:
        model = pm.modelcontext(arguments(original, args, kwargs).get("model"))
        trees = [tree.name for tree in tree_variables(model)]
        if not error.args or error.args[0] not in trees:
            raise
        names = [str(error.args[0])]
        raise ValueError(
            f"The draws lack {names}, which {original.__name__} needs. {_keep_names(names)}."
        ) from error
