"""The functions of a model, by name: expressions of trees, and of other variables of the draws."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_trees.arguments import check_elementwise
from pymc_trees.distributions.ops.evaluation import evaluate
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.check_draws import model_of
from pymc_trees.posterior.reading.expressions import (
    Expression,
    HeldRows,
    bases_of,
    inputs_of,
    random_below,
)
from pymc_trees.posterior.reading.features import column_words
from pymc_trees.posterior.reading.rows_apart import OtherRowsError, check_rowwise

NOTHING: Mapping[Variable, np.ndarray] = MappingProxyType({})


class Function(Expression):
    """A function of the rows of X under the draws of a model.

    The Deterministic registered by BART, DecisionTree or SoftDecisionTree, or a Deterministic of
    these and of other random variables, such as a scale, whose drawn values are taken; for a
    `Forest` that the model evaluates without a Deterministic, the evaluated function, under the
    name of the forest.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model
        The model.
    var_name : str, optional
        The function; may be left out when the model has one, or leaves with several parameters:
        then it is the mean.
    func : callable, optional
        Of an array of values of the function, elementwise: an inverse link.
    group : str, default "posterior"
        Of the draws.
    """

    def __init__(
        self,
        idata,
        model: pm.Model,
        var_name: str | None = None,
        func=None,
        group: str = "posterior",
    ):
        model = model_of(model)
        super().__init__(idata, model, *_function_of(model, var_name), group)
        self.func: Callable = _as_it_is if func is None else check_elementwise("func", func)
        self._named = model.named_vars_to_dims.get(self.name) or ()
        for dim in self.dims:
            if dim in model.coords and model.coords[dim] is not None:
                self.coords[dim] = np.asarray(model.coords[dim])

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes beside that of the rows: the model's, or as PyMC has them."""
        kept = [name for k, name in enumerate(self._named) if k != self.axis]
        usual = super().dims
        return tuple(a or b for a, b in zip(kept, usual, strict=True)) if kept else usual

    @property
    def names(self) -> np.ndarray:
        """Of the columns, as dimensions and coordinates have them."""
        known = None if self.schema is None else self.schema.names
        return np.array(column_words(known, self.n_columns))

    def each_draw(self, X: np.ndarray | HeldRows) -> Iterator[tuple[int, int, np.ndarray]]:
        """Chain, draw, and the values at the rows of X, the rows last."""
        for chain, draw, values in super().each_draw(X):
            yield chain, draw, self.func(values)


def _as_it_is(values):
    return values


def _function_of(model: pm.Model, var_name: str | None) -> tuple[Variable, str]:
    """A function of trees and its name, or an error that lists those there are."""
    evaluated = {one.name: one for one in model.deterministics if _evaluates_trees(model, one)}
    if var_name is not None and var_name in evaluated:
        return evaluated[var_name], var_name  # whether of single rows, `Expression` says
    of_trees = [one for one in evaluated.values() if _is_of_trees(model, one)]
    known = {one.name: one for one in of_trees if _is_of_single_rows(model, one)}
    declared = [
        name
        for name, one in known.items()
        if not any(other in known.values() for other in ancestors([one]) if other is not one)
    ]
    bare = _without_name(model, list(known.values()))
    known, declared = known | bare, [*_first_parameters(known, declared), *bare]
    if var_name is None and len(declared) == 1:
        return known[declared[0]], declared[0]
    if var_name is not None and var_name in known:
        return known[var_name], var_name
    # with other variables beside the trees, such as a scale
    mixed = [name for name, one in evaluated.items() if one not in of_trees]
    choices = _that_can_be_asked(model, [*(declared if var_name is None else known), *mixed])
    if not choices:
        raise ValueError("The model has no function of trees: declare one by BART.")
    if var_name is None:
        raise ValueError(f"The model has the functions {choices}: choose one by var_name.")
    raise ValueError(f"var_name={var_name!r} is not a function of trees: choose from {choices}.")


def _first_parameters(known: dict[str, Variable], declared: list[str]) -> list[str]:
    """Without the further parameters of a leaf, such as a precision, beside the first, its mean."""

    def is_further(name):
        found = evaluations([known[name]])
        if len(found) != 1 or not is_forest(found[0].tree):
            return False
        _, *suffixes = found[0].tree.owner.op.leaf_type.suffixes
        first = [name.removesuffix(one) for one in suffixes if name.endswith(one)]
        return any(
            one in declared and evaluations([known[one]])[0].tree is found[0].tree for one in first
        )

    return [name for name in declared if not is_further(name)]


def _evaluates_trees(model: pm.Model, variable: Variable) -> bool:
    """Whether a Deterministic evaluates trees, and not only through a random variable."""
    return bool(evaluations([variable], blockers=model.basic_RVs))


def _is_of_trees(model: pm.Model, variable: Variable) -> bool:
    """Whether a Deterministic depends on trees and on nothing else that is random."""
    random = random_below(model, variable)
    return bool(random) and all(is_tree_variable(v) for v in random)


def _is_of_single_rows(
    model: pm.Model, variable: Variable, others: Mapping[Variable, np.ndarray] = NOTHING
) -> bool:
    """Whether entry i of a function of trees depends on row i of X alone."""
    found = evaluations([variable], blockers=model.basic_RVs)
    try:
        check_rowwise(variable, found, bases_of(found, model), variable.name, others)
    except OtherRowsError:
        return False
    return True


def _that_can_be_asked(model: pm.Model, names: list[str]) -> list[str]:
    """Those of the functions that an error may propose: known at other rows, of one X."""
    rng = np.random.default_rng(0)

    def can_be(variable):
        others = [rv for rv in random_below(model, variable) if not is_tree_variable(rv)]
        if any(rv in model.observed_RVs for rv in others):
            return False
        found = evaluations([variable], blockers=model.basic_RVs)
        try:
            inputs_of(found, bases_of(found, model), variable.name)
        except ValueError:
            return False
        # any values will do; different ones, where an entry of them is taken
        shapes = model.eval_rv_shapes() if others else {}
        drawn = {rv: rng.random(shapes[rv.name]).astype(rv.dtype) for rv in others}
        return _is_of_single_rows(model, variable, drawn)

    registered = {one.name: one for one in model.deterministics}
    return [name for name in names if name not in registered or can_be(registered[name])]


def _without_name(model: pm.Model, named: list[Variable]) -> dict[str, Variable]:
    """By the name of their forest, functions that the model evaluates and does not register."""
    seen = {one.tree for one in evaluations(named)}
    found = evaluations([*model.basic_RVs, *model.potentials])
    at = {one.tree: one.X for one in found if one.tree not in seen and is_forest(one.tree)}
    functions = {forest.name: evaluate(forest, X) for forest, X in at.items()}
    return {name: one for name, one in functions.items() if isinstance(one, Variable)}
