"""Shapley values of functions of a model, draw by draw: `shap_values` and `shap_interactions`."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.traversal import ancestors

from pymc_trees.arguments import check_number, check_seed
from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.explain.shapley import make_quadrature, make_weights, shapley, soft_shapley
from pymc_trees.distributions.data.table import n_random_columns
from pymc_trees.posterior.draws import SAMPLE, for_each_draw, rows_chosen, thinned
from pymc_trees.posterior.explain.additive import AdditiveFunction, NotAdditiveError
from pymc_trees.posterior.explain.coalitions import PAIRS, MixedRows, check_background
from pymc_trees.posterior.reading.rowwise import OtherRowsError
from pymc_trees.posterior.reading.table import ANY_X
from pymc_trees.posterior.reading.whole import WholeFunction

LARGEST = 2**29
"""Bytes that the values of all draws may take before fewer draws are taken."""
WEIGHTS, QUADRATURE = make_weights(), make_quadrature()


def shap_values(
    idata,
    model: pm.Model | None = None,
    X=None,
    *,
    background: Any = None,
    permutations: int | None = None,
    draws: int | None = None,
    cores: int | None = None,
    var_name: str | None = None,
    func=None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Shapley values at rows, draw by draw: of f, or of any Deterministic of trees.

    The difference between the function at a row and its mean is divided among the columns: each
    gets the mean, over all orderings of the columns, of the change of the function when the column
    becomes known (Lundberg and Lee 2017, eq. 8). ``background`` defines how unknown columns are
    averaged out. In every draw, ``base_values`` plus the values of a row equal the function there.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (n, p) array or frame, or dict of str and array or frame, optional
        Rows to explain. A dict gives other data of the model too, as for `predictions`:
        ``{"X": X_new, "exposure": 1.0}``. Default: the rows currently in the model.
    background : (b, p) array or frame, dict, or int, optional
        Rows that supply the values of unknown columns, averaged over all of them (interventional
        values); an int takes that many rows of the model at random. Default: at a split on an
        unknown column both branches are followed, weighted by their shares of the training rows
        (path-dependent values). Required for `SoftBART`, where all rows follow both branches, for
        random columns (`with_columns`), by a frame that has them, and for functions that are not
        sums of trees.
    permutations : int, optional
        For functions that are not sums of trees: pairs of random orderings for each row, row of the
        background and draw; at least 2, default 10. Where enumerating all sets of the k columns
        that matter in a draw is no more work, 2^k <= 2 k permutations, they are enumerated.
    draws : int, optional
        Number of draws to use, evenly spaced. Default: all, or as many as fit into half a gigabyte.
    cores : int, optional
        Threads, for a sum of trees. Default: one for each core.
    var_name : str, optional
        Name of the function, if the model has several: a function of trees, or any Deterministic
        whose entry i depends on row i alone, as for `predictions`.
    func : callable, optional
        Applied elementwise to the values of the function; an inverse link, for example.
    random_state : numpy.random.Generator or seed, optional
        For the rows of the background, random orderings, and effects of groups that were not seen.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        ``values`` with the dimensions chain, draw, those of the outputs, row and feature;
        ``base_values`` without the last two; ``data`` (row, feature) with the rows, levels as
        codes, NaN in missing cells. Features are the columns of X, and model data with an entry for
        each row, such as an exposure. For a function that is not a sum of trees there is also
        ``standard_error``, of each of the ``values`` in its draw: 0 in draws that are enumerated.
        Errors of different draws are independent.

    Raises
    ------
    ValueError
        Without a background, for a sum of soft trees, a function that is not a sum of trees, or
        random columns; for a Deterministic whose entries belong to no one row; for values that are
        not finite; for invalid arguments.

    Notes
    -----
    Sums of trees, their linear functions, and any function of a single tree have a closed form over
    the columns on the path of each leaf, so the time grows with the number of rows and leaves, but
    hardly with the size of the background or the number of columns. A leaf of a soft tree is a
    product of gates: the mean of what S leaves to the background is computed for all sets S of its
    columns before any row, and with many columns on a path and few rows in the background the
    values are integrals of polynomials, by points of Gauss and Legendre (Owen 1972). Both are
    exact.

    Any other function is evaluated where columns of a row are mixed with those of a row of the
    background, so the time grows with the rows, the background and the draws. Columns count where
    a tree of the draw splits on them or the function uses them otherwise, and the rows and the
    background do not all agree in them. If they are few, values are exact. Otherwise they are the
    mean over random orderings, each with its reverse (Mitchell et al. 2022, section 3.3), drawn
    anew for every row, row of the background and draw. This is unbiased, and still adds up to the
    function exactly. The standard error comes from the spread between orderings of the same rows.
    Four times the ``permutations`` halve it.

    References
    ----------
    Lundberg and Lee (2017). A unified approach to interpreting model predictions. NeurIPS 30.
    Lundberg, Erion and Lee (2018). Consistent individualized feature attribution for tree
    ensembles. arXiv 1802.03888 (path-dependent values).
    Janzing, Minorics and Bloebaum (2020). Feature relevance quantification in explainable AI: a
    causal problem. AISTATS (interventional values).
    Mitchell, Cooper, Frank and Holmes (2022). Sampling permutations for Shapley value estimation.
    Journal of Machine Learning Research 23(43).
    Owen (1972). Multilinear extensions of games. Management Science 18(5).

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.shap_values(idata, model, X[:4], progressbar=False)
    >>> dict(found["values"].sizes)
    {'chain': 1, 'draw': 5, 'row': 4, 'feature': 2}

    Of the exponential, against ten rows of the model:

    >>> found = pmt.shap_values(idata, model, X[:4], func=np.exp, background=10, progressbar=False)
    >>> sorted(found.data_vars)
    ['base_values', 'data', 'standard_error', 'values']
    """
    asked = (idata, model, X, background, draws, cores, var_name, func, random_state, progressbar)
    pairs = PAIRS if permutations is None else check_number("permutations", permutations, 2)
    try:
        request = ShapRequest(*asked)
    except (NotAdditiveError, OtherRowsError) as error:
        return _of_mixed_rows(asked, pairs, error)
    return _dataset(request, *_shapley(request, with_pairs=False))


def shap_interactions(
    idata,
    model: pm.Model | None = None,
    X=None,
    *,
    background: Any = None,
    draws: int | None = None,
    cores: int | None = None,
    var_name: str | None = None,
    func=None,
    random_state=None,
    progressbar: bool = True,
) -> xr.Dataset:
    """Shapley interaction values of f, a sum of trees, at rows, exactly, draw by draw.

    The value of a column is divided further: half of the Shapley interaction index of two columns
    goes to each of them, and the remainder is the main effect of the column (Lundberg, Erion and
    Lee 2018, eq. 3-6). In every draw the values of a row sum over ``other`` to `shap_values`.

    Parameters
    ----------
    idata, model, X, background, draws, cores, var_name, func, random_state, progressbar
        As for `shap_values` of a sum of trees, whose linear functions count as such; ``func`` is
        for a single tree.

    Returns
    -------
    xarray.Dataset
        As for `shap_values`, but ``values`` have a last dimension ``other``: main effects on the
        diagonal, and symmetric interactions off it.

    Raises
    ------
    ValueError
        For a function that is not a sum of trees, or a sum of soft trees without a background; for
        values that do not add up to f; for invalid arguments.

    References
    ----------
    Lundberg, Erion and Lee (2018). Consistent individualized feature attribution for tree
    ensembles. arXiv 1802.03888.
    Grabisch and Roubens (1999). An axiomatic approach to the concept of interaction among players
    in cooperative games. International Journal of Game Theory 28.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.shap_interactions(idata, model, X[:4], progressbar=False)
    >>> dict(found["values"].sizes)
    {'chain': 1, 'draw': 5, 'row': 4, 'feature': 2, 'other': 2}
    """
    request = ShapRequest(
        idata, model, X, background, draws, cores, var_name, func, random_state, progressbar
    )
    places, shares = _shapley(request, with_pairs=True)
    halves = 0.5 * (shares.pairs + np.swapaxes(shares.pairs, -3, -2))
    main = shares.values - halves.sum(axis=-2)
    diagonal = np.arange(main.shape[-2])
    halves[..., diagonal, diagonal, :] += main
    return _dataset(request, places, shares._replace(values=halves), ("other",))


@dataclass
class ShapRequest:
    """Arguments of `shap_values`, and the function, rows and background that they stand for."""

    idata: Any
    model: pm.Model | None
    X: Any
    background: Any
    draws: int | None
    cores: int | None
    var_name: str | None
    func: Any
    random_state: Any
    progressbar: bool

    def __post_init__(self):
        model = pm.modelcontext(self.model)
        self.additive = AdditiveFunction(self.idata, model, self.var_name, self.func, soft_too=True)
        function = self.additive.function
        self.rows = function.rows(_of_X(self.X, function, model))
        """(n, p) rows to explain."""
        self.by_path = self.background is None
        if self.by_path and any(forest.is_soft for forest in self.additive.forests):
            raise ValueError(
                f"{function.name} is a function of soft trees, where every row follows both "
                "branches of a split, and path-dependent values are not defined: give "
                "background=, either rows or a number of rows such as background=100."
            )
        if self.by_path and any(n_random_columns(one.variable) for one in self.additive.forests):
            raise ValueError(
                f"{function.name} depends on random columns of X, whose cells in the training rows "
                "differ from draw to draw, and path-dependent values are not defined: give "
                "background=, a frame with all columns."
            )
        self.background_rows = None if self.by_path else self._background()
        """(b, p) rows that supply the values of unknown columns; None for path-dependent ones."""

    def _background(self) -> np.ndarray:
        function = self.additive.function
        if (size := _number_of_rows(self.background)) is not None:
            now = function.rows(None, "background")
            return now[rows_chosen(len(now), size, self.random_state)]
        rows = _of_X(self.background, function, pm.modelcontext(self.model))
        return function.rows(rows, "background")


def _number_of_rows(background: Any) -> int | None:
    """Rows of the background, where they are given by their number."""
    if isinstance(background, int | np.integer) and not isinstance(background, bool):
        return check_number("background", background, 1)
    return None


def _of_X(rows: Any, function, model: pm.Model) -> Any:
    """What a dict gives for X, where it gives nothing else that the function depends on."""
    if not isinstance(rows, Mapping):
        return rows
    below = set(ancestors([function.variable], blockers=model.basic_RVs))
    idle = {str(data.name) for data in model.data_vars if data not in below}
    own = {key: value for key, value in rows.items() if key not in idle}
    if rows and not own:
        return None
    names = {ANY_X, *(base.name for base in function.bases)}
    if len(own) != 1 or not names & set(own):
        raise OtherRowsError(
            f"{list(own)} is more than the X of {function.name}: give its columns alone."
        )
    return next(iter(own.values()))


class Shares(NamedTuple):
    """Shapley values of all draws."""

    values: np.ndarray
    """(chains, draws, n, p, outputs)"""
    pairs: np.ndarray
    """(chains, draws, n, p, p, outputs); no rows where only values are wanted."""
    base: np.ndarray
    """(chains, draws, outputs) mean of f."""


def _shapley(request: ShapRequest, with_pairs: bool) -> tuple[np.ndarray, Shares]:
    """Numbers of the draws of each chain that are used, and their Shapley values."""
    additive, X, background = request.additive, request.rows, request.background_rows
    n, p, n_outputs = *X.shape, additive.n_outputs
    n_chains, n_draws = additive.forests[0].shape
    size = 8 * n * p * n_outputs * (3 * p if with_pairs else 1)
    draws = thinned(n_chains, n_draws, _that_fit(n_chains, n_draws, request.draws, size))
    shape = (n_chains, draws.size)
    shares = Shares(
        np.zeros((*shape, n, p, n_outputs)),
        np.zeros((*shape, n if with_pairs else 0, p, p, n_outputs)),
        np.zeros((*shape, n_outputs)),
    )

    def add_draw(chain, k):
        """Add the values of every forest in one draw."""
        values, pairs, base = (numbers[chain, k] for numbers in shares)
        drawn = additive.draws_at(chain, draws[k])
        base += additive.constant(chain, draws[k])
        for forest, encoded, outputs in drawn:
            unknown = forest.X_train if background is None else background
            rows = (np.concatenate([X, unknown]), n)
            trees = (outputs, forest.sizes, WEIGHTS)
            if forest.is_soft:
                columns = forest.soft_columns
                soft_shapley(encoded, *rows, columns, *trees, QUADRATURE, values, pairs, base)
            else:
                training = (forest.X_train, request.by_path)
                shapley(encoded, *rows, *training, *trees, values, pairs, base)
        additive.check_sum(chain, draws[k], drawn, X, base + values.sum(axis=1))

    for_each_draw(add_draw, shape, "Shapley values", request.cores, request.progressbar)
    return draws, shares


def _dataset(request: ShapRequest, places, shares: Shares, more=()) -> xr.Dataset:
    """Values with their dimensions and coordinates."""
    algorithm = "path-dependent" if request.by_path else "interventional"
    of = (request.additive.function, request.rows, algorithm)
    return _of_numbers(of, places, {"values": shares.values}, shares.base, more)


def _of_numbers(of, places, numbers, base, more=()) -> xr.Dataset:
    """Numbers (chains, draws, n, p, ..., outputs) with their dimensions and coordinates.

    ``of`` is a function, its rows, and the name of the algorithm.
    """
    function, X, algorithm = of
    names = function.names
    coords = function.coords | {"draw": function.coords["draw"][places]}
    coords |= {"row": np.arange(len(X)), "feature": names} | dict.fromkeys(more, names)
    dims = (*SAMPLE, *function.dims, "row", "feature", *more)
    lead = (*base.shape[:2], *function.outputs)
    variables = {
        name: (dims, np.moveaxis(one, -1, 2).reshape(*lead, *one.shape[2:-1]))
        for name, one in numbers.items()
    }
    variables["base_values"] = (dims[: 2 + len(function.dims)], base.reshape(lead))
    variables["data"] = (("row", "feature"), np.where(X == MISSING, np.nan, X))
    dataset = xr.Dataset(variables, {k: v for k, v in coords.items() if k in dims})
    return dataset.assign_attrs(function=function.name, algorithm=algorithm)


# ------------------------------------------------------------------ Functions without a closed form


def _of_mixed_rows(asked, pairs: int, why: ValueError) -> xr.Dataset:
    """Shapley values of a function that is no sum of trees, against a background."""
    idata, model, X, background, draws, _, var_name, func, random_state, progressbar = asked
    rng, model = check_seed(random_state, "random_state"), pm.modelcontext(model)
    given = {"data": X, "random_state": rng, "argument": "X"}
    function = WholeFunction(idata, model, var_name, func, **given)
    if background is None:
        name = f"func({function.name})" if func else function.name
        raise ValueError(
            f"{name} is not a sum of trees of one X, and has no path-dependent values: give "
            "background=, either rows or a number of rows such as background=100. Or choose a sum "
            "of trees by var_name, without func."
        ) from why
    if function.table.numbered:
        raise ValueError(
            f"{function.name} takes {function.table.taken} for each row of the model, which is no "
            "column: make indices and numbers of rows pm.Data, or use the function of trees inside "
            "it."
        )
    rows = function.rows(X, "X")
    if (size := _number_of_rows(background)) is not None:
        now = function.rows(None, "background")
        unknown = now[rows_chosen(len(now), size, rng)]
    else:
        if isinstance(background, Mapping):
            check_background(background, function)
        unknown = function.rows(background, "background")
    mixed = MixedRows(function, rows, unknown, pairs)
    n_outputs = int(np.prod(function.outputs))
    size = 2 * 8 * rows.size * n_outputs
    n_chains, n_draws = function.shape
    places = thinned(n_chains, n_draws, _that_fit(n_chains, n_draws, draws, size))
    shape = (n_chains, places.size)
    values, errors = (np.zeros((*shape, *rows.shape, n_outputs)) for _ in range(2))
    base, seeds = np.zeros((*shape, n_outputs)), rng.integers(2**63, size=shape)

    def add_draw(chain, k):
        found = mixed.at(chain, places[k], np.random.default_rng(seeds[chain, k]))
        values[chain, k], errors[chain, k], base[chain, k] = found

    # one after another: a compiled function of PyTensor serves one thread at a time
    for_each_draw(add_draw, shape, "Shapley values", 1, progressbar)
    numbers = {"values": values, "standard_error": errors}
    return _of_numbers((function, rows, "interventional"), places, numbers, base)


def _that_fit(n_chains: int, n_draws: int, wanted: int | None, size: int) -> int | None:
    """Number of draws to use: as requested, or as many as fit into memory."""
    fit = max(LARGEST // (size * n_chains), 1)
    if wanted is not None or fit >= n_draws:
        return wanted
    warnings.warn(
        f"{fit * n_chains} of {n_chains * n_draws} draws are used, whose values fill half a "
        "gigabyte: set draws, or give fewer rows.",
        stacklevel=4,
    )
    return fit * n_chains


# ------------------------------------- `to_shap`: Shapley values for the plots of the package shap


def to_shap(explanation: xr.Dataset, quantile: float | None = None):
    """A `shap.Explanation` of the posterior mean, or of a quantile, of Shapley values.

    Posterior means add up to the posterior mean of f, as Shapley values do; quantiles do not.

    Parameters
    ----------
    explanation : xarray.Dataset
        Result of `shap_values` or `shap_interactions` for one output; with several, choose one with
        ``explanation.isel`` first.
    quantile : float in [0, 1], optional
        Default: the mean.

    Returns
    -------
    shap.Explanation
        Of the rows, with names of the columns and, as data, the rows, levels as codes.

    Raises
    ------
    ImportError
        Without the package shap.
    ValueError
        For several outputs, or a quantile outside [0, 1].

    Examples
    --------
    >>> import shap, pymc_trees as pmt  # doctest: +SKIP
    >>> found = pmt.shap_values(idata, model)  # doctest: +SKIP
    >>> shap.plots.beeswarm(pmt.to_shap(found))  # doctest: +SKIP
    """
    if not isinstance(explanation, xr.Dataset) or "base_values" not in explanation:
        raise ValueError("explanation must be a result of shap_values or shap_interactions.")
    several = [dim for dim in explanation["base_values"].dims if dim not in SAMPLE]
    if several:
        raise ValueError(
            f"explanation has several outputs, along {several}: choose one, as in "
            f"explanation.isel({several[0]}=0)."
        )
    if quantile is not None and not (isinstance(quantile, int | float) and 0 <= quantile <= 1):
        raise ValueError(f"quantile={quantile!r}: must be between 0 and 1, or None for the mean.")
    try:
        from shap import Explanation
    except ImportError as error:
        raise ImportError("to_shap needs the package shap: pip install shap.") from error
    of_draws = explanation[["values", "base_values"]]
    one = of_draws.mean(SAMPLE) if quantile is None else of_draws.quantile(quantile, SAMPLE)
    data = explanation["data"].to_numpy()
    return Explanation(
        values=one["values"].to_numpy(),
        base_values=np.full(len(data), float(one["base_values"])),
        data=data,
        feature_names=[str(name) for name in explanation["feature"].to_numpy()],
    )
