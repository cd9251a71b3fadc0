"""Sums of a forest and other terms in a likelihood, on which convergence is judged.

In ``f + a[group]`` the data determine the sum. What f gains and a loses leaves the sum unchanged,
so chains may agree about the sum long before they agree about f, or about a. The expressions are
found in the graph: the largest that are affine in forests (`targets.affine`) and contain other
random variables.
"""

from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pymc.stats.convergence import SamplerWarning, WarningType
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, toposort

from pymc_trees.distributions.forest_inputs import Evaluation
from pymc_trees.distributions.tree_variable import (
    TreeVariable,
    evaluations,
    evenly_spaced,
    is_tree_variable,
    tree_variable,
)
from pymc_trees.posterior.reading.indices import PYTHON, named_below
from pymc_trees.targets.affine import Affine, read_affine_map
from pymc_trees.targets.graph import (
    NotRecognisedError,
    dependent_on,
    depends_on,
    parameters_of,
)

R_HAT = 1.01
ESS_PER_CHAIN = 100
"""Bounds of PyMC's own checks."""
LONG = 2_000_000_000
"""Visits of a tree by a row that are not made for a message: some ten seconds."""


class Sum(NamedTuple):
    """Part of a likelihood in which forests and other variables are added up."""

    expression: Variable
    """Of inputs that stand for what trees evaluate to, and for other random variables."""
    stands: dict[Variable, Evaluation]
    inputs: dict[Variable, Variable]
    """By random variable."""
    others: list[Variable]
    """Free variables in the sum other than forests."""
    names: list[str]
    """Of what is added to forests, as the model names it."""

    @property
    def words(self) -> str:
        """The sum in names."""
        trees = dict.fromkeys(function_name(str(one.tree.name)) for one in self.stands.values())
        return " + ".join([*trees, *self.names])


class Judged(NamedTuple):
    """What PyMC's checks are to see, and what is said in addition."""

    values: dict[str, np.ndarray]
    """By the name of a forest, (chain, draw, rows) values of its sums."""
    apart: set[str]
    """Variables that are not told apart by the data, and left out of the checks."""
    warnings: list[SamplerWarning]


def function_name(tree: str) -> str:
    """Name of the function of trees."""
    return tree.removesuffix("_forest")


def sums_of(model: pm.Model) -> list[Sum]:
    """Sums of forests and other free variables in the likelihoods of a model without dims."""
    found = []
    for rv in model.basic_RVs:
        if is_tree_variable(rv):
            continue
        parameters = parameters_of(rv)
        evaluated = evaluations(parameters, blockers=model.basic_RVs)
        # a single soft tree has no training rows
        if evaluated and all(hasattr(one.tree.owner.op, "layout") for one in evaluated):
            found += _sums_in(model, parameters, evaluated)
    return found


def _sums_in(model, parameters, evaluated) -> list[Sum]:
    stands = {}
    for one in evaluated:
        shape = (one.tree.owner.op.layout.n_rows, one.outputs.type.shape[1])
        stands[pt.TensorType("float64", shape=shape)(f"outputs_{one.tree.name}")] = one
    replaced = {one.outputs: stand for stand, one in stands.items()}
    below = set(ancestors(parameters, blockers=model.basic_RVs))
    inputs = {rv: rv.type(rv.name) for rv in model.basic_RVs if rv in below}
    parameters = clone_replace(parameters, replaced | inputs, rebuild_strict=False)
    dependent = set().union(*(dependent_on(parameters, stand) for stand in stands))
    found: list[Sum] = []
    inside: set[Variable] = set()
    for node in reversed(list(toposort(parameters))):
        for v in node.outputs:
            if v not in dependent or v in inside or not isinstance(v.type, pt.TensorType):
                continue
            affine = _affine(v, list(stands))
            if affine is None:
                continue
            inside |= set(ancestors([v]))
            added = [] if affine.offset is None else [affine.offset]
            others = [
                rv
                for rv, stand in inputs.items()
                if rv in model.free_RVs and depends_on(added, stand, set())
            ]
            if others:
                named = {s: one for s, one in stands.items() if s in affine.maps}
                below = set(ancestors([v]))
                own = {rv: stand for rv, stand in inputs.items() if stand in below}
                free = {stand for rv, stand in own.items() if rv in others}
                names = [str(w.name) for w in named_below(added) if free & set(ancestors([w]))]
                found.append(Sum(v, named, own, others, list(dict.fromkeys(names))))
    return found


def _affine(v: Variable, stands) -> Affine | None:
    below = set(ancestors([v]))
    members = [s for s in stands if s in below]
    try:
        affine = read_affine_map(v, members, set())
    except (NotRecognisedError, TypeError, ValueError):  # such as shapes that are not known
        return None
    return affine if affine.maps else None


# ----------------------------------------------------------------------------- Values at some rows


def values_of(
    one: Sum, model: pm.Model, posterior: xr.Dataset, functions: dict, most: int
) -> np.ndarray | None:
    """(chain, draw, numbers) values of a sum at up to ``most`` of its entries.

    None where the draws lack one of its variables, or to evaluate f would take long.

    Parameters
    ----------
    functions : dict
        (chain, draw, n, K) outputs of trees at the training rows, by variable, or None; filled
        where they are asked for.
    """
    if any(rv.name not in posterior for rv in one.inputs):
        return None
    trees = {stand: evaluation.tree for stand, evaluation in one.stands.items()}
    for tree in trees.values():
        if tree not in functions:
            functions[tree] = _outputs(tree_variable(tree), model, posterior)
    draws = [posterior[rv.name].transpose("chain", "draw", ...).to_numpy() for rv in one.inputs]
    outputs = [functions[tree] for tree in trees.values()]
    if any(values is None for values in outputs):
        return None
    function = pytensor.function(
        [*trees, *one.inputs.values()],
        one.expression.flatten(),
        mode=PYTHON,
        on_unused_input="ignore",
    )
    chosen, found = None, None
    chains, n_draws = posterior.sizes["chain"], posterior.sizes["draw"]
    for at in np.ndindex(chains, n_draws):
        numbers = function(*(values[at] for values in (*outputs, *draws)))
        if found is None:
            chosen = evenly_spaced(len(numbers), most)
            found = np.empty((chains, n_draws, len(chosen)))
        found[at] = numbers[chosen]
    return found


def _outputs(tree: TreeVariable, model, posterior) -> np.ndarray | None:
    """(chain, draw, n, K) outputs at the training rows: recorded ones, if there are any.

    None where there are none, and evaluating all draws at all rows would take long.
    """
    name, draws = function_name(str(tree.name)), posterior[tree.name].to_numpy()
    m, n, k = tree.op.layout.m, tree.op.layout.n_rows, tree.op.layout.n_outputs
    if name in posterior and name in model.named_vars and k == 1:
        recorded = posterior[name].transpose("chain", "draw", ...).to_numpy()
        if recorded.shape[2:] == (n,):
            first = tree.function_values(model, draws[:1, :1], n)
            if np.allclose(first[0, 0], recorded[0, 0], rtol=1e-6, atol=1e-9):
                return recorded[..., None]
    if m * n * draws.shape[0] * draws.shape[1] > LONG:
        return None
    return tree.function_values(model, draws, n).reshape(*draws.shape[:2], n, k)


# ---------------------------------------------------------------------------------------- Judgement


def judge(
    model: pm.Model, posterior: xr.Dataset, functions: dict[str, np.ndarray], most: int
) -> Judged:
    """What is judged in place of forests that stand in sums.

    Parameters
    ----------
    model : pymc.Model
        Without named dimensions (`without_dims`).
    posterior : xarray.Dataset
    functions : dict of str and array
        (chain, draw, rows) values of each forest by itself.
    most : int
        Entries of a sum that are evaluated.
    """
    judged = Judged({}, set(), [])
    if posterior.sizes["chain"] < 2 or posterior.sizes["draw"] < ESS_PER_CHAIN:
        return judged  # PyMC does not judge them either
    known: dict[Variable, np.ndarray | None] = {}
    for one in sums_of(model):
        trees = list(dict.fromkeys(str(e.tree.name) for e in one.stands.values()))
        if not set(trees) <= set(functions):
            continue
        values = values_of(one, model, posterior, known, most)
        if values is None:
            continue
        parts = {name: functions[name] for name in trees}
        parts |= {
            str(rv.name): posterior[rv.name].transpose("chain", "draw", ...).to_numpy()
            for rv in one.others
        }
        whole = _worst(values)
        each = {name: _worst(part.reshape(*values.shape[:2], -1)) for name, part in parts.items()}
        loose = [name for name, worst in each.items() if not _has_converged(*worst, len(values))]
        if _has_converged(*whole, len(values)) and len(loose) > 1 and set(loose) & set(trees):
            judged.apart.update(loose)
            judged.warnings.append(_not_told_apart(one, whole, {n: each[n] for n in loose}))
        for name in trees:
            before = judged.values.get(name)
            both = values if before is None else np.concatenate([before, values], axis=-1)
            judged.values[name] = both
    return judged


def _worst(values: np.ndarray) -> tuple[float, float]:
    """Largest R-hat and smallest ESS of (chain, draw, numbers) values."""
    array = xr.DataArray(values, dims=("chain", "draw", "number"))
    with np.errstate(invalid="ignore", divide="ignore"):
        r_hat, ess = az.rhat(array).to_numpy(), az.ess(array).to_numpy()
    moving = ~np.isnan(r_hat)
    if not moving.any():
        return 1.0, np.inf
    return float(r_hat[moving].max()), float(ess[moving].min())


def _has_converged(r_hat: float, ess: float, chains: int) -> bool:
    return r_hat <= R_HAT and ess >= ESS_PER_CHAIN * chains


def _not_told_apart(one: Sum, whole, loose: dict) -> SamplerWarning:
    parts = [name.removesuffix("_forest") for name in loose]
    names = f"{', '.join(parts[:-1])} and {parts[-1]}"
    r_hats = ", ".join(f"{r_hat:.2f}" for r_hat, _ in loose.values())
    least = min(ess for _, ess in loose.values())
    return SamplerWarning(
        WarningType.CONVERGENCE,
        f"{one.words} has converged (R-hat up to {whole[0]:.3f}, ESS at least {whole[1]:.0f} over "
        f"rows), but {names} by themselves have not (R-hat up to {r_hats}; ESS from {least:.0f}): "
        "the data do not tell them apart, since what one gains the others lose. Use what depends "
        "on the sum, such as predictions. To have the parts as well, pass no step for the forest: "
        "pm.sample() draws them jointly where rows are Gaussian (GaussianTerms). Or give effects "
        "of groups the prior pm.ZeroSumNormal.",
        "warn",
    )
