"""`LatentNormals`: entries of normal rows around forests that are not observed, or signs only."""

import numpy as np
from pymc.step_methods.compound import StepMethodState
from pymc.step_methods.state import dataclass_state

from pymc_trees.core.compile.pointer import DirectCalls
from pymc_trees.core.interrupts import deferred_interrupts
from pymc_trees.core.samplers.latent_normals import draw_latent_normals
from pymc_trees.step_methods.variable_step import VariableStep
from pymc_trees.targets.latent_normals import (
    LatentEntries,
    read_latent_normal,
)

SWEEPS = 5
"""Sweeps over the entries of a row in a step: they are cheap, and correlated entries need some."""


@dataclass_state
class LatentNormalsState(StepMethodState):
    """Nothing but the generator is kept between steps."""


class LatentNormals(VariableStep):
    """Gibbs step for entries of `pymc.MvNormal` rows around forests that are not observed.

    Outputs of a row may be observed, missing, or known by a limit alone, such as the sign that a
    binary output is. Each latent entry is drawn from its normal distribution given the other
    entries of its row, truncated to its limits. ``pm.sample()`` assigns it automatically to

    - a free ``pm.MvNormal("z", mean, ..., shape=(n, K))`` whose mean depends on a forest, and
    - the missing entries of an observed one, ``y_unobserved``,

    if all else that depends on the variable are limits of single entries, such as those of z > 0:

    - ``pm.Bernoulli("b", p=pm.math.switch(z > 0, 1.0, 0.0), observed=b)``, where z may be entries
      of the variable, times and plus other numbers;
    - ``pm.Potential("c", pm.math.switch((z > low) & (z < high), 0.0, -np.inf).sum())``.

    The covariance may be random: other steps sample it given the entries. Initial values beyond a
    limit are moved within, since the model has no density there.

    Parameters
    ----------
    vars : list of variables, optional
        Variables that qualify. Default: all that do.
    model : pymc.Model, optional
        Default: the model on the context stack.
    rng : numpy.random.Generator or seed, optional
        `pymc.sample` sets its own.
    blocked, initial_point, compile_kwargs
        As `pymc.sample` passes them to every step.

    Raises
    ------
    ValueError
        For a variable that anything else depends on.

    References
    ----------
    Albert and Chib (1993). Bayesian analysis of binary and polychotomous response data. Journal of
    the American Statistical Association 88(422), 669-679. Chib and Greenberg (1998). Analysis of
    multivariate probit models. Biometrika 85(2), 347-361, section 3.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> rng = np.random.default_rng(1)
    >>> X, b = rng.random((30, 2)), rng.integers(2, size=(30, 2))
    >>> cov = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> with pm.Model():
    ...     f = pmt.BART("f", X, m=5, leaf=pmt.NormalLeaf(0, 0.5), shape=(2, 30))
    ...     z = pm.MvNormal("z", f.T, cov=cov, shape=(30, 2))
    ...     y = pm.Bernoulli("y", p=pm.math.switch(z > 0, 1.0, 0.0), observed=b)
    ...     step = pmt.LatentNormals([z])
    >>> step.name
    'latentnormals'
    """

    name = "latentnormals"
    _state_class = LatentNormalsState

    read = staticmethod(read_latent_normal)

    @staticmethod
    def error_for(unable):
        """The error for other variables."""
        return ValueError(
            f"vars: {unable} is not latent entries of pm.MvNormal rows around forests, on which "
            "nothing but limits of single entries depends. Leave it to pm.sample()."
        )

    def prepare(self, model, rvs, found, compile_kwargs):
        """The entries of each variable."""
        self._call = DirectCalls()
        self._entries = [LatentEntries(model, rv, one) for rv, one in zip(rvs, found, strict=True)]

    def step(self, point):
        """Draw every latent entry."""
        point = dict(point)
        with deferred_interrupts():
            for entries in self._entries:
                numbers, name = entries.numbers(point), entries.value_name
                self._call(draw_latent_normals, self.rng, *numbers, SWEEPS)
                drawn = numbers.rows[numbers.is_latent]
                point[name] = drawn.reshape(np.shape(point[name]))
        return point, [{}]
