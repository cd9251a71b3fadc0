"""PyMC's convergence warnings, computed from function values.

PyMC computes R-hat and ESS of every free random variable. The nodes of encoded trees are not
comparable between draws, so every forest would cause a warning. PyMC's check is therefore given,
under the name of a forest or soft tree, the values of its function at up to 50 evenly spaced rows.
Models without trees are checked as before.

Two faults that R-hat cannot detect are reported as well: trees that never moved, whose R-hat is not
a number, and draws that are not trees. Both come from step methods that do not support trees.
Where R-hat or ESS alarm, the draws of all chains together are judged as well (`judge_pool`).
`watch_trees` adds a warning about trees that hardly move under the steps of this package.
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
from pymc.backends import NDArray
from pymc.stats.convergence import SamplerWarning, WarningType, log_warnings
from pytensor.graph.basic import Variable
from scipy.optimize import minimize_scalar

from pymc_trees.distributions.capacity import LARGE_TABLE
from pymc_trees.distributions.data.table import schema_of
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.ops.soft_forest_rv import is_soft_forest
from pymc_trees.distributions.tree_variable import TreeVariable, tree_variables
from pymc_trees.distributions.without_dims import without_dims
from pymc_trees.hooks.sums import function_name, judge
from pymc_trees.hooks.wrap import SAMPLE, wrap
from pymc_trees.inference.chains.run import RUNNER
from pymc_trees.posterior.pool import judge_pool, scalars_of
from pymc_trees.step_methods.kernels.acceptance import CHANGES_PER_VISIT
from pymc_trees.targets.choose import read_target
from pymc_trees.targets.graph import read_graph
from pymc_trees.targets.settings import compile_values, read_settings
from pymc_trees.targets.terms import likelihood_terms

ROWS = 50
NOTHING_TO_CHECK = "No free variable is among the draws: convergence was not checked."


def check_function_values() -> None:
    """Wrap PyMC's convergence checks."""
    wrap([pymc.sampling.mcmc], "run_convergence_checks", _check)


def _check(original, idata, model):
    posterior = getattr(idata, "posterior", None)
    trees = tree_variables(model)
    if posterior is None or not trees:
        return original(idata, model)
    stuck = after_sampling(idata, model)
    if not any(rv.name in posterior for rv in model.free_RVs):
        return [SamplerWarning(WarningType.BAD_PARAMS, NOTHING_TO_CHECK, "info"), *stuck]
    trees = [tree for tree in trees if tree.name in posterior]
    if not trees:
        return [*original(idata, model), *stuck]
    functions: dict[str, tuple] = {}
    faults = []
    for tree in trees:
        draws = posterior[tree.name].values
        values = tree.function_values(model, draws, ROWS)
        functions[tree.name] = ("chain", "draw", f"{tree.name}_output"), values
        faults += faults_of(tree, draws)
    checked, data = idata.copy(), posterior.to_dataset()
    alone = {name: values for name, (_, values) in functions.items()}
    judged = judge(without_dims(model), data, alone, ROWS)
    for name, sums in judged.values.items():
        dims, values = functions[name]
        parts = [sums, *([] if name in judged.apart else [values])]
        functions[name] = dims, np.concatenate(parts, axis=-1)
    left_out = judged.apart | set(functions)
    checked["posterior"] = xr.DataTree(data.drop_vars(list(left_out)).assign(functions))
    with np.errstate(invalid="ignore"):  # R-hat of trees that never moved, reported in faults
        warnings = original(checked, model)
    if any(one.kind is WarningType.CONVERGENCE for one in warnings) and not faults:
        together = {name: judged.values.get(name, alone[name]) for name in alone}
        warnings = [*warnings, *_of_pool(together, scalars_of(data, model))]
    return [*warnings, *judged.warnings, *faults, *stuck]


def _of_pool(functions: dict[str, np.ndarray], scalars: dict) -> list[SamplerWarning]:
    """Whether draws of all chains together can be used, where chains do not agree."""
    found = {function_name(name): judge_pool(f, scalars) for name, f in functions.items()}
    return [
        SamplerWarning(
            WarningType.CONVERGENCE,
            f"The pool of chains of {name}: {one}. {one.advice} pymc_trees.diagnose says more.",
            "info" if one.usable else "warn",
        )
        for name, one in found.items()
    ]


def faults_of(tree: TreeVariable, draws: np.ndarray) -> list[SamplerWarning]:
    """Faults of draws, of shape (chain, draw, rows, fields), other than poor mixing."""
    messages = []
    if not all(tree.is_intact(draws[k]) for k in np.ndindex(*draws.shape[:2])):
        messages.append(
            f"holds draws that are not {tree.what}s: another step method made them, or they were "
            "edited"
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


# ------ Trees that hardly move: a warning when tuning ends, or after sampling, with a likely cause
#
# Steps record ``changes_per_visit``: accepted changes of a tree per visit, without small steps of
# a cutpoint. If fewer than one visit in twenty changes a tree, a chain explores next to nothing,
# although leaf values and other variables may seem to mix.
#
# The calling process checks the second half of a chain's tuning when it records the first draw
# after tuning, in whichever process the chain runs. Chains of joblib arrive when they are
# complete, and are checked after sampling.
#
# A single tree may rightly never change, if its posterior is concentrated on one tree. It is
# reported only if the likelihood rejects nearly every visit, changes of leaf values included.


MIN_CHANGES_PER_VISIT = 0.05
"""Changes per visit below which trees hardly move (`benchmarks/notes/still_trees`)."""
MIN_VISITS = 200
"""Visits needed to estimate the rate: at twice the threshold, one chain in 100 falls below it."""
ACCEPTED = "accept_delayed"

_CHECKED = "pymc_trees_checked"
"""Attribute of a trace whose tuning was checked."""
_reported: ContextVar[set[str] | None] = ContextVar("forests reported in this run", default=None)


def watch_trees() -> None:
    """Wrap the function that records a draw, and `pymc.sample`."""
    wrap([NDArray], "record", _record)
    wrap(SAMPLE, "sample", _sample)


def _sample(original, *args, **kwargs):
    token = _reported.set(set())
    try:
        return original(*args, **kwargs)
    finally:
        _reported.reset(token)


def _record(original, *args, **kwargs):
    original(*args, **kwargs)
    if not kwargs.get("in_warmup", True):
        trace = args[0]
        if not hasattr(trace, _CHECKED):
            setattr(trace, _CHECKED, True)
            if RUNNER.get() is None:
                log_warnings(at_end_of_tuning(trace))


def forests_of(model: pm.Model) -> list[tuple[Variable, str]]:
    """Forests whose steps count changes, and the suffix of the names of their statistics."""
    forests = [rv for rv in model.free_RVs if is_forest(rv) or is_soft_forest(rv)]
    return [(rv, f"_{rv.name}" if len(forests) > 1 else "") for rv in forests]


def at_end_of_tuning(trace: NDArray) -> list[SamplerWarning]:
    """Warnings about a chain that has just ended its tuning; one per forest in a run."""
    n_tuned, reported, warnings = trace.draw_idx - 1, _reported.get(), []
    for rv, suffix in forests_of(trace.model):
        steps = [
            k for k, s in enumerate(trace.sampler_vars or []) if CHANGES_PER_VISIT + suffix in s
        ]
        if not steps or (reported is not None and rv.name in reported):
            continue

        def in_window(name, step=steps[0]):
            return trace.get_sampler_stats(name, step)[n_tuned // 2 : n_tuned]

        changes = in_window(CHANGES_PER_VISIT + suffix)
        accepted = np.full(len(changes), np.nan)
        if ACCEPTED + suffix in trace.sampler_vars[steps[0]]:
            accepted = in_window(ACCEPTED + suffix)
        if hardly_moves(rv, changes, accepted):
            when = f"in the second half of tuning (chain {trace.chain})"
            warnings.append(_warning(trace.model, rv, np.nanmean(changes), when))
            if reported is not None:
                reported.add(rv.name)
    return warnings


def after_sampling(idata, model: pm.Model) -> list[SamplerWarning]:
    """Warnings about the chains of a result; forests that were reported in tuning are left out."""
    if "sample_stats" not in idata.children:
        return []
    stats, reported, warnings = idata["sample_stats"], _reported.get() or set(), []
    for rv, suffix in forests_of(model):
        if CHANGES_PER_VISIT + suffix not in stats or rv.name in reported:
            continue
        changes = np.asarray(stats[CHANGES_PER_VISIT + suffix])
        accepted = np.full(changes.shape, np.nan)
        if ACCEPTED + suffix in stats:
            accepted = np.asarray(stats[ACCEPTED + suffix])
        stuck = [k for k in range(len(changes)) if hardly_moves(rv, changes[k], accepted[k])]
        if stuck:
            when = f"after tuning (chains {stuck} of {len(changes)})"
            warnings.append(_warning(model, rv, np.nanmean(changes[stuck]), when))
    return warnings


def hardly_moves(rv: Variable, changes: np.ndarray, accepted: np.ndarray) -> bool:
    """Whether too few visits changed a tree, by a chain's statistics of each iteration."""
    m = rv.owner.op.layout.m
    changes, accepted = changes[~np.isnan(changes)], accepted[~np.isnan(accepted)]
    if changes.size * m < MIN_VISITS or changes.mean() >= MIN_CHANGES_PER_VISIT:
        return False
    return m > 1 or (accepted.size > 0 and bool(accepted.mean() < MIN_CHANGES_PER_VISIT))


def _warning(model: pm.Model, rv: Variable, share: float, when: str) -> SamplerWarning:
    name = rv.name.removesuffix("_forest")
    return SamplerWarning(
        WarningType.BAD_ACCEPTANCE,
        f"The trees of {name} hardly move: {share:.1%} of visits changed a tree {when}. "
        f"{likely_reason(model, rv)}",
        "warn",
    )


SHARP_LIKELIHOOD = (
    "The likelihood is so sharp that hardly any change of a tree is accepted. If rows vary more "
    "than it allows, as large counts usually do, add a dispersion parameter: pm.BetaBinomial "
    "instead of pm.Binomial, pm.NegativeBinomial instead of pm.Poisson, a free sigma. If the "
    "likelihood is right, more trees or a longer run help little: "
    "pymc_trees.plot_convergence shows at which rows the chains agree."
)
MANY_ROWS = (
    "On a table of this size that is usual: a split is held by all the rows that it separates. "
    "Sample four chains or more and use them together; pymc_trees.diagnose says whether that is "
    "enough. Fewer or shallower trees than the default for so many rows (m=200, beta=1) move less. "
    "A fixed sigma that is too small holds trees as well: make it a variable."
)
JOINT_PROPOSALS = (
    "Leaf values cannot be integrated out of this likelihood, so all values of a leaf are proposed "
    "together. Declare a BART with a NormalLeaf for each output; if rows vary more than the "
    "likelihood allows, as large counts usually do, add a dispersion parameter, such as "
    "pm.BetaBinomial instead of pm.Binomial."
)


def likely_reason(model: pm.Model, rv: Variable) -> str:
    """Why trees hardly move, and what to do."""
    target, layout = read_target(model, rv), rv.owner.op.layout
    if not target.needs_surrogate or getattr(target, "has_coefficients", False):
        return MANY_ROWS if layout.n_rows >= LARGE_TABLE else SHARP_LIKELIHOOD
    if layout.n_values > 1:
        return JOINT_PROPOSALS
    try:
        likelihood = LikelihoodOfConstant.of(model, rv)
        return _at_edge_of_support(likelihood) or _prior_off_scale(likelihood) or SHARP_LIKELIHOOD
    except Exception:  # a reason is a courtesy: sampling must not end because of it
        return SHARP_LIKELIHOOD


class LikelihoodOfConstant(NamedTuple):
    """Likelihood of a forest as a function of f, where f is the same constant at all rows."""

    log: Callable[[float], float]
    mean: float
    """Prior mean of f."""
    sd: float
    """Prior standard deviation of f."""
    m: int
    n_rows: int
    leaf_mean: float
    leaf_sd: float
    best: float
    """The constant with the largest likelihood."""
    row_sd: float
    """Standard deviation of f given one row, from the curvature of the log-likelihood there."""

    @classmethod
    def of(cls, model: pm.Model, rv: Variable) -> "LikelihoodOfConstant":
        """For a forest with one value per leaf; other variables have their initial values."""
        terms, outputs = likelihood_terms(read_graph(model, rv))
        settings = read_settings(model, rv)[3:]
        values = [v for term in terms for v in (term.value, *term.conditions)]
        function, names = compile_values(model, [*settings, *values], [outputs])
        point, layout = model.initial_point(), rv.owner.op.layout
        inputs = [point[name] for name in names]
        is_condition = [False] * len(settings)
        for term in terms:
            is_condition += [False, *[True] * len(term.conditions)]

        def log(c: float) -> float:
            with np.errstate(all="ignore"):
                results = function(np.full(outputs.type.shape, c), *inputs)
                total = 0.0
                for value, checks in list(zip(results, is_condition, strict=True))[len(settings) :]:
                    total += (0.0 if np.all(value) else -np.inf) if checks else np.sum(value)
            return float(total)

        mean, sd = (float(np.mean(v)) for v in function(np.zeros(outputs.type.shape), *inputs)[:2])
        m, n = layout.m, layout.n_rows
        prior = m * mean, math.sqrt(m) * sd
        best = _best_constant(log, *prior)
        step = 1e-3 * prior[1]
        curvature = (2 * log(best) - log(best - step) - log(best + step)) / step**2
        row_sd = math.sqrt(n / curvature) if 0 < curvature < np.inf else prior[1]
        return cls(log, *prior, m, n, mean, sd, best, row_sd)


def _best_constant(log: Callable[[float], float], mean: float, sd: float) -> float:
    """Constant with the largest likelihood, on the scale of the prior or of a link."""
    distances = np.concatenate([[0.0], np.logspace(-2, 3, 51)])
    around_mean = [mean + sd * distances, mean - sd * distances]
    grid = np.unique(np.concatenate([*around_mean, distances, -distances]))
    values = np.array([log(c) for c in grid])
    values[~(values < np.inf)] = -np.inf  # NaN as well
    k = int(values.argmax())
    low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]

    def negative_log(c):
        value = log(c)
        return -value if np.isfinite(value) else np.inf

    with np.errstate(invalid="ignore"):
        optimum = minimize_scalar(negative_log, bounds=(low, high), method="bounded")
    return float(optimum.x if optimum.fun < -values[k] else grid[k])


EDGE_DISTANCE = 20
"""Distance, in sds of f given one row, within which an edge of the support stops the trees."""


def _at_edge_of_support(likelihood: LikelihoodOfConstant) -> str | None:
    """Message if the likelihood is 0 at plausible values of f."""
    best = likelihood.best
    for distance in likelihood.row_sd * np.logspace(-3, math.log10(EDGE_DISTANCE), 40):
        for c in (best - distance, best + distance):
            value = likelihood.log(c)
            if math.isnan(value):
                return (
                    f"The log-likelihood is NaN where f is {c:.3g}, which counts as a likelihood "
                    "of 0: write it so that it is defined wherever the prior of f has mass."
                )
            if value == -np.inf:
                side = "above" if c > best else "below"
                return (
                    f"The likelihood is 0 where f is {side} {c:.3g} at all rows: its support "
                    "depends on f, so a single row on the wrong side rejects a tree. Give y a "
                    "density that is positive on both sides, such as pm.ExGaussian instead of an "
                    "exponential above f, or add a Normal error."
                )
    return None


QUADRATIC_RATIO = 2.0
"""Ratio to a quadratic within which a log-likelihood counts as quadratic."""


def _prior_off_scale(likelihood: LikelihoodOfConstant) -> str | None:
    """Message if the leaf prior is not on the scale of the likelihood."""
    best, mean, sd, m = likelihood.best, likelihood.mean, likelihood.sd, likelihood.m
    away = abs(best - mean) / sd
    if away < 4 and (away < 1 or _quadratic_up_to(likelihood, sd) >= sd):
        return None
    leaf_sd = 0.5 * _quadratic_up_to(likelihood, 1e3 * likelihood.row_sd) / math.sqrt(m)
    return (
        f"The leaf prior, NormalLeaf({likelihood.leaf_mean:.3g}, {likelihood.leaf_sd:.3g}), is far "
        f"from what the likelihood needs: it gives f the mean {mean:.3g} and the sd {sd:.3g}, but "
        f"the best constant is {best:.3g}. A default leaf prior has the scale of Y, not of a link. "
        f"Give leaf=pymc_trees.NormalLeaf({best / m:.2g}, {leaf_sd:.2g})."
    )


def _quadratic_up_to(likelihood: LikelihoodOfConstant, furthest: float) -> float:
    """Distance from the best constant up to which the log-likelihood is nearly quadratic."""
    best, row_sd = likelihood.best, likelihood.row_sd
    maximum, reached = likelihood.log(best), 0.0
    for distance in np.geomspace(0.1 * row_sd, max(furthest, 0.2 * row_sd), 60):
        quadratic = 0.5 * likelihood.n_rows * (distance / row_sd) ** 2
        for c in (best - distance, best + distance):
            ratio = (maximum - likelihood.log(c)) / quadratic
            if not 1 / QUADRATIC_RATIO < ratio < QUADRATIC_RATIO:
                return reached
        reached = float(distance)
    return reached


# ------------------ Sampler statistics with one value per column get a dimension of the right name
#
# PyMC names the dimension of a vector statistic after the statistic, with a number.


def name_columns() -> None:
    """Name that dimension ``column``, or ``column_{forest}``, in results of `pymc.sample`."""
    wrap([pymc.sampling.mcmc], "_sample_return", _sample_return)


def _sample_return(original, *args, **kwargs):
    result = original(*args, **kwargs)
    free = kwargs["model"].free_RVs
    forests = {rv.name: rv for rv in free if is_forest(rv) or is_soft_forest(rv)}
    if forests and isinstance(result, xr.DataTree):
        for group in ("sample_stats", "warmup_sample_stats"):
            if group in result.children:
                result[group].dataset = _named(result[group].to_dataset(), forests)
    return result


def _named(stats: xr.Dataset, forests: dict) -> xr.Dataset:
    for dim in list(stats.dims):
        parts = re.fullmatch(r"variable_inclusion(_.+)?_dim_0", str(dim))
        if parts is None:
            continue
        suffix = parts[1] or ""
        forest = forests.get(suffix[1:]) if suffix else next(iter(forests.values()))
        stats = stats.rename({dim: f"column{suffix}"})
        names = getattr(schema_of(forest), "names", None)  # of a frame
        if names is not None:
            stats = stats.assign_coords({f"column{suffix}": list(names)})
    return stats
