"""Default leaf priors of front-ends."""

import warnings

import numpy as np
from pytensor.graph.basic import Variable

from pymc_trees.arguments import check_choice
from pymc_trees.distributions.data.table import no_batch, sees_batch
from pymc_trees.distributions.leaves.contract import LeafPrior
from pymc_trees.distributions.leaves.linear import LinearLeaf
from pymc_trees.distributions.leaves.normal import NormalLeaf
from pymc_trees.predictors.columns import check_held, real_array

P_CONSTANT = {"linear": 0.0, "mix": 0.5}
"""Probability that a leaf below a split is constant, by `response`."""


def with_response(leaf: LeafPrior, response: str) -> LeafPrior:
    """Leaf with the form `response`: the slopes of lines have the sd of the leaf values."""
    if check_choice("response", response, ("constant", *P_CONSTANT)) == "constant":
        return leaf
    if not isinstance(leaf, NormalLeaf):
        raise ValueError(
            f"response={response!r} replaces a NormalLeaf, but leaf={leaf!r}: leave response out, "
            "or give leaf=pymc_trees.LinearLeaf(mean, sd, slope_sd)."
        )
    return LinearLeaf(leaf.mean, leaf.sd, leaf.sd, p_constant=P_CONSTANT[response])


def default_leaf(Y, n: int, m: int, k: float = 2.0, n_outputs: int = 1) -> NormalLeaf:
    """Normal leaf that gives f the range of Y (Chipman 2010, section 2.2.3 and section 4).

    The interval of k prior standard deviations about the prior mean of f is the range of Y, or
    (-3, 3) on the latent scale when Y holds only 0 and 1, or the codes of as many classes as there
    are outputs. A column for each output gives each its own.
    """
    if Y is None:
        raise ValueError(
            "Y=None sets no scale for the leaves: give Y, or leaf=pymc_trees.NormalLeaf(mean, sd)."
        )
    if isinstance(Y, Variable):
        if sees_batch([Y]):
            raise TypeError(no_batch("Y"))
        Y = Y.get_value() if hasattr(Y, "get_value") else Y.eval()
    check_held(Y, "Y")
    try:
        y = real_array(Y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Y must hold numbers only ({error}).") from error
    if n_outputs > 1 and y.shape == (n, n_outputs):
        each = [default_leaf(column, n, m, k) for column in y.T]
        return NormalLeaf([one.mean for one in each], [one.sd for one in each])
    if y.shape == (n, 1):
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"Y has shape {y.shape}, but X has {n} rows: Y must have shape ({n},).")
    if n == 0:
        raise ValueError("X has no rows: a forest needs at least one training row.")
    if not np.isfinite(y).all():
        raise ValueError(
            "Y holds NaN or infinite values: remove those rows, or set the leaf yourself with "
            "leaf=pymc_trees.NormalLeaf(mean, sd)."
        )
    low, high = y.min(), y.max()
    if low == high:
        raise ValueError(
            f"Y has the one value {low}, which sets no scale for the leaves: give "
            "leaf=pymc_trees.NormalLeaf(mean, sd)."
        )
    latent = NormalLeaf(0.0, 3.0 / (k * np.sqrt(m)))
    if np.isin(y, (0, 1)).all():
        return latent
    if n_outputs > 1 and np.isin(y, np.arange(n_outputs)).all():
        warnings.warn(
            f"Y holds whole numbers from 0 to {n_outputs - 1}, and there are {n_outputs} outputs: "
            "they are taken as class codes, and the leaves have the scale of logits, "
            f"{latent}. If Y is on the scale of the outputs, give leaf=.",
            UserWarning,
            stacklevel=2,
        )
        return latent
    return NormalLeaf((high + low) / (2 * m), (high - low) / (2 * k * np.sqrt(m)))
