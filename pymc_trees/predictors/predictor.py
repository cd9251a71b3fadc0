"""`Predictor`: a fitted forest that predicts without its training rows."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pymc_trees._version import __version__
from pymc_trees.arguments import check_choice, check_number, check_seed
from pymc_trees.predictors import file, laws
from pymc_trees.predictors.curves import Curves
from pymc_trees.predictors.elsewhere.methods import Elsewhere
from pymc_trees.predictors.evaluation import Evaluator, under
from pymc_trees.predictors.laws import KINDS, probabilities_of, summary
from pymc_trees.predictors.random_columns import Part, as_draws, averaged, check_known, one_cell

SAMPLE = ("chain", "draw")


class Output(NamedTuple):
    """A function of rows."""

    of: int
    """Instruction of the program."""
    axis: int
    """Of the rows, among those of the model."""
    dims: tuple[str, ...]
    """Names of the axes, that of the rows too."""


class Predictor(Elsewhere, Curves):
    """A fitted model of trees that predicts without its training data, PyMC or a compiler.

    Made by `predictor` from draws and their model, by ``.predictor()`` of an estimator, or read by
    `load`. It holds the trees of all draws, the names and levels of the columns, the drawn
    parameters, the expressions between trees and response, and no training row. It needs numpy;
    labelled results need xarray too.

    Parameters
    ----------
    about : mapping
        Facts, as the page on the file of a predictor lists them.
    arrays : mapping of str and array
        Trees, draws of parameters and constants, by name.

    Attributes
    ----------
    functions : list of str
        Names of the functions of rows.
    parameters : dict of str and array
        Draws of scalars and vectors, (chains, draws, ...).
    response : str or None
        Name of the observed variable whose law is known.
    law : str or None
        Its law: "normal", "lognormal", "studentt", "bernoulli", "poisson", "negative_binomial",
        "gamma", "exponential", "weibull", "categorical", or "normal_mixture" of a Mondrian forest.
    chains, draws_per_chain : int
        Numbers of draws.
    classes : list or None
        Labels of the classes of a classifier.

    Notes
    -----
    ``X`` is an array or a pandas or polars frame with the training columns, a list of dicts with
    the cells of each row by the name of their column (as JSON has them), or a dict of column and
    cells. NaN and None are missing cells. A model with data beside X, such as an exposure, or with
    forests of different inputs, takes a dict with the name of each: ``{"X": X, "exposure": e}``.
    Random columns of the model may be left out, or NaN: functions and responses are integrated over
    their law, where the predictor holds it.

    A few rows go through the trees of all draws at once, many rows through one tree after another;
    results are equal to rounding, and so they are for any ``n_jobs``.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt, tempfile
    >>> X = np.linspace(0, 1, 30).reshape(-1, 1)
    >>> with pm.Model() as model:
    ...     mu = pmt.BART("mu", X, leaf=pmt.NormalLeaf(0, 1), m=3)
    ...     y = pm.Normal("y", mu, pm.HalfNormal("sigma", 1), observed=X[:, 0], shape=mu.shape)
    ...     prior = pm.sample_prior_predictive(20, random_seed=1)
    >>> predictor = pmt.predictor(prior["prior"].to_dataset(), model)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = pmt.load(predictor.save(f"{folder}/fit.pmt"))
    >>> again.predict([[0.2], [0.8]], quantiles=(0.05, 0.95)).shape
    (2, 2)
    >>> bool((again.predict(X) == predictor.predict(X)).all())
    True
    """

    def __init__(self, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
        self._about, self._arrays = dict(about), dict(arrays)
        self.chains, self.draws_per_chain = int(about["chains"]), int(about["draws"])
        self._evaluator = Evaluator(about, arrays)
        self._outputs = {
            name: Output(one["of"], one["axis"], tuple(one["dims"]))
            for name, one in about["functions"].items()
        }
        self._response = about["response"]
        self._default: str | None = about["default"]
        self.functions = list(self._outputs)
        self.parameters = {
            name: values.reshape(self.chains, self.draws_per_chain, *values.shape[1:])
            for name, values in under(arrays, "draws/").items()
            if name in about["parameters"]
        }
        self.response = None if self._response is None else self._response["name"]
        self.law = None if self._response is None else self._response["law"]
        self.classes: list | None = about["classes"]

    def __repr__(self):
        """Its sizes."""
        trees = sum(one.trees for one in self._evaluator.forests)
        known = f", {self.response} ~ {self.law}" if self.response else ""
        return (
            f"Predictor({', '.join(self.functions)}: {trees} trees, {self.chains} x "
            f"{self.draws_per_chain} draws{known})"
        )

    # ---------------------------------------------------------------------------------- Answers

    def draws(self, X, *, var_names=None, n_jobs: int = 1, progressbar: bool = False):
        """Functions at rows, draw by draw.

        Parameters
        ----------
        X : array, frame, list of dicts or dict
            Rows.
        var_names : str or list of str, optional
            Functions. Default: all.
        n_jobs : int, default 1
            Threads; -1 for as many as there are processors.
        progressbar : bool, default False
            Whether a bar shows how far it is.

        Returns
        -------
        xarray.Dataset
            Each function with the dimensions chain, draw, those of the function, and row.
        """
        import xarray as xr

        names = self.functions if var_names is None else _listed(var_names)
        found = {}
        for name, values in self._at_all_rows(X, names, n_jobs, progressbar).items():
            shape = (self.chains, self.draws_per_chain, *values.shape[1:])
            found[name] = ((*SAMPLE, *self._outputs[name].dims), values.reshape(shape))
        kept = {dim for _, (dims, _) in found.items() for dim in dims}
        coords = {k: v for k, v in self._about["coords"].items() if k in kept}
        return xr.Dataset(found, coords=coords)

    def blocks(self, X, var_names, *, n_jobs: int = 1, progressbar: bool = False):
        """Functions at some rows at a time, for more rows than all draws of them fit in memory.

        Parameters
        ----------
        X, n_jobs, progressbar
            As for `draws`.
        var_names : list of str
            Functions.

        Yields
        ------
        list of (draws, n, ...) array
            Of each function, chain after chain, at the next n rows.
        """
        outputs = [self._output(name) for name in var_names]
        of = [one.of for one in outputs]
        for part in self._evaluator.blocks(X, of, n_jobs, progressbar):
            yield [averaged(v, part.weights) for v in _moved(part, outputs)]

    def predict(
        self,
        X,
        kind: str | None = None,
        *,
        quantiles: Sequence[float] | None = None,
        level: float = 0.9,
        of: str | None = None,
        random_seed=None,
        n_jobs: int = 1,
        progressbar: bool = False,
    ) -> np.ndarray:
        """Posterior summary at rows.

        Parameters
        ----------
        X : array, frame, list of dicts or dict
            Rows.
        kind : {"mean", "sd", "interval", "quantiles", "class"}, optional
            Over the draws. Default: "quantiles" where these are given, "class" without `of` for a
            response of classes that has no mean or for a classifier, otherwise "mean".
        quantiles : sequence of float, optional
            Probabilities, for example ``(0.05, 0.95)``.
        level : float, default 0.9
            Probability of an interval, with equal tails.
        of : str, optional
            What is summarised: a function by its name; "mean", the expected response of each draw;
            or "y", a new observation. Default: "mean", or where the law of the response is not
            known the function.
        random_seed : int, sequence or numpy.random.Generator, optional
            For quantiles and intervals of "y". Those of Normal and LogNormal responses are exact;
            of others they are taken over one drawn observation for each draw.
        n_jobs : int, default 1
            Threads; -1 for as many as there are processors.
        progressbar : bool, default False
            Whether a bar shows how far it is.

        Returns
        -------
        (n, ...) array
            Rows first; an interval or quantiles last, (n, ..., 2) or (n, ..., Q).
        """
        kind = self._kind(kind, quantiles, of)
        if kind == "class":
            most = self.predict_proba(X, n_jobs=n_jobs, progressbar=progressbar).argmax(axis=1)
            return most if self.classes is None else np.asarray(self.classes)[most]
        probabilities = probabilities_of(kind, quantiles, level)
        rng = check_seed(random_seed)
        of, results = self._asked(of)
        if of == "y":
            parts = self._evaluator.blocks(X, results, n_jobs, progressbar)
            done = [self._of_y(part, kind, probabilities, rng) for part in parts]
            return np.concatenate(done)
        outputs = None if of == "mean" else [self._output(of)]
        done = []
        for part in self._evaluator.blocks(X, results, n_jobs, progressbar):
            [values] = [self._mean_of(part)] if outputs is None else _moved(part, outputs)
            done.append(summary(averaged(values, part.weights), kind, probabilities))
        return np.concatenate(done)

    def predict_proba(self, X, *, n_jobs: int = 1, progressbar: bool = False) -> np.ndarray:
        """Posterior mean of the probabilities of the classes.

        Parameters
        ----------
        X, n_jobs, progressbar
            As for `predict`.

        Returns
        -------
        (n, K) array
            Of a Bernoulli response the columns are 0 and 1.

        Raises
        ------
        ValueError
            For a response without classes.
        """
        if self.law not in laws.OF_CLASSES:
            raise ValueError(
                f"predict_proba: the response is {self._law_in_words()}, which has no classes: "
                "call predict or draws."
            )
        done = []
        for part in self._evaluator.blocks(X, self._response["of"], n_jobs, progressbar):
            [p] = self._of_rows(part)
            p = averaged(p, part.weights).mean(axis=0)
            done.append(np.stack([1.0 - p, p], axis=-1) if self.law == "bernoulli" else p)
        return np.concatenate(done)

    def sample_y(
        self, X, *, random_seed=None, n_jobs: int = 1, progressbar: bool = False
    ) -> np.ndarray:
        """Draws of a new observation at rows, from the posterior predictive distribution.

        Parameters
        ----------
        X, n_jobs, progressbar
            As for `predict`.
        random_seed : int, sequence or numpy.random.Generator, optional
            Seed.

        Returns
        -------
        (draws, n, ...) array
            One for each draw, chain after chain; whole numbers where the response has these.

        Raises
        ------
        ValueError
            Where the law of the response is not known.
        """
        rng = check_seed(random_seed)
        law = laws.LAWS[self._known_law("sample_y")]
        drawn = []
        for part in self._evaluator.blocks(X, self._response["of"], n_jobs, progressbar):
            parameters = self._of_rows(part)
            if part.weights is not None:
                parameters = one_cell(rng, parameters, part.weights)
            drawn.append(
                law.draw(rng, laws.shape_of(self._response["law"], parameters), *parameters)
            )
        return np.concatenate(drawn, axis=1)

    def function(self, X, func: Callable, *, n_jobs: int = 1, progressbar: bool = False):
        """What a function makes of the functions at rows and of the parameters, in each draw.

        Parameters
        ----------
        X, n_jobs, progressbar
            As for `predict`.
        func : callable
            Its arguments are named after functions and parameters of the model, as in ``lambda mu,
            sigma: mu + 2 * sigma``. It is called once for each draw, with arrays as the model has
            them, and returns a number or an array.

        Returns
        -------
        xarray.DataArray
            With chain and draw first; an axis as long as there are rows is "row".
        """
        import xarray as xr

        names = list(inspect.signature(func).parameters)
        if unknown := [n for n in names if n not in self._outputs and n not in self.parameters]:
            raise ValueError(
                f"func has the arguments {unknown}: choose from the functions {self.functions} and "
                f"the parameters {list(self.parameters)}."
            )
        at = [name for name in names if name in self._outputs]
        values = self._at_all_rows(X, at, n_jobs, progressbar, known=True)
        for name in set(names) - set(at):
            own = self.parameters[name]
            values[name] = own.reshape(self._evaluator.n_draws, *own.shape[2:])
        drawn = [
            func(**{name: values[name][d] for name in names})
            for d in range(self._evaluator.n_draws)
        ]
        whole = np.stack([np.asarray(one) for one in drawn])
        n = values[at[0]].shape[1 + self._outputs[at[0]].axis] if at else -1
        dims = ["row" if k == n else f"dim_{j}" for j, k in enumerate(whole.shape[1:])]
        dims = [d if dims.index(d) == j else f"dim_{j}" for j, d in enumerate(dims)]
        coords = {dim: self._about["coords"][dim] for dim in SAMPLE}
        shape = (self.chains, self.draws_per_chain, *whole.shape[1:])
        return xr.DataArray(whole.reshape(shape), coords=coords, dims=(*SAMPLE, *dims))

    # ------------------------------------------------------------------------ Fewer draws, a file

    def thinned(self, draws: int) -> "Predictor":
        """Fewer draws, over all chains and evenly spaced.

        Parameters
        ----------
        draws : int
            How many in all; as many from each chain, rounded up.

        Returns
        -------
        Predictor
            With these alone.
        """
        each = min(-(-check_number("draws", draws, 1) // self.chains), self.draws_per_chain)
        taken = np.linspace(0, self.draws_per_chain - 1, each).round().astype(int)
        which = (np.arange(self.chains)[:, None] * self.draws_per_chain + taken).reshape(-1)
        about, arrays = dict(self._about), dict(self._arrays)
        about["draws"] = each
        draw = [self._about["coords"]["draw"][k] for k in taken]
        about["coords"] = self._about["coords"] | {"draw": draw}
        about["forests"] = []
        for k, forest in enumerate(self._evaluator.forests):
            fewer = forest.thinned(which)
            about["forests"].append(fewer.about)
            arrays |= {f"forest{k}/{name}": one for name, one in fewer.arrays.items()}
        for name in arrays:
            if name.startswith("draws/"):
                arrays[name] = arrays[name][which]
        return Predictor(about, arrays)

    def save(self, path: str | PathLike) -> Path:
        """Write it to a file, completely or not at all.

        The file holds numbers and text in a documented format, compressed, with checksums; equal
        predictors make equal files. It holds no row of the training data, but the levels of the
        columns, and cuts, which lie between values of a column.

        Parameters
        ----------
        path : str or path
            The file, "fit.pmt" say; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            Where the file is.

        Raises
        ------
        TypeError
            `path` is not a path.
        ValueError
            The folder does not exist, or `path` is a folder.
        OSError
            The file could not be written; an existing one is unchanged.
        """
        path = file.check_path("path", path)
        file.write(path, file.packed(self._about | {"made_by": __version__}, self._arrays))
        return path

    # -------------------------------------------------------------------------------- Evaluation

    def _at_all_rows(
        self, X, names: list[str], n_jobs, progressbar, known: bool = False
    ) -> dict[str, np.ndarray]:
        """(draws, ...) values of functions, with the axes of the model; ``known``: cells are."""
        outputs = [self._output(name) for name in names]
        parts = []
        for part in self._evaluator.blocks(X, [one.of for one in outputs], n_jobs, progressbar):
            if known:
                check_known(part, "function")
            each = [averaged(v, part.weights) for v in _moved(part, outputs)]
            back = zip(each, outputs, strict=True)
            parts.append([np.moveaxis(v, 1, 1 + one.axis) for v, one in back])
        return {
            name: np.concatenate(blocks, axis=1 + one.axis)
            for name, one, blocks in zip(names, outputs, zip(*parts, strict=True), strict=True)
        }

    def _output(self, name: str) -> Output:
        if name not in self._outputs:
            raise ValueError(f"{name!r} is no function of rows: choose from {self.functions}.")
        return self._outputs[name]

    def _kind(self, kind, quantiles, of) -> str:
        if kind == "class" and of is not None:
            raise ValueError(f"of={of!r}: a class is of the response. Leave of out, or kind.")
        if kind is not None:
            return check_choice("kind", kind, KINDS)
        classes = of is None and (self.law == "categorical" or self.classes is not None)
        return "quantiles" if quantiles is not None else "class" if classes else "mean"

    def _asked(self, of) -> tuple[str, list[int]]:
        """What is summarised, and the instructions that it takes."""
        if of is None:
            of = "mean" if self.law is not None else self._default
            if of is None:
                raise ValueError(f"The model has the functions {self.functions}: choose one by of.")
        if of in self._outputs and not (of == "mean" and self.law is not None):
            return of, [self._outputs[of].of]
        if of not in ("mean", "y"):
            choices = [*self.functions, "mean", "y"]
            raise ValueError(f"of={of!r}: choose from {choices}.")
        self._known_law(f"of={of!r}")
        return of, self._response["of"]

    def _known_law(self, what: str) -> str:
        if self.law is None:
            raise ValueError(
                f"{what}: the law of the response is not known ({self._about['why_no_law']}): call "
                "draws, or function with the parameters of each draw."
            )
        return self.law

    def _law_in_words(self) -> str:
        return f"{self.response} ~ {self.law}" if self.law else "not known"

    def _of_rows(self, values: list[np.ndarray]) -> list[np.ndarray]:
        """Parameters of the response, aligned, the rows behind the draws."""
        ndim = self._response["ndim"] + laws.OWN_AXES.get(self.law or "", 0)
        padded = (v.reshape(len(v), *[1] * (ndim + 1 - v.ndim), *v.shape[1:]) for v in values)
        return [np.moveaxis(v, 1 + self._response["axis"], 1) for v in padded]

    def _mean_of(self, part: list[np.ndarray]) -> np.ndarray:
        return laws.LAWS[self._response["law"]].mean(*self._of_rows(part))

    def _of_y(self, part: Part, kind, probabilities, rng) -> np.ndarray:
        """Summary of a new observation."""
        law, parameters = laws.LAWS[self._response["law"]], self._of_rows(part)
        weights = part.weights
        if kind in ("mean", "sd"):
            mean = law.mean(*parameters)
            if kind == "mean":
                return averaged(mean, weights).mean(axis=0)
            if weights is None:
                return np.sqrt(law.variance(*parameters).mean(axis=0) + mean.var(axis=0))
            square = averaged(law.variance(*parameters) + mean**2, weights).mean(axis=0)
            return np.sqrt(square - averaged(mean, weights).mean(axis=0) ** 2)
        if law.location_scale is not None or law.components is not None:
            if weights is not None:
                parameters, weights = as_draws(parameters, weights)
            return np.moveaxis(laws.quantiles(law, parameters, probabilities, weights), 0, -1)
        if weights is not None:
            parameters = one_cell(rng, parameters, weights)
        drawn = law.draw(rng, laws.shape_of(self._response["law"], parameters), *parameters)
        return summary(drawn, kind, probabilities)


# ----------------------------------------------------------------------------------------- Pieces


def _listed(names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _moved(values: list[np.ndarray], outputs: list[Output]) -> list[np.ndarray]:
    """With the rows behind the draws."""
    return [np.moveaxis(v, 1 + one.axis, 1) for v, one in zip(values, outputs, strict=True)]
