"""How well few columns predict f: `compute_variable_importance`."""

from threading import Lock

import numpy as np
import pymc as pm
import xarray as xr
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor import matrix

from pymc_trees.arguments import check_choice, check_number
from pymc_trees.core.value.evaluate import marginal
from pymc_trees.distributions.ops.forest_rv import is_forest
from pymc_trees.posterior.draws import SAMPLE, check_answer, for_each_draw, thinned
from pymc_trees.posterior.inclusion import get_variable_inclusion
from pymc_trees.posterior.reading.features import renamed
from pymc_trees.posterior.reading.forests import ForestDraws
from pymc_trees.posterior.reading.functions import Function

# ---------------- A function of a model when only some columns of its rows are known, draw by draw


class MarginalFunction:
    """A function of the rows of X under the draws of a model, at any subset of the columns.

    Each forest's prediction is averaged over the unknown columns (`core.value.evaluate`);
    what the function makes of the forests comes after that.

    Parameters
    ----------
    idata, model, var_name
        As for `Function`.

    Raises
    ------
    ValueError
        When the function uses columns other than through splits of hard trees.
    """

    def __init__(self, idata, model: pm.Model, var_name: str | None = None):
        self.function = Function(idata, model, var_name)
        name, others = self.function.name, self.function.others
        evaluated = self.function.evaluated
        if not all(is_forest(one.tree) for one in evaluated):
            raise ValueError(
                f"{name} is a function of soft trees, where every row is in every leaf: no column "
                "can be left out. Use permutation_importance."
            )
        self.forests = [ForestDraws(idata, model, one.tree.name) for one in evaluated]
        inputs = [matrix(f"outputs of {one.name}", dtype="float64") for one in self.forests]
        numbers = [rv.type() for rv in others]
        replaced = {one.outputs: v for one, v in zip(evaluated, inputs, strict=True)}
        replaced |= dict(zip(others, numbers, strict=True))
        [whole] = clone_replace([self.function.variable], replaced, rebuild_strict=False)
        by_row = any(one.layout.own_outputs is not None for one in self.forests)
        outside = not self.function.at_own_rows or set(ancestors([whole])) & set(
            self.function.bases
        )
        if by_row or outside:
            raise ValueError(
                f"{name} uses columns of X outside the splits of its trees: choose a function of "
                "trees alone by var_name, or use permutation_importance."
            )
        self._whole = pm.compile([*inputs, *numbers], whole, on_unused_input="ignore")
        self._lock = Lock()

    def at(self, chain: int, draw: int, X: np.ndarray, known: np.ndarray) -> np.ndarray:
        """(S, *outputs, n) values in a draw at the rows of X, for S sets of known columns."""
        answers = []
        for forest in self.forests:
            value = forest.value(chain, draw)
            answers.append(marginal(value, X, forest.X_train, forest.sizes, known))
        numbers = self.function.others_at(chain, draw)
        with self._lock:  # a compiled function of PyTensor serves one thread at a time
            values = [self._whole(*outputs, *numbers) for outputs in zip(*answers, strict=True)]
        return np.stack([np.moveaxis(one, self.function.axis, -1) for one in values])


# --------------------------------------------------------------------------------------------------


METHODS = ("VI", "backward", "backward_VI")


@renamed
def compute_variable_importance(
    idata,
    model: pm.Model | None = None,
    X=None,
    *,
    method: str = "VI",
    fixed: int = 0,
    samples: int = 50,
    cores: int | None = None,
    var_name: str | None = None,
    progressbar: bool = True,
) -> xr.Dataset:
    """How well one column, two columns and so on predict f, draw by draw.

    No model is refitted. A submodel is f given only some of the columns: at a split on
    another column a row follows both branches, weighted by the shares of the training rows in the
    node that go there (Friedman 2001, section 8.2), or with random columns by those of the fixed
    reference rows (`with_columns`). Its R2 is the squared correlation, over the
    rows of X, between its predictions and f in the same draw.

    Parameters
    ----------
    idata : xarray.DataTree
        Result of `pymc.sample`, or the same read from a file.
    model : pymc.Model, optional
        Default: the model on the context stack.
    X : (n, p) array or frame, optional
        Rows at which submodels predict. Default: the rows currently in the model.
    method : {"VI", "backward", "backward_VI"}, default "VI"
        Order of the columns. "VI": by the mean number of their splits (`get_variable_inclusion`).
        "backward": starting from all columns, repeatedly drop the one whose removal lowers the mean
        R2 least; p (p + 1) / 2 submodels. "backward_VI": drop the ``fixed`` columns with the fewest
        splits, then continue backward.
    fixed : int, default 0
        For "backward_VI", 1 to p - 1.
    samples : int, default 50
        Draws to take over all chains, evenly spaced; at least one of each chain.
    cores : int, optional
        Threads. Default: one for each core.
    var_name : str, optional
        Name of the function, if the model has several.
    progressbar : bool, default True
        Whether to show a progress bar.

    Returns
    -------
    xarray.Dataset
        With a dimension submodel, the number of known columns, 1 to p, and along it the coordinate
        ``feature``, the column that each adds to those before: ``r2`` with the dimensions chain,
        draw, those of the outputs and submodel; ``prediction`` with row after these. Without
        submodel: ``full``, f at the rows, and ``reference``, the squared correlation of f in the
        draw and in another draw (that half of all draws further on; NaN where there is one only).
        R2 is 0 where the submodel is constant, NaN where f is.

    Raises
    ------
    ValueError
        For a function of soft trees, or one that uses columns other than through splits; for an
        unknown method or options that do not belong to it; for predictions of more than 2 GB.

    Notes
    -----
    Where R2 is close to ``reference``, a submodel predicts f as well as one draw of f predicts
    another: further columns change f by less than the posterior uncertainty. A column may be
    unnecessary because others substitute for it; this does not identify causes. The names and
    arguments are those of pymc-bart, where R2 compares different draws.

    References
    ----------
    Friedman (2001). Greedy function approximation: a gradient boosting machine. Annals of
    Statistics 29(5), section 8.2.
    Quiroga, Garay, Alonso, Loyola and Martin (2022). Bayesian additive regression trees for
    probabilistic programming. arXiv 2206.03619.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.random.default_rng(0).random((30, 2))
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, X[:, 0], m=5)
    ...     y = pm.Normal("y", mu, 0.1, observed=X[:, 0], shape=mu.shape)
    ...     idata = pm.sample(tune=10, draws=5, chains=1, random_seed=1, progressbar=False,
    ...                       compute_convergence_checks=False)
    >>> found = pmt.compute_variable_importance(idata, model, progressbar=False)
    >>> dict(found["r2"].sizes)
    {'chain': 1, 'draw': 5, 'submodel': 2}
    """
    check_choice("method", method, METHODS)
    check_number("samples", samples, 1)
    function = MarginalFunction(idata, pm.modelcontext(model), var_name)
    rows, p = function.function.rows(X), function.function.n_columns
    _check_fixed(method, fixed, p)
    at = thinned(*function.forests[0].shape, samples)
    submodels = _Submodels(function, rows, at, cores, progressbar)
    of_forests = [
        get_variable_inclusion(idata, model, forest=one.name, progressbar=False)["count"]
        .mean(SAMPLE)
        .to_numpy()
        for one in function.forests
    ]
    order = np.argsort(-np.sum(of_forests, axis=0), kind="stable")
    if method != "VI":
        order = _backward(submodels, order, fixed)
    return submodels.dataset(order)


def check_submodels(importance) -> None:
    """Raise an error unless this is what `compute_variable_importance` returns."""
    is_dataset = isinstance(importance, xr.Dataset) and "submodel" in importance.dims
    if not is_dataset or "r2" not in importance:
        raise ValueError("importance must be a result of compute_variable_importance.")


def squared_correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Over the last axis: 0 where a is constant, NaN where b is."""
    small = [np.ptp(v, axis=-1) <= 1e-12 * np.abs(v).max(axis=-1) for v in (a, b)]
    a, b = (v - v.mean(axis=-1, keepdims=True) for v in (a, b))
    product = (a * b).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        squared = product**2 / ((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return np.where(small[1], np.nan, np.where(small[0], 0.0, squared))


class _Submodels:
    """Submodels of a function, in some draws at some rows."""

    def __init__(self, function: MarginalFunction, X, at, cores, progressbar):
        self.function, self.X, self.draws = function, X, at
        self.shape = (function.forests[0].shape[0], at.size)
        self.outputs, self.p = function.function.outputs, X.shape[1]
        self._run = (cores, progressbar)

    def r2(self, known: np.ndarray) -> np.ndarray:
        """(S,) mean over draws and outputs, for S sets of known columns."""
        known = np.concatenate([known, np.ones((1, self.p), dtype=bool)])
        r2 = np.empty((*self.shape, len(known) - 1, *self.outputs))

        def one(chain, place):
            values = self.function.at(chain, self.draws[place], self.X, known)
            r2[chain, place] = squared_correlation(values[:-1], values[-1])

        for_each_draw(one, self.shape, f"{len(known) - 1} submodels", *self._run)
        each = np.moveaxis(r2, 2, 0).reshape(len(known) - 1, -1)
        told = ~np.isnan(each)
        return np.where(told, each, 0.0).sum(axis=1) / np.maximum(told.sum(axis=1), 1)

    def dataset(self, order: np.ndarray) -> xr.Dataset:
        """What is returned, for the columns in this order."""
        n = len(self.X)
        size = int(np.prod(self.shape + self.outputs)) * self.p * n
        what = f"predictions of {self.p} submodels at {n} rows"
        check_answer(what, size, "samples=, or fewer rows of X")
        known = np.zeros((self.p, self.p), dtype=bool)
        known[:, order] = np.tri(self.p, dtype=bool)
        predictions = np.empty((*self.shape, self.p, *self.outputs, n))
        r2 = np.empty(predictions.shape[:-1])

        def one(chain, place):
            values = self.function.at(chain, self.draws[place], self.X, known)
            predictions[chain, place] = values
            r2[chain, place] = squared_correlation(values, values[-1])

        for_each_draw(one, self.shape, "Submodels", *self._run)
        return self._named(order, predictions, predictions[:, :, -1], r2)

    def _named(self, order, predictions, full, r2) -> xr.Dataset:
        function = self.function.function
        lead = (*SAMPLE, *function.dims)
        coords = function.coords | {
            "draw": function.coords["draw"][self.draws],
            "submodel": np.arange(1, self.p + 1),
            "feature": ("submodel", function.names[order]),
            "row": np.arange(len(self.X)),
        }
        variables = {
            "r2": ((*lead, "submodel"), np.moveaxis(r2, 2, -1)),
            "reference": (lead, _reference(full)),
            "prediction": ((*lead, "submodel", "row"), np.moveaxis(predictions, 2, -2)),
            "full": ((*lead, "row"), full),
        }
        return xr.Dataset(variables, coords)


def _reference(full: np.ndarray) -> np.ndarray:
    """Squared correlation of f in each draw and in the draw that is half of them further on."""
    draws = full.reshape(-1, *full.shape[2:])
    if len(draws) == 1:
        return np.full(full.shape[:-1], np.nan)
    half = len(draws) // 2
    pairs = [squared_correlation(one, draws[k - len(draws) + half]) for k, one in enumerate(draws)]
    return np.reshape(pairs, full.shape[:-1])


def _backward(submodels: _Submodels, order: np.ndarray, fixed: int) -> np.ndarray:
    """Columns, the first one the last to be left out; of equals that with fewer splits goes."""
    p = order.size
    left = list(order)
    out = [left.pop() for _ in range(fixed)]
    while len(left) > 1:
        known = np.zeros((len(left), p), dtype=bool)
        known[:, left] = ~np.eye(len(left), dtype=bool)
        r2 = submodels.r2(known)
        out.append(left.pop(len(left) - 1 - int(np.argmax(r2[::-1]))))
    return np.array([*left, *out[::-1]])


def _check_fixed(method: str, fixed: int, p: int) -> None:
    check_number("fixed", fixed, 0)
    if method == "backward_VI" and not 1 <= fixed < p:
        raise ValueError(f"fixed={fixed}: with method='backward_VI', give 1 to {p - 1} columns.")
    if method != "backward_VI" and fixed:
        raise ValueError(f"fixed={fixed}: is for method='backward_VI' only.")


# --------------------------------------- The order of columns for another package: `vi_to_kulprit`


def vi_to_kulprit(importance: xr.Dataset) -> list[list[str]]:
    """Submodels as kulprit takes them: lists of columns, from none to all.

    Parameters
    ----------
    importance : xarray.Dataset
        Result of `compute_variable_importance`.

    Returns
    -------
    list of list of str
        p + 1 lists, each with one column more, for ``user_terms`` of
        ``kulprit.ProjectionPredictive.project``.

    Raises
    ------
    ValueError
        When ``importance`` is something else.

    Examples
    --------
    >>> import pymc_trees as pmt, xarray as xr
    >>> found = xr.Dataset({"r2": ("submodel", [0.7, 1.0])}, {"submodel": [1, 2]})
    >>> pmt.vi_to_kulprit(found.assign_coords(feature=("submodel", ["dose", "age"])))
    [[], ['dose'], ['dose', 'age']]
    """
    check_submodels(importance)
    names = [str(name) for name in importance["feature"].to_numpy()]
    return [names[:size] for size in range(len(names) + 1)]
