"""`predictor`: a `Predictor` of draws and their model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.distributions.data.random_columns import latent_part
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.distributions.forest_inputs import training_rows
from pymc_trees.distributions.tree_variable import evaluations, is_tree_variable
from pymc_trees.posterior.draws import (
    SAMPLE,
    checked_draws,
    draws_of,
    model_of,
    thinned,
)
from pymc_trees.posterior.exporting.expressions import (
    NoLawError,
    NotCarriedError,
    Response,
    Translation,
    kind_of,
    packed_forest,
    response_of,
    widened,
)
from pymc_trees.posterior.exporting.facts import data_facts, first_row, plain_labels, table_facts
from pymc_trees.posterior.exporting.random_columns import law_facts
from pymc_trees.posterior.reading.functions import bases_of, random_below, random_beside
from pymc_trees.posterior.reading.random_inputs import RandomInputs, random_inputs
from pymc_trees.posterior.reading.table import Source
from pymc_trees.posterior.reading.whole import Part, has_inside, opened
from pymc_trees.predictors.evaluation import Evaluator
from pymc_trees.predictors.predictor import Predictor

MOST_TIMES = 200
"""Distinct values of a first column "time" up to which they are taken for a grid of times."""


def predictor(
    idata,
    model: pm.Model | None = None,
    *,
    var_names: str | Sequence[str] | None = None,
    draws: int | None = None,
    response: str | None = None,
) -> Predictor:
    """Make a fitted model predict without its training data, PyMC or a compiler.

    Parameters
    ----------
    idata : xarray.DataTree or xarray.Dataset
        Result of `pymc.sample`, or the same read from a file; a dataset of draws.
    model : pymc.Model, optional
        Default: the model on the context stack.
    var_names : str or list of str, optional
        Functions of rows (Deterministics that evaluate trees) and parameters to keep. Default: all
        functions that are known at other rows, and all drawn scalars and vectors without an entry
        for each training row.
    draws : int, optional
        How many, over all chains and evenly spaced. Default: all.
    response : str, optional
        The observed variable whose law is read. Default: the only one, where its distribution is a
        Normal, LogNormal, StudentT, Bernoulli, Poisson, NegativeBinomial, Gamma, Exponential,
        Weibull, Categorical, OrderedLogistic or OrderedProbit, possibly in `pymc.Censored`, whose
        parameters are known at other rows.

    Returns
    -------
    Predictor
        With no row of the training data: it holds trees, parameters, names and levels of columns,
        numbers that the model's expressions contain, and what soft trees and leaves with slopes
        take of the columns (quantiles; means, sds and ranges).

    Raises
    ------
    ValueError
        When draws are not those of the model, a function that is named depends on other rows or
        on numbers of the training rows, or trees are of another kind.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=3)
    ...     y = pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=X[:, 0], shape=mu.shape)
    ...     prior = pm.sample_prior_predictive(20, random_seed=1)
    >>> predictor = pmt.predictor(prior["prior"].to_dataset(), model, draws=10)
    >>> predictor
    Predictor(mu: 3 trees, 1 x 10 draws, y ~ normal)
    >>> predictor.sample_y([[0.2], [0.8]], random_seed=1).shape
    (10, 2)
    """
    model = model_of(model)
    maker = _Maker(draws_of(idata), model, draws)
    names = [var_names] if isinstance(var_names, str) else var_names
    functions = {v.name: v for v in model.deterministics if _evaluates(model, v)}
    named = {n: functions[n] for n in names or () if n in functions}
    parameters = None if names is None else [n for n in names if n not in functions]
    wanted = functions if names is None else named
    if any(n_random_columns(rv) for rv in model.free_RVs):  # their tables hold those of others
        wanted = dict(sorted(wanted.items(), key=lambda one: not _at_random_rows(model, one[1])))
    for name, v in wanted.items():
        maker.add_function(str(name), v, required=names is not None)
    if names is None or not named:
        maker.add_unnamed(required=not maker.functions)
    try:
        known, why = response_of(model, response), ""
        maker.add_response(known)
    except (NoLawError, _NotCarried) as error:
        if response is not None:
            raise ValueError(
                f"response={response!r}: its law at other rows is not known ({error}). Leave "
                "response out, and call function with the parameters of each draw."
            ) from error
        why = str(error)
    maker.add_laws()
    maker.add_parameters(parameters)
    return maker.made(why)


def predictor_of(
    idata,
    model: pm.Model,
    functions: Sequence[str],
    response: Response,
    classes: list | None = None,
    draws: int | None = None,
) -> Predictor:
    """A predictor of functions by name, with a law that is given: for estimators."""
    model = model_of(model)
    maker = _Maker(draws_of(idata), model, draws)
    for name in functions:
        maker.add_function(name, model[name], required=True)
    maker.add_response(response)
    maker.add_laws()
    maker.add_parameters(None)
    return maker.made("", classes)


class _NotCarried(Exception):
    """Why an expression is not known at other rows."""


class _Maker:
    """What a predictor is made of, as it grows.

    Parameters
    ----------
    idata : xarray.DataTree
        Draws.
    model : pymc.Model
        Without named dimensions.
    draws : int, optional
        How many are kept.
    """

    def __init__(self, idata, model: pm.Model, draws: int | None):
        self.model, self.checked = model, checked_draws(idata, model)
        self.posterior = idata["posterior"]
        self.chains = self.posterior.sizes["chain"]
        self.which = thinned(self.chains, self.posterior.sizes["draw"], draws)
        self.sources: list[Source] = []
        self.forests: list[Variable] = []
        self.drawn: dict[str, np.ndarray] = {}
        self.known: dict[Variable, dict[str, Any]] = {}
        self.translation = Translation(self.known, self.forests)
        self.functions: dict[str, int] = {}
        self._seen: set[Variable] = set()
        self.response: dict[str, Any] | None = None
        self._random: list[dict[str, Any]] = []
        self.columns: dict[str, RandomInputs] = {}
        """Inputs with random columns, by the names of these."""
        self.parameters: list[str] = []

    # ------------------------------------------------------------------------------ Expressions

    def add_function(self, name: str, variable: Variable, required: bool) -> None:
        """A function of rows, unless it is not known at other ones."""
        try:
            [number] = self._numbers(name, [variable])
        except _NotCarried as error:
            if required:
                raise ValueError(
                    f"{name} cannot be carried to other rows without the model: {error}. Leave it "
                    "out of var_names, or use predictions(idata, model)."
                ) from error
            return
        self.functions[name] = number
        self._seen |= {one.tree for one in evaluations([variable])}

    def add_unnamed(self, required: bool) -> None:
        """Functions of forests that the model evaluates without a Deterministic."""
        seen = set(self._seen)
        everything = [*self.model.basic_RVs, *self.model.potentials]
        for one in evaluations(everything):
            if one.tree in seen:
                continue
            kind_of(one.tree)
            if one.tree.owner.op.layout.n_outputs == 1:
                seen.add(one.tree)
                self.add_function(str(one.tree.name), one.outputs[:, 0], required)
        if required and not self.functions:
            raise ValueError("The model has no function of trees: declare one by BART.")

    def add_response(self, response: Response) -> None:
        """The law of the response."""
        of_rows = [v for v in response.parameters if _evaluates(self.model, v)]
        if not of_rows:
            raise _NotCarried(f"{response.name} depends on no trees")
        for v in of_rows:
            self._open(response.name, v)
        numbers = self._translated(response.name, response.parameters)
        self.response = {
            "name": response.name,
            "law": response.law,
            "of": numbers,
            "ndim": response.ndim,
        }

    def _numbers(self, name: str, variables: list[Variable]) -> list[int]:
        for v in variables:
            self._open(name, v)
        return self._translated(name, variables)

    def _translated(self, name: str, variables: list[Variable]) -> list[int]:
        for v in variables:
            self._know(name, v)
        try:
            return [self.translation.number(v) for v in variables]
        except NotCarriedError as error:
            raise _NotCarried(f"{name} has {error}") from error

    def _open(self, name: str, variable: Variable) -> None:
        """Check that a row of an expression depends on its own row alone; keep what it takes."""
        evaluated = evaluations([variable], blockers=self.model.basic_RVs)
        bases = bases_of(evaluated, self.model)
        others = [v for v in random_beside(self.model, variable) if not is_tree_variable(v)]
        observed = [v.name for v in others if v in self.model.observed_RVs]
        lost = [v.name for v in others if v.name not in self.posterior]
        if observed or lost:
            raise _NotCarried(f"{name} depends on {observed or lost}, which have no draws")
        inputs = random_inputs(evaluated, bases)
        beside = [v for one in inputs.values() for v in one.columns.values()]
        if any(
            set(random_below(self.model, one.X, beside)) - _latent(self.model, beside)
            for one in evaluated
        ):
            raise _NotCarried(f"{name} evaluates trees at rows that are random")
        first = {v: self._draw(v.name)[0] for v in others}
        try:
            part = Part(variable, name, evaluated, bases)
            table, found, _ = opened(self.model, part, first, {})
        except ValueError as error:
            raise _NotCarried(str(error)) from error
        if found.own:
            raise _NotCarried(f"{name} takes numbers that belong to the training rows")
        for taken_apart in inputs.values():
            self.columns |= dict.fromkeys(taken_apart.columns, taken_apart)
        for source in table.sources:
            self._take(source)
        for one in evaluated:
            if one.tree not in self.forests:
                kind_of(one.tree)  # others have no sizes and rows of a forest
                self.forests.append(one.tree)

    def _take(self, source: Source) -> None:
        """Rows that an expression takes."""
        new = [v for v in source.variables if v not in self.known]
        if not new:
            return
        for k, one in enumerate(self.sources):
            if source.schema is not None and len(new) == 1 and not source.n_random:
                if has_inside(one, new[0], source.values, source.schema):
                    columns = [None, source.values.shape[1], None]
                    index = [[None, None, None], columns]
                    self.known[new[0]] = {"op": "rows", "place": k, "index": index}
                    return
        place = len(self.sources)
        for k, one in enumerate(self.sources):
            alike = one.schema is not None and source.schema is not None
            alike = alike and (one.names, one.levels) == (source.names, source.levels)
            if set(one.variables) & set(source.variables) or (
                alike and np.array_equal(one.values, source.values)
            ):
                place = k
            elif one.name == source.name:
                raise _NotCarried(f"two of its tables are named {source.name}")
        if place == len(self.sources):
            self.sources.append(source)
        else:
            inner = (*self.sources[place].inner, *source.inner)
            self.sources[place] = self.sources[place]._replace(inner=inner)
        for v in new:
            self.known[v] = {"op": "rows" if source.schema is not None else "data", "place": place}
        for v, own in source.inner:
            some: Any = own[0] if v.ndim == 1 else [own[0], own[-1] + 1, None]
            index = [[None, None, None], some]
            self.known.setdefault(v, {"op": "rows", "place": place, "index": index})

    def _know(self, name: str, variable: Variable) -> None:
        """Draws of the random variables of an expression."""
        for v in random_beside(self.model, variable):
            if is_tree_variable(v) or v in self.known:
                continue
            if v.name not in self.posterior:
                raise _NotCarried(f"{name} depends on {v.name}, which has no draws")
            self.drawn[str(v.name)] = self._draw(v.name)
            self.known[v] = {"op": "draws", "name": str(v.name)}

    def _draw(self, name) -> np.ndarray:
        """(draws, ...) numbers of a variable."""
        kept = self.posterior[name].transpose(*SAMPLE, ...).isel(draw=self.which).to_numpy()
        return widened(kept.reshape(-1, *kept.shape[2:]))

    def add_laws(self) -> None:
        """Laws of random columns, as far as they are known at other rows."""
        self._random = [law_facts(self, name, inputs) for name, inputs in self.columns.items()]

    def law_numbers(self, name: str, opened: Sequence[Part], parameters: list[Variable]):
        """Instructions of the parameters of a law, or why they are not known at other rows."""
        try:
            for one in opened:
                self._open(name, one.variable)
            return self._translated(name, parameters), ""
        except _NotCarried as error:
            return [], str(error)

    # ------------------------------------------------------------------------------- Parameters

    def add_parameters(self, names: Sequence[str] | None) -> None:
        """Drawn numbers by name, or all scalars and vectors without an entry for each row."""
        if names is None:
            # the model may have other rows now than those that it was fitted to
            rows = {len(s.values) for s in self.sources}
            rows |= {len(training_rows(forest)) for forest in self.forests}
            known = [*self.model.free_RVs, *self.model.deterministics]
            names = [
                str(v.name)
                for v in known
                if v.name in self.posterior
                and not is_tree_variable(v)
                and not _evaluates(self.model, v)
                and not rows & self._sizes(v.name)
            ]
        for name in names:
            if name not in self.posterior:
                raise ValueError(
                    f"var_names: {name!r} is neither a function of rows nor in the draws: choose "
                    f"from {list(self.functions)} and {list(self.posterior.data_vars)}."
                )
            self.drawn.setdefault(name, self._draw(name))
            self.parameters.append(name)

    def _sizes(self, name) -> set[int]:
        """Of a variable of the draws, wherever chains and draws stand among its axes."""
        return {n for dim, n in self.posterior[name].sizes.items() if dim not in SAMPLE}

    # ----------------------------------------------------------------------------- What is made

    def made(self, why_no_law: str, classes: list | None = None) -> Predictor:
        """The predictor."""
        tables = [k for k, s in enumerate(self.sources) if s.schema is not None]
        beside = [k for k, s in enumerate(self.sources) if s.schema is None]
        steps: list[dict[str, Any]] = []
        for step in self.translation.program:
            step = dict(step)
            if "place" in step:
                place, among = step.pop("place"), tables if step["op"] == "rows" else beside
                step["table" if step["op"] == "rows" else "data"] = among.index(place)
            steps.append(step)
        arrays = {f"constant/{k}": a[None] for k, a in enumerate(self.translation.constants)}
        forests = []
        for k, forest in enumerate(self.forests):
            about, own = packed_forest(forest, self.checked[str(forest.name)], self.which)
            forests.append(about)
            arrays |= {f"forest{k}/{name}": one for name, one in own.items()}
        arrays |= {f"draws/{name}": one for name, one in self.drawn.items()}
        coords = {
            "chain": plain_labels(self.posterior["chain"].to_numpy()),
            "draw": plain_labels(self.posterior["draw"].to_numpy()[self.which]),
        }
        facts: dict[str, Any] = {
            "chains": self.chains,
            "draws": len(self.which),
            "tables": [table_facts(self.sources[k]) for k in tables],
            "data": [data_facts(self.sources[k]) for k in beside],
            "forests": forests,
            "program": steps,
            "functions": {
                name: {"of": number, "axis": 0, "dims": []}
                for name, number in self.functions.items()
            },
            "parameters": self.parameters,
            "coords": coords,
            "response": self.response,
            "why_no_law": why_no_law,
            "classes": classes,
            "default": next(iter(self.functions)) if len(self.functions) == 1 else None,
        }
        if self.columns:
            facts["random"] = [{**one, "table": tables.index(one["table"])} for one in self._random]
        shapes = self._shapes(Evaluator(facts, arrays), tables, beside)
        for name, one in facts["functions"].items():
            [axis], ndim = shapes([one["of"]])
            one["axis"], one["dims"] = axis, list(self._dims(name, ndim))
            one["dims"][axis] = "row"
            coords |= self._labels(one["dims"])
        if self.response is not None:
            ndim = self.response["ndim"] + (self.response["law"] == "categorical")
            axes, _ = shapes(self.response["of"], ndim)
            self.response["axis"] = axes[0]
            grid = self._grid(tables, beside)
            if grid is not None:
                self.response["grid"] = grid
        return Predictor(facts, arrays)

    def _grid(self, tables: list[int], beside: list[int]) -> list[float] | None:
        """Times of the long form: of a Bernoulli whose first column is called so."""
        if len(tables) != 1 or beside or (self.response or {}).get("law") != "bernoulli":
            return None
        source = self.sources[tables[0]]
        if source.names is None or source.names[0] != "time":
            return None
        times = np.unique(np.asarray(source.values)[:, 0])
        return times.tolist() if len(times) <= MOST_TIMES else None

    def _shapes(self, evaluator: Evaluator, tables: list[int], beside: list[int]):
        """A function of instructions: which axes are that of the rows, and how many there are."""

        def at(n: int, results: list[int], ndim: int) -> list[tuple[int, ...]]:
            some = [_held(self.sources[k], n) for k in tables]
            others = [first_row(self.sources[k], n) for k in beside]
            values = evaluator.values(results, some, others)
            return [(1,) * (ndim - v.ndim + 1) + v.shape[1:] for v in values]

        def shapes(results: list[int], ndim: int = 0) -> tuple[list[int], int]:
            axes = [
                k
                for two, three in zip(at(2, results, ndim), at(3, results, ndim), strict=True)
                for k, (a, b) in enumerate(zip(two, three, strict=True))
                if a != b
            ]
            return axes, len(at(1, results, ndim)[0])

        return shapes

    def _dims(self, name: str, ndim: int) -> list[str]:
        named = self.model.named_vars_to_dims.get(name) or ()
        usual = [f"{name}_dim_{k}" for k in range(ndim)]
        return [a or b for a, b in zip(named, usual, strict=True)] if named else usual

    def _labels(self, dims: list[str]) -> dict[str, list]:
        known = {dim: self.model.coords.get(dim) for dim in dims}
        return {dim: plain_labels(np.asarray(one)) for dim, one in known.items() if one is not None}


def _held(source: Source, n: int) -> np.ndarray:
    """The first row n times, with a number in place of cells of random columns."""
    rows = source.values[[0] * n]
    if source.n_random:
        rows[:, -source.n_random :] = 0.0
    return rows


def _at_random_rows(model: pm.Model, variable: Variable) -> bool:
    """Whether it evaluates a forest with random columns."""
    found = evaluations([variable], blockers=model.basic_RVs)
    return any(n_random_columns(one.tree) for one in found)


def _latent(model: pm.Model, columns: Sequence[Variable]) -> set[Variable]:
    """Random variables of random columns."""
    return {v for one in columns for v in (one, latent_part(model, one)) if v is not None}


def _evaluates(model: pm.Model, variable: Variable) -> bool:
    return bool(evaluations([variable], blockers=model.basic_RVs))
