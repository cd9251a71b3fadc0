"""What the estimators share: fitting by `pymc.sample`, the draws, and their evaluation."""

import logging
import warnings
from collections.abc import Iterator
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
from pymc_trees.distributions.data.encoding import encode_training
from pymc_trees.distributions.data.variables import TrainingInputs
from pymc_trees.estimators.bart.inputs import checked_X
from pymc_trees.estimators.bart.storage import read, write
from pymc_trees.posterior.check.check_draws import SAMPLE
from pymc_trees.posterior.reading.functions import Function

R_HAT = 1.05
"""Of f at training rows, above which `fit` warns."""
LOOKED_AT = 100
"""Training rows at which R-hat is computed."""
BLOCK = 5_000_000
"""Draws times rows for which predictions are made at a time."""


class BARTEstimator(BaseEstimator):
    """A PyMC model that is built and sampled by `fit`.

    Subclasses have the parameters, and build the model in ``_declare``.
    """

    idata_: Any
    _training: tuple[TrainingInputs, dict[str, np.ndarray]]
    """Encoded inputs, and what is known of each row."""
    _not_recorded: tuple[str, ...] = ()
    """Deterministics that are computed from the other draws when they are asked for."""

    def _declare(self, inputs: TrainingInputs, rows: dict[str, np.ndarray]) -> pm.Model:
        raise NotImplementedError

    def _watched(self) -> xr.DataArray:
        """Draws, at the rows last, on which chains should agree."""
        return self.idata_["posterior"]["f"]

    @property
    def _plotted(self) -> str:
        """Function of the model in which all rows can be looked at."""
        return "f"

    def _tree_settings(self) -> dict[str, Any]:
        """For `BART`."""
        names = ("alpha", "beta", "split_prior", "n_cuts")
        return {"m": check_number("m", self.m, 1)} | {name: getattr(self, name) for name in names}

    def _sample(self, X, **rows):
        """Build the model, sample it, and keep both."""
        inputs = TrainingInputs(*encode_training(X, "X", self.split_rules))
        self._training = (inputs, {name: row for name, row in rows.items() if row is not None})
        model = self._declare(*self._training)
        quiet = logging.getLogger("pymc.sampling.mcmc")
        level = quiet.level
        quiet.setLevel(level if self.progressbar else logging.ERROR)
        recorded = [v.name for v in model.unobserved_RVs if v.name not in self._not_recorded]
        try:
            idata = pm.sample(
                draws=check_number("draws", self.draws, 1),
                tune=check_number("tune", self.tune, 0),
                chains=check_number("chains", self.chains, 1),
                cores=self.cores,
                random_seed=_seed(self.random_state),
                progressbar=self.progressbar,
                compute_convergence_checks=False,
                var_names=recorded if self._not_recorded else None,
                model=model,
            )
        finally:
            quiet.setLevel(level)
        self.idata_, self._kept = idata, {"model": model}
        self._check_convergence()
        return self

    def _check_convergence(self) -> None:
        """Warn where chains do not agree about what they are asked for."""
        f = self._watched()
        if f.sizes["chain"] < 2 or f.sizes["draw"] < 4:
            return
        rows = str(f.dims[-1])
        some = np.unique(np.linspace(0, f.sizes[rows] - 1, LOOKED_AT).astype(int))
        worst = float(az.rhat(f.isel({rows: some}).to_dataset(name="f"))["f"].max())
        if worst > R_HAT:
            warnings.warn(
                f"R-hat of {f.name} is up to {worst:.2f} at the training rows, above {R_HAT}: the "
                f"chains do not agree yet. Increase tune={self.tune} and draws={self.draws}. "
                "Predictions average over chains and are often good earlier. "
                "pymc_trees.plot_convergence(estimator.idata_, estimator.model_, "
                f"var_name={self._plotted!r}) shows all rows.",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def model_(self) -> pm.Model:
        """PyMC model that was sampled."""
        check_is_fitted(self, "idata_")
        if "model" not in self._kept:
            self._kept["model"] = self._declare(*self._training)
        return self._kept["model"]

    def _function(self, name: str) -> Function:
        """A function of the model, compiled once."""
        if name not in self._kept:
            self._kept[name] = Function(self.idata_, self.model_, name)
        return self._kept[name]

    def _at(self, X, *names: str) -> Iterator[list[np.ndarray]]:
        """Functions, each (draws, ..., rows), at some rows at a time."""
        check_is_fitted(self, "idata_")
        rows = self._function(names[0]).rows(checked_X(self, X, reset=False))
        first = self._function(names[0])
        width = max(1, BLOCK // int(np.prod(first.shape + first.outputs)))
        for start in range(0, len(rows), width):
            some = rows[start : start + width]
            yield [self._values(name, some) for name in names]

    def _values(self, name: str, rows: np.ndarray) -> np.ndarray:
        function = self._function(name)
        found = function.reduced(rows, lambda f: f, {"row": np.arange(len(rows))}).to_numpy()
        return found.reshape(-1, *found.shape[len(SAMPLE) :])

    def _parameter(self, name: str) -> np.ndarray:
        """(draws, 1) values of a parameter."""
        return self.idata_["posterior"][name].transpose(*SAMPLE).to_numpy().reshape(-1, 1)

    def save(self, path) -> None:
        """Write the fitted estimator to a netCDF file, whole or not at all.

        The settings, the training rows and the draws; the file opens with
        `xarray.open_datatree` too.

        Parameters
        ----------
        path : str or path
            File, replaced where it exists.
        """
        check_is_fitted(self, "idata_")
        write(self, path)

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
        return read(cls, path)

    def __getstate__(self):
        """Without what is made again when it is needed."""
        state = super().__getstate__()
        return state | ({"_kept": {}} if "_kept" in state else {})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _seed(random_state):
    """What `pymc.sample` takes: a number, a Generator, or nothing."""
    if random_state is None or isinstance(random_state, int | np.integer | np.random.Generator):
        return random_state
    return int(check_random_state(random_state).randint(2**31 - 1))
