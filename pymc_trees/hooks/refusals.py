"""What PyMC cannot do with trees, refused before it ends in an error of PyMC or PyTensor.

Functions that know no trees, backends that cannot compile them, initial values that are no trees
of the model, and draws that lack a forest or what it depends on.
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
from pymc.pytensorf import resolve_backend_compile_kwargs
from pymc.step_methods.arraystep import ArrayStep, ArrayStepShared
from pymc.step_methods.compound import BlockedStep
from pymc.util import get_value_vars_from_user_vars
from pytensor.compile.mode import get_mode
from pytensor.graph.basic import Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.link.jax.linker import JAXLinker
from pytensor.link.mlx.linker import MLXLinker
from pytensor.link.pytorch.linker import PytorchLinker

from pymc_trees.distributions.tree_variable import (
    TreeVariable,
    is_tree_variable,
    tree_variable,
    tree_variables,
)
from pymc_trees.hooks.wrap import SAMPLE, arguments, wrap
from pymc_trees.posterior.check_draws import DIFFERENCES

# ---------------- Methods of PyMC that would treat the numbers of an encoded forest as coordinates
#
# Values that they propose are not valid forests: optimisation would end at an invalid forest,
# random walks would never leave their initial trees, and sequential Monte Carlo never those drawn
# from the prior.


FIND_MAP = [pm, pymc.tuning, pymc.tuning.starting]
SAMPLE_SMC = [pm, pymc.smc, pymc.smc.sampling]
"""Modules in which users find these functions."""

REMARKS = {
    "find_MAP": "Name the other variables, find_MAP(vars=[...]), to leave the forest where it is",
    "sample_smc": "Its proposals are normal, and trees are not vectors",
}

REMEDY = (
    "sample with pm.sample(), which assigns pymc_trees.Hybrid (or give it step=pymc_trees.CGM()) "
    "to forests, pymc_trees.SoftCGM to sums of soft trees and pymc_trees.DCCTree to soft trees."
)


def reject_unsupported() -> None:
    """Make them raise an error if trees are among their variables."""
    wrap(FIND_MAP, "find_MAP", _refuse)
    wrap(SAMPLE_SMC, "sample_smc", _refuse)
    wrap([BlockedStep], "__new__", _make_step)
    wrap(SAMPLE, "sample", _sample)


def _refuse(original, *args, **kwargs):
    """`find_MAP` or `sample_smc`, for variables other than trees."""
    name, given = original.__name__, arguments(original, args, kwargs)
    model = pm.modelcontext(given.get("model"))
    moved = list(model.free_RVs)
    if given.get("vars") is not None:
        values = get_value_vars_from_user_vars(given["vars"], model)
        moved = [model.values_to_rvs[value] for value in values]
    forests = [rv.name for rv in moved if is_tree_variable(rv)]
    if forests:
        raise NotImplementedError(f"{name} cannot sample {forests}. {REMARKS[name]}; or {REMEDY}")
    return original(*args, **kwargs)


def _make_step(original, cls, *args, **kwargs):
    """Constructor of steps; those that operate on a vector raise an error for forests."""
    if issubclass(cls, ArrayStep | ArrayStepShared):
        model = pm.modelcontext(kwargs.get("model"))
        given = args[0] if args else kwargs.get("vars")
        given = model.value_vars if given is None else given
        given = given if isinstance(given, list | tuple) else [given]
        forests = [
            tree.name
            for tree in tree_variables(model)
            if any(v is tree.rv or v is model.rvs_to_values[tree.rv] for v in given)
        ]
        if forests:
            raise NotImplementedError(
                f"{cls.__name__} works on vectors and cannot sample {forests}. Name the other "
                f"variables, {cls.__name__}([...]), and {REMEDY}"
            )
    return original(cls, *args, **kwargs)


def _sample(original, *args, **kwargs):
    """`pymc.sample`; samplers of other libraries only support NUTS."""
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
# An Op without a translation ends in an error of PyTensor about that Op, or about a library that
# is not installed. All functions are compiled by the linkers of these backends, whoever asks for
# them; `pymc.sample` is refused before it makes its steps.


BACKENDS = {JAXLinker: "jax", MLXLinker: "mlx", PytorchLinker: "pytorch"}
"""What `pymc.sample` and others call them."""


def refuse_backends() -> None:
    """Wrap `pymc.sample`, and the translation of a graph in each of them."""
    wrap(SAMPLE, "sample", _sample_with_backend)
    for linker in BACKENDS:
        wrap([linker], "fgraph_convert", _convert)


def _sample_with_backend(original, *args, **kwargs):
    trees = tree_variables(pm.modelcontext(kwargs.get("model")))
    if trees:
        given = resolve_backend_compile_kwargs(kwargs.get("backend"), kwargs.get("compile_kwargs"))
        linker = get_mode(given.get("mode")).linker
        if isinstance(linker, tuple(BACKENDS)):
            raise _refusal(linker, trees[0].name)
    return original(*args, **kwargs)


def _convert(original, linker, fgraph: FunctionGraph, *args, **kwargs):
    ours = (n for n in fgraph.apply_nodes if type(n.op).__module__.startswith("pymc_trees."))
    node = next(ours, None)
    if node is not None:
        names = [v.name for v in (*node.inputs, *node.outputs) if v.name]
        raise _refusal(linker, next(iter(names), "a forest"))
    return original(linker, fgraph, *args, **kwargs)


def _refusal(linker, name: str) -> NotImplementedError:
    backend = next(BACKENDS[kind] for kind in BACKENDS if isinstance(linker, kind))
    return NotImplementedError(
        f"The backend {backend!r} cannot compile what sees trees, here {name}, since their code is "
        "compiled by numba: leave backend= (or mode=) out, or give backend='numba'."
    )


# ------ Where chains start: values of trees that a user gives (``initvals``, ``initval``), checked
#
# PyTensor's errors about another fit's values are of types of matrices. A value for the function
# of a forest would be ignored by PyMC, which takes none for a Deterministic.


def check_initial_values() -> None:
    """Wrap what makes initial points, for `pymc.sample`, `pymc.find_MAP` and others."""
    wrap([pymc.model.core, pymc.initial_point], "make_initial_point_fn", _checked)
    wrap([pm.Model], "set_initval", _set)


def _set(original, model, rv_var, initval):
    """A value given in the declaration."""
    if is_tree_variable(rv_var) and not isinstance(initval, str | Variable | None):
        initval = _check_value(tree_variable(rv_var), initval)
    return original(model, rv_var, initval)


def _checked(original, *, model, overrides=None, **given):
    trees = tree_variables(model)
    if not trees:
        return original(model=model, overrides=overrides, **given)
    found = {getattr(key, "name", key): value for key, value in (overrides or {}).items()}
    checked = {}
    for tree in trees:
        declared = model.rvs_to_initial_values[tree.rv]
        value = found.get(tree.name)
        value = declared if value is None else value
        if value is not None and not isinstance(value, str | Variable):
            checked[tree.name] = _check_value(tree, value)
    for function in model.deterministics:
        if found.get(function.name) is not None:
            _check_function(function, trees, found)
    return original(model=model, overrides={**found, **checked}, **given)


def _check_value(tree: TreeVariable, given: Any) -> np.ndarray:
    """Encoded trees as PyMC takes them, or an error that says in what they differ."""
    one = f"idata.posterior[{tree.name!r}].values[0, -1]"
    remedy = f"Leave it out of initvals, or give one draw of a fit of this model, {one}."
    try:
        value = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise TypeError(f"initvals: {tree.name}={given!r} is no array of trees. {remedy}") from None
    about = DIFFERENCES[type(tree.op)]
    if value.shape != tree.shape:
        why = "it holds no trees"
        if value.ndim > 2 and value.shape[-2:] == tree.shape:
            why = "it holds several draws"
        elif value.ndim == 2:
            why = f"it belongs to another model, with other {about.differing_sizes(tree.rv, value)}"
        raise ValueError(
            f"initvals: {tree.name} has shape {value.shape}, but {tree.shape} in this model: "
            f"{why}. {remedy}"
        )
    if not tree.is_intact(value):
        why = about.differing_settings(tree.rv, [value])
        raise ValueError(
            f"initvals: the value of {tree.name} is not a {tree.what} of this model: {why}. "
            f"{remedy}"
        )
    return value


def _check_function(function: Variable, trees: list[TreeVariable], found: dict) -> None:
    """Refuse values of a function of trees that are to be found some other way."""
    below = set(ancestors([function]))
    lost = [tree.name for tree in trees if tree.rv in below and found.get(tree.name) is None]
    if lost:
        raise ValueError(
            f"initvals: {function.name} follows from the trees of {lost}, and cannot be set: leave "
            f"it out, or give {lost[0]!r} a draw of a fit of this model."
        )


# --------------------------------------------------------------------------------------------------
# Draws that lack a forest or what it depends on: an error, where PyMC would draw from the prior.
#
# `pymc.sample_posterior_predictive` draws what is missing from the draws anew, given nothing, and
# says so in a log line. The functions that compute densities end with a KeyError.


FORWARD = [pm, pymc.sampling, pymc.sampling.forward]
DENSITIES = [pymc.stats, pymc.stats.log_density]
DETERMINISTIC = [pm, pymc.sampling, pymc.sampling.deterministic]
"""Modules in which users find these functions."""

_PREDICTING: ContextVar[bool] = ContextVar("predicting", default=False)
"""Whether draws are being used: prior draws lack every variable."""


def refuse_missing_draws() -> None:
    """Wrap what uses draws."""
    wrap(FORWARD, "sample_posterior_predictive", _predict)
    wrap([pymc.sampling.forward], "compile_forward_sampling_function", _check_draws)
    wrap([pm, *DENSITIES], "compute_log_likelihood", _explain)
    wrap(DENSITIES, "compute_log_prior", _explain)
    wrap(DETERMINISTIC, "compute_deterministics", _explain)


def _predict(original, *args, **kwargs):
    before = _PREDICTING.set(True)
    try:
        return original(*args, **kwargs)
    finally:
        _PREDICTING.reset(before)


def _check_draws(compiler, *args, **kwargs):
    """Before a function is compiled that would draw a forest, or what it depends on, anew."""
    given = arguments(compiler, args, kwargs)
    model = given.get("model")
    if _PREDICTING.get() and isinstance(model, pm.Model):
        known = set(given["vars_in_trace"])
        frozen = set(given.get("freeze_vars") or ())
        chosen = set(given.get("volatile_vars") or ())
        lost = _lost(model, given["outputs"], frozen, known | chosen)
        if lost:
            held = [one for one in model.deterministics if one in known]
            raise ValueError(_words(model, lost, given["outputs"], held, frozen, known | chosen))
    return compiler(*args, **kwargs)


def _lost(model: pm.Model, outputs, frozen: set, known: set) -> list[Variable]:
    """Free variables that outputs would need a draw of: trees, and what trees depend on."""
    trees = [rv for rv in model.free_RVs if is_tree_variable(rv)]
    of_trees = set(ancestors(trees)) - known - frozen
    seen = set(ancestors(outputs, blockers=frozen)) & of_trees
    lost = [rv for rv in model.free_RVs if rv in seen]
    if not lost:
        return []
    # Of y ~ Normal(z, shape=mu.shape) mu is an ancestor, but only its number of rows is needed.
    free = {v: v.type(v.name) for v in [*lost, *frozen]}
    graphs = clone_replace(outputs, free, rebuild_strict=False)
    needed = set(ancestors(rewrite_graph(graphs, include=("ShapeOpt", "canonicalize"))))
    above = set(ancestors([rv for rv in lost if free[rv] in needed], blockers=frozen))
    return [rv for rv in lost if rv in above]


def _words(model, lost, outputs, held, frozen, known) -> str:
    """What is missing, and what can be done."""
    names = [rv.name for rv in lost]
    asked = sorted(str(one.name) for one in outputs if set(ancestors([one], frozen)) & set(lost))
    said = (
        f"The draws lack {names}, which {asked} depend on: PyMC would draw them from the prior, "
        f"whatever the data said. {_kept(names)}; or ask for var_names that do not."
    )
    held = [one for one in held if set(ancestors([one])) & set(lost)]
    held = [one for one in held if not set(ancestors([one])) & set(held) - {one}]
    if held and not _lost(model, outputs, frozen | set(held), known):
        said += (
            f" Where all data are those of the fit, freeze_vars={[one.name for one in held]} "
            "takes their values from the draws."
        )
    return f"{said} sample_vars={names} draws from the prior on purpose."


def _kept(names: list[str]) -> str:
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
        lacking = [str(error.args[0])]
        raise ValueError(
            f"The draws lack {lacking}, which {original.__name__} needs. {_kept(lacking)}."
        ) from error
