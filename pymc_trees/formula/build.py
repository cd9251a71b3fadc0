"""`model`: an ordinary PyMC model from a formula."""

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from pymc_trees.distributions.bart import BART, DecisionTree
from pymc_trees.distributions.capacity import TREES, default_size
from pymc_trees.distributions.data.variables import Data, set_data
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.distributions.soft_bart import SoftBART
from pymc_trees.formula.families import POSITIVE_ONLY, Family, find_family, limits_of_mean
from pymc_trees.formula.frame import Response, Terms
from pymc_trees.formula.likelihood import ROWS, check_support, observe
from pymc_trees.formula.parse import ForestTerm, parse
from pymc_trees.formula.priors import Given, Scales, declare, read_group_prior

_log = logging.getLogger("pymc_trees")


@dataclass
class Formula:
    """All that a model is made from: it can be made again with further groups."""

    terms: Terms
    data: pd.DataFrame
    """Training rows."""
    family: Family
    family_name: str
    link: str
    response: Response
    scales: Scales
    priors: Mapping[str, Any]
    noncentered: bool
    center_predictors: bool


FORMULAS: WeakKeyDictionary[pm.Model, Formula] = WeakKeyDictionary()
"""Of each model that `model` made, in this process."""


def model(
    formula,
    data,
    *,
    family="gaussian",
    link=None,
    priors=None,
    noncentered=True,
    center_predictors=True,
    dropna=False,
):
    """PyMC model of a formula with forests, coefficients and groups.

    Needs the package formulae: ``pip install "pymc_trees[formula]"``.

    Parameters
    ----------
    formula : str
        Response and terms, such as ``"y ~ bart(x1 + x2) + z + (1 + z | g)"``. Forests are
        ``bart(...)``, ``softbart(...)`` and ``tree(...)``: columns joined by ``+`` (``.`` for all
        but the response), then keyword arguments of `BART`, `SoftBART` or `DecisionTree`, also
        ``k`` (below) and ``name``. ``z:bart(x)`` is z times a forest. All else is read as Bambi
        reads it, by formulae: ``offset(...)``, interactions, splines, functions; and, as the
        response, ``proportion(y, n)``, ``weighted(y, w)``, ``censored(y, status)`` and
        ``truncated(y, lb, ub)``. Of a response with two levels the first counts as success;
        ``y['yes'] ~ ...`` names another.
    data : pandas.DataFrame
        Columns of the formula. Missing cells are allowed in columns of forests alone.
    family : str, default "gaussian"
        Distribution of the response, by the name that Bambi gives it.
    link : str, optional
        Default: that of Bambi for the family.
    priors : dict of str and distribution or number, optional
        By name of the variable: a coefficient (``"z"``, ``"Intercept"``), a parameter of the
        family (``"sigma"``), the effects of groups (``"1|g"``, ``"z|g"``, as
        ``pm.Normal.dist(0, pm.HalfNormal.dist(1))``). A number holds a parameter fixed. Default:
        priors of Bambi, see Notes.
    noncentered : bool, default True
        Whether effects of groups are declared as ``offset * sigma``, as in Bambi.
    center_predictors : bool, default True
        Whether columns of common terms are centred where there is an intercept, as in Bambi. The
        prior named ``"Intercept"`` is then that of the intercept at the means of the columns.
    dropna : bool, default False
        Whether rows with missing cells outside the forests' columns are left out. Default: an
        error.

    Returns
    -------
    pymc.Model
        Coefficients have the names of their terms. With centred columns the free variable is
        ``Intercept_centered``, and ``Intercept`` is the level where all columns are 0. Groups are
        ``1|g`` (Deterministic), ``1|g_offset`` and ``1|g_sigma``; the forests are ``bart``,
        ``softbart`` and ``tree``, numbered where there are several, or as ``name`` says. The
        Deterministic of the family's mean is ``mu`` or ``p``.

    Raises
    ------
    ImportError
        Without formulae.
    ValueError, TypeError, NotImplementedError
        For an invalid argument, or a formula that this function does not take.

    See Also
    --------
    pymc_trees.formula.predict : predictions at new rows and for new groups.

    Notes
    -----
    With s the standard deviation of the response (gaussian and t; else 1), coefficients are
    Normal with mean 0 and sd ``2.5 s / sd(column)``, the intercept Normal about the mean of the
    response (or 0) with variance ``(2.5 s)^2`` plus the sum of ``(sd_j mean(x_j))^2`` over
    coefficients, and effects of groups Normal about 0 with a half-normal sd of the same scale,
    slopes and intercepts independent. With a logit or probit of a bernoulli or binomial, the
    intercept has sd 1.5 and coefficients ``1 / sd(column)``, or 1 for levels (Bambi 0.21).

    A forest has BART's prior on the scale of the linear predictor: k prior standard deviations
    (``k=2``) reach the ends of the range of the response, of its logarithm for a log link, or of
    (-3, 3) for links of probabilities (Chipman 2010, sections 2.2.3 and 4). Its mean is 0 where
    the formula has an intercept, which then has the level; else it is the middle of the range. A
    forest of coefficients has the same scale, divided by the standard deviation of its factor.

    For a weighted gaussian response with weights w the sd of a row is ``sigma / sqrt(w)``, and a
    Potential makes the likelihood that of the weighted log-density.

    References
    ----------
    Capretto, Piho, Kumar, Westfall, Yarkoni and Martin (2022). Bambi: A simple interface for
    fitting Bayesian linear models in Python. Journal of Statistical Software 103(15).
    Chipman, George and McCulloch (2010). BART: Bayesian additive regression trees. Annals of
    Applied Statistics 4(1), 266-298.

    Examples
    --------
    >>> import pymc_trees as pmt
    >>> from pymc_trees.datasets import load_bikes
    >>> m = pmt.model("count ~ bart(hour + temperature, m=20) + workingday", load_bikes())
    >>> [v.name for v in m.free_RVs]
    ['workingday', 'Intercept_centered', 'bart_forest', 'sigma']
    """
    caller = inspect.currentframe()
    assert caller is not None and caller.f_back is not None
    namespace = {**caller.f_back.f_globals, **caller.f_back.f_locals}
    del caller
    check_frame(data)
    kind, link = find_family(family, link)
    parsed = parse(formula, [str(c) for c in data.columns], namespace)
    used = set(parsed.description.var_names)
    for one in parsed.forests:
        used |= set() if one.factor is None else set(one.factor.var_names)
    rows = complete_rows(data, used, dropna)
    if parsed.forests and link in POSITIVE_ONLY:
        raise ValueError(
            f"family={family!r} has the link {link!r}, under which the predictor must be positive "
            "at every row, and a forest is not. Give link='log'."
        )
    terms = Terms(parsed, rows, namespace)
    if kind.response == "ordered":
        terms.intercept = False  # the thresholds have the level
    response = terms.response(rows, family, kind.response)
    check_support(response, family, kind)
    scales = Scales(terms, rows, family, link, response.values, set(priors or {}))
    made = Formula(
        terms,
        rows,
        kind,
        family,
        link,
        response,
        scales,
        dict(priors or {}),
        noncentered,
        center_predictors,
    )
    built = build(made)
    check_start(made, built)
    FORMULAS[built] = made
    return built


def has_limits(made: Formula) -> bool:
    """Whether the predictor of forests is a mean that lies in an interval, such as above 0."""
    limits = limits_of_mean(made.family_name)
    is_real = limits == (-np.inf, np.inf)
    return made.link == "identity" and not is_real and bool(made.terms.forests)


def start_of_level(made: Formula) -> float | None:
    """Where an intercept starts, if 0 is not in that interval; None where it is."""
    if not has_limits(made):
        return None
    offset = made.terms.offset(made.data)
    offset = np.zeros(1) if offset is None else offset
    low, high = limits_of_mean(made.family_name)
    low, high = low - offset.min(), high - offset.max()
    middle = float(np.mean(made.response.values / made.response.known.get("n", 1.0) - offset))
    if low < middle < high:
        return middle
    return float(low + 1.0 if np.isinf(high) else (low + high) / 2)


def check_start(made: Formula, built: pm.Model) -> None:
    """Raise an error if chains cannot start, since the predictor leaves that interval."""
    if not has_limits(made):
        return
    (low, high), parent = limits_of_mean(made.family_name), built[made.family.parent]
    [start] = built.replace_rvs_by_values([parent])
    value = built.compile_fn(start, inputs=built.value_vars, on_unused_input="ignore")
    mean = np.asarray(value(built.initial_point()))
    outside = mean[~((mean > low) & (mean < high))]
    if outside.size:
        link = next(one for one in made.family.links if one not in (*POSITIVE_ONLY, "identity"))
        raise ValueError(
            f"family={made.family_name!r} has the link 'identity', under which the predictor must "
            f"lie between {low:g} and {high:g} at every row, and it starts at {outside[0]:.3g}. "
            f"Give link={link!r}."
        )


def check_frame(data) -> None:
    """Make sure that data are a frame with rows."""
    if not isinstance(data, pd.DataFrame) or len(data) == 0:
        raise TypeError(
            f"data must be a pandas.DataFrame with rows, but is a {type(data).__name__}."
        )


def complete_rows(data: pd.DataFrame, used: set[str], dropna: bool) -> pd.DataFrame:
    """Rows without missing cells in columns other than those of forests."""
    columns = [c for c in data.columns if c in used]
    missing = data[columns].isna()
    rows = missing.any(axis=1)
    if not rows.any():
        return data
    where = [c for c in columns if missing[c].any()]
    if not dropna:
        raise ValueError(
            f"data has {int(rows.sum())} rows with missing cells in {where}: give dropna=True to "
            "leave them out, or impute them. In columns of forests they may stay."
        )
    _log.info("Left out %s of %s rows, with missing cells in %s.", rows.sum(), len(data), where)
    return data[~rows]


# ------------------------------------------------------------------------------------- The model


def build(made: Formula, further: Mapping[str, list] | None = None) -> pm.Model:
    """The model of a formula.

    Parameters
    ----------
    further : dict of str and list, optional
        Labels of groups beyond those of the training rows, by name of the grouping factor.
    """
    further = {} if further is None else further
    terms, data, response = made.terms, made.data, made.response
    outputs = (f"{response.name}_reduced_dim",) if made.family.response == "classes" else ()
    coords: dict[str, Any] = {}
    if response.levels is not None and made.family.response in ("classes", "ordered"):
        coords[f"{response.name}_dim"] = response.levels
        if outputs:
            coords[outputs[0]] = response.levels[1:]
    given = Given(made.priors)
    with pm.Model(coords=coords) as built:
        rows: dict[str, Any] = row_data(terms, data)
        for one in terms.forests:
            rows[f"{one.name}_X"] = data[one.columns]
        if not rows:
            rows["Intercept_data"] = np.ones(len(data))
        held = {name: _register(built, name, value, terms) for name, value in rows.items()}
        eta = _common(made, built, held, given, outputs)
        eta += _groups(made, built, held, given, outputs, further)
        eta += [_forest(made, one, held, outputs) for one in terms.forests]
        if terms.offsets:
            offset = held["offset"]
            eta.append(offset[:, None] if outputs else offset)
        if not eta:
            raise ValueError("formula has no terms; add an intercept, 1, or a forest.")
        total = sum(eta[1:], eta[0])
        if "Intercept_data" in held:
            by = held["Intercept_data"]
            total = total * (by[:, None] if outputs else by)
        observe(made, total, given)
        given.done()
    return built


def row_data(terms: Terms, data: pd.DataFrame) -> dict[str, np.ndarray]:
    """Numbers of the rows of a frame by name of the model data, without forests' columns."""
    found: dict[str, np.ndarray] = {}
    for term in terms.common:
        X = terms.columns(term, data)
        found[f"{term.name}_data"] = X[:, 0] if is_scalar(term, X) else X
    for term in terms.groups:
        X = terms.columns(term.expr, data)
        found[f"{term.factor.name}_index"] = terms.group_index(term, data)[0]
        if term.expr.kind != "intercept":
            found[f"{term.name}_data"] = X[:, 0] if is_scalar(term.expr, X) else X
    for one in terms.forests:
        if one.factor is not None:
            found[f"{one.name}_factor"] = terms.factor(one, data)
    offset = terms.offset(data)
    if offset is not None:
        found["offset"] = offset
    return found


def is_scalar(term, X: np.ndarray) -> bool:
    """Whether a term has one coefficient, without a dimension."""
    return term.kind == "intercept" or (X.shape[1] == 1 and term.levels is None)


def set_rows(made: Formula, built: pm.Model, data: pd.DataFrame, index=None) -> None:
    """Give a model the rows of a frame.

    Parameters
    ----------
    index : dict of str and (n,) array, optional
        Groups of the rows, by name of the grouping factor.
    """
    new: dict[str, Any] = row_data(made.terms, data)
    for name, value in (index or {}).items():
        new[f"{name}_index"] = value
    for one in made.terms.forests:
        new[f"{one.name}_X"] = data[one.columns]
    if not new:
        new["Intercept_data"] = np.ones(len(data))
    for name, value in made.terms.known(data).items():
        new[f"{made.response.name}_{name}"] = value
    set_data(new, built)


def _register(built, name, value, terms):
    if isinstance(value, pd.DataFrame):
        forest = next(one for one in terms.forests if f"{one.name}_X" == name)
        built.add_coord(f"{name}_column", list(value.columns))
        rules = forest.settings.get("split_rules")
        return Data(name, value, dims=(ROWS, f"{name}_column"), split_rules=rules)
    if value.ndim == 1:
        return pm.Data(name, value, dims=ROWS)
    built.add_coord(f"{name}_column", range(value.shape[1]))
    return pm.Data(name, value, dims=(ROWS, f"{name}_column"))


def _common(made: Formula, built, held, given, outputs) -> list:
    terms, scales = made.terms, made.scales
    parts: list[Any] = []
    shift: list[Any] = []
    center = terms.intercept and bool(terms.common) and made.center_predictors
    k = tuple(len(built.coords[d]) for d in outputs)
    for term in terms.common:
        name = term.name
        X = terms.columns(term, made.data)
        scalar, p = is_scalar(term, X), X.shape[1]
        if not scalar:
            built.add_coord(f"{name}_dim", term.levels or [str(i) for i in range(p)])
        dims = (() if scalar else (f"{name}_dim",)) + outputs
        size = (() if scalar else (p,)) + k
        sd: Any = scales.common.get(name)
        if sd is not None:
            sd = sd[0] if scalar else sd[:, None] if outputs else sd
        b = declare(name, given.get(name), (pm.Normal, {"mu": 0.0, "sigma": sd}), dims, size)
        column, mean = held[f"{name}_data"], X.mean(axis=0)
        if center:
            column = column - (mean[0] if scalar else mean)
            shift.append(b * mean[0] if scalar else pt.dot(mean, b))
        if scalar:
            parts.append(column[:, None] * b if outputs else column * b)
        else:
            parts.append(pt.dot(column, b))
    if not terms.intercept:
        return parts
    middle, width = scales.intercept
    name = "Intercept_centered" if center else "Intercept"
    prior = given.get("Intercept")
    default = pm.Normal, {"mu": middle, "sigma": width}
    start = start_of_level(made) if prior is None else None
    more = {} if start is None else {"initval": start}
    level = declare(name, prior, default, outputs, k, **more)
    if center:
        pm.Deterministic("Intercept", level - sum(shift[1:], shift[0]), dims=outputs or None)
    return [level, *parts]


def _groups(made: Formula, built, held, given, outputs, further) -> list:
    terms = made.terms
    parts: list[Any] = []
    k = tuple(len(built.coords[d]) for d in outputs)
    for term in terms.groups:
        name, factor = term.name, term.factor.name
        X = terms.columns(term.expr, made.data)
        scalar, p = is_scalar(term.expr, X), X.shape[1]
        groups = [*map(str, term.groups), *further.get(factor, [])]
        built.add_coord(f"{factor}__factor_dim", groups)
        inner: tuple[str, ...] = outputs
        if not scalar:
            built.add_coord(f"{name}__expr_dim", term.expr.levels or [str(i) for i in range(p)])
            inner = (f"{name}__expr_dim", *outputs)
        size = (() if scalar else (p,)) + k
        sd: Any = made.scales.group(term, X)
        sd = sd[0] if scalar else sd[:, None] if outputs else sd
        prior = read_group_prior(name, given.get(name))
        sigma = declare(f"{name}_sigma", prior, (pm.HalfNormal, {"sigma": sd}), inner, size)
        dims = (f"{factor}__factor_dim", *inner)
        if made.noncentered:
            effects = pm.Deterministic(
                name, pm.Normal(f"{name}_offset", 0.0, 1.0, dims=dims) * sigma, dims=dims
            )
        else:
            effects = pm.Normal(name, 0.0, sigma, dims=dims)
        rows = effects[held[f"{factor}_index"]]
        if term.expr.kind == "intercept":
            parts.append(rows)
            continue
        column = held[f"{name}_data"]
        if scalar:
            parts.append(rows * (column[:, None] if outputs else column))
        else:
            parts.append((rows * (column[:, :, None] if outputs else column)).sum(axis=1))
    return parts


def _forest(made: Formula, one: ForestTerm, held, outputs):
    """What a forest adds to the linear predictor."""
    settings = dict(one.settings)
    kind: Any = {"bart": BART, "softbart": SoftBART, "tree": DecisionTree}[one.kind]
    allowed = set(inspect.signature(kind).parameters) | {"k"}
    wrong = [name for name in settings if name not in allowed]
    if wrong:
        raise ValueError(f"{one.text}: {kind.__name__} has no argument {wrong[0]!r}.")
    settings.pop("split_rules", None)  # the table has them
    k = settings.pop("k", None)
    if k is not None and "leaf" in settings:
        raise ValueError(f"{one.text}: leave k out, or leaf, which says how far leaf values go.")
    k = 2.0 if k is None else float(k)
    if not k > 0:
        raise ValueError(f"{one.text}: k={k} must be a positive number; 2 by default.")
    if outputs and one.kind != "bart":
        raise ValueError(
            f"{one.text} with family={made.family_name!r}: it has one output, and each class "
            "needs a forest; use bart(...)."
        )
    if one.kind == "bart":
        given = settings.get("m"), settings.get("beta"), len(made.data), one.name
        settings["m"], settings["beta"] = default_size(*given, settings.get("tree_prior"))
    m = 1 if one.kind == "tree" else int(settings.get("m") or TREES)
    if "leaf" not in settings:
        plain = [f for f in made.terms.forests if f.factor is None]
        level = (
            not made.terms.intercept
            and made.family.response != "ordered"
            and bool(plain)
            and plain[0] is one
        )
        divisor = 1.0
        if one.factor is not None:
            divisor = float(np.std(made.terms.factor(one, made.data))) or 1.0
        leaf = made.scales.leaf(m, k, made.terms.offset(made.data), level, divisor)
        if one.kind == "softbart":
            leaf = NormalLeaf(leaf.mean, pm.HalfCauchy(f"{one.name}_leaf_sd", leaf.sd))
        settings["leaf"] = leaf
    X = held[f"{one.name}_X"]
    if outputs:
        shape = (len(made.response.levels or []) - 1, len(made.data))
        f = kind(one.name, X, shape=shape, dims=(*outputs, ROWS), **settings).T
    else:
        f = kind(one.name, X, dims=ROWS, **settings)
    if one.factor is None:
        return f
    by = held[f"{one.name}_factor"]
    return f * (by[:, None] if outputs else by)
