"""The contract of a leaf prior, and the table of registered ones.

A leaf prior is a frozen dataclass of settings, numbers or tensors, decorated with `register_leaf`;
it need not be part of this package. The name of a leaf decides nothing else: what samplers do with
it follows from the type that ``prior`` returns (`core.leaves.contract`), and from the likelihood
registered for it (`targets.likelihoods.contract`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pymc as pm
from pytensor.graph.basic import Variable

from pymc_trees.core.leaves.contract import ConstantLeaf, add_outputs, constant_leaf, n_outputs
from pymc_trees.core.order.contract import no_order
from pymc_trees.core.value.evaluate import nan_for_missing
from pymc_trees.distributions.data.named import register
from pymc_trees.distributions.data.numbers import is_number, is_random
from pymc_trees.distributions.data.table import Table


def leaf_reading(outputs: Callable, n_values: int, X: np.ndarray, constants: np.ndarray):
    """Leaf model that a kernel `LeafPrior.outputs` makes of X, `MISSING` in missing cells.

    Where leaves are constant the kernel need not be compiled.
    """
    if outputs is constant_leaf:
        return ConstantLeaf(n_values)
    return outputs(n_values, nan_for_missing(np.ascontiguousarray(X)), constants)


class LeafPrior(ABC):
    """Prior of the values of a leaf.

    Classes give the attributes below and the methods; instances are settings.
    """

    name: ClassVar[str]
    """Key of `LEAVES`; also part of the fingerprint that every encoded value carries."""
    signatures: ClassVar[tuple[str, ...]]
    """Of each parameter: ``"()"`` for a number, ``"(k)"`` for one of each output."""
    prior: ClassVar[Callable]
    """Compiled: parameters to the leaf model of `core.leaves`, without rows."""
    outputs: ClassVar[Callable] = staticmethod(constant_leaf)
    """Compiled: ``(n_values, X, constants)`` to a leaf model whose `leaf_output` reads the rows of
    X. Its values at every row unless given.

    X is (rows, p) as `evaluate` has it: columns in the order of the training inputs, numbers in
    their own units, levels as codes 0, 1, .., and NaN in every missing cell (a level that no
    training row had is one). `constants` are those of the leaf."""
    order: ClassVar[Callable] = staticmethod(no_order)
    """Compiled: constants and kinds of the columns to what the values of a tree must satisfy
    together (`core.order.contract`). Nothing unless given."""
    suffixes: ClassVar[tuple[str, ...]] = ("",)
    """Of the names of the functions that a front-end registers, see `functions`."""
    in_sums: ClassVar[bool] = False
    """Whether a forest of several trees may have it."""
    any_likelihood: ClassVar[bool] = False
    """Whether its values can be proposed where they do not integrate out."""
    several_outputs: ClassVar[bool] = False
    """Whether `of_output` and `of_outputs` make priors for several outputs of it."""
    rows_first: ClassVar[bool] = False
    """Whether the function has two dimensions, the rows first."""
    in_soft_trees: ClassVar[bool] = False
    """Whether soft trees may have it."""
    sampled_in_soft_trees: ClassVar[bool] = False
    """Whether its values are parameters there; else they are integrated out, as classes are."""

    @property
    @abstractmethod
    def parameters(self) -> tuple:
        """Inputs of the random variable."""

    @property
    @abstractmethod
    def n_values(self) -> int:
        """Values per leaf, V."""

    @property
    def n_outputs(self) -> int:
        """Outputs per row, K; no more than values."""
        return self.n_values

    @property
    def constants(self) -> np.ndarray:
        """(c,) float64 numbers that `outputs` takes in addition to X, such as a column or a knot.

        They are part of the declaration: draws of other constants belong to another model.
        """
        return np.empty(0)

    def for_inputs(self, table: Table, kinds: np.ndarray) -> "LeafPrior":
        """The prior with whatever it needs from the training rows, or an error.

        ``kinds``, empty where all columns are split by cuts, is not 0 in columns that are split by
        their levels. Ordered categories are split by cuts too: ``table.schema`` has their levels.
        """
        return self

    @classmethod
    def is_constant(cls) -> bool:
        """Whether the outputs of a leaf are its values at every row."""
        return cls.outputs is constant_leaf

    @classmethod
    def has_order(cls) -> bool:
        """Whether the values of a tree must satisfy a constraint together."""
        return cls.order is not no_order

    @classmethod
    def at_rows(cls, n_values: int, X: np.ndarray, constants: np.ndarray):
        """What `outputs` makes of inputs with `MISSING` in missing cells."""
        return leaf_reading(cls.outputs, n_values, X, constants)

    @staticmethod
    @abstractmethod
    def logp(values: Variable, *parameters: Variable) -> Variable:
        """Log-density of (L, V) leaf values, to be added up."""

    @staticmethod
    @abstractmethod
    def initial_value(k: int, *parameters: Variable) -> list:
        """V numbers or scalars, V being k: the leaf values where chains start."""

    @staticmethod
    def initial_spread(k: int, *parameters: Variable) -> list:
        """Their sds, or 0: what trees add and subtract in turn where it is random (`starts`)."""
        return [0.0] * k

    @staticmethod
    def functions(outputs: Variable):
        """Function of (n, K) outputs that users see: a variable, or one for each suffix."""
        return outputs

    @staticmethod
    def words(values: np.ndarray, constants: np.ndarray, columns: list[str]) -> list[str] | None:
        """Phrases for the (V,) values of a leaf in a picture or text; None for the usual ones.

        ``columns`` are the names of those of X.
        """
        return None

    def registered(self, name: str, functions, dims, rows: str | None, model: pm.Model):
        """Register the `functions` of a front-end, and return what users get.

        ``rows`` is the name of the rows of X, where its dimensions have names.
        """
        if not isinstance(functions, tuple):
            return register(name, functions, dims, rows, model)
        return tuple(
            register(f"{name}{suffix}", function, dims, rows, model)
            for suffix, function in zip(self.suffixes, functions, strict=True)
        )

    @staticmethod
    def are_values(values: np.ndarray) -> bool:
        """Whether finite (L, V) numbers can be leaf values."""
        return True

    def of_output(self, k: int) -> "LeafPrior":
        """Prior of output k alone."""
        raise NotImplementedError

    def of_outputs(self, n_outputs: int) -> "LeafPrior":
        """Prior of a leaf that holds all outputs."""
        raise NotImplementedError


LEAVES: dict[str, type[LeafPrior]] = {}
"""Leaf priors by name."""


def register_leaf(leaf: type[LeafPrior]) -> type[LeafPrior]:
    """Add a leaf prior, as a decorator of its class."""
    kernel = getattr(leaf.outputs, "py_func", leaf.outputs)
    if kernel.__module__ == "__main__" or "<locals>" in kernel.__qualname__:
        raise TypeError(
            f"{leaf.__name__}: outputs must be a kernel at the top level of a module that can be "
            "imported by its name, since compiled code is kept under that name."
        )
    LEAVES[leaf.name] = leaf
    return leaf


def check_outputs_at(leaf: LeafPrior, X: np.ndarray) -> None:
    """Check that a leaf that reads rows has `n_outputs` finite outputs at the training X."""
    if leaf.is_constant():
        return
    name, k = type(leaf).__name__, leaf.n_outputs
    reads = leaf.at_rows(leaf.n_values, X, np.array(leaf.constants, dtype=np.float64))
    if n_outputs(reads, leaf.n_values) != k or not 1 <= k <= leaf.n_values:
        raise TypeError(
            f"{name}: n_outputs={k} must be that of its kernel, and between 1 and "
            f"n_values={leaf.n_values}."
        )
    total = np.zeros((len(X), k))
    values = np.ones((1, leaf.n_values))
    add_outputs(reads, values, np.zeros(len(X), dtype=np.uint32), total)
    rows = np.flatnonzero(~np.isfinite(total).all(axis=1))
    if rows.size:
        raise ValueError(
            f"leaf: a {name} has no finite output at {rows.size} training rows, the first of them "
            f"row {rows[0]}. Missing cells are NaN in a leaf: impute them in the columns it uses, "
            "or use other columns."
        )


def starts(leaf: type[LeafPrior], k: int, *parameters: Variable) -> tuple[list, list]:
    """Leaf values where chains start, and what trees add to and subtract from them in turn.

    Of leaf values that all equal their mean, a random sd has an unbounded density at 0, and a chain
    that starts there stays. Leaves whose sd is known start at their mean.
    """
    spread = leaf.initial_spread(k, *parameters)
    random = [isinstance(sd, Variable) and is_random(sd) for sd in spread]
    return leaf.initial_value(k, *parameters), [
        sd if it_is else 0.0 for sd, it_is in zip(spread, random, strict=True)
    ]


def check_positive(leaf: LeafPrior, names: list[str]) -> None:
    """Settings that must be positive numbers or tensors."""
    for name in names:
        value = getattr(leaf, name)
        if not isinstance(value, Variable) and not (is_number(value) and value > 0):
            raise ValueError(
                f"{type(leaf).__name__}({name}={value!r}): {name} must be a positive number, or a "
                "random variable."
            )


def check_outputs(leaf, n_outputs: int) -> None:
    """Check that leaves can have several outputs, with one setting for all or one for each."""
    if not isinstance(leaf, LeafPrior) or not leaf.several_outputs:
        raise TypeError(
            f"leaf={leaf!r}: several outputs, shape=({n_outputs}, n), need a NormalLeaf or a "
            "LinearLeaf."
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
    """The leaf prior that was given, or an error."""
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
