"""Settings of a forest, checked before anything is built: one function a setting."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_trees.arguments import check_number
from pymc_trees.distributions.data.numbers import is_number
from pymc_trees.distributions.leaves.contract import LeafPrior


def check_m(m) -> int:
    """Number of trees."""
    return check_number("m", m, 1, more=", the number of trees")


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
        raise ValueError(f"beta={beta}: must be at least 0; larger values give smaller trees.")
    return alpha, beta


def shape_of_dims(dims, n: int, model: pm.Model) -> tuple[int, int] | None:
    """``(K, n)`` when dims name outputs and rows, K being the length of the first; else None."""
    if dims is None or isinstance(dims, str) or len(dims) != 2:
        return None
    length = model.dim_lengths.get(dims[0])
    if length is None:
        raise ValueError(
            f"dims={tuple(dims)}: the model has no dimension {dims[0]!r}, whose length is the "
            f"number of outputs. Give pm.Model(coords={{{dims[0]!r}: ...}}), or shape=(K, {n})."
        )
    return int(length.eval()), n


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
            f"shape={sizes}: must be (K, n) for K outputs and the n={n} rows of X; leave it out "
            "for one output."
        )
    return sizes[0]


def check_outputs(leaf, n_outputs: int) -> None:
    """Several outputs have normal leaves, with one setting for all or one for each."""
    if not isinstance(leaf, LeafPrior) or not leaf.several_outputs:
        raise TypeError(
            f"leaf={leaf!r}: several outputs, shape=({n_outputs}, n), need a NormalLeaf."
        )
    for value in leaf.parameters:
        size = value.type.shape[0] if isinstance(value, Variable) and value.ndim else np.size(value)
        if (value.ndim if isinstance(value, Variable) else np.ndim(value)) and size not in (
            None,
            n_outputs,
        ):
            raise ValueError(
                f"leaf: {size} values for {n_outputs} outputs; give one for each output or one "
                "for all."
            )


def check_leaf(leaf) -> LeafPrior:
    """A leaf prior."""
    if isinstance(leaf, type) and issubclass(leaf, LeafPrior):
        raise TypeError(f"leaf is the class {leaf.__name__}: give an instance, with its settings.")
    if not isinstance(leaf, LeafPrior):
        raise TypeError(
            f"leaf={leaf!r}: must be a leaf prior, for example pymc_trees.NormalLeaf(mean, sd)."
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
