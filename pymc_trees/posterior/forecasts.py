"""Forecasts that feed on themselves, and other paths through time, draw by draw: `forecast`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.posterior.draws import (
    SAMPLE,
    StoredDraws,
    check_answer,
    draws_of,
    for_each_draw,
    model_of,
    thinned,
)
from pymc_trees.posterior.paths import (
    Asked,
    Fill,
    Likelihood,
    Paths,
    State,
    observed_values,
    observed_with_trees,
    template,
)
from pymc_trees.posterior.reading.features import free_name
from pymc_trees.posterior.reading.functions import function_of
from pymc_trees.posterior.reading.whole import WholeFunction
from pymc_trees.predictors.columns import matrix_of_reals

OF_SAMPLE = ("rng", "value", "history", "values", "step")
OF_UPDATE = ("rng", "history", "values", "step")


def forecast(
    idata,
    model: pm.Model | None = None,
    X=None,
    *,
    lags: Mapping[str, Any] | None = None,
    update: Mapping[str, Callable] | None = None,
    history=None,
    known=None,
    var_name=None,
    sample=None,
    draws: int | None = None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Paths of responses over future steps: each draw fills its own lags.

    A step evaluates the model at a row, draws the response there, and goes on to the next row, into
    which it fills the response as a lag. Trees, scales and coefficients of a path are those of one
    draw, so that the paths together are the posterior predictive distribution of the whole future.
    Rules of your own may fill columns too: a moving average, a treatment that follows a policy.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (steps, p) array or frame, dict, sequence of these, or int
        Rows of the future, one for each step; columns that are filled may be lacking in a frame. A
        dict gives other data of the model too, as for `predictions`. For n series, a sequence with
        a table of n rows for each step, or an array (steps, n, p). An int is a number of steps,
        where all columns are filled.
    lags : dict of column and int, optional
        Columns that hold the response so many steps ago: ``{"last": 1, "year_ago": 12}``. With
        several responses ``{"last": ("y", 1)}``; 0 is the same step.
    update : dict of column and callable, optional
        Columns computed in each step, before the response unless ``var_name`` says where. A
        function takes what its parameters name: ``history``, a dict of the responses and
        computed columns so far, each (times, n), the past first; ``values``, the same of the
        functions in the model; ``step``, from 0; ``rng``; or any variable of the draws. It returns
        a number for each row, or one for all.
    history : (times,) or (times, n) array, or dict of response and array, optional
        Responses before the first step, oldest first. Default: the observed values that the model
        was fitted to, in the order of its rows and NaN where one is missing, for a single series
        that is drawn.
    known : (steps,) or (steps, n) array, or dict of response and array, optional
        Responses of some steps that are known, NaN where they are drawn.
    var_name : str, sequence of str, or dict of str and str, optional
        What is followed: an observed variable, which is drawn from its distribution, or a
        Deterministic of trees, whose value is taken unless ``sample`` draws. Several are computed
        in this order within each step; names of ``update`` may stand among them. A dict gives them
        names, ``{"y": "mu"}``. A column of X with the name of one holds its value once it is known.
        Default: the observed variable that depends on trees; with ``sample`` it is drawn from the
        function of trees.
    sample : callable, or dict of response and callable, optional
        Draws a response: a function of ``value``, (n,) values of the Deterministic at the rows, and
        of anything that those of ``update`` may name, such as ``rng, value, sigma``.
    draws : int, optional
        Number of draws, over all chains and evenly spaced. Default: all.
    random_state : numpy.random.Generator or seed, optional
        For the responses, and for effects of groups that were not seen.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        Each response and computed column, with the dimensions chain, draw, step (from 1), and, for
        several series, row; a column with the name of a dimension is called ``step_`` and the like.

    Raises
    ------
    ValueError
        For columns, responses or parameters that do not exist, a history that is shorter than a
        lag, an observed variable whose distribution has no such draws, and invalid arguments.

    Notes
    -----
    The rows of a step are those of all series, so that one evaluation serves them. Trees are read
    as they are stored, without new data in the model: a step and draw take a fraction of a
    millisecond.

    A path is the joint distribution of the future given the past, by the chain rule, where the
    columns hold all of the past on which the response depends. The mean over draws of a path under
    ``update={"A": policy}`` is the g-formula (Robins 1986), if the other responses are the
    confounders over time.

    References
    ----------
    Robins (1986). A new approach to causal inference in mortality studies with a sustained exposure
    period. Mathematical Modelling 7.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=41))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", y[:-1, None], y[1:], m=5)
    ...     obs = pm.Normal("y", mu, 1.0, observed=y[1:], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.forecast(idata, model, 12, lags={"x0": 1}, progressbar=False)
    >>> dict(found["y"].sizes)
    {'chain': 1, 'draw': 5, 'step': 12}
    """
    request = _Request(idata, model, X, lags, update, var_name, sample, draws, random_state)
    states, steps, n, is_single = request.states()
    past = request.history(history, states, n)
    given = request.per_state("known", known, states, n)
    for name, values in given.items():
        if len(values) != steps:
            raise ValueError(f"known has {len(values)} steps of {name}: give {steps}, as X has.")
    chains, each = shape = request.shape
    check_answer(
        "forecast", chains * each * steps * n * len(states), "draws=, or fewer steps or rows"
    )
    paths = {one.name: np.empty((*shape, steps, n)) for one in states}
    seeds = request.rng.integers(2**63, size=shape)
    walker = Paths(states, past, given, steps, n)

    def follow(chain, draw):
        rng = np.random.default_rng(seeds[chain, draw])
        functions = {s.name: s.function.at(chain, draw) for s in states if s.function is not None}
        found = walker.walk(rng, functions, request.variables(chain, draw))
        for name, values in found.items():
            paths[name][chain, draw] = values

    # one after another: a compiled function of PyTensor serves one thread at a time
    for_each_draw(follow, shape, "paths", 1, progressbar)
    dims = (*SAMPLE, "step") if is_single else (*SAMPLE, "step", "row")
    coords = request.coords | {"step": np.arange(1, steps + 1)}
    coords |= {} if is_single else {"row": np.arange(n)}
    variables: dict[str, Any] = {}
    for name, values in paths.items():
        own = free_name(name, {*dims, *variables})
        variables[own] = (dims, values[..., 0] if is_single else values)
    return xr.Dataset(variables, coords)


class _Request:
    """Arguments of `forecast`, but for rows and what is known of responses."""

    def __init__(self, idata, model, X, lags, update, var_name, sample, draws, random_state):
        self.parts, self.is_single, self.number = _parts(X)
        self.model = model_of(pm.modelcontext(model))
        self.rng = check_seed(random_state, "random_state")
        self.lags, self.update = dict(lags or {}), dict(update or {})
        self.observed = observed_with_trees(self.model)
        self.targets = self._targets(var_name, sample is not None)
        """Variable of each response, None of a rule, in the order of a step."""
        self.responses = [name for name, one in self.targets.items() if name not in self.update]
        if not self.responses:
            raise ValueError(f"var_name={var_name!r}: name a function or an observed variable.")
        self.samplers = self._samplers(sample)
        tree = draws_of(idata)
        self.fitted = tree["observed_data"] if "observed_data" in tree.children else None
        # one seed, so that a group that was not seen has the same effect in each function
        seed = int(self.rng.integers(2**31))
        asked = {"draws": draws, "random_state": seed, "data": self.parts[0]}
        asked["argument"] = "X"
        self.functions: dict[str, WholeFunction] = {}
        for name in self.responses:
            target = self.targets[name]
            if target in self.observed:
                self.functions[name] = Likelihood(idata, self.model, target, **asked)
            else:
                self.functions[name] = WholeFunction(idata, self.model, target, **asked)
        first = self.functions[self.responses[0]]
        self.coords, self.shape = {dim: first.coords[dim] for dim in SAMPLE}, first.shape
        self.posterior = tree["posterior"]
        sizes = self.posterior.sizes
        self._places = thinned(sizes["chain"], sizes["draw"], draws)
        self._asked = {name: one for name in self.targets if (one := self._ask(name)) is not None}
        self._drawn = {
            name: StoredDraws(self.posterior[name])
            for one in self._asked.values()
            for name in one.variables
        }

    def _targets(self, var_name, is_sampled: bool) -> dict[str, str | None]:
        """The variables that are followed, by the name of the state."""
        var_name = self._default(is_sampled) if var_name is None else var_name
        if isinstance(var_name, Mapping):
            named = {str(k): v for k, v in var_name.items()}
        elif isinstance(var_name, str):
            named = {var_name: var_name}
        else:
            named = {str(v): v for v in var_name}
        first = [name for name in self.update if name not in named]
        return dict.fromkeys(first) | {k: None if k in self.update else v for k, v in named.items()}

    def _default(self, is_sampled: bool) -> dict[str, str]:
        if is_sampled:
            name = function_of(self.model, None)[1]
            return {self._only_observed() or name: name}
        if len(self.observed) != 1:
            raise ValueError(
                f"The model has the observed variables {list(self.observed)} that depend on "
                "trees: choose one by var_name, or a Deterministic of trees."
            )
        return {name: name for name in self.observed}

    def _only_observed(self) -> str | None:
        """The observed vector, where there is one."""
        names = [rv.name for rv in self.model.observed_RVs if rv.ndim == 1]
        return names[0] if len(names) == 1 else None

    def _samplers(self, sample) -> dict[str, Callable]:
        if sample is None:
            return {}
        if not isinstance(sample, Mapping):
            if len(self.responses) > 1:
                raise ValueError(
                    f"sample is one function for the responses {self.responses}: give a dict, "
                    "sample={name: function}."
                )
            return {self.responses[0]: sample}
        self._check_names("sample", sample, self.responses)
        return dict(sample)

    def _check_names(self, argument: str, given, known) -> None:
        wrong = [name for name in given if name not in known]
        if wrong:
            raise ValueError(f"{argument} names {wrong}: choose from {list(known)}.")

    # ---------------------------------------------------------------------- States, and their rows

    def states(self) -> tuple[list[State], int, int, bool]:
        """States in the order of a step, numbers of steps and of rows, and whether one series."""
        fills = {name: self._fills(name) for name in self.responses}
        self._check_filled(fills)
        states, sizes = [], set()
        for name in self.targets:
            ask = self._asked.get(name)
            if name in self.update:
                states.append(State(name, ask=ask))
                continue
            function = self.functions[name]
            filled = {str(function.table.names[fill.column]) for fill in fills[name]}
            tables = [template(function, part, filled, self.number) for part in self.parts]
            for one in tables:
                function.check(one)
            rows = tables[0][:, None] if self.is_single else _stacked(tables)
            sizes.add(rows.shape[:2])
            if function.outputs and ask is None and not isinstance(function, Likelihood):
                raise ValueError(
                    f"{self.targets[name]} has several values for each row: draw one number by "
                    "sample=."
                )
            states.append(State(name, function, rows.copy(), fills[name], ask))
        [(steps, n)] = sizes
        return states, steps, n, self.is_single

    def _ask(self, name: str) -> Asked | None:
        variables = [str(one) for one in self.posterior.data_vars]
        if name in self.update:
            return Asked(f"update[{name!r}]", self.update[name], OF_UPDATE, variables)
        if name in self.samplers:
            return Asked("sample", self.samplers[name], OF_SAMPLE, variables)
        return None

    def _fills(self, name: str) -> list[Fill]:
        """Columns of the table of a response that are filled."""
        table, order = self.functions[name].table, list(self.targets)
        before = order[: order.index(name)]
        levels = {
            k: one
            for source, place in zip(table.sources, table.places, strict=True)
            for k, one in zip(place, source.levels, strict=True)
        }
        found = []
        for column, word in enumerate(map(str, table.names)):
            if word in self.lags:
                state, lag = self._lag(word)
                if lag == 0 and state not in before:
                    raise ValueError(
                        f"lags: {word!r} holds {state} of the same step, which is not known when "
                        f"{name} is computed: name {state} before it in var_name, or give a lag of "
                        "at least 1."
                    )
                found.append(Fill(column, state, lag, levels[column]))
            elif word in before:
                found.append(Fill(column, word, 0, levels[column]))
        return found

    def _lag(self, column: str) -> tuple[str, int]:
        given = self.lags[column]
        if isinstance(given, tuple | list) and len(given) == 2:
            state, lag = given
            self._check_names("lags", [state], self.targets)
            return str(state), check_number(f"lags[{column!r}]", lag, 0)
        if len(self.responses) > 1:
            raise ValueError(
                f"lags: {column!r} is a lag of one of {self.responses}: say of which, "
                f"lags={{{column!r}: ({self.responses[0]!r}, 1)}}."
            )
        return self.responses[0], check_number(f"lags[{column!r}]", given, 1)

    def _check_filled(self, fills: Mapping[str, list[Fill]]) -> None:
        """Raise an error for lags that no function has as a column."""
        known = {str(name) for one in self.functions.values() for name in one.table.names}
        wrong = [column for column in self.lags if column not in known]
        if wrong:
            raise ValueError(f"lags: {wrong} are not columns of the model: choose from {known}.")

    # ------------------------------------------------------------------------ What is known before

    def history(self, given, states: list[State], n: int) -> dict[str, np.ndarray]:
        """(times, n) values before the first step."""
        found = self.per_state("history", given, states, n)
        named = {rv.name: rv for rv in self.model.observed_RVs if rv.ndim == 1}
        for state in states:
            own = state.name if state.name in named else self._only_observed()
            if n == 1 and own in named and state.is_drawn and state.name not in found:
                values = observed_values(self.model, named[own], self.fitted)
                if values is not None:
                    found[state.name] = values[:, None]
        deepest = dict.fromkeys(self.targets, 0)
        for state in states:
            for fill in state.fills:
                deepest[fill.state] = max(deepest[fill.state], fill.lag)
        for state in states:
            self._check_complete(state, found)
        for name, lag in deepest.items():
            if lag > (length := len(found.get(name, ()))):
                raise ValueError(
                    f"history holds {length} values of {name}, and lags reach {lag} back: give "
                    f"history={{{name!r}: ...}}, at least the last {lag} values, oldest first."
                )
        return found

    def _check_complete(self, state: State, past: Mapping[str, np.ndarray]) -> None:
        """Raise an error where missing values would fill columns of trees that take none."""
        if state.function is None or not state.function.table.schema.complete:
            return
        for fill in state.fills:
            last = past.get(fill.state, np.empty((0, 1)))[-fill.lag :] if fill.lag else np.empty(0)
            if np.isnan(last[: len(state.rows)]).any():
                raise ValueError(
                    f"history holds missing values of {fill.state} among the last {fill.lag}, and "
                    f"soft trees take none: give history={{{fill.state!r}: ...}} without NaN."
                )

    def per_state(self, argument: str, given, states, n: int) -> dict[str, np.ndarray]:
        """(times, n) numbers of responses, by name, as users give them."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            if len(self.responses) > 1:
                raise ValueError(
                    f"{argument} is one array for the responses {self.responses}: give a dict, "
                    f"{argument}={{name: array}}."
                )
            given = {self.responses[0]: given}
        self._check_names(argument, given, [state.name for state in states])
        found = {}
        for name, values in given.items():
            array = matrix_of_reals(values, f"{argument} of {name}")
            array = array[:, None] if array.ndim == 1 and n == 1 else array
            if array.ndim != 2 or array.shape[1] != n:
                raise ValueError(
                    f"{argument} of {name} has the shape {np.shape(values)}: give (times, {n}), a "
                    "column for each row of a step."
                )
            found[str(name)] = array
        return found

    def variables(self, chain: int, draw: int) -> dict[str, Any]:
        """Variables of a draw that functions of users name."""
        place = self._places[draw]
        return {name: np.array(drawn[chain, place]) for name, drawn in self._drawn.items()}


def _parts(X) -> tuple[list, bool, int | None]:
    """Tables, one for each step or one for all; whether it is one series, and a number of steps."""
    if X is None:
        raise ValueError("X=None: give the rows of the future, or a number of steps.")
    if isinstance(X, int | np.integer) and not isinstance(X, bool):
        return [None], True, check_number("X", X, 1)
    if isinstance(X, np.ndarray) and X.ndim == 3:
        return list(X), False, None
    if isinstance(X, list | tuple) and X and (np.ndim(X[0]) == 2 or isinstance(X[0], Mapping)):
        return list(X), False, None
    return [X], True, None


def _stacked(tables: list[np.ndarray]) -> np.ndarray:
    """(steps, n, columns) rows of steps."""
    lengths = {len(one) for one in tables}
    if len(lengths) > 1:
        raise ValueError(f"X has steps of {sorted(lengths)} rows: give each step the same series.")
    return np.stack(tables)
