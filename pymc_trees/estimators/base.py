"""What the estimators share: fitting by `pymc.sample`, the draws, and their evaluation."""

import copy
import json
import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import arviz as az
import numpy as np
import pymc as pm
import xarray as xr
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pymc_trees.arguments import check_number
from pymc_trees.distributions.capacity import default_size
from pymc_trees.distributions.data.table import Table, read
from pymc_trees.distributions.tree_variable import evaluations, tree_variables
from pymc_trees.estimators.files import read_file, write_file
from pymc_trees.estimators.inputs import check_levels, checked_X
from pymc_trees.inference.chains.lengths import MOST, Lengths
from pymc_trees.inference.chains.lengths import lengths as lengths_for
from pymc_trees.inference.chains.until import DRAWS, MOST_DRAWS, sample_until
from pymc_trees.posterior.draws import SAMPLE, model_of
from pymc_trees.posterior.exporting.expressions import Response
from pymc_trees.posterior.exporting.predictor import predictor, predictor_of
from pymc_trees.posterior.pool import CHAINS, judge_pool, scalars_of
from pymc_trees.posterior.pool import DRAWS as DRAWS_OF_POOL
from pymc_trees.posterior.reading.functions import Function
from pymc_trees.predictors.predictor import Predictor
from pymc_trees.progress import can_draw

R_HAT = 1.05
"""Of f at training rows, above which `fit` warns."""
LOOKED_AT = 100
"""Training rows at which R-hat is computed."""
MOST_RECORDED = 1_000_000_000
"""Bytes of draws at the training rows; more than that is computed from the trees when asked for."""


LENGTHS = "chains_by_size"
"""Attribute of the draws: how long chains were, and the rows and trees from which that follows."""
_log = logging.getLogger("pymc.trees")

OWN = {"_training", "_kept", "_alone", "_known", "_settings"}
"""What `fit` keeps beside its public attributes."""
UNTIL = {"r_hat", "ess", "of", "pooled", "max_time", "checkpoint", "draws", "max_draws"}
"""Arguments of `sample_until` that ``until`` may have."""


class BARTEstimator(BaseEstimator):
    """A PyMC model that is built and sampled by `fit`.

    Subclasses have the parameters, and build the model in ``_declare``.
    """

    idata_: Any
    _training: tuple[Table, dict[str, np.ndarray]] | None
    """The training table, and arrays with an entry for each row; None where they were left out."""
    until: Mapping[str, Any] | None
    _alone: Predictor
    """What predicts without them."""
    _known: dict[str, Any]
    """Numbers that were computed from them."""
    _always_recorded = frozenset({"f_quantiles"})
    """Those of few rows."""
    _not_recorded: tuple[str, ...] = ()
    """Deterministics that are computed from the other draws when needed."""
    _inner: Mapping[str, tuple[type["BARTEstimator"], ...]] = {}
    """Attributes that are estimators themselves, and their classes."""

    def _declare(self, table: Table, rows: dict[str, np.ndarray]) -> pm.Model:
        raise NotImplementedError

    def _watched(self, which: np.ndarray) -> xr.DataArray:
        """Draws, at some training rows last, on which chains should agree."""
        return self._at_training_rows("f", which)

    @property
    def _plotted(self) -> str | None:
        """Function of the model whose rows can all be plotted, if there is one."""
        return "f"

    @property
    def _predicts_alone(self) -> bool:
        """Whether all answers but ``model_`` come without the training rows."""
        return True

    @property
    def _judged(self) -> list[str] | None:
        """Variables that ``until`` is about; None for all free variables."""
        return None

    @property
    def _pool_is_enough(self) -> bool:
        """Whether chains are not expected to agree one by one, but all together to be right."""
        return False

    @property
    def _usual(self) -> dict[str, Any]:
        """Values of ``m`` and ``beta`` on any number of rows, where it does not decide."""
        return {}

    def _tree_settings(self, n: int) -> dict[str, Any]:
        """For `BART` on n rows."""
        m = self._usual.get("m") if self.m is None else check_number("m", self.m, 1)
        beta = self._usual.get("beta") if self.beta is None else self.beta
        m, beta = default_size(m, beta, n, "f")
        others = {name: getattr(self, name) for name in ("alpha", "split_prior", "n_cuts")}
        return {"m": m, "beta": beta} | others

    def _begin(self, X):
        """Checked X of a fit, before which all of a former one goes: a mixture would predict."""
        for name in [one for one in vars(self) if one.endswith("_") or one in OWN]:
            delattr(self, name)
        return checked_X(self, X, reset=True)

    def _sample(self, X, **rows):
        """Build the model, sample it, and keep both."""
        table = read(X, self.split_rules)
        check_levels(table.schema)
        self._training = (table, {name: row for name, row in rows.items() if row is not None})
        model = self._declare(*self._training_rows())
        lengths, until = self._lengths(model), self._until()
        most = lengths.draws if until is None else until.get("max_draws", MOST_DRAWS)
        left_out = self._left_out(model, max(lengths.draws, most) * lengths.chains)
        recorded = [v.name for v in model.unobserved_RVs if v.name not in left_out]
        quiet = logging.getLogger("pymc.sampling.mcmc")
        level = quiet.level
        quiet.setLevel(level if self.progressbar and can_draw() else logging.ERROR)
        if lengths.draws < MOST and None in (self.draws, self.tune) and until is None:
            _log.info(
                f"{type(self).__name__}: {lengths.chains} chains of {lengths.draws} draws after "
                f"{lengths.tune} of tuning, for {lengths.rows:,} rows and {lengths.trees} trees."
            )
        options = {
            "draws": lengths.draws,
            "tune": lengths.tune,
            "chains": lengths.chains,
            "random_seed": _seed(self.random_state),
            "progressbar": self.progressbar,
            "var_names": recorded if left_out else None,
            "model": model,
        }
        try:
            if until is None:
                options |= {"cores": self.cores, "compute_convergence_checks": False}
                idata = pm.sample(**options)
            else:
                cores = -1 if self.cores is None else self.cores
                idata = sample_until(**options | {"cores": cores} | until)
        finally:
            quiet.setLevel(level)
        if until is not None and "posterior" not in idata.children:
            raise RuntimeError(
                f"until={self.until!r}: the time was over in tuning, so that there are no draws. "
                "Give a longer max_time, or less tune."
            )
        lengths = lengths._replace(draws=idata["posterior"].sizes["draw"])
        idata.attrs[LENGTHS] = json.dumps(lengths._asdict())
        self.idata_, self._kept = idata, {"model": model}
        self._settings = self.get_params(deep=False)
        if until is None:
            self._check_convergence(lengths)
        return self

    def _lengths(self, model: pm.Model) -> Lengths:
        """Draws, tuning and chains that were given, or those for the rows and trees."""
        chosen = lengths_for(model)
        if self.until is not None:
            chosen = chosen._replace(draws=min(chosen.draws, DRAWS))
        given = {}
        for name, least in (("draws", 1), ("tune", 0), ("chains", 1)):
            if getattr(self, name) is not None:
                given[name] = check_number(name, getattr(self, name), least)
        return chosen._replace(**given)

    def _until(self) -> dict[str, Any] | None:
        """Arguments of `sample_until` that were given, checked; None where chains have a length."""
        if self.until is None:
            return None
        if not isinstance(self.until, Mapping) or not set(self.until) <= UNTIL:
            raise ValueError(
                f"until={self.until!r}: give a dict of arguments of sample_until, from "
                f"{sorted(UNTIL)}, such as {{'ess': 400, 'max_time': '10min'}}."
            )
        of = self._judged
        return ({} if of is None else {"of": of}) | dict(self.until)

    def _left_out(self, model: pm.Model, draws: int) -> set[str]:
        """Deterministics that are computed from the other draws when needed, of so many at most."""
        layouts = [tree.rv.owner.op.layout for tree in tree_variables(model)]
        values = sum(layout.n_rows * layout.n_outputs for layout in layouts)
        if np.dtype(np.float64).itemsize * values * draws <= MOST_RECORDED:
            return set(self._not_recorded)
        of_rows = {v.name for v in model.deterministics if evaluations([v])}
        return {*self._not_recorded, *of_rows - self._always_recorded}

    def _check_convergence(self, lengths: Lengths) -> None:
        """Warn where chains do not agree."""
        sizes = self.idata_["posterior"].sizes
        if sizes["chain"] < 2 or sizes["draw"] < 4:
            return
        last = len(self._training_rows()[0].values) - 1
        f = self._watched(np.unique(np.linspace(0, last, LOOKED_AT).astype(int)))
        worst = float(az.rhat(f.to_dataset(name="f"))["f"].max())
        if worst > R_HAT:
            values = f.transpose(*SAMPLE, ...).to_numpy()
            scalars = None
            if not self._pool_is_enough:
                scalars = scalars_of(self.idata_["posterior"].to_dataset(), self.model_)
            pool = judge_pool(values.reshape(*values.shape[:2], -1), scalars)
            if self._pool_is_enough and pool.usable:
                return
            shown = (
                " pymc_trees.plot_convergence(estimator.idata_, estimator.model_, "
                f"var_name={self._plotted!r}) shows all rows."
            )
            warnings.warn(
                f"R-hat of {f.name} is up to {worst:.2f} at the training rows, above {R_HAT}: the "
                "chains do not agree one by one. Predictions average over all of them, and of "
                f"these: {pool}. {_remedy(pool.verdict, lengths)}"
                f"{shown if self._plotted else ''}",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def model_(self) -> pm.Model:
        """PyMC model that was sampled."""
        check_is_fitted(self, "idata_")
        if "model" not in self._kept:
            fitted = copy.copy(self)
            fitted.set_params(**vars(self).get("_settings", {}))
            self._kept["model"] = fitted._declare(*self._training_rows())
        return self._kept["model"]

    def _of_fit(self, name: str) -> Any:
        """A parameter as it was in `fit`: one that is set later counts in the next fit."""
        return vars(self).get("_settings", {}).get(name, getattr(self, name))

    def _training_rows(self) -> tuple[Table, dict[str, np.ndarray]]:
        """The training table and arrays, or an error where they were left out."""
        if self._training is None:
            raise ValueError(
                f"The training rows of this {type(self).__name__} were left out when it was saved "
                "(training_data=False), and its PyMC model needs them. Use its predictions, or "
                "read a file that has them."
            )
        return self._training

    def _known_of_rows(self) -> dict[str, Any]:
        """Numbers computed from the training rows that predictions need."""
        return {}

    def _function(self, name: str) -> Function:
        """A function of the model, compiled once."""
        if name not in self._kept:
            self._kept[name] = Function(self.idata_, self.model_, name)
        return self._kept[name]

    def _at_training_rows(self, name: str, which=slice(None)) -> xr.DataArray:
        """Draws of a function at training rows, which are last: recorded, or from the trees."""
        posterior = self.idata_["posterior"]
        if name in posterior:
            values = posterior[name].transpose(*SAMPLE, ...)
            return values.isel({values.dims[-1]: which})
        return self._f_at(name, self._function(name).rows(None)[which])

    def _f_at(self, name: str, rows: np.ndarray) -> xr.DataArray:
        """Draws of a function at rows, which are last."""
        at = {"row": np.arange(len(rows))}
        return self._function(name).reduced(rows, lambda f: f, at, self.progressbar)

    def predictor(self, draws: int | None = None) -> Predictor:
        """What predicts without the training rows, PyMC or a compiler, and is one small file.

        Parameters
        ----------
        draws : int, optional
            How many, over all chains and evenly spaced. Default: all.

        Returns
        -------
        Predictor
            Its `predict` gives the posterior mean of y, or the class, and that of a density
            integrates over the latent column.
        """
        check_is_fitted(self, "idata_")
        if self._training is None:
            return self._alone if draws is None else self._alone.thinned(draws)
        model = model_of(self.model_)
        law = self._law(model)
        if law is None:
            return predictor(self.idata_, model, draws=draws)
        classes = getattr(self, "classes_", None)
        names = [name for name in ("f", "log_sigma") if name in model.named_vars]
        labels = None if classes is None else classes.tolist()
        return predictor_of(self.idata_, model, names, law, labels, draws)

    def _law(self, model: pm.Model) -> Response | None:
        """Distribution of a new y."""
        return None

    def _predicting(self, draws: int | None) -> Predictor:
        """The predictor that answers, made once."""
        if "predictor" not in self._kept:
            self._kept["predictor"] = self.predictor()
        made = self._kept["predictor"]
        return made if draws is None else made.thinned(draws)

    def _at(self, made: Predictor, X, names: Sequence[str], n_jobs: int):
        """Functions, each (draws, ..., rows), at some rows at a time."""
        X = checked_X(self, X, reset=False)
        for values in made.blocks(X, names, n_jobs=n_jobs, progressbar=self.progressbar):
            yield [np.moveaxis(one, 1, -1) for one in values]

    def save(self, path, *, training_data: bool = True) -> None:
        """Write the fitted estimator to a netCDF file, whole or not at all.

        The settings, the training rows and the draws; the file opens with
        `xarray.open_datatree` too.

        Parameters
        ----------
        path : str or path
            File, replaced where it exists.
        training_data : bool, default True
            Whether to write the training rows. Without them the file holds draws of the trees and
            the parameters, and a `Predictor`: all predictions work, and ``model_`` does not.
        """
        check_is_fitted(self, "idata_")
        write_file(self, path, training_data)

    @classmethod
    def load(cls, path):
        """Read an estimator that `save` wrote.

        Parameters
        ----------
        path : str or path
            File.

        Returns
        -------
        BARTRegressor or BARTClassifier
            As it was; the model is built again when it is asked for.

        Raises
        ------
        ValueError
            When the file holds no estimator, or one of another class.
        """
        return read_file(cls, path)

    def __getstate__(self):
        """Without the model and compiled functions, which are made again when needed."""
        state = super().__getstate__()
        return state | ({"_kept": {}} if "_kept" in state else {})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _remedy(verdict: str, lengths: Lengths) -> str:
    """What to do where chains do not agree one by one, by the verdict on all of them."""
    longer = f"tune={lengths.tune} and draws={lengths.draws}"
    if verdict in ("agree", "pool"):
        return f"They can be used; for chains that agree one by one increase {longer}."
    if verdict == "few":
        return f"Take more chains: chains={2 * max(lengths.chains, CHAINS)}."
    if verdict == "short":
        return f"Take chains={CHAINS} and draws={DRAWS_OF_POOL} or more, to have all judged."
    return f"Increase {longer}, or take more trees (m=)."


def _seed(random_state):
    """Seed as `pymc.sample` takes it: a number, a Generator or None."""
    if random_state is None or isinstance(random_state, int | np.integer | np.random.Generator):
        return random_state
    return int(check_random_state(random_state).randint(2**31 - 1))
