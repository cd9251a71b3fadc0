"""The function of X that a forest variable stands for, as a PyTensor Op."""

import numba
import numpy as np
from pytensor.graph.basic import Variable
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.xtensor.basic import xtensor_from_tensor

from pymc_trees._version import KERNELS_VERSION
from pymc_trees.core.value.fields import Layout, Sizes
from pymc_trees.distributions.data.named import dims_of, is_named, rows_dim, unnamed
from pymc_trees.distributions.data.table import encode, schema_of
from pymc_trees.distributions.forest_inputs import FunctionOfRows, forest_inputs, training_rows
from pymc_trees.distributions.leaves.contract import LEAVES
from pymc_trees.distributions.ops.by_name import (
    N_SIZES,
    ONLY_KNOWN,
    evaluation_of,
    outputs_at,
    sizes_of,
    walk_in_threads,
)
from pymc_trees.distributions.ops.forest_rv import ForestRV
from pymc_trees.distributions.ops.soft_forest_rv import SoftForestRV, evaluate_soft
from pymc_trees.predictors.columns import Schema

NO_GRADIENT_OF_FUNCTION = (
    "The function of a forest has no gradient with respect to its trees, nor to random columns of "
    "X: leave both to pm.sample(), which assigns pymc_trees.Hybrid and pymc_trees.LatentColumn; "
    "find_MAP, fit and other methods that need gradients of every variable cannot treat a forest."
)
N_OUTPUTS = Sizes._fields.index("n_outputs")


class Evaluate(FunctionOfRows):
    """Outputs of an encoded forest at the rows of X, shape (rows of X, K).

    Its other inputs are the X of the declaration, its fingerprint, the constants of the leaf and
    `sizes_of` the layout.
    """

    __props__ = ("layout", "leaf")
    gufunc_signature = "(r,f),(n,p),(t,p),(),(c),(s)->(n,k)"

    def __init__(self, layout: Layout, leaf: str):
        self.layout = Layout(*layout)
        self.n_outputs = self.layout.n_outputs
        self.leaf, self.leaf_type = leaf, LEAVES[leaf]

    def perform(self, node, inputs, outputs):
        """Evaluate."""
        value, X, X_train, fingerprint, constants, _ = inputs
        kernel = evaluation_of(self.leaf_type.outputs)
        outputs[0][0] = outputs_at(kernel, value, X, X_train, constants, self.layout, fingerprint)

    def pullback(self, inputs, outputs, cotangents):
        """Raise an error: a tree is a step function."""
        raise NotImplementedError(NO_GRADIENT_OF_FUNCTION)


@register_funcify_and_cache_key(Evaluate)
def _numba_evaluate(op, node, **kwargs):
    kernel = evaluation_of(op.leaf_type.outputs)
    call, name = kernel.link(), kernel.name

    @numba_njit
    def evaluate_forest(value, X, X_train, fingerprint, constants, sizes):
        value, X = np.ascontiguousarray(value), np.ascontiguousarray(X)
        X_train, constants = np.ascontiguousarray(X_train), np.ascontiguousarray(constants)
        out = np.empty((X.shape[0], sizes[N_OUTPUTS]))
        numbers = np.empty(N_SIZES + 5, dtype=np.int64)
        for k in range(N_SIZES):
            numbers[k] = sizes[k]
        numbers[N_SIZES], numbers[N_SIZES + 1] = X.shape
        numbers[N_SIZES + 2] = X_train.shape[1]
        numbers[N_SIZES + 3] = constants.size
        numbers[N_SIZES + 4] = ONLY_KNOWN
        number = fingerprint.item()
        code = call(
            value.ctypes,
            X.ctypes,
            X_train.ctypes,
            constants.ctypes,
            numbers.ctypes,
            number,
            out.ctypes,
        )
        if code:
            with numba.objmode():
                walk_in_threads(name, code, value, X, X_train, constants, numbers, number, out)
        return out

    return evaluate_forest, f"{name} {KERNELS_VERSION}"


def evaluate(forest: Variable, X):
    """Evaluate a forest variable at the rows of X.

    Parameters
    ----------
    forest : TensorVariable
        Made by `Forest`, or the one that `SoftBART` registered.
    X : (n, p) array or tensor
        Inputs with the columns of the training inputs, in the same order. NaN is a missing cell,
        which goes to the side where each split sends missing cells. Where no training cell was
        missing, that side is a fair coin of each split of each draw.

    Returns
    -------
    TensorVariable or tuple of two
        Shape (n,) for a `NormalLeaf`, or (K, n) for K outputs that share their trees; two of shape
        (n,), mean and precision, for a `NormalGammaLeaf`; shape (n, n_classes) for a
        `DirichletLeaf`; for a custom leaf, whatever its `functions` return for (n, K) outputs. NaN
        when the value of the forest is not a valid encoding.

    Examples
    --------
    >>> import numpy as np, pymc as pm, pymc_trees as pmt
    >>> X = np.linspace(0, 1, 20).reshape(-1, 1)
    >>> with pm.Model():
    ...     forest = pmt.Forest("trees", X, m=3, leaf=pmt.NormalLeaf(0, 1))
    ...     f = pmt.evaluate(forest, X)
    >>> pm.draw(f, random_seed=1).shape
    (20,)
    """
    op = forest.owner.op if isinstance(forest, Variable) and forest.owner else None
    if not isinstance(op, ForestRV | SoftForestRV):
        raise TypeError(
            "forest must be the variable returned by pymc_trees.Forest (BART and SoftBART "
            "register it as '<name>_forest')."
        )
    if is_named(X):
        return _named(evaluate(forest, unnamed(X)), rows_dim(dims_of(X)))
    if not isinstance(X, Variable):
        X = encode(X, schema_of(forest) or Schema.of_numbers(training_rows(forest).shape[1]))
    if isinstance(op, SoftForestRV):
        return evaluate_soft(forest, X)
    declared, sizes = forest_inputs(forest), sizes_of(op.layout)
    out = Evaluate(op.layout, op.leaf)(
        forest, X, declared.X, declared.fingerprint, declared.constants, sizes
    )
    return op.leaf_type.functions(out)


def _named(functions, rows: str | None):
    """Functions of inputs whose rows have a name."""
    if isinstance(functions, tuple):
        return tuple(_named(function, rows) for function in functions)
    if functions.ndim != 1:
        raise ValueError(
            "X has named dimensions, but the function has others than the rows: evaluate it at "
            "X.values, and name them all by pymc.dims.as_xtensor(..., dims=...)."
        )
    return xtensor_from_tensor(functions, (rows,))
