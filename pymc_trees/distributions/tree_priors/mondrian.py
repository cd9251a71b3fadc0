"""`MondrianPrior`: the Mondrian process as a tree prior, and its checks of other settings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.priors.mondrian import make_mondrian
from pymc_trees.distributions.capacity import mondrian_max_nodes
from pymc_trees.distributions.tree_priors.contract import TreePrior, register_tree_prior


@register_tree_prior
@dataclass(frozen=True, eq=False)
class MondrianPrior(TreePrior):
    """Mondrian process on the boxes of the training rows: a ``tree_prior`` of `DecisionTree`.

    A node splits after an exponential waiting time whose rate is the sum of the side lengths of the
    box of its training rows, counted from the split of its parent (time 0 for the root); it is a
    leaf when the time of the split would exceed ``lifetime``. The column is drawn in proportion to
    the side lengths of the box, the cut uniformly along that side. So the scale of the columns of
    ``X`` matters: the wider a column, the more splits it gets. Trees grow with the spread of the
    rows and not with their number: restricted to a subset of the rows, a tree has the distribution
    of a tree grown on that subset.

    The times of the splits are part of the forest's value and are sampled with the trees.

    Parameters
    ----------
    lifetime : float or scalar random variable, positive
        Time at which the process ends. A box with sides ``l_1, ..., l_p`` that is filled with rows
        is cut into ``(1 + lifetime * l_1) * ... * (1 + lifetime * l_p)`` parts on average.

    Raises
    ------
    ValueError
        A ``lifetime`` that is not positive and finite.
    TypeError
        A ``lifetime`` that is neither a number nor a scalar random variable.

    Notes
    -----
    ``alpha``, ``beta``, ``split_prior`` and ``n_cuts`` belong to the default tree prior and are
    refused with this one, as are columns with levels or missing cells. All samplers of forests
    support it: the moves of `CGM` and the particles of `ParticleGibbs`. A move looks at every
    column of its rows, so with many columns it costs more than under the default prior. A random
    ``lifetime`` is best sampled by `pymc.Slice`: it cannot be shorter than the time of the last
    split, a boundary at which NUTS diverges.

    New rows outside the box of the training rows fall to the side of each cut on which they lie.
    Uncertainty does not grow there, as it does in the estimators `MondrianForestRegressor` and
    `MondrianForestClassifier`.

    References
    ----------
    Roy and Teh (2009). The Mondrian process. Advances in Neural Information Processing Systems 21.
    Lakshminarayanan (2016). Decision Trees and Forests: A Probabilistic Perspective. PhD thesis,
    UCL, section 5.3, algorithms 5.1 and 5.2.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.array([[0.1], [0.4], [0.6], [0.9]])
    >>> y = [0.0, 0.1, 1.1, 1.0]
    >>> with pm.Model() as model:
    ...     mu = pmt.DecisionTree("mu", X, y, tree_prior=pmt.MondrianPrior(2.0))
    ...     obs = pm.Normal("y", mu, 0.5, observed=y, shape=mu.shape)
    >>> pm.draw(model["mu_forest"], random_seed=1).shape[1]  # column, cut or value, time
    3
    """

    lifetime: Any

    def __post_init__(self):
        value = self.lifetime
        if isinstance(value, Variable):
            if value.ndim != 0:
                raise TypeError(f"lifetime must be a scalar, but has {value.ndim} dimensions.")
            return
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise TypeError(f"lifetime={value!r} must be a number or a scalar random variable.")
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"lifetime={value}: must be positive and finite; a longer lifetime gives larger "
                "trees."
            )

    name = "mondrian"
    kernel = staticmethod(make_mondrian)
    timed = True
    weighs_columns = False

    @property
    def parameters(self):
        """The lifetime."""
        return self.lifetime, 0.0

    @staticmethod
    def logp(counts, first, second):
        """``terms[0] - lifetime terms[1]``; -inf when a split is later than the lifetime."""
        free, rates, last = counts.times[0], counts.times[1], counts.times[2]
        return pt.switch(pt.le(last, first), free - first * rates, -np.inf)

    @staticmethod
    def conditions(first, second):
        """A positive lifetime."""
        return [first > 0], "lifetime > 0"

    def max_nodes(self, m, X):
        """Three times the prior mean over these rows."""
        return mondrian_max_nodes(m, X, self.lifetime)

    def check_data(self, X, kinds, split_prior, n_cuts):
        """Numbers in all columns, no weights, no grid."""
        if split_prior is not None:
            raise ValueError(
                "split_prior: a Mondrian process chooses columns by their range. Leave it out, "
                "and rescale columns of X that are to be split more or less often."
            )
        if n_cuts is not None:
            raise ValueError("n_cuts: the cuts of a Mondrian process are continuous. Leave it out.")
        if len(kinds):  # a box has sides of numbers
            odd = np.flatnonzero((kinds != 0) | (X == MISSING).any(axis=0)).tolist()
            raise NotImplementedError(
                f"tree_prior: a Mondrian process needs numbers, but the columns {odd} of X have "
                "levels or missing cells. Encode levels as numbers and impute or drop missing "
                "cells, or leave tree_prior out: the default prior supports both."
            )
