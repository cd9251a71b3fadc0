"""PyMC's convergence warnings, judged on function values.

PyMC computes R-hat and ESS of every free random variable. The nodes of encoded trees are not
comparable between draws, so every forest would cause a warning. The check is shown, under the name
of a forest or soft tree, what it stands for: its function at up to 50 evenly spaced rows. Models
without trees are judged as before.

Two faults that R-hat cannot see are reported besides: trees that never moved, whose R-hat is not
a number, and draws that are no trees. A step that knows no trees does either. `watch_trees` adds
trees that hardly move under the steps of this package.
"""

import math
import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
import pymc as pm
import pymc.sampling.mcmc
import xarray as xr
from pymc.backends.ndarray import NDArray
from pymc.stats.convergence import SamplerWarning, WarningType, log_warnings
from pytensor.graph.basic import Variable
from scipy.optimize import minimize_scalar

from pymc_trees.distributions.data.variables import schema_of
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import TreeVariable, tree_variables
from pymc_trees.hooks.wrap import SAMPLE, wrap
from pymc_trees.inference.chains.runner import RUNNER
from pymc_trees.step_methods.kernels.acceptance import CHANGES_PER_VISIT
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import compile_values, read_graph
from pymc_trees.targets.settings import read_settings
from pymc_trees.targets.terms import likelihood_terms

ROWS = 50
NOTHING_TO_JUDGE = "No free variable is among the draws: convergence was not checked."


def judge_function_values() -> None:
    """Wrap PyMC's convergence checks."""
    wrap([pymc.sampling.mcmc], "run_convergence_checks", _judge)


def _judge(original, idata, model):
    posterior = getattr(idata, "posterior", None)
    trees = tree_variables(model)
    if posterior is None or not trees:
        return original(idata, model)
    still = after_sampling(idata, model)
    if not any(rv.name in posterior for rv in model.free_RVs):
        return [SamplerWarning(WarningType.BAD_PARAMS, NOTHING_TO_JUDGE, "info"), *still]
    trees = [tree for tree in trees if tree.name in posterior]
    if not trees:
        return [*original(idata, model), *still]
    shown, faults = {}, []
    for tree in trees:
        draws = posterior[tree.name].values
        values = tree.function_values(model, draws, ROWS)
        shown[tree.name] = ("chain", "draw", f"{tree.name}_output"), values
        faults += faults_of(tree, draws)
    judged = idata.copy()
    data = posterior.to_dataset().drop_vars(list(shown)).assign(shown)
    judged["posterior"] = xr.DataTree(data)
    with np.errstate(invalid="ignore"):  # R-hat of what never moved, which is said in faults
        return [*original(judged, model), *faults, *still]


def faults_of(tree: TreeVariable, draws: np.ndarray) -> list[SamplerWarning]:
    """Faults of (chain, draw, rows, fields) draws other than poor mixing."""
    messages = []
    if not all(tree.is_intact(draws[at]) for at in np.ndindex(*draws.shape[:2])):
        messages.append(
            f"holds draws that are not {tree.what}s, by another step method or edited draws"
        )
    checksums = tree.checksums(draws)
    stuck = np.flatnonzero((checksums == checksums[:, :1]).all(axis=1)).tolist()
    if stuck and checksums.shape[1] > 1:
        messages.append(f"never moved in chains {stuck}")
    return [
        SamplerWarning(
            WarningType.CONVERGENCE,
            f"{tree.name} {message}. Leave it to pm.sample(), which assigns {tree.step}.",
            "error",
        )
        for message in messages
    ]


# ------- Do the trees move? A warning when tuning ends, and after sampling, with the likely reason
#
# Steps record ``changes_per_visit``, accepted changes of a tree for each of its visits, small
# steps of a cut left out. Where these are fewer than one in twenty visits, a chain explores next
# to nothing, although leaf values and other variables may look alive.
#
# The calling process judges a chain by the second half of its tuning as soon as it records the
# first draw after it, wherever the chain is; chains of joblib arrive when they are complete, and
# are judged with all others after sampling.
#
# A single tree may stand still because its posterior is one tree: it is reported only if the
# likelihood refuses nearly every visit, leaf values included.


LEAST = 0.05
"""Changes per visit of a tree below which trees stand still (`benchmarks/notes/still_trees`)."""
LEAST_VISITS = 200
"""Visits from which on a share is judged: at twice the least share, 1 in 100 is below it."""
ACCEPTED = "accept_delayed"

_JUDGED = "pymc_trees_judged"
"""Attribute of a trace whose tuning was judged."""
_told: ContextVar[set[str] | None] = ContextVar("forests of a run that were reported", default=None)


def watch_trees() -> None:
    """Wrap the function that records a draw, and `pymc.sample`."""
    wrap([NDArray], "record", _record)
    wrap(SAMPLE, "sample", _sample)


def _sample(original, *args, **kwargs):
    token = _told.set(set())
    try:
        return original(*args, **kwargs)
    finally:
        _told.reset(token)


def _record(original, *args, **kwargs):
    original(*args, **kwargs)
    if not kwargs.get("in_warmup", True):
        trace = args[0]
        if not hasattr(trace, _JUDGED):
            setattr(trace, _JUDGED, True)
            if RUNNER.get() is None:
                log_warnings(at_end_of_tuning(trace))


def forests_of(model: pm.Model) -> list[tuple[Variable, str]]:
    """Forests whose steps count changes, and what the names of their statistics end in."""
    forests = [rv for rv in model.free_RVs if is_forest(rv) or is_soft_forest(rv)]
    return [(rv, f"_{rv.name}" if len(forests) > 1 else "") for rv in forests]


def at_end_of_tuning(trace: NDArray) -> list[SamplerWarning]:
    """Warnings about a chain that has just ended its tuning, but none that its run has given."""
    n_tuned, told, found = trace.draw_idx - 1, _told.get(), []
    for rv, ending in forests_of(trace.model):
        [stats] = [s for s in trace._stats or [] if CHANGES_PER_VISIT + ending in s] or [{}]
        if not stats or (told is not None and rv.name in told):
            continue
        window = slice(n_tuned // 2, n_tuned)
        accepted = stats.get(ACCEPTED + ending, np.full(trace.draw_idx, np.nan))[window]
        if stands_still(rv, stats[CHANGES_PER_VISIT + ending][window], accepted):
            share = np.nanmean(stats[CHANGES_PER_VISIT + ending][window])
            when = f"in the second half of tuning (chain {trace.chain})"
            found.append(_warning(trace.model, rv, share, when))
            if told is not None:
                told.add(rv.name)
    return found


def after_sampling(idata, model: pm.Model) -> list[SamplerWarning]:
    """Warnings about the chains of a result, without those that its run has given already."""
    if "sample_stats" not in idata.children:
        return []
    stats, told, found = idata["sample_stats"], _told.get(), []
    for rv, ending in forests_of(model):
        if CHANGES_PER_VISIT + ending not in stats or (told is not None and rv.name in told):
            continue
        changes = np.asarray(stats[CHANGES_PER_VISIT + ending])
        accepted = np.full(changes.shape, np.nan)
        if ACCEPTED + ending in stats:
            accepted = np.asarray(stats[ACCEPTED + ending])
        still = [k for k in range(len(changes)) if stands_still(rv, changes[k], accepted[k])]
        if still:
            when = f"after tuning (chains {still} of {len(changes)})"
            found.append(_warning(model, rv, np.nanmean(changes[still]), when))
    return found


def stands_still(rv: Variable, changes: np.ndarray, accepted: np.ndarray) -> bool:
    """Whether too few visits changed a tree, by the statistics of the iterations of a chain."""
    m = rv.owner.op.layout.m
    changes, accepted = changes[~np.isnan(changes)], accepted[~np.isnan(accepted)]
    if changes.size * m < LEAST_VISITS or changes.mean() >= LEAST:
        return False
    return m > 1 or (accepted.size > 0 and bool(accepted.mean() < LEAST))


def _warning(model: pm.Model, rv: Variable, share: float, when: str) -> SamplerWarning:
    name = rv.name.removesuffix("_forest")
    return SamplerWarning(
        WarningType.BAD_ACCEPTANCE,
        f"The trees of {name} stand still: {share:.1%} of their visits changed one {when}. "
        f"{likely_reason(model, rv)}",
        "warn",
    )


SHARP = (
    "The likelihood tells neighbouring trees apart so sharply that hardly any change is accepted. "
    "If rows vary more than it allows, as large counts mostly do, give it a scale of its own: "
    "pm.BetaBinomial in place of pm.Binomial, pm.NegativeBinomial of pm.Poisson, a free sigma. If "
    "it is right, more trees and a longer run help little: "
    "pymc_trees.plot_convergence shows at which rows the chains agree."
)
TOGETHER = (
    "The values of a leaf do not integrate out of this likelihood, and all of them are proposed "
    "together. Declare a BART with a NormalLeaf for each column of the basis, or for each output, "
    "and add up their products; if rows vary more than the likelihood allows, as large counts "
    "mostly do, give it a scale of its own, such as pm.BetaBinomial in place of pm.Binomial."
)


def likely_reason(model: pm.Model, rv: Variable) -> str:
    """Why trees stand still, and what to do."""
    target, layout = read_target(model, rv), rv.owner.op.layout
    if not target.needs_surrogate:
        return SHARP
    if layout.n_values > 1:
        return TOGETHER
    try:
        likelihood = Constants.of(model, rv)
        return _edge(likelihood) or _scale(likelihood) or SHARP
    except Exception:  # a reason is a courtesy: sampling must not end because of it
        return SHARP


class Constants(NamedTuple):
    """Likelihood of a forest as a function of a constant that f has at all rows."""

    log: Callable[[float], float]
    mean: float
    """Prior mean of f,"""
    sd: float
    """and its standard deviation."""
    m: int
    n_rows: int
    leaf_mean: float
    leaf_sd: float
    best: float
    """The constant of the largest likelihood."""
    row_sd: float
    """Standard deviation of f that one row leaves, by the curvature there."""

    @classmethod
    def of(cls, model: pm.Model, rv: Variable) -> "Constants":
        """Of a forest with one number in each leaf, other variables at their initial values."""
        terms, outputs = likelihood_terms(model, read_graph(model, rv))
        settings = read_settings(model, rv)[3:]
        values = [v for term in terms for v in (term.value, *term.conditions)]
        function, names = compile_values(model, [*settings, *values], [outputs])
        point, layout = model.initial_point(), rv.owner.op.layout
        given = [point[name] for name in names]
        is_condition = [False] * len(settings)
        for term in terms:
            is_condition += [False, *[True] * len(term.conditions)]

        def log(c: float) -> float:
            with np.errstate(all="ignore"):
                found = function(np.full(outputs.type.shape, c), *given)
                total = 0.0
                for value, checks in list(zip(found, is_condition, strict=True))[len(settings) :]:
                    total += (0.0 if np.all(value) else -np.inf) if checks else np.sum(value)
            return float(total)

        mean, sd = (float(np.mean(v)) for v in function(np.zeros(outputs.type.shape), *given)[:2])
        m, n = layout.m, layout.n_rows
        prior = m * mean, math.sqrt(m) * sd
        best = _best(log, *prior)
        step = 1e-3 * prior[1]
        bend = (2 * log(best) - log(best - step) - log(best + step)) / step**2
        row_sd = math.sqrt(n / bend) if 0 < bend < np.inf else prior[1]
        return cls(log, *prior, m, n, mean, sd, best, row_sd)


def _best(log: Callable[[float], float], mean: float, sd: float) -> float:
    """Constant of the largest likelihood, of those that the prior or a link may need."""
    far = np.concatenate([[0.0], np.logspace(-2, 3, 51)])
    grid = np.unique(np.concatenate([mean + sd * far, mean - sd * far, far, -far]))
    heights = np.array([log(c) for c in grid])
    heights[~(heights < np.inf)] = -np.inf  # NaN as well
    k = int(heights.argmax())
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]

    def depth(c):
        height = log(c)
        return -height if np.isfinite(height) else np.inf

    with np.errstate(invalid="ignore"):
        found = minimize_scalar(depth, bounds=(low, high), method="bounded")
    return float(found.x if found.fun < -heights[k] else grid[k])


NEAR = 20
"""Distance, in sds that one row leaves, within which an edge of the likelihood is in the way."""


def _edge(of: Constants) -> str | None:
    """Whether the likelihood ends where f may be."""
    for distance in of.row_sd * np.logspace(-3, math.log10(NEAR), 40):
        for c in (of.best - distance, of.best + distance):
            height = of.log(c)
            if math.isnan(height):
                return (
                    f"The log-likelihood is NaN where f is {c:.3g}, which counts as a likelihood "
                    "of 0: write it so that it has a value wherever the prior of f reaches."
                )
            if height == -np.inf:
                side = "above" if c > of.best else "below"
                return (
                    f"The likelihood is 0 where f is {side} {c:.3g} at all rows: its support "
                    "depends on f, so that a single row on the wrong side refuses a tree. Give y a "
                    "density that is positive on both sides, such as pm.ExGaussian for an "
                    "exponential above f, or a Normal error of its own."
                )
    return None


LIKE = 2.0
"""Ratio to a quadratic within which a likelihood is like one."""


def _scale(of: Constants) -> str | None:
    """Whether the prior of the leaves is on another scale than the likelihood."""
    away = abs(of.best - of.mean) / of.sd
    if away < 4 and (away < 1 or _reach(of, of.sd) >= of.sd):
        return None
    sd = 0.5 * _reach(of, 1e3 * of.row_sd)
    mean, sd = of.best / of.m, sd / math.sqrt(of.m)
    return (
        f"The prior of its leaves, NormalLeaf({of.leaf_mean:.3g}, {of.leaf_sd:.3g}), is far from "
        f"what the likelihood needs: it puts f at {of.mean:.3g} with sd {of.sd:.3g}, and the best "
        f"constant is {of.best:.3g}. A leaf prior made of Y has the scale of Y, not of a link. "
        f"Give leaf=pymc_trees.NormalLeaf({mean:.2g}, {sd:.2g})."
    )


def _reach(of: Constants, most: float) -> float:
    """Distance from the best constant up to which the likelihood is like a quadratic."""
    top, reach = of.log(of.best), 0.0
    for distance in np.geomspace(0.1 * of.row_sd, max(most, 0.2 * of.row_sd), 60):
        square = 0.5 * of.n_rows * (distance / of.row_sd) ** 2
        for c in (of.best - distance, of.best + distance):
            ratio = (top - of.log(c)) / square
            if not 1 / LIKE < ratio < LIKE:
                return reach
        reach = float(distance)
    return reach


# ------------------------ Sampler statistics with one number per column, with this dimension named
#
# PyMC calls the dimension of a vector statistic by the statistic's name and a number.


def name_columns() -> None:
    """Name the dimension ``column``, or ``column_{forest}``, in results of `pymc.sample`."""
    wrap([pymc.sampling.mcmc], "_sample_return", _sample_return)


def _sample_return(original, *args, **kwargs):
    found = original(*args, **kwargs)
    free = kwargs["model"].free_RVs
    forests = {rv.name: rv for rv in free if is_forest(rv) or is_soft_forest(rv)}
    if forests and isinstance(found, xr.DataTree):
        for group in ("sample_stats", "warmup_sample_stats"):
            if group in found.children:
                found[group].dataset = _named(found[group].to_dataset(), forests)
    return found


def _named(stats: xr.Dataset, forests: dict) -> xr.Dataset:
    for dim in list(stats.dims):
        parts = re.fullmatch(r"variable_inclusion(_.+)?_dim_0", str(dim))
        if parts is None:
            continue
        ending = parts[1] or ""
        forest = forests.get(ending[1:]) if ending else next(iter(forests.values()))
        stats = stats.rename({dim: f"column{ending}"})
        names = getattr(schema_of(forest), "names", None)  # of a frame
        if names is not None:
            stats = stats.assign_coords({f"column{ending}": list(names)})
    return stats
