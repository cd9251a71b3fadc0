"""Settings of a forest, checked before anything is built: one function a setting."""

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.core.columns.mixed import MISSING
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.leaves.contract import LeafPrior

MOST_CUTS = 65_534
"""Codes are 16-bit: one for each side of every cut, and the largest for a missing cell."""


def check_m(m) -> int:
    """Number of trees."""
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise ValueError(f"m={m!r}: the number of trees must be a whole number of at least 1.")
    return int(m)


def check_depth_prior(alpha, beta):
    """Settings of the depth prior, numbers or tensors."""
    for name, value in (("alpha", alpha), ("beta", beta)):
        if isinstance(value, Variable):
            if value.ndim != 0:
                raise ValueError(f"{name} must be a scalar, but has {value.ndim} dimensions.")
        elif not is_number(value):
            raise TypeError(f"{name}={value!r} must be a number or a scalar random variable.")
    if not isinstance(alpha, Variable) and not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha}: the split probability of the root must be in (0, 1).")
    if not isinstance(beta, Variable) and beta < 0:
        raise ValueError(f"beta={beta}: must be 0 or positive; larger values give smaller trees.")
    return alpha, beta


def check_ranges(X: np.ndarray) -> None:
    """The cut of a column has a density, so that its range must be a number."""
    with np.errstate(over="ignore"):
        lows = X.min(axis=0, where=X != MISSING, initial=np.inf)
        wide = np.flatnonzero(np.isposinf(X.max(axis=0) - lows))
    if wide.size:
        raise ValueError(
            f"X spans more than floating-point numbers can hold in columns {wide.tolist()}: "
            "rescale them."
        )


def _midpoints(values: np.ndarray) -> np.ndarray:
    """Cuts that part each of some increasing numbers from the next: ``low <= cut < high``."""
    low, high = values[:-1], values[1:]
    with np.errstate(over="ignore"):
        middle = (low + high) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)  # between adjacent floats it rounds to either


def make_grid(X: np.ndarray, n_cuts, kinds: np.ndarray | None = None) -> list[np.ndarray] | None:
    """At most ``n_cuts`` cuts per column between its distinct values, at even quantiles.

    A column with levels has none; missing cells are left out.
    """
    if n_cuts is None:
        return None
    if isinstance(n_cuts, bool) or not isinstance(n_cuts, int | np.integer) or n_cuts < 1:
        raise ValueError(f"n_cuts={n_cuts!r}: must be None or a whole number of at least 1.")
    if n_cuts > MOST_CUTS:
        raise ValueError(f"n_cuts={n_cuts}: at most {MOST_CUTS:,} cuts fit a 16-bit code.")
    grid = []
    for j in range(X.shape[1]):
        x = X[:, j][X[:, j] != MISSING]
        if kinds is not None and len(kinds) and kinds[j] != 0:
            x = x[:0]
        values = np.unique(x)
        cuts = _midpoints(values)
        if len(cuts) > n_cuts:
            at = np.quantile(x, np.arange(1, n_cuts + 1) / (n_cuts + 1), method="lower")
            # a cut at the largest value would leave its right side empty
            cuts = np.unique(at[at < values[-1]])
            if len(cuts) == 0:
                cuts = values[:1]
        grid.append(cuts)
    return grid


def check_shape(shape, n: int) -> int | None:
    """Number of outputs of ``shape=(K, n)``; None without a shape or for ``(n,)``."""
    if shape is None:
        return None
    sizes = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    if not all(is_number(s) and isinstance(s, int | np.integer) for s in sizes):
        raise TypeError(f"shape={shape!r}: must be None or whole numbers (K, n).")
    sizes = tuple(int(s) for s in sizes)
    if sizes == (n,):
        return None
    if len(sizes) != 2 or sizes[1] != n or sizes[0] < 1:
        raise ValueError(
            f"shape={sizes}: must be (K, n), K outputs for the n={n} rows of X; leave it out for "
            "one output."
        )
    return sizes[0]


def check_outputs(leaf, n_outputs: int) -> None:
    """Several outputs have normal leaves, with one setting for all or one for each."""
    if not isinstance(leaf, LeafPrior) or not leaf.several_outputs:
        raise TypeError(
            f"leaf={leaf!r}: several outputs, shape=({n_outputs}, n), take a NormalLeaf."
        )
    for value in leaf.parameters:
        size = value.type.shape[0] if isinstance(value, Variable) and value.ndim else np.size(value)
        if (value.ndim if isinstance(value, Variable) else np.ndim(value)) and size not in (
            None,
            n_outputs,
        ):
            raise ValueError(
                f"leaf: {size} settings for {n_outputs} outputs; give one for each or one for all."
            )


def check_fixed_choices(response) -> None:
    """Settings of which this version offers one choice."""
    if response != "constant":
        raise ValueError(f"response={response!r}: only 'constant' leaves are offered.")


def check_leaf(leaf) -> LeafPrior:
    """A leaf prior."""
    if isinstance(leaf, type) and issubclass(leaf, LeafPrior):
        raise TypeError(f"leaf is the class {leaf.__name__}: give an instance, with its settings.")
    if not isinstance(leaf, LeafPrior):
        raise TypeError(
            f"leaf={leaf!r}: must be pymc_trees.NormalLeaf, NormalGammaLeaf or DirichletLeaf."
        )
    for value, signature in zip(leaf.parameters, leaf.signatures):
        ndim = value.ndim if isinstance(value, Variable) else np.ndim(value)
        if signature == "()" and ndim != 0:
            raise ValueError(
                "leaf: every setting of a leaf prior must be a scalar; several outputs, "
                "shape=(K, n), may have one each."
            )
    return leaf


def as_tensor(value):
    """Setting as a float64 tensor."""
    return pt.as_tensor(value, dtype=None if isinstance(value, Variable) else "float64")
