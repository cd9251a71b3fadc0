"""Effects of the treatment in a fitted causal forest, draw by draw."""

import numpy as np
import xarray as xr

from pymc_trees.causal.models import ARMS, EFFECT, Rows
from pymc_trees.causal.treatment import Treatment, check_propensity, is_binary
from pymc_trees.distributions.data.encoding import inputs_at
from pymc_trees.estimators.bart.base import BARTEstimator
from pymc_trees.estimators.bart.inputs import checked_X
from pymc_trees.posterior.check.check_draws import SAMPLE


class Effects(BARTEstimator):
    """Effects at the rows that were fitted, their means, and effects at other rows."""

    forests: str
    treatment: str | None
    _not_recorded = (EFFECT,)

    @property
    def propensity_(self) -> np.ndarray:
        """(n,) probabilities of treatment, or expected doses."""
        return self._rows.propensity

    def unit_effects(self, contrast=(0.0, 1.0)) -> xr.DataArray:
        """Effect on the expected outcome of each row that was fitted.

        Parameters
        ----------
        contrast : pair of float, default (0, 1)
            Treatments to compare, the second minus the first.

        Returns
        -------
        xarray.DataArray
            In the units of y, with the dimensions chain, draw and row.
        """
        if self.forests == "two":
            return self._scaled(self.idata_["posterior"]["tau"], contrast)
        inputs, rows = self._training[0].values, self._rows
        return self._differences(inputs, rows.propensity, contrast)

    def sate(self, contrast=(0.0, 1.0)) -> xr.DataArray:
        """Average effect in the sample: the mean of `unit_effects` over all rows.

        Parameters
        ----------
        contrast : pair of float, default (0, 1)
            As for `unit_effects`.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain and draw.
        """
        return self.unit_effects(contrast).mean("row").rename("sate")

    def satt(self) -> xr.DataArray:
        """Average effect on the treated of the sample: the mean over rows with z = 1.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain and draw.
        """
        treatment = self._rows.treatment
        if not treatment.binary:
            raise ValueError(
                "z is continuous, so there is no treated group: use sate(), which averages over "
                "all rows."
            )
        which = np.flatnonzero(treatment.arm)
        return self.unit_effects().isel(row=which).mean("row").rename("satt")

    def cate(self, X, contrast=(0.0, 1.0), *, propensity=None) -> xr.DataArray:
        """Effect on the expected outcome at other rows.

        Parameters
        ----------
        X : (n, p) array or frame
            Rows.
        contrast : pair of float, default (0, 1)
            As for `unit_effects`.
        propensity : (n,) array, optional
            Of these rows. Default: by ``propensity_model_``. Two forests need none.

        Returns
        -------
        xarray.DataArray
            With the dimensions chain, draw and row.
        """
        X = checked_X(self, X, reset=False)
        if self.forests == "two":
            return self._scaled(self._f_at("tau", self._function("tau").rows(X)), contrast)
        encoded = inputs_at(X, self._training[0].schema)
        return self._differences(encoded, self._propensity_at(X, propensity), contrast)

    def _propensity_at(self, X, given) -> np.ndarray:
        """Propensity of other rows, as given or by the model of the rows that were fitted."""
        treatment = self._rows.treatment
        if given is not None:
            return check_propensity(given, treatment, X.shape[0])
        if not hasattr(self, "propensity_model_"):
            raise ValueError("propensity was given to fit: give the propensity of these rows too.")
        model = self.propensity_model_
        return model.predict_proba(X)[:, 1] if treatment.binary else model.predict(X)

    def _scaled(self, tau: xr.DataArray, contrast) -> xr.DataArray:
        """Effects from draws of tau, whose last dimension is that of the rows."""
        first, second = self._contrast(contrast)
        found = tau.transpose(*SAMPLE, ...)
        own = str(found.dims[-1])
        found = found.drop_vars(own, errors="ignore").rename({own: "row"})
        found = found.assign_coords(row=np.arange(found.sizes["row"]))
        if self._rows.treatment.binary:
            b = self.idata_["posterior"]["b"]
            arm = str(next(dim for dim in b.dims if dim not in SAMPLE))
            found = found * (b.isel({arm: 1}, drop=True) - b.isel({arm: 0}, drop=True))
        return ((second - first) * found).rename("effect")

    def _differences(self, encoded, propensity, contrast) -> xr.DataArray:
        """Effects as differences of what is expected under two treatments."""
        first, second = self._contrast(contrast)
        joined = np.column_stack([encoded, propensity])
        expected = self._expected_by_arm if self.forests == "arms" else self._expected
        return (expected(joined, second) - expected(joined, first)).rename("effect")

    def _expected(self, joined, z) -> xr.DataArray:
        return self._f_at("f", np.column_stack([joined, np.full(len(joined), z)]))

    def _expected_by_arm(self, joined, z) -> xr.DataArray:
        return self._f_at(f"f_{ARMS[int(z)]}", joined)

    def _f_at(self, name, rows) -> xr.DataArray:
        return self._function(name).reduced(rows, lambda f: f, {"row": np.arange(len(rows))})

    def _contrast(self, contrast) -> tuple[float, float]:
        try:
            first, second = (float(z) for z in contrast)
        except (TypeError, ValueError):
            raise ValueError(f"contrast={contrast!r}: give two treatments to compare.") from None
        if self._rows.treatment.binary and not {first, second} <= {0.0, 1.0}:
            raise ValueError(f"contrast={contrast!r}: z is binary, so give 0 and 1.")
        return first, second

    @property
    def _rows(self) -> Rows:
        """What was fitted, as the models take it."""
        known = self._training[1]
        binary = self.treatment != "dose" and is_binary(known["z"])
        treatment = Treatment(known["z"], binary)
        groups = getattr(self, "groups_", None)
        return Rows(known["y"], treatment, known["propensity"], known.get("group"), groups)
