"""Draws that lack a forest or what it depends on: an error, where PyMC would draw from the prior.

`pymc.sample_posterior_predictive` draws what is missing from the draws anew, given nothing, and
says so in a log line. The functions that compute densities end with a KeyError.
"""

from contextvars import ContextVar

import pymc as pm
import pymc.sampling.deterministic
import pymc.sampling.forward
import pymc.stats
import pymc.stats.log_density
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors

from pymc_trees.distributions.tree_variable import is_tree_variable, tree_variables
from pymc_trees.hooks.wrap import arguments, wrap

FORWARD = [pm, pymc.sampling, pymc.sampling.forward]
DENSITIES = [pymc.stats, pymc.stats.log_density]
DETERMINISTIC = [pm, pymc.sampling, pymc.sampling.deterministic]
"""Modules in which users find these functions."""

_PREDICTING: ContextVar[bool] = ContextVar("predicting", default=False)
"""Whether draws are being used: prior draws lack every variable."""


def refuse_missing_draws() -> None:
    """Wrap what uses draws."""
    wrap(FORWARD, "sample_posterior_predictive", _predict)
    wrap([pymc.sampling.forward], "compile_forward_sampling_function", _check)
    wrap([pm, *DENSITIES], "compute_log_likelihood", _explain)
    wrap(DENSITIES, "compute_log_prior", _explain)
    wrap(DETERMINISTIC, "compute_deterministics", _explain)


def _predict(original, *args, **kwargs):
    before = _PREDICTING.set(True)
    try:
        return original(*args, **kwargs)
    finally:
        _PREDICTING.reset(before)


def _check(compiler, *args, **kwargs):
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
