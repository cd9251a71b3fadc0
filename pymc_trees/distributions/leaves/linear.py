"""A linear function in every leaf, of the columns of the splits above it."""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.cells import MISSING
from pymc_trees.core.leaves.coefficients import (
    FIXED,
    PARENT,
    PATH,
    linear_prior,
    read_linear,
)
from pymc_trees.core.leaves.vector_lines import read_vector_lines, vector_lines_prior
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.data.schema import column_index, listed_columns
from pymc_trees.distributions.leaves.contract import LeafPrior, register_leaf
from pymc_trees.distributions.leaves.normal import check_square, for_each, numbers_of

WORDS = ("parent", "path", "all")
MOST_SLOPES = 52
"""A set of columns is kept as the bits of a float."""


def _active(code: Variable, n_slopes: int) -> list[Variable]:
    """Whether each slope exists, by leaf."""
    if n_slopes == 1:
        return [pt.gt(code, 0.0)]
    bits = pt.maximum(code, 0.0)
    return [pt.gt((bits // 2.0**j) % 2.0, 0.0) for j in range(n_slopes)]


def _log_share(code: Variable, p_constant: Variable) -> Variable:
    """Log probability of being constant or not, by leaf; 0 where there could be no slope."""
    sloped = pt.switch(pt.lt(code, 0.0), pt.log(p_constant), 0.0)
    return sloped + pt.switch(pt.gt(code, 0.0), pt.log1p(-p_constant), 0.0)


@register_leaf
@dataclass(frozen=True, eq=False)
class LinearLeaf(LeafPrior):
    """A linear function in every leaf of every tree: an intercept, and slopes in columns of X.

    Numeric columns, and bools as 0 and 1, are standardised by their mean and standard deviation
    over the training rows; a missing cell takes the mean. Columns of levels, also ordered ones,
    have no slope, however they are split: for a slope, make one a column of numbers first. With a
    Gaussian likelihood intercepts and slopes are integrated out of every move. Under other
    likelihoods that are products over rows they are given latent variables of the rows, or proposed
    under Gaussian rows and accepted by the likelihood.

    Parameters
    ----------
    mean : float, tensor or (K,) array, default 0
        Mean of the intercept of one leaf of one tree, in the units of y. With ``shape=(K, n)``, one
        number for each output or one for all.
    sd : float, tensor or (K,) array, default 1
        Standard deviation of that intercept; as for ``mean``, one for each output or one for all.
    slope_sd : float, tensor or (K,) array, optional
        Standard deviation of each slope, in units of y for one standard deviation of the column;
        their mean is 0. Default: ``sd``.
    columns : {"parent", "path", "all"}, column or list of columns, default "parent"
        Columns with slopes. "parent": the column of the parent's rule. "path": the columns of all
        rules between the root and the leaf. With either, a tree without a split is constant, and
        so is a leaf whose rules are about levels. "all" or a sequence: the same columns in every
        leaf.
    extrapolate : bool, default True
        Whether the linear functions extend beyond the range of a column in the training rows;
        otherwise values outside the range are clipped to it.
    p_constant : float in [0, 1), default 0
        Prior probability that a leaf that could have slopes has none; it is summed out exactly.

    Raises
    ------
    TypeError, ValueError
        For an invalid argument; the message names it and says what to give instead.

    Notes
    -----
    With "path", "all" and named columns there may be at most 52 slopes, and a leaf with d slopes
    costs about d² times as much as a constant one. Where K outputs share their trees, a leaf has
    K intercepts, and K slopes in each column; it is constant in all of them or in none.

    References
    ----------
    Chipman, George and McCulloch (2002). Bayesian treed models. Machine Learning 48, 299-320.
    Prado, Moral and Parnell (2021). Bayesian additive regression trees with model trees. Statistics
    and Computing 31, 20.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> x = np.linspace(0, 1, 30)
    >>> y = np.where(x < 0.5, 2 * x, 1.0)
    >>> with pm.Model() as model:
    ...     f = pmt.BART("f", x[:, None], m=5, leaf=pmt.LinearLeaf(0.1, 0.2))
    ...     obs = pm.Normal("y", f, 0.1, observed=y, shape=f.shape)
    >>> f.ndim
    1
    """

    mean: Any = 0.0
    sd: Any = 1.0
    slope_sd: Any = None
    columns: Any = "parent"
    extrapolate: bool = True
    p_constant: float = 0.0
    read: np.ndarray = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    """What `read_linear` needs of the training rows."""

    name = "linear"
    signatures = ("()", "()", "()", "()")
    prior = staticmethod(linear_prior)
    outputs = staticmethod(read_linear)
    in_sums = any_likelihood = several_outputs = True
    n_outputs = 1

    def __post_init__(self):
        if self.slope_sd is None:
            object.__setattr__(self, "slope_sd", self.sd)
        for name in ("mean", "sd", "slope_sd"):
            setting = getattr(self, name)
            if isinstance(setting, Variable):
                continue
            value, sort = numbers_of(setting), "a" if name == "mean" else "a positive"
            if value is None or (name != "mean" and np.any(value <= 0)):
                raise ValueError(
                    f"LinearLeaf({name}={setting!r}): {name} must be {sort} number, or a random "
                    "variable; one for each output when there are several."
                )
            if name != "mean":
                check_square(self, name, value)
            object.__setattr__(self, name, value)
        if not is_number(self.p_constant) or not 0 <= self.p_constant < 1:
            raise ValueError(f"p_constant={self.p_constant!r}: must be at least 0 and below 1.")
        if not isinstance(self.extrapolate, bool | np.bool_):
            raise TypeError(f"extrapolate={self.extrapolate!r}: must be True or False.")

    @property
    def parameters(self) -> tuple:
        """Inputs of the random variable."""
        return (self.mean, self.sd, self.slope_sd, self.p_constant)

    @property
    def constants(self) -> np.ndarray:
        """Kind, whether lines end, and of each column mean, sd or 0, least and largest."""
        return self.read

    @property
    def n_values(self) -> int:
        """Intercept, slopes, and which slopes there are."""
        slopes = int((self.read[3::4] > 0).sum())
        return 3 if self._word == "parent" else slopes + 2

    def for_inputs(self, table, kinds) -> "LinearLeaf":
        """With mean, sd and range of the training cells of each column that may have a slope."""
        X, schema = table.values, table.schema
        p = X.shape[1]
        numeric = kinds == 0 if kinds.size else np.ones(p, dtype=bool)
        numeric &= ~schema.are_levels  # ordered categories are split like numbers, but are none
        kind = {"parent": PARENT, "path": PATH}.get(self._word, FIXED)
        chosen = numeric if self._word else self._named(schema, numeric)
        cells = np.where(X == MISSING, np.nan, X)
        moments = np.zeros((p, 4))
        for j in np.flatnonzero(chosen):
            x = cells[~np.isnan(cells[:, j]), j]
            if x.size and x.min() < x.max():
                moments[j] = x.mean(), x.std(), x.min(), x.max()
        n_slopes = int((moments[:, 1] > 0).sum())
        if kind != PARENT and n_slopes > MOST_SLOPES:
            raise ValueError(
                f"columns={self.columns!r}: {n_slopes} columns would have slopes, but there can be "
                f'at most {MOST_SLOPES}: name fewer, or give columns="parent".'
            )
        clamped = float(not self.extrapolate)
        bound = copy(self)
        read = np.concatenate([[float(kind), clamped], moments.ravel()])
        object.__setattr__(bound, "read", read)
        return bound

    @property
    def _word(self) -> str:
        is_word = isinstance(self.columns, str) and self.columns in WORDS
        return self.columns if is_word else ""

    def _named(self, schema, numeric: np.ndarray) -> np.ndarray:
        """Which columns were named."""
        chosen, labels = np.zeros(len(numeric), dtype=bool), schema.labels
        for column in listed_columns(self.columns):
            if isinstance(column, bool | np.bool_):
                raise TypeError(
                    f"columns={self.columns!r}: give names or numbers of columns, not True and "
                    "False; np.flatnonzero(mask) converts a mask to numbers."
                )
            j = column_index(column, labels)
            if j is None:
                raise ValueError(
                    f"columns={self.columns!r}: X has no column {column!r}; it has {labels}. Give "
                    'some of them, "parent", "path" or "all".'
                )
            if not numeric[j]:
                raise ValueError(
                    f"columns={self.columns!r}: {column!r} is a column of levels, which has no "
                    "slope: leave it out of columns, and trees can still split on it; or give X a "
                    "column of numbers in its place, such as the .cat.codes of an ordered category."
                )
            chosen[j] = True
        return chosen

    @staticmethod
    def logp(values, mean, sd, slope_sd, p_constant):
        """Log-density of (L, V) leaf values."""
        code, n_slopes = values[:, -1], values.type.shape[1] - 2
        total = pm.logp(pm.Normal.dist(mean, sd), values[:, 0])
        for j, is_active in enumerate(_active(code, n_slopes)):
            density = pm.logp(pm.Normal.dist(0.0, slope_sd), values[:, 1 + j])
            total = total + pt.switch(is_active, density, 0.0)
        return total + _log_share(code, p_constant)

    @staticmethod
    def initial_value(k, mean, sd, slope_sd, share):
        """Constant trees."""
        return [mean] + [0.0] * (k - 1)

    @staticmethod
    def initial_spread(k, mean, sd, slope_sd, share):
        """Sd of the constants."""
        return [sd] + [0.0] * (k - 1)

    @staticmethod
    def words(values, constants, columns):
        """The intercept, and each slope there is, per standard deviation of the column."""
        names = [columns[j] for j in np.flatnonzero(constants[3::4] > 0)]
        at_mean, slopes, code = values[0], values[1:-1], int(max(values[-1], 0.0))
        if int(constants[0]) == PARENT:
            active = [(code - 1, slopes[0])] * (code > 0)
        else:
            active = [(j, slope) for j, slope in enumerate(slopes) if code >> j & 1]
        return [f"{at_mean:.4g}", *(f"{slope:+.4g} per sd of {names[j]}" for j, slope in active)]

    @staticmethod
    def functions(outputs):
        """One function, (n,)."""
        return outputs[:, 0]

    def of_output(self, k: int) -> "LinearLeaf":
        """Prior of output k alone."""
        settings = self.mean, self.sd, self.slope_sd
        return replace(self, **_named(v[k] if np.ndim(v) else v for v in settings))

    def of_outputs(self, n_outputs: int) -> "LinearVectorLeaf":
        """Prior of a leaf that holds all outputs."""
        settings = (for_each(v, n_outputs) for v in (self.mean, self.sd, self.slope_sd))
        named = _named(pt.specify_shape(v, (n_outputs,)) for v in settings)
        rest = self.columns, self.extrapolate, self.p_constant
        return LinearVectorLeaf(**named, **dict(zip(REST, rest, strict=True)), k=n_outputs)


REST = "columns", "extrapolate", "p_constant"


def _named(settings) -> dict:
    return dict(zip(("mean", "sd", "slope_sd"), settings, strict=True))


# ----------------------------------------------------------------- K outputs that share their trees


@register_leaf
@dataclass(frozen=True, eq=False)
class LinearVectorLeaf(LinearLeaf):
    """`LinearLeaf` of K outputs that share their trees, as the random variable takes it."""

    k: int = 1

    name = "linear_vector"
    signatures = ("(k)", "(k)", "(k)", "()")
    prior = staticmethod(vector_lines_prior)
    outputs = staticmethod(read_vector_lines)
    several_outputs = False

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """Outputs per row."""
        return self.k

    @property
    def n_values(self) -> int:
        """Intercepts, slopes, and which slopes there are."""
        slopes = 1 if self._word == "parent" else int((self.read[3::4] > 0).sum())
        return self.k * (1 + slopes) + 1

    @staticmethod
    def logp(values, mean, sd, slope_sd, p_constant):
        """Log-density of (L, V) leaf values."""
        code, k = values[:, -1], mean.type.shape[0]
        n_slopes = (values.type.shape[1] - 1) // k - 1
        total = pm.logp(pm.Normal.dist(mean, sd), values[:, :k]).sum(axis=1)
        for j, is_active in enumerate(_active(code, n_slopes)):
            slopes = values[:, (1 + j) * k : (2 + j) * k]
            density = pm.logp(pm.Normal.dist(0.0, slope_sd), slopes).sum(axis=1)
            total = total + pt.switch(is_active, density, 0.0)
        return total + _log_share(code, p_constant)

    @staticmethod
    def initial_value(k, mean, sd, slope_sd, share):
        """Constant trees."""
        n_outputs = mean.type.shape[0]
        return [mean[j] for j in range(n_outputs)] + [0.0] * (k - n_outputs)

    @staticmethod
    def initial_spread(k, mean, sd, slope_sd, share):
        """Sds of the constants."""
        n_outputs = mean.type.shape[0]
        return [sd[j] for j in range(n_outputs)] + [0.0] * (k - n_outputs)

    @staticmethod
    def words(values, constants, columns):
        """The intercepts, and the slopes there are, per standard deviation of the column."""
        names = [columns[j] for j in np.flatnonzero(constants[3::4] > 0)]
        code, is_parent = int(max(values[-1], 0.0)), int(constants[0]) == PARENT
        k = (len(values) - 1) // (2 if is_parent else 1 + len(names))
        table = np.reshape(values[:-1], (-1, k))
        if is_parent:
            active = [(code - 1, table[1])] * (code > 0)
        else:
            active = [(j, slopes) for j, slopes in enumerate(table[1:]) if code >> j & 1]
        found = [", ".join(f"{v:.4g}" for v in table[0])]
        for j, slopes in active:
            found.append(f"{', '.join(f'{v:+.4g}' for v in slopes)} per sd of {names[j]}")
        return found

    @staticmethod
    def functions(outputs):
        """One function, (K, n)."""
        return outputs.T
